//! The git road's rules of who hears what, and its edges, byte for byte.

use crate::beside::Beside as _;
use crate::support::{Person, assert_healthy, builder, person, query, server, settled};
use abide_testkit::http::{self, Response};
use abide_testkit::{Engine, Server, eventually};
use rstest::rstest;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// A server with a public, a private and a deleted repository of alice's, and bob, who is a stranger to them.
struct Setup {
    server: Server,
    alice: Person,
    bob: Person,
}

fn setup(engine: Engine) -> Setup {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "open", false);
    alice.create(&server, "secret", true);
    let gone = alice.create(&server, "gone", false);
    assert_eq!(http::delete(server.http_addr(), "/api/v3/repos/alice/gone", Some(&alice.token)).status, 204);
    assert!(gone["id"].is_number());
    Setup { server, alice, bob }
}

/// Addresses behind which there is nothing that a stranger may read.
fn unreadable(server: &Server) -> Vec<String> {
    let id = |name: &str| query(server, &format!("SELECT id FROM repos WHERE name = '{name}'"));
    let mut all: Vec<String> =
        ["alice/secret", "alice/gone", "alice/never", "nobody/never", "alice/%2e%2e", "alice/.."]
            .iter()
            .map(|slug| format!("/{slug}.git"))
            .collect();
    all.extend(
        ["alice/a%2Fb", "alice/a%00b", "alice/x.git", "-/-", "api/v3", "npub1x/y", "%ff/%fe"]
            .map(|slug| format!("/{slug}.git")),
    );
    all.extend(
        [id("secret"), id("gone"), "999999".into(), "0".into(), "-1".into(), "x".into()]
            .map(|id| format!("/r/{id}.git")),
    );
    all.push(format!("/alice/{}.git", "a".repeat(300)));
    all
}

fn advertised(server: &Server, path: &str, service: &str, token: Option<&str>) -> Response {
    http::get(server.http_addr(), &format!("{path}/info/refs?service={service}"), token)
}

fn rpc(server: &Server, path: &str, service: &str, token: Option<&str>, body: &[u8]) -> Response {
    http::Request::new("POST", &format!("{path}/{service}"))
        .token(token)
        .header("Content-Type", &format!("application/x-{service}-request"))
        .body(body)
        .send(server.http_addr())
}

/// Everything of an answer that a stranger could learn from.
fn visible(response: &Response) -> (u16, Vec<(String, String)>, String) {
    let changing = ["date", "x-request-id"];
    let mut headers: Vec<_> = response
        .headers
        .iter()
        .map(|(name, value)| (name.to_lowercase(), value.clone()))
        .filter(|(name, _)| !changing.contains(&name.as_str()))
        .collect();
    headers.sort();
    (response.status, headers, response.text())
}

#[rstest]
fn to_a_stranger_without_credentials_private_deleted_and_absent_ask_alike_for_a_login(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, .. } = setup(engine);
    let expected = visible(&advertised(&server, "/alice/never.git", "git-upload-pack", None));
    assert_eq!(expected.0, 401);
    assert!(expected.1.contains(&("www-authenticate".into(), "Basic realm=\"Abide\"".into())));
    for path in unreadable(&server) {
        for service in ["git-upload-pack", "git-receive-pack"] {
            assert_eq!(visible(&advertised(&server, &path, service, None)), expected, "{service} at {path}");
            assert_eq!(visible(&rpc(&server, &path, service, None, b"0000")), expected, "{service} at {path}");
        }
    }
    // Pushing always needs a login, so even a public repository answers the same.
    assert_eq!(visible(&advertised(&server, "/alice/open.git", "git-receive-pack", None)), expected);
    assert_eq!(advertised(&server, "/alice/open.git", "git-upload-pack", None).status, 200);
}

