//! The honest client: an account with repositories, and a nostr key with one, all used all the time.

use super::times::Times;
use crate::git::bombs::noise;
use crate::grasp::setup::{encoded, npub, state};
use crate::support::{Person, person};
use abide_testkit::{GitClient, Key, Nostr, Server, http};
use std::io::Write;
use std::path::PathBuf;

/// Files of the repository with a history, and its commits.
pub const FILES: usize = 20;
const COMMITS: usize = 120;

/// Bytes of the repository that is large: more than the buffers of a connection.
const LARGE: usize = 12 << 20;

pub struct Honest {
    pub alice: Person,
    pub key: Key,
    relay: Nostr,
    pub work: PathBuf,
    /// The first commit of the work tree.
    pub tip: String,
    pub commits: Vec<String>,
    pub large: String,
    /// A file of that one.
    pub blob: String,
    rounds: u32,
}

impl Honest {
    pub fn arrive(server: &Server) -> Self {
        let alice = person(server, "alice").with_ssh(server);
        let work = alice.git.init_work_tree();
        let tip = alice.git.commit_file(&work, "README.md", "hello\n", "first");
        alice.create(server, "demo", false);
        alice.git.ok(&work, &["push", "-q", &server.http_url("alice", "demo"), "main"]);
        let commits = with_history(server, &alice);
        let (large, blob) = with_much(server, &alice);
        let (key, mut relay) = (Key::new(7), Nostr::connect(&server.url()));
        let url = format!("{}/{}/{}.git", server.url(), npub(&key), encoded("kept"));
        let socket = server.url().replacen("http", "ws", 1);
        let tags: &[&[&str]] = &[&["d", "kept"], &["clone", &url], &["relays", &socket]];
        assert!(relay.publish(&key.event(Key::now() - 10, 30_617, tags, "")).0);
        assert!(relay.publish(&state(&key, Key::now() - 5, "kept", &[("refs/heads/main", &tip)], Some("main"))).0);
        GitClient::new().ok(&work, &["push", "-q", &url, "main"]);
        Self { alice, key, relay, work, tip, commits, large, blob, rounds: 0 }
    }

    /// One of everything; each has to work.
    pub fn round(&mut self, server: &Server, times: &mut Times) {
        self.rounds += 1;
        let addr = server.http_addr();
        times.measure("health", || assert_eq!(http::get(addr, "/healthz", None).status, 200));
        // Its README is another one after each push, so it is rendered anew.
        times.measure("page", || assert_eq!(http::get(addr, "/alice/demo", None).status, 200));
        times.measure("blame", || assert_eq!(http::get(addr, "/alice/demo/blame/main/README.md", None).status, 200));
        let git = &self.alice.git;
        let (http, ssh) = (server.http_url("alice", "demo"), server.ssh_url("alice", "demo"));
        times.measure("clone over HTTP", || git.ok(&git.fresh_dir(), &["clone", "-q", &http, "copy"]));
        times.measure("clone over SSH", || git.ok(&git.fresh_dir(), &["clone", "-q", &ssh, "copy"]));
        let text = format!("round {}\n", self.rounds);
        git.commit_file(&self.work, "README.md", &text, "more");
        times.measure("push over HTTP", || git.ok(&self.work, &["push", "-q", &http, "main"]));
        git.commit_file(&self.work, "README.md", text + "\n", "more");
        times.measure("push over SSH", || git.ok(&self.work, &["push", "-q", &ssh, "main"]));
        let coordinate = self.key.coordinate("kept");
        let subject = format!("round {}", self.rounds);
        let issue = self.key.event(Key::now(), 1621, &[&["a", &coordinate], &["subject", &subject]], "text");
        let relay = &mut self.relay;
        times.measure("publish", || assert_eq!(relay.publish(&issue), (true, String::new())));
        times.measure("relay connection", || Nostr::connect(&server.url()));
    }
}

/// A repository whose files change in many commits; returns the commits.
fn with_history(server: &Server, alice: &Person) -> Vec<String> {
    alice.create(server, "history", false);
    let git = &alice.git;
    let dir = git.init_work_tree();
    git.feed(&dir, &["fast-import", "--quiet", "--done"], |out| {
        (0..COMMITS).try_for_each(|at| commit(out, at)).and_then(|()| writeln!(out, "done"))
    });
    git.ok(&dir, &["push", "-q", &server.http_url("alice", "history"), "main"]);
    git.ok(&dir, &["rev-list", "main", &format!("--max-count={}", COMMITS / 2)]).lines().map(str::to_owned).collect()
}

/// A commit in which one line in seven of every file is another one.
fn commit(out: &mut dyn Write, at: usize) -> std::io::Result<()> {
    writeln!(out, "commit refs/heads/main\ncommitter Person <p@example.org> {} +0000", 1_767_225_600 + at)?;
    writeln!(out, "data 4\nmore")?;
    for file in 0..FILES {
        let line = |number: usize| {
            let last = at.saturating_sub((at + 700 - number % 7) % 7);
            format!("{file} {number} {last}\n")
        };
        let text: String = (0..1000).map(line).collect();
        writeln!(out, "M 100644 inline file{file}\ndata {}\n{text}", text.len())?;
    }
    writeln!(out)
}

/// A repository with files that take long to send; returns its commit and the largest file that is sent as JSON.
fn with_much(server: &Server, alice: &Person) -> (String, String) {
    alice.create(server, "large", false);
    let dir = alice.git.init_work_tree();
    alice.git.commit_file(&dir, "blob", &noise(LARGE)[..9 << 20], "blob");
    let code: String = (0..25_000).map(|line| format!("    let value_{line} = \"{line}\";\n")).collect();
    alice.git.commit_file(&dir, "code.rs", &code, "code");
    let commit = alice.git.commit_file(&dir, "noise", noise(LARGE), "noise");
    alice.git.ok(&dir, &["push", "-q", &server.http_url("alice", "large"), "main"]);
    (commit, alice.git.ok(&dir, &["rev-parse", "HEAD:blob"]).trim().to_owned())
}
