//! Operation of the server: health, metrics, logs, and a stop that loses nothing.

use crate::support::{Person, assert_healthy, builder, person, push_events, query, server};
use abide_testkit::http::{self, Request, Response};
use abide_testkit::{Engine, PASSWORD, Server, eventually, postgres};
use rstest::rstest;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// Pushes one commit to `main` and returns its id.
fn push_something(server: &Server, person: &Person, repo: &str) -> String {
    let dir = person.git.init_work_tree();
    let oid = person.git.commit_file(&dir, "file.txt", "content\n", "Begin");
    person.git.ok(&dir, &["push", "--quiet", &server.http_url(person.name, repo), "main"]);
    oid
}

// ---- health and numbers -------------------------------------------------------------------------------------------

#[rstest]
fn a_server_that_can_work_says_so(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    for (path, said) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let response = http::get(server.http_addr(), path, None);
        assert_eq!((response.status, response.text().as_str()), (200, said), "{path}");
    }
    let ready = format!("Abide is ready at {} (ssh {})\n", server.url(), server.ssh_addr());
    assert_eq!(server.log().matches(&ready).count(), 1, "the first line says where it is");
}

#[test]
fn a_server_without_its_database_is_alive_but_not_ready() {
    let server = builder(Engine::Postgres).env("ABIDE_DATABASE__BUSY_TIMEOUT", "500ms").start();
    let alice = person(&server, "alice");
    assert_eq!(http::get(server.http_addr(), "/readyz", None).status, 200);

    let url = server.database().url().expect("PostgreSQL has a URL");
    let (_, name) = url.rsplit_once('/').expect("a URL names its database");
    let cluster = std::env::var("ABIDE_TEST_POSTGRES").expect("the database was made there");
    let drop = format!("DROP DATABASE {name} WITH (FORCE)");
    postgres::ask(&cluster, &drop).expect("a database can be dropped");

    let ready = http::get(server.http_addr(), "/readyz", None);
    assert_eq!(ready.status, 503, "{}", ready.text());
    assert!(ready.text().starts_with("not ready: "), "{}", ready.text());
    assert_eq!(http::get(server.http_addr(), "/healthz", None).status, 200);
    assert_eq!(http::get(server.http_addr(), "/metrics", None).status, 200, "what needs no database is still counted");
    let api = http::get(server.http_addr(), "/api/v3/user", Some(&alice.token));
    assert_eq!((api.status, api.json()["message"].as_str()), (500, Some("Internal server error; try again later")));
    let git = http::get(server.http_addr(), "/alice/x.git/info/refs?service=git-upload-pack", None);
    assert_eq!((git.status, git.text().as_str()), (500, "internal server error; try again later\n"));
}

#[rstest]
fn metrics_count_what_happens(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    push_something(&server, &alice, "project");
    alice.git.ok(&alice.git.fresh_dir(), &["clone", "--quiet", &server.http_url("alice", "project"), "."]);
    let dir = alice.git.init_work_tree();
    alice.git.commit_file(&dir, "other.txt", "unrelated\n", "Elsewhere");
    alice.git.fails(&dir, &["push", &server.http_url("alice", "project"), "HEAD:refs/heads/x.lock"]);
    http::get(server.http_addr(), "/api/v3/repos/alice/project", None);
    http::get(server.http_addr(), "/api/v3/repos/alice/absent", None);
    http::get(server.http_addr(), "/made/up/by/nobody", None);

    let scrape = || {
        let response = http::get(server.http_addr(), "/metrics", None);
        assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4"));
        response.text()
    };
    // Tidying comes after the push, and so does its place in the log.
    let later = ["abide_jobs_total{kind=\"repo:maintain\",end=\"done\"} 1", "abide_events_numbered_total "];
    eventually(SOON, || later.iter().all(|line| scrape().contains(line)));
    let text = scrape();
    let wanted = [
        "abide_http_requests_total{route=\"/api/v3/repos/{owner}/{repo}\",status=\"200\"} 1",
        "abide_http_requests_total{route=\"/api/v3/repos/{owner}/{repo}\",status=\"404\"} 1",
        "abide_http_requests_total{route=\"/api/v3/user/repos\",status=\"201\"} 1",
        "abide_http_requests_total{route=\"none\",status=\"404\"} 1",
        "abide_http_seconds_count{route=\"/{owner}/{repo}/git-receive-pack\"} ",
        "abide_pushes_total{end=\"ok\"} 1",
        "abide_push_bytes_total ",
        "abide_fetches_total{transport=\"http\"} 1",
        "abide_audit_sealed_total ",
        "abide_pushes_running 0",
        "abide_jobs{state=\"done\"} ",
        "abide_disk_free_percent ",
    ];
    let missing: Vec<_> = wanted.iter().filter(|line| !text.lines().any(|found| found.starts_with(**line))).collect();
    assert!(missing.is_empty(), "missing: {missing:#?}\n{text}");
    assert!(!text.contains("alice"), "no name becomes a label: there may be millions\n{text}");
}