#[rstest]
fn to_a_stranger_with_a_token_they_are_all_absent_and_never_401(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, bob, .. } = setup(engine);
    let token = Some(bob.token.as_str());
    let expected = visible(&advertised(&server, "/alice/never.git", "git-upload-pack", token));
    assert_eq!(expected.0, 404);
    for path in unreadable(&server) {
        for service in ["git-upload-pack", "git-receive-pack"] {
            assert_eq!(visible(&advertised(&server, &path, service, token)), expected, "{service} at {path}");
            assert_eq!(visible(&rpc(&server, &path, service, token, b"0000")), expected, "{service} at {path}");
        }
    }
}

/// How often each statement about people and repositories was executed so far, as the metrics tell it.
fn statements(server: &Server) -> BTreeMap<String, u64> {
    let text = http::get(server.http_addr(), "/metrics", None).text();
    let lines = text.lines().filter(|line| line.starts_with("abide_statements_total"));
    let asked =
        lines.filter(|line| ["::repos\"", "::users\"", "::collaborators\""].iter().any(|module| line.contains(module)));
    asked
        .map(|line| {
            let (name, count) = line.rsplit_once(' ').expect("a name and a number");
            (name.to_owned(), count.parse().expect("a count"))
        })
        .collect()
}

#[rstest]
fn the_database_is_asked_the_same_for_private_deleted_and_absent(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, bob, .. } = setup(engine);
    let id = |name: &str| query(&server, &format!("SELECT id FROM repos WHERE name = '{name}'"));
    server.cli_ok(&["user", "rename", "alice", "ada"]);
    let of = |owner: &str| ["secret", "gone", "never"].map(|name| format!("{owner}/{name}"));
    let (slugs, old_slugs) = (of("ada"), of("alice"));
    let ids = [id("secret"), id("gone"), "999999".to_owned()];
    // Statements of every request are counted, and those that find the recipients of the deletion too.
    settled(&server);
    let asked = |path: &str, token: Option<&str>| {
        let before = statements(&server);
        http::get(server.http_addr(), path, token);
        let after = statements(&server);
        let more = after.into_iter().map(|(name, count)| (name.clone(), count - before.get(&name).unwrap_or(&0)));
        more.filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>()
    };
    for token in [None, Some(bob.token.as_str())] {
        let git = slugs.each_ref().map(|slug| format!("/{slug}.git/info/refs?service=git-upload-pack"));
        let permanent = ids.each_ref().map(|id| format!("/r/{id}.git/info/refs?service=git-upload-pack"));
        let api = slugs.each_ref().map(|slug| format!("/api/v3/repos/{slug}"));
        let api_by_id = ids.each_ref().map(|id| format!("/api/v3/repositories/{id}"));
        let old_git = old_slugs.each_ref().map(|slug| format!("/{slug}.git/info/refs?service=git-upload-pack"));
        let old_api = old_slugs.each_ref().map(|slug| format!("/api/v3/repos/{slug}"));
        for [private, deleted, absent] in [git, permanent, api, api_by_id, old_git, old_api] {
            let expected = asked(&absent, token);
            assert!(!expected.is_empty(), "{absent} is looked up");
            assert_eq!(asked(&private, token), expected, "{private}");
            assert_eq!(asked(&deleted, token), expected, "{deleted}");
        }
    }
}

#[rstest]
fn bad_credentials_get_the_same_401_whatever_is_behind_the_address(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, .. } = setup(engine);
    let none = visible(&advertised(&server, "/alice/never.git", "git-upload-pack", None));
    for path in ["/alice/open.git", "/alice/secret.git", "/alice/never.git"] {
        for secret in ["abide_pat_wrong", "correct horse battery staple", ""] {
            let answer = advertised(&server, path, "git-upload-pack", Some(secret));
            assert_eq!(visible(&answer), none, "{path} with {secret:?}");
        }
    }
}

#[rstest]
fn a_password_opens_neither_git_nor_the_api(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let Setup { server, .. } = setup(engine);
    // alice:correct horse battery staple
    let basic = "Basic YWxpY2U6Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ==";
    for path in ["/alice/secret.git/info/refs?service=git-upload-pack", "/api/v3/user"] {
        let answer = http::Request::new("GET", path).header("Authorization", basic).send(server.http_addr());
        assert_eq!(answer.status, 401, "{path}");
    }
}

