//! Events over the API: visibility, pages and the live stream.

use super::Api;
use crate::beside::Beside as _;
use crate::support::{Person, builder, person, query, server};
use abide_testkit::{Engine, Server, eventually};
use rstest::rstest;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The types of what a list tells, the latest first.
fn types(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|event| event["type"].as_str()).collect()
}

/// Waits until a list tells of so many events: each gets its place a moment after it happened.
fn wait_for(api: &Api<'_>, path: &str, count: usize) -> Value {
    eventually(Duration::from_secs(60), || api.read(path).as_array().is_some_and(|list| list.len() >= count));
    api.read(path)
}

/// A stream of events over a real socket.
struct Stream {
    reader: BufReader<TcpStream>,
}

impl Stream {
    fn open(server: &Server, token: Option<&str>, after: &str) -> Self {
        let mut socket = TcpStream::connect(server.http_addr()).expect("the server listens");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket takes a timeout");
        let auth = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let ask = format!("GET /api/v3/events/stream{after} HTTP/1.1\r\nHost: abide\r\n{auth}\r\n");
        socket.write_all(ask.as_bytes()).expect("the server reads");
        let mut stream = Self { reader: BufReader::new(socket) };
        assert!(stream.line().starts_with("HTTP/1.1 200"), "it is answered");
        while !stream.line().contains("from here on") {}
        stream
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).expect("something comes in time");
        assert!(read > 0, "the stream ended");
        line.trim_end().to_owned()
    }

    /// The next event: its id, and what it says.
    fn next(&mut self) -> (i64, Value) {
        let mut id = None;
        loop {
            let line = self.line();
            if let Some(number) = line.strip_prefix("id: ") {
                id = number.parse().ok();
            } else if let Some(data) = line.strip_prefix("data: ") {
                // Fields of one event come in any order, ended by an empty line.
                let said = serde_json::from_str(data).expect("JSON");
                while id.is_none() {
                    id = self.line().strip_prefix("id: ").and_then(|number| number.parse().ok());
                }
                return (id.expect("just seen"), said);
            }
        }
    }
}

/// bob stars, follows and opens an issue at alice's; alice renames.
fn lively<'a>(server: &'a Server, alice: &'a Person, bob: &'a Person) -> (Api<'a>, Api<'a>) {
    alice.create(server, "tool", false);
    let (owner, fan) = (Api::of(server, alice), Api::of(server, bob));
    assert_eq!(fan.put("/user/starred/alice/tool", json!({})).status, 204);
    assert_eq!(fan.put("/user/following/alice", json!({})).status, 204);
    assert_eq!(fan.post("/repos/alice/tool/issues", json!({ "title": "It breaks", "body": "at start" })).status, 201);
    assert_eq!(owner.patch("/repos/alice/tool", json!({ "name": "kit" })).status, 200);
    (owner, fan)
}

#[rstest]
fn events_are_told_in_githubs_shapes_and_by_pages(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (owner, _) = lively(&server, &alice, &bob);
    let nobody = Api::nobody(&server);
    let all = wait_for(&nobody, "/events", 5);
    assert_eq!(types(&all), ["RepositoryEvent", "IssuesEvent", "FollowEvent", "WatchEvent", "CreateEvent"]);
    let [renamed, opened, followed, starred, created] = &all.as_array().unwrap()[..] else { panic!("{all}") };
    assert_eq!(renamed["payload"]["changes"]["repository"]["name"]["from"], "tool");
    assert_eq!(renamed["repo"]["name"], "alice/kit");
    assert_eq!(starred["repo"]["name"], "alice/kit", "it is told under the name of today");
    assert_eq!(opened["payload"]["issue"]["title"], "It breaks");
    assert!(opened["payload"]["issue"]["html_url"].as_str().unwrap().ends_with("/alice/kit/issues/1"));
    assert_eq!((&followed["payload"]["target"]["login"], &followed["repo"]), (&json!("alice"), &Value::Null));
    assert_eq!((&starred["payload"]["action"], &starred["actor"]["login"]), (&json!("started"), &json!("bob")));
    assert_eq!((&created["payload"]["ref_type"], &created["public"]), (&json!("repository"), &json!(true)));

    let first = nobody.get("/events?per_page=2");
    let link = first.header("link").expect("there is more").to_owned();
    let next = link.split(['<', '>']).nth(1).unwrap().split_once("/api/v3").unwrap().1.to_owned();
    let ids = |list: &Value| list.as_array().unwrap().iter().map(|event| event["id"].clone()).collect::<Vec<_>>();
    let both: Vec<_> = ids(&first.json()).into_iter().chain(ids(&nobody.read(&next))).collect();
    assert_eq!(both, ids(&all)[..4]);

    assert_eq!(types(&nobody.read("/users/bob/events")), ["IssuesEvent", "FollowEvent", "WatchEvent"]);
    assert_eq!(types(&nobody.read("/repos/alice/kit/events")).len(), 4);
    assert_eq!(types(&owner.read("/users/alice/received_events")).len(), 4, "what happens in her repository");
    let tag = nobody.get("/events").header("etag").expect("it has a tag").to_owned();
    let again = nobody.request("GET", "/events").header("If-None-Match", &tag).send(server.http_addr());
    assert_eq!(again.status, 304);
}

