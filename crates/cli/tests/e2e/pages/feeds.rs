//! Home, Explore, trending and activity, on pages and for feed readers.

use super::browser::Browser;
use super::logged_in;
use crate::support::{Person, person, server};
use abide_testkit::http::{self, Request};
use abide_testkit::{Engine, Server, eventually};
use rstest::rstest;
use serde_json::json;
use std::process::Command;
use std::time::Duration;

fn put(server: &Server, person: &Person, path: &str) {
    let done = http::put(server.http_addr(), &format!("/api/v3{path}"), Some(&person.token), &json!({}));
    assert!(done.status < 300, "{path}: {}", done.text());
}

/// alice has a repository with a commit and an issue; bob follows her and stars it.
fn setup(engine: Engine) -> (Server, Person, Person) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "tool", false);
    let work = alice.git.init_work_tree();
    alice.git.commit_file(&work, "a.txt", "one\n", "one");
    alice.git.ok(&work, &["push", "-q", &server.http_url("alice", "tool"), "main"]);
    let issue = json!({ "title": "Ink & <b>paper</b>", "body": "Where is it?" });
    let opened = http::post(server.http_addr(), "/api/v3/repos/alice/tool/issues", Some(&alice.token), &issue);
    assert_eq!(opened.status, 201, "{}", opened.text());
    put(&server, &bob, "/user/following/alice");
    put(&server, &bob, "/user/starred/alice/tool");
    let stranger = Browser::new(&server);
    eventually(Duration::from_secs(60), || stranger.page("/explore/activity").contains("starred"));
    (server, alice, bob)
}

#[rstest]
fn what_happened_is_read_at_home_in_public_and_beside_each_thing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (server, alice, _) = setup(engine);
    let (bob, stranger) = (logged_in(&server, "bob"), Browser::new(&server));
    let reported = ["created", "created branch", "#1 Ink &#38; &#60;b&#62;paper&#60;/b&#62;", "starred"];
    for page in ["/explore/activity", "/alice/tool/activity"] {
        let html = stranger.page(page);
        for words in reported {
            assert!(html.contains(words), "{page} lacks {words}: {html}");
        }
    }
    let home = bob.page("/");
    assert!(home.contains("Where is it?") && home.contains("alice/tool"), "whom he follows: {home}");
    assert!(bob.page("/bob/activity").contains("follows"));
    assert!(!stranger.page("/bob/activity").contains("created branch"), "only what bob did");

    // Turned private, it is nowhere but with its owner.
    let hidden =
        http::patch(server.http_addr(), "/api/v3/repos/alice/tool", Some(&alice.token), &json!({ "private": true }));
    assert_eq!(hidden.status, 200, "{}", hidden.text());
    for (who, pages) in [
        (&bob, vec!["/", "/bob/activity", "/alice/activity"]),
        (&stranger, vec!["/explore/activity", "/alice/activity"]),
    ] {
        for page in pages {
            assert!(!who.page(page).contains("alice/tool"), "{page}");
        }
    }
    assert_eq!(stranger.get("/alice/tool/activity").status, 404);
    let owner = logged_in(&server, "alice");
    assert!(owner.page("/").contains("Where is it?") && owner.page("/alice/tool/activity").contains("Private"));
}

/// Check by a feed reader: Python's XML parser, and the rules of RFC 4287 that readers rely on.
const READER: &str = r#"
import sys, xml.etree.ElementTree as tree, datetime
A = "{http://www.w3.org/2005/Atom}"
feed = tree.fromstring(sys.stdin.buffer.read())
assert feed.tag == A + "feed", feed.tag
for name in ["id", "title", "updated"]:
    assert feed.findtext(A + name), name