#[rstest]
fn a_reader_who_may_not_write_hears_why_and_an_archived_repository_tells_it_through_git(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, alice, bob } = setup(engine);
    let refused = advertised(&server, "/alice/open.git", "git-receive-pack", Some(&bob.token));
    assert_eq!(refused.status, 403);
    assert_eq!(refused.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(refused.text().contains("the write role"), "{}", refused.text());

    query(&server, "UPDATE repos SET archived_at = 1 WHERE name IN ('open', 'secret')");
    let reported = advertised(&server, "/alice/open.git", "git-receive-pack", Some(&alice.token));
    assert_eq!(reported.status, 200);
    assert!(reported.text().ends_with("ERR repository is archived; pushes are disabled"), "{}", reported.text());
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "one", "one");
    let said = alice.git.fails(&tree, &["push", &server.http_url("alice", "open"), "main"]);
    assert!(said.contains("repository is archived; pushes are disabled"), "{said}");
    // Only to those who may read: to a stranger an archived private repository is as absent as any.
    let stranger = advertised(&server, "/alice/secret.git", "git-receive-pack", Some(&bob.token));
    assert_eq!(
        visible(&stranger),
        visible(&advertised(&server, "/alice/never.git", "git-receive-pack", Some(&bob.token)))
    );
}

#[rstest]
fn a_read_token_cannot_push_whatever_is_mixed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let Setup { server, alice, .. } = setup(engine);
    let reader = server.add_token("alice", "repo:read");
    let path = "/alice/open.git";
    assert_eq!(advertised(&server, path, "git-upload-pack", Some(&reader)).status, 200);
    assert_eq!(advertised(&server, path, "git-receive-pack", Some(&reader)).status, 403);
    let mixed = [
        http::Request::new("POST", &format!("{path}/git-receive-pack?service=git-upload-pack")),
        http::Request::new("POST", &format!("{path}/git-receive-pack")),
    ];
    for request in mixed {
        let request = request.token(Some(&reader)).header("Content-Type", "application/x-git-receive-pack-request");
        assert_eq!(request.body("0000").send(server.http_addr()).status, 403);
    }
    let other = server.add_token("alice", "user");
    assert_eq!(advertised(&server, path, "git-upload-pack", Some(&other)).status, 403, "a token for something else");
    assert_eq!(advertised(&server, path, "git-receive-pack", Some(&alice.token)).status, 200);
}

#[rstest]
fn the_probe_before_a_large_push_is_authenticated_and_leaves_no_trace(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, alice, .. } = setup(engine);
    let answer = rpc(&server, "/alice/open.git", "git-receive-pack", Some(&alice.token), b"0000");
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(answer.header("content-type"), Some("application/x-git-receive-pack-result"));
    assert_eq!(rpc(&server, "/alice/open.git", "git-receive-pack", None, b"0000").status, 401);
    assert_eq!(query(&server, "SELECT count(*) FROM pushes"), "0");
    assert_eq!(query(&server, "SELECT count(*) FROM leases WHERE name LIKE 'repo:%'"), "0");
    assert_eq!(query(&server, "SELECT count(*) FROM domain_events WHERE kind = 'push'"), "0");
}