#[rstest]
fn a_push_is_told_with_the_newest_of_its_commits(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "tool", false);
    let tree = alice.git.init_work_tree();
    let url = server.http_url("alice", "tool");
    let base = alice.git.commit_file(&tree, "a", "0", "first of all");
    alice.git.ok(&tree, &["push", &url, "main"]);
    let oids: Vec<_> = (1..=10)
        .map(|n| alice.git.commit_file(&tree, "a", n.to_string(), &format!("change {n} {}", "é".repeat(100))))
        .collect();
    alice.git.ok(&tree, &["push", &url, "main", "main:refs/heads/next", "main:refs/tags/v1"]);
    let reported = wait_for(&Api::nobody(&server), "/repos/alice/tool/events", 3);
    assert_eq!(types(&reported), ["PushEvent", "CreateEvent", "CreateEvent"]);
    let push = &reported[0]["payload"];
    assert_eq!((&push["before"], &push["head"], &push["ref_count"]), (&json!(base), &json!(oids[9]), &json!(3)));
    assert_eq!(push["refs"].as_array().unwrap().len(), 3, "what moved is told before what it brought");
    let commits = push["commits"].as_array().unwrap();
    let shas: Vec<_> = commits.iter().map(|commit| commit["sha"].as_str().unwrap()).collect();
    assert_eq!(shas, oids[2..], "the newest eight, in the order of their making");
    let last = &commits[7];
    assert!(last["message"].as_str().unwrap().starts_with("change 10 éé"), "{last}");
    assert!(last["message"].as_str().unwrap().len() <= 120, "{last}");
    assert!(last["author"]["email"].is_string() && last["url"].as_str().unwrap().ends_with(&oids[9]), "{last}");
    let stored = query(&server, "SELECT max(octet_length(payload)) FROM domain_events");
    assert!(stored.parse::<usize>().unwrap() < 4096, "{stored}");

    let page = abide_testkit::http::get(server.http_addr(), "/alice/tool/activity", None).text();
    assert!(page.contains(&format!("/alice/tool/commit/{}", oids[9])) && page.contains("change 8"), "{page}");
    assert!(!page.contains("change 7"), "a page shows three");
    let atom = abide_testkit::http::get(server.http_addr(), "/alice/tool/activity.atom", None).text();
    assert!(atom.contains(&format!("{} change 10", &oids[9][..7])), "{atom}");
}

#[rstest]
fn what_turns_private_is_told_to_those_inside_alone_and_what_was_private_stays_so(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let (alice, bob, carol) = (person(&server, "alice"), person(&server, "bob"), person(&server, "carol"));
    let (owner, fan) = lively(&server, &alice, &bob);
    let (nobody, member) = (Api::nobody(&server), Api::of(&server, &carol));
    assert_eq!(owner.put("/repos/alice/kit/collaborators/carol", json!({ "permission": "pull" })).status, 204);
    assert_eq!(fan.put("/repos/alice/kit/subscription", json!({ "subscribed": true })).status, 200);
    wait_for(&nobody, "/events", 5);

    let lists = ["/events", "/users/bob/events", "/users/bob/received_events", "/users/alice/events/public"];
    let about_kit = |api: &Api<'_>, path: &str| {
        let list = api.read(path);
        list.as_array().unwrap().iter().filter(|event| event["repo"]["name"] == "alice/kit").count()
    };
    for path in lists {
        assert!(about_kit(&fan, path) > 0, "{path}");
    }
    assert_eq!(owner.patch("/repos/alice/kit", json!({ "private": true })).status, 200);
    for path in lists {
        assert_eq!((about_kit(&fan, path), about_kit(&nobody, path)), (0, 0), "{path}");
    }
    assert_eq!(fan.get("/repos/alice/kit/events").status, 404);
    // Private events are visible to collaborators alone, now and later.
    assert_eq!(owner.post("/repos/alice/kit/issues", json!({ "title": "A secret" })).status, 201);
    let inside = wait_for(&member, "/repos/alice/kit/events", 6);
    assert_eq!(inside[0]["payload"]["issue"]["title"], "A secret");
    assert_eq!(inside[0]["public"], false);
    assert_eq!(owner.patch("/repos/alice/kit", json!({ "private": false })).status, 200);
    wait_for(&member, "/repos/alice/kit/events", 7);
    for path in lists.iter().chain(&["/repos/alice/kit/events"]) {
        for api in [&fan, &nobody] {
            let list = api.get(path).text();
            assert!(!list.contains("A secret"), "{path}: {list}");
        }
    }
    assert!(about_kit(&nobody, "/events") >= 4, "what was public is told again");
    assert!(member.get("/repos/alice/kit/events").text().contains("A secret"));
}