#[rstest]
fn metrics_are_for_the_networks_that_the_operator_names(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let scrape = |server: &Server, forwarded: &[&str]| {
        let ask = Request::new("GET", "/metrics");
        let ask = forwarded.iter().fold(ask, |ask, hops| ask.header("X-Forwarded-For", hops));
        ask.send(server.http_addr()).status
    };
    let mut server = server(engine);
    assert_eq!(scrape(&server, &[]), 200, "loopback");
    // A proxy on this machine that nobody declared: its clients are not on loopback.
    for hops in [&["203.0.113.9"][..], &["127.0.0.1, 203.0.113.9"], &["127.0.0.1", "203.0.113.9"], &["nonsense"]] {
        assert_eq!(scrape(&server, hops), 403, "{hops:?}");
    }
    let named = [("ABIDE_SERVER__METRICS_ALLOW", "192.0.2.0/24"), ("ABIDE_SERVER__TRUSTED_PROXIES", "127.0.0.1")];
    server.restart_with(&named);
    assert_eq!(scrape(&server, &[]), 403);
    assert_eq!(scrape(&server, &["203.0.113.9"]), 403);
    assert_eq!(scrape(&server, &["192.0.2.7"]), 200, "behind a proxy that is trusted");
    assert_eq!(http::get(server.http_addr(), "/healthz", None).status, 200, "health is for everybody");
}

// ---- the log ------------------------------------------------------------------------------------------------------