#[rstest]
fn malformed_pushes_are_refused_with_the_rule_and_nothing_remains(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, alice, .. } = setup(engine);
    let zero = "0".repeat(40);
    let one = "1".repeat(40);
    let packet = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let command = |name: &str| packet(&format!("{zero} {one} {name}\0report-status"));
    let cases: Vec<(String, &str)> = vec![
        (packet("hello"), "invalid push command"),
        (format!("{}0000", command("refs/heads/../x")), "not a valid ref name"),
        (format!("{}0000", command("refs/heads/a.lock")), "not a valid ref name"),
        (format!("{}0000", command("HEAD")), "not a valid ref name"),
        (
            format!("{}0000", packet(&format!("{one} {} refs/heads/x\0report-status", "z".repeat(40)))),
            "invalid push command",
        ),
        (format!("{}0000", packet(&format!("{zero} {one} refs/heads/x\0report-status object-format=sha256"))), "SHA-1"),
        ("zzzz".into(), "ERR"),
        (command("refs/heads/x"), "ERR"),
        (format!("{}0000", command("refs/heads/x")), "unpack"),
        (format!("{}0000PACKgarbagegarbage", command("refs/heads/x")), "unpack"),
        (format!("{}0000", command("refs/pull/1/head")), "reserved for the server"),
    ];
    for (body, said) in cases {
        let answer = rpc(&server, "/alice/open.git", "git-receive-pack", Some(&alice.token), body.as_bytes());
        assert_eq!(answer.status, 200, "{body:?}");
        assert!(answer.text().contains(said), "{body:?} is answered {:?}", answer.text());
    }
    assert_eq!(query(&server, "SELECT count(*) FROM pushes WHERE state <> 'aborted'"), "0");
    let incoming = server.data_dir().join("incoming");
    eventually(Duration::from_secs(10), || std::fs::read_dir(&incoming).is_ok_and(|mut left| left.next().is_none()));
    assert_healthy(&server);
}

#[rstest]
fn requests_that_are_not_gits_are_refused_plainly(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let Setup { server, alice, .. } = setup(engine);
    let addr = server.http_addr();
    let dumb = http::get(addr, "/alice/open.git/info/refs", None);
    assert_eq!(dumb.status, 403);
    assert!(dumb.text().contains("smart HTTP protocol"));
    assert_eq!(http::get(addr, "/alice/open.git/info/refs?service=git-upload-archive", None).status, 403);
    let wrong_type = http::Request::new("POST", "/alice/open.git/git-upload-pack").body("0000").send(addr);
    assert_eq!(wrong_type.status, 415);
    let wrong_encoding = http::Request::new("POST", "/alice/open.git/git-receive-pack")
        .token(Some(&alice.token))
        .header("Content-Type", "application/x-git-receive-pack-request")
        .header("Content-Encoding", "br")
        .body("0000")
        .send(addr);
    assert_eq!(wrong_encoding.status, 415);
    assert_eq!(http::get(addr, "/alice/open.git/git-upload-pack", None).status, 405);
    let head = http::Request::new("HEAD", "/alice/open.git/info/refs?service=git-upload-pack").send(addr);
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-type"), Some("application/x-git-upload-pack-advertisement"));
}

#[rstest]
fn a_gzip_bomb_is_counted_by_what_comes_out(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine).env("ABIDE_GIT__MAX_PUSH", "1MiB").start();
    let alice = person(&server, "alice");
    alice.create(&server, "open", false);
    let command = format!("{} {} refs/heads/x\0report-status", "0".repeat(40), "1".repeat(40));
    let mut body = format!("{:04x}{command}0000", command.len() + 4).into_bytes();
    body.extend(b"PACK\0\0\0\x02\0\0\x03\xe8");
    body.resize(body.len() + (64 << 20), 0x99);
    let packed = gzip(&body);
    assert!(packed.len() < 1 << 20, "the bomb is small on the wire");
    let before = server.rss_bytes();
    let answer = http::Request::new("POST", "/alice/open.git/git-receive-pack")
        .token(Some(&alice.token))
        .header("Content-Type", "application/x-git-receive-pack-request")
        .header("Content-Encoding", "gzip")
        .body(packed)
        .send(server.http_addr());
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("ng refs/heads/x"), "{}", answer.text());
    let grown = server.rss_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "memory grew by {grown} bytes");
}

/// Packs bytes with the `gzip` program, as git's own library would.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let mut child =
        Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gzip runs");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let copy = bytes.to_vec();
    let feeding = std::thread::spawn(move || stdin.write_all(&copy));
    let output = child.wait_with_output().expect("gzip ends");
    feeding.join().expect("feeding ends").expect("gzip takes everything");
    output.stdout
}

