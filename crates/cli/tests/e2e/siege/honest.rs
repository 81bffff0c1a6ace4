//! The honest client: an account with a repository, and a nostr key with one, both used all the time.

use crate::grasp::scene::{encoded, npub, state};
use crate::support::{Person, person};
use abide_testkit::{GitClient, Key, Nostr, Server, http};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub struct Honest {
    alice: Person,
    key: Key,
    relay: Nostr,
    work: PathBuf,
    rounds: u32,
}

/// How long each kind of work took.
#[derive(Default)]
pub struct Times(BTreeMap<&'static str, Duration>);

impl Times {
    /// The longer one of each.
    pub fn max(mut self, other: &Self) -> Self {
        for (name, time) in &other.0 {
            let own = self.0.entry(name).or_default();
            *own = (*own).max(*time);
        }
        self
    }

    /// A table of these times and those of an idle server.
    pub fn beside(&self, idle: &Self) -> String {
        let mut text = String::new();
        for (name, time) in &self.0 {
            let before = idle.0.get(name).copied().unwrap_or_default();
            let ratio = time.as_secs_f64() / before.as_secs_f64().max(1e-6);
            let _ = writeln!(text, "{name:<16} idle {before:>9.1?}  worst under attack {time:>9.1?}  {ratio:.1}x");
        }
        text
    }
}

impl Honest {
    pub fn arrive(server: &Server) -> Self {
        let alice = person(server, "alice").with_ssh(server);
        alice.create(server, "demo", false);
        let work = alice.git.init_work_tree();
        let first = alice.git.commit_file(&work, "README.md", "hello\n", "first");
        alice.git.ok(&work, &["push", &server.http_url("alice", "demo"), "main"]);
        let (key, mut relay) = (Key::new(7), Nostr::connect(&server.url()));
        let url = format!("{}/{}/{}.git", server.url(), npub(&key), encoded("kept"));
        let socket = server.url().replacen("http", "ws", 1);
        let tags: &[&[&str]] = &[&["d", "kept"], &["clone", &url], &["relays", &socket]];
        assert!(relay.publish(&key.event(Key::now() - 10, 30_617, tags, "")).0);
        assert!(relay.publish(&state(&key, Key::now() - 5, "kept", &[("refs/heads/main", &first)], Some("main"))).0);
        GitClient::new().ok(&work, &["push", &url, "main"]);
        Self { alice, key, relay, work, rounds: 0 }
    }

    /// One of everything; each has to work.
    pub fn round(&mut self, server: &Server) -> Times {
        self.rounds += 1;
        let mut times = Times::default();
        let addr = server.http_addr();
        timed(&mut times, "health", || assert_eq!(http::get(addr, "/healthz", None).status, 200));
        timed(&mut times, "page", || assert_eq!(http::get(addr, "/alice/demo", None).status, 200));
        timed(&mut times, "blame", || {
            assert_eq!(http::get(addr, "/alice/demo/blame/main/README.md", None).status, 200);
        });
        let git = &self.alice.git;
        let (http, ssh) = (server.http_url("alice", "demo"), server.ssh_url("alice", "demo"));
        timed(&mut times, "clone http", || git.ok(&git.fresh_dir(), &["clone", "-q", &http, "copy"]));
        timed(&mut times, "clone ssh", || git.ok(&git.fresh_dir(), &["clone", "-q", &ssh, "copy"]));
        let text = format!("round {}\n", self.rounds);
        git.commit_file(&self.work, "README.md", &text, "more");
        timed(&mut times, "push http", || git.ok(&self.work, &["push", "-q", &http, "main"]));
        git.commit_file(&self.work, "README.md", text + "\n", "more");
        timed(&mut times, "push ssh", || git.ok(&self.work, &["push", "-q", &ssh, "main"]));
        let coordinate = self.key.coordinate("kept");
        let subject = format!("round {}", self.rounds);
        let issue = self.key.event(Key::now(), 1621, &[&["a", &coordinate], &["subject", &subject]], "text");
        let relay = &mut self.relay;
        timed(&mut times, "relay publish", || assert_eq!(relay.publish(&issue), (true, String::new())));
        timed(&mut times, "relay connect", || Nostr::connect(&server.url()));
        times
    }
}

fn timed<T>(times: &mut Times, name: &'static str, work: impl FnOnce() -> T) {
    #[allow(clippy::disallowed_methods, reason = "what is measured is real time")]
    let start = Instant::now();
    work();
    times.0.insert(name, start.elapsed());
}
