//! Fetches, pushes and downloads end within seconds of the credential that opened them. The limits on idle clients are an hour here, so
//! nothing else ends them.

use super::attacks::{begun, children, packet};
use super::bombs::noise;
use super::raw;
use super::setup::{Road, SOON, Setup};
use crate::pages::browser::Browser;
use crate::support::{builder, query};
use abide_testkit::http::{self, Request};
use abide_testkit::{Engine, PASSWORD, Server, eventually};
use rstest::rstest;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// The head of a pack with two blobs, and so little of the first that more has to come.
const HALF_A_PACK: &[u8] = b"PACK\0\0\0\x02\0\0\0\x02\xb0\x80\x80\x01\x78\x9c";

const TIP: &str = "1234567890123456789012345678901234567890";

fn patient(engine: Engine) -> Server {
    builder(engine)
        .env("ABIDE_DATABASE__CONNECTIONS", "3")
        .env("ABIDE_GIT__IDLE_TIMEOUT", "1h")
        .env("ABIDE_SSH__IDLE_TIMEOUT", "1h")
        .start()
}

/// Takes Alice's credential away.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Suspension,
    Token,
    Key,
}

fn lose(setup: &Setup, loss: Loss) {
    match loss {
        Loss::Suspension => drop(setup.server.cli_ok(&["user", "suspend", "alice"])),
        Loss::Token => {
            let id = query(&setup.server, "SELECT id FROM tokens");
            setup.server.cli_ok(&["token", "revoke", "alice", &id]);
        }
        Loss::Key => {
            let id = query(&setup.server, "SELECT id FROM ssh_keys");
            let path = format!("/api/v3/user/keys/{id}");
            assert_eq!(http::delete(setup.server.http_addr(), &path, Some(&setup.alice.token)).status, 204);
        }
    }
}

fn send(setup: &Setup, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(setup.server.http_addr()).expect("the server listens");
    stream.set_read_timeout(Some(SOON)).expect("a socket takes a timeout");
    stream.write_all(bytes).expect("the server reads");
    stream
}

/// Everything until the server closes the connection.
fn to_the_end(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the server closes it");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[rstest]
fn a_push_over_http_ends_with_its_account_or_token(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Loss::Suspension, Loss::Token)] loss: Loss,
) {
    let setup = Setup::on(patient(engine), Road::Http);
    let push = raw::push_of(&[("refs/heads/main", TIP)], HALF_A_PACK);
    let held = send(&setup, &begun("/alice/demo.git", "git-receive-pack", Some(&setup.alice.token), &push));
    let silent = send(&setup, &begun("/alice/demo.git", "git-receive-pack", Some(&setup.alice.token), b"00"));
    let incoming = setup.server.data_dir().join("incoming");
    eventually(SOON, || std::fs::read_dir(&incoming).is_ok_and(|mut areas| areas.next().is_some()));
    lose(&setup, loss);
    let reported = to_the_end(held);
    assert!(reported.contains("ng refs/heads/main request ended: the account was suspended"), "{reported}");
    let reported = to_the_end(silent);
    assert!(reported.contains("the account was suspended"), "{reported}");
    setup.assert_nothing_incoming();
}

#[rstest]
fn a_push_over_ssh_ends_with_its_account_or_key(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Loss::Suspension, Loss::Key)] loss: Loss,
) {
    let setup = Setup::on(patient(engine), Road::Ssh);
    let (mut ssh, stdin, report) = raw::over_ssh(&setup, &raw::push_of(&[("refs/heads/main", TIP)], HALF_A_PACK));
    let incoming = setup.server.data_dir().join("incoming");
    eventually(SOON, || std::fs::read_dir(&incoming).is_ok_and(|mut areas| areas.next().is_some()));
    lose(&setup, loss);
    let reported = report.recv_timeout(SOON).expect("there is a report");
    assert!(reported.contains("ng refs/heads/main request ended: the account was suspended"), "{reported}");
    eventually(SOON, || ssh.try_wait().expect("our own child can be asked").is_some());
    drop(stdin);
    setup.assert_nothing_incoming();
}

#[rstest]
fn a_fetch_over_http_ends_with_its_account_or_token(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Loss::Suspension, Loss::Token)] loss: Loss,
) {
    let setup = Setup::on(patient(engine), Road::Http);
    let (work, _) = setup.pushed();
    let commit = setup.git().commit_file(&work, "noise", noise(12 << 20), "noise");
    setup.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    setup.wait_for_jobs();
    let (command, want, done) = (packet("command=fetch\n"), packet(&format!("want {commit}\n")), packet("done\n"));
    let wanted = format!("{command}0001{want}{done}0000");
    let ask = Request::new("POST", "/alice/demo.git/git-upload-pack")
        .token(Some(&setup.alice.token))
        .header("Content-Type", "application/x-git-upload-pack-request")
        .header("Git-Protocol", "version=2")
        .body(wanted);
    let silent = begun("/alice/demo.git", "git-upload-pack", Some(&setup.alice.token), b"0011command=fetch0001");
    let silent = send(&setup, &silent);
    let answer = send(&setup, &ask.to_bytes(setup.server.http_addr()));
    eventually(SOON, || !children(&setup.server).is_empty());
    lose(&setup, loss);
    // The client takes nothing, and git ends all the same.
    eventually(SOON, || children(&setup.server).is_empty());
    let reported = to_the_end(silent);
    assert!(reported.contains("the account was suspended"), "{reported}");
    drop(answer);
}