/// The log's lines, which all must be JSON but for the one that says where the server is.
fn json_lines(server: &Server) -> Vec<Value> {
    let log = server.log();
    // Messages for the person who started it are not part of the log.
    let printed = ["Abide is ready at ", "Create the first admin at "];
    let lines = log.lines().filter(|line| !printed.iter().any(|start| line.starts_with(start)));
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn every_request_has_an_id_that_is_in_the_log() {
    let server = builder(Engine::Sqlite).env("ABIDE_LOG__FORMAT", "json").start();
    let responses: Vec<Response> =
        ["/healthz", "/api/v3/user", "/nothing", "/a/b.git/info/refs?service=git-upload-pack"]
            .map(|path| http::get(server.http_addr(), path, None))
            .into();
    let ids: BTreeSet<_> = responses.iter().map(|response| response.header("x-request-id").expect("an id")).collect();
    assert_eq!(ids.len(), responses.len(), "no two are the same");

    let answered = |id: &str| -> Option<Value> {
        let mut lines = json_lines(&server).into_iter();
        lines.find(|line| line["fields"]["message"] == "answered" && line["span"]["id"] == id)
    };
    for (response, path) in responses.iter().zip(["/healthz", "/api/v3/user", "/nothing", "/a/b.git/info/refs"]) {
        let id = response.header("x-request-id").expect("an id");
        let line = answered(id).unwrap_or_else(|| panic!("{id} is not in the log\n{}", server.log()));
        assert_eq!(line["fields"]["path"], path, "{line}");
        assert_eq!(line["fields"]["status"], response.status, "{line}");
        assert_eq!(line["fields"]["method"], "GET", "{line}");
        assert_eq!(line["fields"]["peer"], "127.0.0.1", "{line}");
        assert!(line["fields"]["ms"].is_number() && line["timestamp"].is_string() && line["level"] == "INFO", "{line}");
    }
    // A client cannot put its own words there.
    let forged = Request::new("GET", "/healthz").header("X-Request-Id", "forged").send(server.http_addr());
    assert_ne!(forged.header("x-request-id"), Some("forged"));
}

#[rstest]
#[case::named("127.0.0.1", "203.0.113.9")]
#[case::not_named("10.0.0.0/8", "127.0.0.1")]
fn a_proxy_is_believed_about_its_client_only_if_it_is_named(#[case] trusted: &str, #[case] seen: &str) {
    let builder =
        builder(Engine::Sqlite).env("ABIDE_LOG__FORMAT", "json").env("ABIDE_SERVER__TRUSTED_PROXIES", trusted);
    let server = builder.start();
    Request::new("GET", "/healthz").header("X-Forwarded-For", "6.6.6.6, 203.0.113.9").send(server.http_addr());
    let answered: Vec<Value> =
        json_lines(&server).into_iter().filter(|line| line["fields"]["message"] == "answered").collect();
    assert_eq!(answered.last().map(|line| &line["fields"]["peer"]), Some(&json!(seen)));
}

#[rstest]
fn no_secret_is_in_the_log(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let builder = builder(engine).env("ABIDE_LOG__FORMAT", "json").env("ABIDE_LOG__FILTER", "debug");
    let mut server = builder.start();
    let alice = person(&server, "alice").with_ssh(&server);
    let token = alice.token.clone();
    let addr = server.http_addr();
    alice.create(&server, "project", true);
    push_something(&server, &alice, "project");
    alice.git.ok(&alice.git.fresh_dir(), &["ls-remote", &server.ssh_url("alice", "project")]);

    let wrong = "abide_pat_0123456789wrong";
    let secrets_elsewhere = format!("/api/v3/user?access_token={token}&token={wrong}");
    http::get(addr, &secrets_elsewhere, None);
    http::get(addr, "/api/v3/user", Some(wrong));
    http::get(addr, "/api/v3/user", Some(PASSWORD));
    Request::new("GET", "/api/v3/user").header("Authorization", &format!("token {token}")).send(addr);
    let body = json!({ "name": "with words", "description": "words of the body" });
    http::post(addr, "/api/v3/user/repos", Some(&token), &body);
    Request::new("POST", "/api/v3/user/repos").token(Some(&token)).body("{\"words of the body").send(addr);

    assert!(server.terminate().success());
    let log = server.log();
    assert!(json_lines(&server).len() > 10, "it was written in full\n{log}");
    for secret in [token.as_str(), &token["abide_pat_".len()..], wrong, PASSWORD, "words of the body"] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret} is in the log");
    }
}

// ---- stopping -----------------------------------------------------------------------------------------------------

/// A push over a plain socket that sends its pack when it is told to.
struct SlowPush {
    stream: TcpStream,
    rest: Vec<u8>,
    oid: String,
}

