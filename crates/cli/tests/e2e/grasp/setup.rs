//! A server, someone with a key, and a work tree with a commit.

use crate::support::{assert_healthy, builder};
use abide_nostr::{Event, nip19};

use abide_testkit::{Engine, GitClient, Key, Nostr, Server, http};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Text that clients look for in the answer to a waiting event.
pub const WAITS: &str = "purgatory: won't be served until git data arrives";

/// Common start of every scenario.
pub struct Setup {
    pub server: Server,
    pub relay: Nostr,
    pub owner: Key,
    pub git: GitClient,
    pub work: PathBuf,
    /// The first commit in the work tree.
    pub first: String,
}

impl Setup {
    pub fn new(engine: Engine) -> Self {
        Self::on(builder(engine).start())
    }

    pub fn on(server: Server) -> Self {
        let git = GitClient::new();
        let work = git.init_work_tree();
        let first = git.commit_file(&work, "README.md", "hello\n", "first");
        let relay = Nostr::connect(&server.url());
        Self { server, relay, owner: Key::new(1), git, work, first }
    }

    /// Where git finds a key's repository.
    pub fn url(&self, key: &Key, identifier: &str) -> String {
        format!("{}/{}/{}.git", self.server.url(), npub(key), encoded(identifier))
    }

    /// The announcement of a repository here, with further tags.
    pub fn announcement(&self, key: &Key, at: u64, identifier: &str, more: &[&[&str]]) -> Event {
        let clone = self.url(key, identifier);
        let relays = self.server.url().replacen("http", "ws", 1);
        let mut tags: Vec<&[&str]> = Vec::new();
        let (d, c, r) = (["d", identifier], ["clone", clone.as_str()], ["relays", relays.as_str()]);
        tags.extend([&d[..], &c[..], &r[..]]);
        tags.extend(more);
        key.event(at, 30_617, &tags, "")
    }

    /// Announces a repository, which then waits.
    pub fn announce(&mut self, key: &Key, identifier: &str, more: &[&[&str]]) -> Event {
        let event = self.announcement(key, now() - 10, identifier, more);
        assert_eq!(self.relay.publish(&event), (true, WAITS.to_owned()));
        event
    }

    /// Publishes a state; whatever the answer is.
    pub fn say(&mut self, state: &Event) -> (bool, String) {
        self.relay.publish(state)
    }

    /// Publishes a state that waits.
    pub fn state_waits(&mut self, state: &Event) {
        assert_eq!(self.relay.publish(state), (true, WAITS.to_owned()));
    }

    /// Pushes to a key's repository; succeeds.
    pub fn push(&self, key: &Key, identifier: &str, refs: &[&str]) -> String {
        let url = self.url(key, identifier);
        let mut args = vec!["push", &url];
        args.extend(refs);
        let pushed = self.git.run(&self.work, &args);
        let reported = String::from_utf8_lossy(&pushed.stderr).into_owned();
        assert!(pushed.status.success(), "{reported}\n{}", self.server.log());
        reported
    }

    /// Pushes to a key's repository; fails, and returns what git said.
    pub fn push_fails(&self, key: &Key, identifier: &str, refs: &[&str]) -> String {
        let url = self.url(key, identifier);
        let mut args = vec!["push", &url];
        args.extend(refs);
        self.git.fails(&self.work, &args)
    }

    /// A repository with one commit on main that is served: its announcement and its state.
    pub fn served(&mut self, key: &Key, identifier: &str, more: &[&[&str]]) -> (Event, Event) {
        let announcement = self.announce(key, identifier, more);
        let state = state(key, now() - 5, identifier, &[("refs/heads/main", &self.first)], Some("main"));
        self.state_waits(&state);
        self.push(key, identifier, &["main"]);
        (announcement, state)
    }

    /// The refs that git lists.
    pub fn refs(&self, key: &Key, identifier: &str) -> Vec<(String, String)> {
        let listed = self.git.ok(&self.work, &["ls-remote", &self.url(key, identifier)]);
        let pair = |line: &str| line.split_once('\t').map(|(oid, name)| (name.to_owned(), oid.to_owned()));
        listed.lines().filter_map(pair).collect()
    }

    /// Whether an event is served.
    pub fn is_served(&mut self, event: &Event) -> bool {
        !self.relay.req(&[json!({ "ids": [event.id.to_hex()] })]).is_empty()
    }

    /// The API's status of a key's repository.
    pub fn status(&self, key: &Key, identifier: &str) -> http::Response {
        http::get(self.server.http_addr(), &format!("/api/v3/grasp/{}/{identifier}/status", npub(key)), None)
    }

    /// Runs the sweep now.
    pub fn sweep(&self) {
        self.server.cli_ok(&["jobs", "run", "grasp:sweep"]);
    }

    /// A value of the metrics.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let text = http::get(self.server.http_addr(), "/metrics", None).text();
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    pub fn assert_healthy(&self) {
        assert_healthy(&self.server);
    }

    /// The directories of repositories on disk.
    pub fn directories(&self) -> Vec<PathBuf> {
        let root = self.server.data_dir().join("repos");
        let shards = std::fs::read_dir(root).into_iter().flatten().flatten();
        let dirs = shards.flat_map(|shard| std::fs::read_dir(shard.path()).into_iter().flatten().flatten());
        dirs.map(|entry| entry.path()).collect()
    }
}

/// An identifier as it is written into an address.
pub fn encoded(identifier: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let one = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    identifier.bytes().map(one).collect()
}

/// The key as people write it.
pub fn npub(key: &Key) -> String {
    nip19::npub(&key.public())
}

/// The machine's time in seconds.
pub fn now() -> u64 {
    Key::now()
}

/// A signed state.
pub fn state(key: &Key, at: u64, identifier: &str, refs: &[(&str, &str)], head: Option<&str>) -> Event {
    let head = head.map(|branch| format!("ref: refs/heads/{branch}"));
    let mut tags: Vec<Vec<&str>> = vec![vec!["d", identifier]];
    tags.extend(refs.iter().map(|(name, oid)| vec![*name, *oid]));
    tags.extend(head.as_deref().map(|head| vec!["HEAD", head]));
    let tags: Vec<&[&str]> = tags.iter().map(Vec::as_slice).collect();
    key.event(at, 30_618, &tags, "")
}

/// Text of so many characters that hardly becomes shorter by packing.
pub fn noise(seed: u32, len: usize) -> String {
    let next = |last: &mut u32, _| {
        *last = last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(char::from(33 + (*last >> 24) as u8 % 90))
    };
    (0..len).scan(seed, next).collect()
}

/// A filter for a key's announcement and states.
pub fn of(key: &Key, identifier: &str) -> Value {
    json!({ "authors": [key.public().to_hex()], "#d": [identifier] })
}
