//! A repository turns private and public again: what every reader of the log shows, to someone who lost access and to a
//! stranger. The readers are in one table, so that a new one is not forgotten.

use crate::beside::Beside as _;
use crate::pages::logged_in;
use crate::support::{Person, builder, person, query, settled};
use crate::webhooks::receiver::Receiver;
use abide_testkit::http::{self, Request};
use abide_testkit::{Engine, Server, eventually};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

struct World {
    server: Server,
    alice: Person,
    bob: Person,
    /// bob's, for his inbox.
    inbox: String,
    receiver: Receiver,
}

impl World {
    #[track_caller]
    fn send(&self, method: &str, path: &str, token: &str, body: Value) -> Value {
        let path = format!("/api/v3{path}");
        let answer = Request::new(method, &path).token(Some(token)).json(&body).send(self.server.http_addr());
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
        if answer.text().is_empty() { Value::Null } else { answer.json() }
    }

    /// Response of a URL, for a token or for a stranger; empty if there is none.
    fn get(&self, path: &str, token: Option<&str>) -> String {
        let answer = http::get(self.server.http_addr(), path, token);
        assert!([200, 404].contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
        if answer.status == 200 { answer.text() } else { String::new() }
    }

    /// Everything a stream tells from the beginning of the log on, up to a repository that is made now for this.
    fn stream(&self, token: Option<&str>, marker: &str) -> String {
        self.alice.create(&self.server, marker, false);
        let mut socket = TcpStream::connect(self.server.http_addr()).expect("the server listens");
        socket.set_read_timeout(Some(SOON)).expect("a socket takes a timeout");
        let auth = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let ask = format!("GET /api/v3/events/stream?after=0 HTTP/1.1\r\nHost: abide\r\n{auth}\r\n");
        socket.write_all(ask.as_bytes()).expect("the server reads");
        let mut reported = String::new();
        for line in BufReader::new(socket).lines() {
            let line = line.expect("the marker comes in time");
            reported.push_str(&line);
            reported.push('\n');
            if line.contains(&format!("alice/{marker}\"")) {
                return reported;
            }
        }
        panic!("the stream ended: {reported}");
    }

    /// Output of every reader: its name and its content. `marker` names the event up to which streams are read.
    fn readers(&self, marker: &str) -> Vec<(String, String)> {
        let bob = self.bob.token.as_str();
        let browser = logged_in(&self.server, "bob");
        let mut all = Vec::new();
        for path in ["/api/v3/notifications?all=true", "/api/v3/repos/alice/tool/notifications?all=true"] {
            all.push((format!("inbox {path}"), self.get(path, Some(&self.inbox))));
        }
        for page in ["/notifications", "/notifications?all=1", "/", "/bob/activity", "/bob?tab=stars"] {
            all.push((format!("bob's page {page}"), browser.page(page)));
        }
        for page in
            ["/explore/activity", "/alice/activity", "/trending?since=day", "/bob?tab=stars", "/alice/tool/activity"]
        {
            all.push((format!("page {page}"), self.get(page, None)));
        }
        for feed in ["/explore/atom", "/alice/atom", "/bob/atom", "/alice/tool/activity.atom"] {
            all.push((format!("Atom {feed}"), self.get(feed, None)));
        }
        all.push(("Atom /home/atom".into(), self.get("/home/atom", Some(bob))));
        for list in [
            "/events",
            "/users/alice/events",
            "/users/bob/events/public",
            "/users/bob/received_events",
            "/users/bob/starred",
            "/repos/alice/tool/events",
        ] {
            all.push((format!("API {list} to bob"), self.get(&format!("/api/v3{list}"), Some(bob))));
            all.push((format!("API {list}"), self.get(&format!("/api/v3{list}"), None)));
        }
        all.push(("stream to bob".into(), self.stream(Some(bob), &format!("{marker}-bob"))));
        all.push(("stream".into(), self.stream(None, marker)));
        all
    }

    /// Everything that was mailed to bob.
    fn mails(&self) -> String {
        let outbox = self.server.data_dir().join("outbox");
        let files = fs::read_dir(outbox).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.filter(|mail| mail.contains("To: bob@example.org")).collect::<Vec<_>>().join("\n")
    }
}

/// alice's repository with an issue that bob, who watches and stars it, was told of in every way there is.
fn world(engine: Engine) -> World {
    let server = builder(engine).env("ABIDE_OUTBOUND__ALLOW", "127.0.0.1").start();
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    query(&server, "UPDATE emails SET verified_at = 1");
    alice.create(&server, "tool", false);
    let inbox = server.add_token("bob", "notifications,repo:read");
    let world = World { server, alice, bob, inbox, receiver: Receiver::start() };
    let (owner, fan) = (world.alice.token.clone(), world.bob.token.clone());
    let hooks = world.server.add_token("alice", "hooks");
    let config = json!({ "url": world.receiver.url(), "content_type": "json" });
    world.send("POST", "/repos/alice/tool/hooks", &hooks, json!({ "config": config, "events": ["*"] }));
    world.send("PUT", "/repos/alice/tool/subscription", &fan, json!({ "subscribed": true }));
    world.send("PUT", "/user/starred/alice/tool", &fan, json!({}));
    world.send("PUT", "/user/following/alice", &fan, json!({}));
    world.send("POST", "/repos/alice/tool/issues", &owner, json!({ "title": "In the open" }));
    eventually(SOON, || world.get("/api/v3/notifications", Some(&world.inbox)).contains("In the open"));
    eventually(SOON, || world.mails().contains("In the open"));
    eventually(SOON, || world.receiver.of("issues").len() == 1);
    world.server.cli_ok(&["jobs", "run", "trending:count"]);
    world
}

#[rstest]
fn no_reader_of_the_log_shows_what_turned_private_or_was_so(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine);
    let owner = world.alice.token.clone();
    for (reader, shows) in world.readers("one") {
        assert!(shows.contains("alice/tool") || shows.contains("\"tool\""), "{reader}: {shows}");
    }