impl SlowPush {
    /// Sends the commands and half of the pack.
    fn begin(server: &Server, person: &Person, repo: &str) -> Self {
        let dir = person.git.init_work_tree();
        let noise: String = (0..20_000).map(|number| format!("{number}\n")).collect();
        let oid = person.git.commit_file(&dir, "numbers.txt", noise, "Count");
        let pack = pack_of(person, &dir);

        let command = format!("{} {oid} refs/heads/main\0report-status\n", "0".repeat(40));
        let commands = format!("{:04x}{command}0000", command.len() + 4);
        let head = format!(
            "POST /{}/{repo}.git/git-receive-pack HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/x-git-receive-pack-request\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            person.name,
            server.http_addr(),
            person.token,
            commands.len() + pack.len()
        );
        let (first, rest) = pack.split_at(pack.len() / 2);
        let mut stream = TcpStream::connect(server.http_addr()).expect("the server listens");
        stream.set_read_timeout(Some(SOON)).expect("a socket takes a timeout");
        stream.write_all(&[head.as_bytes(), commands.as_bytes(), first].concat()).expect("the server reads");
        // An area for what arrives is the sign that the push is being received.
        let incoming = server.data_dir().join("incoming");
        eventually(SOON, || fs::read_dir(&incoming).is_ok_and(|mut entries| entries.next().is_some()));
        Self { stream, rest: rest.to_owned(), oid }
    }

    /// Sends the other half and returns the answer.
    fn end(mut self) -> (String, Response) {
        self.stream.write_all(&self.rest).expect("the server reads on");
        let response = Response::read_from(&mut BufReader::new(&self.stream), false).expect("an answer comes");
        (self.oid, response)
    }
}

/// Everything reachable from `main`, as one pack.
fn pack_of(person: &Person, dir: &Path) -> Vec<u8> {
    let name =
        person.git.feed(dir, &["pack-objects", "--quiet", "--revs", "whole"], |input| input.write_all(b"main\n"));
    fs::read(dir.join(format!("whole-{}.pack", name.trim()))).expect("git just wrote it")
}

fn refuses_connections(addr: SocketAddr) -> bool {
    TcpStream::connect(addr).is_err()
}

#[rstest]
fn a_push_that_is_running_when_the_server_stops_is_finished(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut server = server(engine);
    let alice = person(&server, "alice");
    let id = alice.create(&server, "project", false)["id"].as_i64().expect("an id");
    let push = SlowPush::begin(&server, &alice, "project");

    let (http_addr, ssh_addr) = (server.http_addr(), server.ssh_addr());
    let (oid, response, ended) = thread::scope(|scope| {
        let ended = scope.spawn(|| server.terminate());
        eventually(SOON, || refuses_connections(http_addr) && refuses_connections(ssh_addr));
        let (oid, response) = push.end();
        (oid, response, ended.join().expect("it was waited for"))
    });
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(
        response.text().contains("unpack ok") && response.text().contains("ok refs/heads/main"),
        "{}",
        response.text()
    );
    assert_eq!(ended.code(), Some(0), "{}", server.log());

    server.restart();
    let refs = alice.git.ok(&alice.git.fresh_dir(), &["ls-remote", &server.http_url("alice", "project"), "main"]);
    assert_eq!(refs, format!("{oid}\trefs/heads/main"));
    assert_eq!(push_events(&server, id), 1);
    assert_healthy(&server);
}

#[test]
fn a_push_that_takes_too_long_does_not_keep_the_server_from_stopping() {
    let mut server = builder(Engine::Sqlite).env("ABIDE_SERVER__DRAIN", "200ms").start();
    let alice = person(&server, "alice");
    let id = alice.create(&server, "project", false)["id"].as_i64().expect("an id");
    let mut push = SlowPush::begin(&server, &alice, "project");

    assert_eq!(server.terminate().code(), Some(0), "{}", server.log());
    let mut said = Vec::new();
    let _ = push.stream.read_to_end(&mut said);
    assert!(!String::from_utf8_lossy(&said).contains("ok refs/heads/main"), "it was not told that it is done");

    server.restart();
    assert_eq!(alice.git.ok(&alice.git.fresh_dir(), &["ls-remote", &server.http_url("alice", "project")]), "");
    assert_eq!(push_events(&server, id), 0);
    assert_eq!(fs::read_dir(server.data_dir().join("incoming")).expect("it is there").count(), 0);
    assert_healthy(&server);
}