#[rstest]
fn a_fetch_over_ssh_ends_with_its_account_or_key(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Loss::Suspension, Loss::Key)] loss: Loss,
) {
    let setup = Setup::on(patient(engine), Road::Ssh);
    let (_, tip) = setup.pushed();
    setup.wait_for_jobs();
    let mut ssh = raw::ssh(&setup, "git-upload-pack");
    let mut stdout = ssh.stdout.take().expect("it was asked for");
    let advertised = raw::read_lines(&mut stdout);
    assert!(advertised.contains(&tip), "{advertised}");
    assert_eq!(children(&setup.server), [""; 0], "a client that has asked for nothing has no git");
    // One that wants something and says no more has one.
    let mut asking = raw::ssh(&setup, "git-upload-pack");
    let mut stdin = asking.stdin.take().expect("it was asked for");
    raw::read_lines(&mut asking.stdout.take().expect("it was asked for"));
    stdin.write_all(&[raw::packet(&format!("want {tip}\n")), b"0000".to_vec()].concat()).expect("ssh listens");
    eventually(SOON, || !children(&setup.server).is_empty());
    lose(&setup, loss);
    eventually(SOON, || ssh.try_wait().expect("our own child can be asked").is_some());
    eventually(SOON, || asking.try_wait().expect("our own child can be asked").is_some());
    eventually(SOON, || children(&setup.server).is_empty());
}

/// Ways to download a private file.
#[derive(Clone, Copy, Debug)]
enum Download {
    Page,
    Contents,
    Blob,
}

#[rstest]
fn a_download_ends_with_its_login_account_or_token(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Download::Page, Download::Contents, Download::Blob)] download: Download,
    #[values(true, false)] suspended: bool,
) {
    let setup = Setup::on(patient(engine), Road::Http);
    let work = setup.work_tree();
    setup.git().commit_file(&work, "noise", noise(24 << 20), "noise");
    setup.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    setup.wait_for_jobs();
    setup.edit(&json!({ "private": true }));
    let browser = Browser::new(&setup.server);
    browser.log_in("alice", PASSWORD);
    let raw = |path: &str| {
        let token = Some(setup.alice.token.as_str());
        Request::new("GET", path).token(token).header("Accept", "application/vnd.github.raw")
    };
    let ask = match download {
        Download::Page => browser.request("GET", "/alice/demo/raw/main/noise"),
        Download::Contents => raw("/api/v3/repos/alice/demo/contents/noise"),
        Download::Blob => {
            let oid = setup.stored(&["rev-parse", "main:noise"]);
            raw(&format!("/api/v3/repos/alice/demo/git/blobs/{oid}"))
        }
    };
    // The client takes nothing, and git ends all the same.
    let held = send(&setup, &ask.to_bytes(setup.server.http_addr()));
    eventually(SOON, || !children(&setup.server).is_empty());
    match (suspended, download) {
        (true, _) => lose(&setup, Loss::Suspension),
        (false, Download::Page) => assert_eq!(browser.submit("/", "/logout", &[]).status, 303),
        (false, _) => lose(&setup, Loss::Token),
    }
    eventually(SOON, || children(&setup.server).is_empty());
    let mut taken = Vec::new();
    let _ = (&held).read_to_end(&mut taken);
    assert!(taken.starts_with(b"HTTP/1.1 200") && taken.len() < 24 << 20, "{} bytes", taken.len());
}

#[rstest]
fn a_push_whose_account_is_suspended_before_its_refs_move_is_refused(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Road::Http, Road::Ssh)] road: Road,
) {
    let setup = Setup::on(patient(engine), road);
    let (work, first) = setup.pushed();
    setup.wait_for_jobs();
    setup.git().commit_file(&work, "more", "more", "more");
    // Somebody else has the lease of the repository, so the push waits when all of it is here.
    let id = setup.id;
    query(&setup.server, &format!("DELETE FROM leases WHERE name = 'repo:{id}'"));
    let until = i64::MAX / 2;
    let taken = format!("INSERT INTO leases (name, holder, token, expires_at) VALUES ('repo:{id}', 'x', 9, {until})");
    query(&setup.server, &taken);
    let before = received(&setup.server);
    let pushing = std::thread::spawn({
        let git = setup.git().clone();
        move || git.run(&work, &["push", "--quiet", "origin", "main"])
    });
    eventually(SOON, || received(&setup.server) > before);
    lose(&setup, Loss::Suspension);
    query(&setup.server, &format!("DELETE FROM leases WHERE name = 'repo:{id}'"));
    let output = pushing.join().expect("git ran");
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && reported.contains("the account was suspended"), "{reported}");
    assert_eq!(setup.refs()["refs/heads/main"], first, "no ref has moved");
    setup.assert_nothing_incoming();
}

/// Bytes of packs that came so far.
fn received(server: &Server) -> u64 {
    let metrics = http::get(server.http_addr(), "/metrics", None).text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("abide_push_bytes_total "));
    line.map_or(0, |bytes| bytes.parse().expect("a number"))
}