assert any(link.get("rel") == "self" for link in feed.findall(A + "link"))
ids = []
for entry in feed.findall(A + "entry"):
    for name in ["id", "title", "updated"]:
        assert entry.findtext(A + name), name
    datetime.datetime.fromisoformat(entry.findtext(A + "updated").replace("Z", "+00:00"))
    assert entry.find(A + "author").findtext(A + "name")
    assert entry.find(A + "link").get("href").startswith("http")
    ids.append(entry.findtext(A + "id"))
    print(entry.findtext(A + "title"))
assert len(ids) == len(set(ids))
"#;

fn read_atom(bytes: &[u8]) -> Vec<String> {
    use std::io::Write as _;
    let python = std::env::var("ABIDE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut child = Command::new(python)
        .args(["-c", READER])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("Python is installed");
    child.stdin.take().expect("asked for").write_all(bytes).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(bytes));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[rstest]
fn feed_readers_understand_every_feed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, alice, bob) = setup(engine);
    let addr = server.http_addr();
    for path in ["/explore/atom", "/alice/atom", "/alice/tool/activity.atom"] {
        let response = http::get(addr, path, None);
        assert_eq!(response.header("content-type"), Some("application/atom+xml; charset=utf-8"), "{path}");
        let titles = read_atom(&response.body);
        assert!(
            titles.iter().any(|title| title == "alice opened #1 Ink & <b>paper</b> in alice/tool"),
            "{path}: {titles:?}"
        );
        let tag = response.header("etag").expect("it has a tag").to_owned();
        let again = Request::new("GET", path).header("If-None-Match", &tag).send(addr);
        assert_eq!(again.status, 304, "{path}");
    }
    // One's own feed is opened by a token, as feed readers send it.
    let asked = http::get(addr, "/home/atom", None);
    assert_eq!(asked.status, 401);
    assert!(asked.header("www-authenticate").is_some_and(|ask| ask.starts_with("Basic")));
    let titles = read_atom(&http::get(addr, "/home/atom", Some(&bob.token)).body);
    assert!(
        titles.iter().any(|title| title.starts_with("alice ")) && titles.iter().any(|title| title.starts_with("bob "))
    );
    assert_eq!(logged_in(&server, "bob").get("/home/atom").status, 200);

    let before = http::get(addr, "/explore/atom", None).header("etag").map(str::to_owned);
    let hidden = http::patch(addr, "/api/v3/repos/alice/tool", Some(&alice.token), &json!({ "private": true }));
    assert_eq!(hidden.status, 200);
    for (path, token) in [("/explore/atom", None), ("/alice/atom", None), ("/home/atom", Some(bob.token.as_str()))] {
        let response = http::get(addr, path, token);
        assert!(!response.text().contains("alice/tool"), "{path}: {}", response.text());
    }
    assert_ne!(http::get(addr, "/explore/atom", None).header("etag").map(str::to_owned), before);
    assert_eq!(http::get(addr, "/alice/tool/activity.atom", None).status, 404);
}

#[rstest]
fn what_several_people_star_is_trending(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, alice, bob) = setup(engine);
    bob.create(&server, "other", false);
    let carol = person(&server, "carol");
    put(&server, &carol, "/user/starred/alice/tool");
    put(&server, &carol, "/user/starred/bob/other");
    let stranger = Browser::new(&server);
    assert!(stranger.page("/trending").contains("Nothing is trending"));
    server.cli_ok(&["jobs", "run", "trending:count"]);
    let html = stranger.page("/trending?since=day");
    let place = |slug: &str| html.find(&format!("href=\"/{slug}\"")).unwrap_or_else(|| panic!("{slug}: {html}"));
    assert!(place("alice/tool") < place("bob/other"), "{html}");
    let hidden =
        http::patch(server.http_addr(), "/api/v3/repos/alice/tool", Some(&alice.token), &json!({ "private": true }));
    assert_eq!(hidden.status, 200);
    let html = stranger.page("/trending?since=day");
    assert!(!html.contains("alice/tool") && html.contains("bob/other"), "shown as it may be known now: {html}");
}
