//! Two servers of one repository: git data is pushed to the first, and the second is told of the events alone.

use crate::grasp::setup::{Setup, WAITS, now, npub, state};
use crate::support::{assert_healthy, builder};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Nostr, Server, ServerBuilder, eventually, http};
use serde_json::{Value, json};
use std::time::Duration;

/// Far longer than a fetch takes; only a failing test waits so long.
pub const SOON: Duration = Duration::from_secs(30);

/// A server that fetches at once, also from this machine.
pub fn fetching(engine: Engine) -> ServerBuilder {
    builder(engine)
        .env("ABIDE_SYNC__PUBLISHED_DELAY", "10ms")
        .env("ABIDE_SYNC__SYNCED_DELAY", "10ms")
        .env("ABIDE_OUTBOUND__ALLOW", "127.0.0.0/8")
}

/// The first server, with a client that pushes to it, and the second one.
pub struct Pair {
    pub first: Setup,
    pub second: Server,
    pub relay: Nostr,
}

impl Pair {
    pub fn new(engine: Engine) -> Self {
        Self::with(engine, |builder| builder)
    }

    /// A pair whose second server has other settings.
    pub fn with(engine: Engine, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let second = change(fetching(engine)).start();
        let relay = Nostr::connect(&second.url());
        Self { first: Setup::new(Engine::Sqlite), second, relay }
    }

    /// Clone URLs of a key's repository on both servers.
    pub fn urls(&self, key: &Key, identifier: &str) -> [String; 2] {
        [self.first.server.url(), self.second.url()].map(|server| format!("{server}/{}/{identifier}.git", npub(key)))
    }

    /// An announcement that lists both servers, and further clone URLs.
    pub fn announcement(&self, key: &Key, identifier: &str, more: &[&str]) -> Event {
        let urls = self.urls(key, identifier);
        let relays = [self.first.server.url(), self.second.url()].map(|url| url.replacen("http", "ws", 1));
        let mut clone = vec!["clone"];
        clone.extend(more);
        clone.extend(urls.iter().map(String::as_str));
        let relays = ["relays", &relays[0], &relays[1]];
        key.event(now() - 100, 30_617, &[&["d", identifier], &clone, &relays], "")
    }

    /// A repository with one commit that the first server serves. Returns its events.
    pub fn served_by_first(&mut self, key: &Key, identifier: &str) -> (Event, Event) {
        let announcement = self.announcement(key, identifier, &[]);
        let first = self.first.first.clone();
        let said = state(key, now() - 90, identifier, &[("refs/heads/main", &first)], Some("main"));
        assert_eq!(self.first.relay.publish(&announcement), (true, WAITS.to_owned()));
        self.first.state_waits(&said);
        self.first.push(key, identifier, &["main"]);
        (announcement, said)
    }

    /// Tells the second server of an event, which then waits.
    #[track_caller]
    pub fn tell_second(&mut self, event: &Event) {
        assert_eq!(self.relay.publish(event), (true, WAITS.to_owned()));
    }

    /// Whether the second server serves an event.
    pub fn second_serves(&mut self, event: &Event) -> bool {
        !self.relay.req(&[json!({ "ids": [event.id.to_hex()] })]).is_empty()
    }

    /// Waits until the second server serves an event.
    #[track_caller]
    pub fn until_second_serves(&mut self, event: &Event) {
        let url = self.second.url();
        eventually(SOON, || {
            let mut relay = Nostr::connect(&url);
            !relay.req(&[json!({ "ids": [event.id.to_hex()] })]).is_empty()
        });
    }

    /// The refs that the second server lists.
    pub fn refs_of_second(&self, key: &Key, identifier: &str) -> Vec<(String, String)> {
        refs_at(&self.first, &self.urls(key, identifier)[1])
    }

    /// The API's status of a repository on the second server.
    pub fn status(&self, key: &Key, identifier: &str) -> Value {
        let path = format!("/api/v3/grasp/{}/{identifier}/status", npub(key));
        let answer = http::get(self.second.http_addr(), &path, None);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// Outcomes of the URLs that the second server has tried for a repository, by URL.
    pub fn outcomes(&self, key: &Key, identifier: &str) -> Vec<(String, String)> {
        let status = self.status(key, identifier);
        let sources = status["search"]["sources"].as_array().cloned().unwrap_or_default();
        let text = |source: &Value, name: &str| source[name].as_str().unwrap_or_default().to_owned();
        sources.iter().map(|source| (text(source, "url"), text(source, "outcome"))).collect()
    }

    pub fn assert_healthy(&self) {
        assert_healthy(&self.first.server);
        assert_healthy(&self.second);
    }
}

/// The refs that git lists at a URL.
pub fn refs_at(setup: &Setup, url: &str) -> Vec<(String, String)> {
    let listed = setup.git.ok(&setup.work, &["ls-remote", url]);
    let pair = |line: &str| line.split_once('\t').map(|(oid, name)| (name.to_owned(), oid.to_owned()));
    listed.lines().filter_map(pair).collect()
}