#[rstest]
fn nearly_full_disks_refuse_writes_and_serve_reads(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut server = server(engine);
    let alice = person(&server, "alice").with_ssh(&server);
    let bob = person(&server, "bob");
    alice.create(&server, "open", false);
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "one", "one");
    let url = server.http_url("alice", "open");
    alice.git.ok(&tree, &["push", &url, "main"]);
    let issues = "/api/v3/repos/alice/open/issues";
    let opened = http::post(server.http_addr(), issues, Some(&alice.token), &json!({ "title": "one" }));
    assert_eq!(opened.status, 201);

    // No disk has more than everything free, so this server believes that its disk is full.
    server.restart_with(&[("ABIDE_SERVER__MIN_FREE_PERCENT", "100")]);
    let addr = server.http_addr();

    alice.git.commit_file(&tree, "a", "two", "two");
    for road in [&url, &server.ssh_url("alice", "open")] {
        let said = alice.git.fails(&tree, &["push", road, "main"]);
        assert!(said.contains("disk is nearly full"), "{said}");
    }
    let writes = [
        ("POST", "/user/repos", json!({ "name": "more" })),
        ("POST", "/user/repos", json!({ "name": "more", "auto_init": true })),
        ("POST", "/repos/alice/open/issues", json!({ "title": "two" })),
        ("PATCH", "/repos/alice/open/issues/1", json!({ "title": "two" })),
        ("POST", "/repos/alice/open/issues/1/comments", json!({ "body": "two" })),
        ("POST", "/repos/alice/open/labels", json!({ "name": "two", "color": "ff0000" })),
        ("PATCH", "/repos/alice/open", json!({ "description": "two" })),
        ("PUT", "/user/starred/alice/open", json!({})),
    ];
    for (method, path, body) in &writes {
        let refused = http::json(method, addr, &format!("/api/v3{path}"), Some(&alice.token), body);
        assert_eq!(refused.status, 507, "{method} {path}: {}", refused.text());
        assert!(refused.text().contains("nearly full"), "{}", refused.text());
    }
    let fork = http::post(addr, "/api/v3/repos/alice/open/forks", Some(&bob.token), &json!({}));
    assert_eq!(fork.status, 507, "{}", fork.text());
    let key = abide_testkit::Key::new(1);
    let note = key.announcement(abide_testkit::Key::now(), "tool", &server.url());
    let (taken, said) = abide_testkit::Nostr::connect(&server.url()).publish(&note);
    assert!(!taken && said.contains("nearly full"), "{said}");

    assert_eq!(alice.git.ok(&tree, &["ls-remote", "--heads", &url]).lines().count(), 1, "reads go on");
    alice.git.ok(&alice.git.fresh_dir(), &["clone", "--quiet", &url, "."]);
    assert_eq!(http::get(addr, issues, None).json().as_array().map(Vec::len), Some(1));
    assert_eq!(http::get(addr, "/alice/open", None).status, 200);
    assert_eq!(http::get(addr, "/readyz", None).status, 503);
    assert_eq!(http::delete(addr, "/api/v3/repos/alice/open", Some(&alice.token)).status, 204, "removing makes room");
}

/// The last part of the disk is reserved for clients with an account.
#[rstest]
fn strangers_may_not_use_the_room_that_is_kept_for_accounts(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    use crate::grasp::setup::{Setup, now, state};
    let mut setup = Setup::on(builder(engine).start());
    let owner = abide_testkit::Key::new(1);
    setup.announce(&owner, "tool", &[]);
    setup.state_waits(&state(&owner, now() - 5, "tool", &[("refs/heads/main", &setup.first)], Some("main")));
    setup.server.restart_with(&[("ABIDE_SERVER__STRANGER_FREE_PERCENT", "100")]);
    let said = setup.push_fails(&owner, "tool", &["main"]);
    assert!(said.contains("server.stranger_free_percent reserves 100%"), "{said}");
    let alice = person(&setup.server, "alice");
    alice.create(&setup.server, "open", false);
    alice.git.ok(&setup.work, &["push", "--quiet", &setup.server.http_url("alice", "open"), "main"]);
}