#[test]
fn connections_that_ask_for_nothing_do_not_hold_a_stop_up() {
    // If they did, it would be for longer than a test waits for an end.
    let mut server = builder(Engine::Sqlite).env("ABIDE_SERVER__DRAIN", "1h").start();
    let mut kept = TcpStream::connect(server.http_addr()).expect("the server listens");
    kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").expect("the server reads");
    Response::read_from(&mut BufReader::new(&kept), false).expect("an answer comes");
    let silent = TcpStream::connect(server.http_addr()).expect("the server listens");
    let silent_ssh = TcpStream::connect(server.ssh_addr()).expect("the server listens");

    assert_eq!(server.terminate().code(), Some(0), "{}", server.log());
    drop((kept, silent, silent_ssh));
}

#[rstest]
fn a_restart_keeps_everything(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut server = server(engine);
    let alice = person(&server, "alice").with_ssh(&server);
    alice.create(&server, "project", true);
    let oid = push_something(&server, &alice, "project");
    let reported = |server: &Server| {
        ["/api/v3/user", "/api/v3/user/keys", "/api/v3/repos/alice/project"]
            .map(|path| http::get(server.http_addr(), path, Some(&alice.token)))
            .map(|response| {
                assert_eq!(response.status, 200, "{}", response.text());
                response.json()
            })
    };
    // Jobs after the push change the result.
    eventually(SOON, || jobs(&server, "repo:maintain", "done") == 1);
    let before = reported(&server);

    assert_eq!(server.terminate().code(), Some(0), "{}", server.log());
    server.restart();

    let mut after = reported(&server);
    // When the key was used last is written down a little later.
    for (before, after) in before[1].as_array().into_iter().flatten().zip(after[1].as_array_mut().into_iter().flatten())
    {
        after["last_used"] = before["last_used"].clone();
    }
    assert_eq!(after, before);
    for url in [server.http_url("alice", "project"), server.ssh_url("alice", "project")] {
        let refs = alice.git.ok(&alice.git.fresh_dir(), &["ls-remote", &url, "refs/heads/main"]);
        assert_eq!(refs, format!("{oid}\trefs/heads/main"));
    }
    assert_healthy(&server);
}

// ---- work done later ----------------------------------------------------------------------------------------------

/// How many jobs of a kind are in a state.
fn jobs(server: &Server, kind: &str, state: &str) -> u32 {
    let sql = format!("SELECT count(*) FROM jobs WHERE kind = '{kind}' AND state = '{state}'");
    query(server, &sql).parse().expect("a count is a number")
}

#[rstest]
fn the_first_push_is_followed_by_tidying(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    assert_eq!(jobs(&server, "repo:maintain", "done"), 0);
    push_something(&server, &alice, "project");

    eventually(SOON, || jobs(&server, "repo:maintain", "done") == 1);
    let size: u64 = query(&server, "SELECT size_bytes FROM repos").parse().expect("a size must be a number");
    assert!(size > 0, "tidying measures, too");
    assert_healthy(&server);
}

#[rstest]
fn the_clock_queues_what_is_due_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut server = server(engine);
    let entries = |server: &Server| query(server, "SELECT count(*) FROM schedules").parse::<u32>().expect("a number");
    const KINDS: [&str; 7] = [
        "push:reconcile",
        "history:prune",
        "lifecycle:sweep",
        "trending:count",
        "notify:mail",
        "grasp:sweep",
        "relay:expire",
    ];
    eventually(SOON, || entries(&server) as usize == KINDS.len());
    assert_eq!(jobs(&server, "push:reconcile", "done"), 0, "the first time is an interval away");

    // As if the server had been off for long.
    assert!(server.terminate().success());
    query(&server, "UPDATE schedules SET next_run_at = 0 RETURNING name");
    server.restart();
    let done = |kind| jobs(&server, kind, "done");
    eventually(SOON, || KINDS.map(done) == [1; KINDS.len()]);
    assert_eq!(query(&server, "SELECT count(*) FROM jobs"), KINDS.len().to_string(), "however many times were missed");
    assert_eq!(query(&server, "SELECT count(*) FROM schedules WHERE next_run_at = 0"), "0");
}