    world.send("PATCH", "/repos/alice/tool", &owner, json!({ "private": true }));
    world.send("POST", "/repos/alice/tool/issues", &owner, json!({ "title": "A secret matter" }));
    // The hook is the owner's own and is told; it is also how we know that the event has been taken in.
    eventually(SOON, || world.receiver.of("issues").len() == 2);
    let reported = &world.receiver.of("issues")[1].body;
    assert_eq!(
        (&reported["issue"]["title"], &reported["repository"]["private"]),
        (&json!("A secret matter"), &json!(true))
    );
    settled(&world.server);
    for (reader, shows) in world.readers("two") {
        for hidden in ["alice/tool", "In the open", "A secret matter"] {
            assert!(!shows.contains(hidden), "{reader} shows {hidden}: {shows}");
        }
    }

    world.send("PATCH", "/repos/alice/tool", &owner, json!({ "private": false }));
    world.send("POST", "/repos/alice/tool/issues", &owner, json!({ "title": "In the open again" }));
    eventually(SOON, || world.get("/api/v3/notifications", Some(&world.inbox)).contains("In the open again"));
    for (reader, shows) in world.readers("three") {
        assert!(shows.contains("alice/tool") || shows.contains("\"tool\""), "{reader}: {shows}");
        assert!(!shows.contains("A secret matter"), "{reader} shows what happened in private: {shows}");
    }
    eventually(SOON, || world.mails().contains("In the open again"));
    assert!(!world.mails().contains("A secret matter"));

    // Collaborators see all of it.
    let hers = world.get("/api/v3/repos/alice/tool/events", Some(&owner));
    assert!(hers.contains("A secret matter") && hers.contains("In the open again"), "{hers}");
}