#[rstest]
fn a_stream_tells_what_happens_and_goes_on_where_it_was_left(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let mut listening = Stream::open(&server, None, "");
    lively(&server, &alice, &bob);
    let mut seen = Vec::new();
    for kind in ["CreateEvent", "WatchEvent", "FollowEvent", "IssuesEvent", "RepositoryEvent"] {
        let (id, said) = listening.next();
        assert_eq!((said["type"].as_str(), said["id"].as_str()), (Some(kind), Some(id.to_string().as_str())));
        seen.push(id);
    }
    assert!(seen.is_sorted() && seen.iter().collect::<BTreeSet<_>>().len() == 5, "{seen:?}");

    // A receiver that was down goes on behind the last id it has, after a restart of the server too.
    drop(listening);
    server.kill();
    server.restart();
    let mut resumed = Stream::open(&server, None, &format!("?after={}", seen[2]));
    assert_eq!([resumed.next().0, resumed.next().0], seen[3..]);

    // Strangers hear nothing of what is private, and go on hearing the rest.
    let mut hers = Stream::open(&server, Some(&alice.token), "");
    alice.create(&server, "hidden", true);
    alice.create(&server, "open", false);
    let (_, said) = hers.next();
    assert_eq!((&said["repo"]["name"], &said["public"]), (&json!("alice/hidden"), &json!(false)));
    assert_eq!(hers.next().1["repo"]["name"], "alice/open");
    assert_eq!(resumed.next().1["repo"]["name"], "alice/open");

    assert_eq!(Api::of(&server, &bob).get("/events/stream?after=x").status, 422);
    // Someone who listens does not keep the server from stopping.
    assert!(server.terminate().success(), "{}", server.log());
}

#[rstest]
fn nobody_takes_all_places_of_those_who_listen(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine).env("ABIDE_API__STREAMS_EACH", "1").start();
    let alice = person(&server, "alice");
    let _first = Stream::open(&server, None, "");
    let refused = Api::nobody(&server).get("/events/stream");
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(
        refused.header("retry-after").is_some() && refused.text().contains("already have 1 event streams open"),
        "{}",
        refused.text()
    );
    let _hers = Stream::open(&server, Some(&alice.token), "");
}

#[rstest]
fn what_someone_watches_is_told_to_nobody_else(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "tool", false);
    let fan = Api::of(&server, &bob);
    assert_eq!(fan.put("/repos/alice/tool/subscription", json!({ "subscribed": true })).status, 200);
    assert_eq!(types(&wait_for(&fan, "/users/bob/received_events", 1)), ["CreateEvent"]);
    for other in [Api::nobody(&server), Api::of(&server, &alice)] {
        assert_eq!(other.read("/users/bob/received_events"), json!([]));
    }
    assert_eq!(fan.put("/user/following/alice", json!({})).status, 204);
    let reported = wait_for(&Api::nobody(&server), "/users/bob/received_events", 1);
    assert!(types(&reported).contains(&"CreateEvent"), "whom they follow is no secret: {reported}");
}

#[rstest]
fn admins_see_how_far_consumers_have_come(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let bob = person(&server, "bob");
    server.add_admin("boss");
    let token = server.add_token("boss", "admin");
    let with_scope = Api::with(&server, &token);
    let all = with_scope.read("/admin/consumers");
    assert!(all.as_array().is_some_and(|list| list.iter().all(|entry| entry["failures"] == 0)), "{all}");
    assert_eq!(with_scope.read("/admin/consumers/failures"), json!([]));
    for path in ["/admin/consumers", "/admin/consumers/failures"] {
        assert_eq!(Api::of(&server, &bob).get(path).status, 403, "{path}: no scope");
        assert_eq!(Api::nobody(&server).get(path).status, 401);
        let theirs = server.add_token("bob", "admin");
        assert_eq!(Api::with(&server, &theirs).get(path).status, 404, "no admin");
    }
    let status = server.cli_ok(&["events", "status", "--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&status).unwrap().as_array().unwrap().len(),
        all.as_array().unwrap().len()
    );
    let refused = server.cli(&["events", "retry", "nobody", "1"]);
    assert_eq!(refused.status.code(), Some(3), "{}", String::from_utf8_lossy(&refused.stderr));
}
