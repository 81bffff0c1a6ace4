//! A client on one address that wants to keep everybody else from fetching and pushing, and somebody else on another
//! address who notices nothing of it.

use super::bombs;
use super::setup::{Road, Setup, clone};
use crate::grasp::setup::{Setup as Signed, now, npub, state};
use crate::support::{builder, crowded};
use abide_testkit::http::{Request, Response};
use abide_testkit::{ATTACKER, Engine, Key, Peak, Server, connect_from, eventually};
use rstest::rstest;
use std::fs;
use std::io::{BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

/// More than are fetched or unpacked at once, for all clients together.
const MANY: usize = 70;

/// A connection of the attacker's that has sent this and sends no more.
fn hold(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut stream = connect_from(ATTACKER, server.http_addr()).expect("the server takes connections");
    stream.write_all(bytes).expect("the server reads");
    stream
}

/// Whether the server still waits for more.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket can be asked without waiting");
    let open = matches!((&*stream).read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
    stream.set_nonblocking(false).expect("a socket can be asked with waiting");
    open
}

/// The head of a request whose body comes in chunks, and the first of them.
pub(super) fn begun(path: &str, service: &str, token: Option<&str>, chunk: &[u8]) -> Vec<u8> {
    let login = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let mut bytes = format!(
        "POST {path}/{service} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-{service}-request\r\n\
         Git-Protocol: version=2\r\n{login}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        chunk.len()
    )
    .into_bytes();
    bytes.extend(chunk);
    bytes.extend(b"\r\n");
    bytes
}

pub(super) fn packet(text: &str) -> String {
    format!("{:04x}{text}", text.len() + 4)
}

#[rstest]
fn fetches_that_say_nothing_keep_nobody_from_cloning(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::on(crowded(engine).start(), Road::Ssh);
    setup.pushed();
    let silent = begun("/alice/demo.git", "git-upload-pack", None, b"0011command=fetch0001");
    let held: Vec<_> = (0..MANY).map(|_| hold(&setup.server, &silent)).collect();

    setup.clone(&[]);
    clone(setup.git(), &setup.server.http_url("alice", "demo"), &[]);
    assert!(held.iter().all(is_open), "the attack went on meanwhile");
}

#[rstest]
fn answers_that_nobody_takes_keep_nobody_from_cloning(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::on(crowded(engine).start(), Road::Http);
    let (work, _) = setup.pushed();
    let commit = setup.git().commit_file(&work, "noise", bombs::noise(12 << 20), "noise");
    setup.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    let wanted = [
        packet("command=fetch\n"),
        "0001".to_owned(),
        packet(&format!("want {commit}\n")),
        packet("done\n"),
        "0000".to_owned(),
    ]
    .concat();
    let ask = Request::new("POST", "/alice/demo.git/git-upload-pack")
        .header("Content-Type", "application/x-git-upload-pack-request")
        .header("Git-Protocol", "version=2")
        .body(wanted);
    let bytes = ask.to_bytes(setup.server.http_addr());
    let held: Vec<_> = (0..MANY).map(|_| hold(&setup.server, &bytes)).collect();
    eventually(SOON, || !held.iter().all(is_open));

    setup.clone(&[]);
    drop(held);
}

/// The processes that the server has started and that still run.
pub(super) fn children(server: &Server) -> Vec<String> {
    let parent = server.pid().to_string();
    let stat = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("stat")).ok();
    let ours = |stat: &String| stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)) == Some(&parent);
    fs::read_dir("/proc").expect("there is one").flatten().filter_map(stat).filter(ours).collect()
}

/// A push of the attacker's to a repository of a key of theirs, which nobody has to log in for.
fn signed_push(setup: &mut Signed, attacker: &Key, pack: &[u8]) -> Vec<u8> {
    setup.announce(attacker, "bait", &[]);
    let tip = "1234567890123456789012345678901234567890";
    setup.state_waits(&state(attacker, now() - 5, "bait", &[("refs/heads/main", tip)], Some("main")));
    let zero = "0".repeat(40);
    let mut push = packet(&format!("{zero} {tip} refs/heads/main\0report-status")).into_bytes();
    push.extend(b"0000");
    push.extend(pack);
    push
}

fn bait(attacker: &Key) -> String {
    format!("/{}/bait.git", npub(attacker))
}

#[rstest]
fn pushes_that_do_not_end_keep_nobody_from_pushing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Signed::on(crowded(engine).start());
    let attacker = Key::new(9);
    // The head of a blob, and so little of it that git would wait for more.
    let push = signed_push(&mut setup, &attacker, b"PACK\0\0\0\x02\0\0\0\x02\xb0\x80\x80\x01\x78\x9c");
    let begun = begun(&bait(&attacker), "git-receive-pack", None, &push);
    let held: Vec<_> = (0..MANY).map(|_| hold(&setup.server, &begun)).collect();

    let victim = Key::new(10);
    setup.served(&victim, "tool", &[]);
    let alice = crate::support::person(&setup.server, "alice");
    alice.create(&setup.server, "demo", false);
    alice.git.ok(&setup.work, &["push", "--quiet", &setup.server.http_url("alice", "demo"), "main"]);
    assert!(held.iter().all(is_open), "the attack went on meanwhile");
    eventually(SOON, || children(&setup.server).is_empty());
}

/// Refused pushes whose packs are read at once for one client, so that it sees the refusal.
const DRAINS: usize = 4;

#[rstest]
fn refused_pushes_of_one_account_are_read_a_few_at_a_time_and_others_hear_why(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::on(crowded(engine).env("ABIDE_GIT__QUEUE", "1s").start(), Road::Http);
    let (work, tip) = setup.pushed();
    let mallory = crate::support::person(&setup.server, "mallory");
    // They may read the repository, but not push. Their packs do not end.
    let mut push = packet(&format!("{tip} {} refs/heads/main\0report-status", "1".repeat(40))).into_bytes();
    push.extend(b"0000");
    push.extend(bombs::noise(200 << 10));
    let begun = begun("/alice/demo.git", "git-receive-pack", Some(&mallory.token), &push);
    let mut held: Vec<_> = (0..24).map(|_| hold(&setup.server, &begun)).collect();
    // The others are told without, and their connections end.
    eventually(SOON, || {
        held.retain(is_open);
        held.len() <= DRAINS
    });
    assert_eq!(held.len(), DRAINS, "the attack goes on");

    // A refusal that is given while git sends a large pack.
    setup.git().commit_file(&work, "noise", bombs::noise(6 << 20), "noise");
    let too_long = format!("main:refs/heads/{}", "x".repeat(251));
    let told = setup.git().fails(&work, &["push", "origin", &too_long]);
    assert!(told.contains("a ref name must have at most"), "{told}");
    assert!(held.iter().all(is_open), "the attack went on meanwhile");
    setup.git().ok(&work, &["push", "--quiet", "origin", "main"]);
}

/// The server's report about a push from the attacker's address.
fn report(server: SocketAddr, attacker: &Key, push: &[u8]) -> String {
    let request = Request::new("POST", &format!("{}/git-receive-pack", bait(attacker)))
        .header("Content-Type", "application/x-git-receive-pack-request")
        .body(push);
    let mut stream = connect_from(ATTACKER, server).expect("the server takes connections");
    stream.write_all(&request.to_bytes(server)).expect("the server reads");
    // As long as it takes: what git is given may be much work, and others go first.
    let answer = Response::read_from(&mut BufReader::new(stream), false).expect("a proper response");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

#[rstest]
fn a_directory_of_a_gigabyte_in_a_small_pack_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Signed::on(builder(engine).start());
    let attacker = Key::new(9);
    // A directory of a gigabyte, of which the first bytes are here.
    let push = signed_push(&mut setup, &attacker, b"PACK\0\0\0\x02\0\0\0\x01\xa0\x80\x80\x80\x20\x78\x9c");
    let reported = report(setup.server.http_addr(), &attacker, &push);
    assert!(reported.contains("a commit, tree or tag has 1073741824 bytes; the limit is"), "{reported}");
}

/// Processor time that one bomb costs the server and git at most. Unpacking the larger one takes minutes.
const COST: Duration = Duration::from_secs(20);

#[rstest]
// Forty gigabytes in 50 kB: no git is started for it.
#[case::beyond_all_bounds(bombs::delta_bomb(800, 3, 0), 51_000, "the pack unpacks to more than 500 times its size")]
// Within all bounds: git unpacks all of it, and misses the commit.
#[case::within_bounds(bombs::delta_bomb(8, 1, 1 << 20), 1_100_000, "ng refs/heads/main")]
fn a_delta_bomb_costs_little_and_keeps_nobody_from_pushing(
    #[case] bomb: Vec<u8>,
    #[case] size: usize,
    #[case] refusal: &str,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const BOMBS: u32 = 2;
    let mut setup = Signed::on(crowded(engine).start());
    let attacker = Key::new(9);
    let push = signed_push(&mut setup, &attacker, &bomb);
    assert!(push.len() < size, "{}", push.len());
    let alice = crate::support::person(&setup.server, "alice");
    alice.create(&setup.server, "demo", false);
    let (addr, url) = (setup.server.http_addr(), setup.server.http_url("alice", "demo"));
    let before = setup.server.processor_time();
    thread::scope(|scope| {
        let attacks: Vec<_> = (0..BOMBS).map(|_| scope.spawn(|| report(addr, &attacker, &push))).collect();
        alice.git.ok(&setup.work, &["push", "--quiet", &url, "main"]);
        clone(&alice.git, &url, &[]);
        assert_eq!(Request::new("GET", "/alice/demo").send(addr).status, 200);
        setup.served(&Key::new(10), "tool", &[]);
        for attack in attacks {
            let reported = attack.join().expect("there is a report");
            assert!(reported.contains(refusal), "{reported}");
        }
    });
    eventually(SOON, || children(&setup.server).is_empty());
    let spent = setup.server.processor_time() - before;
    assert!(spent < COST * BOMBS, "{spent:?}");
}

/// Memory that server and git may take in addition while pushes of strangers are unpacked: one git with its ration of
/// 192 MiB, as all of them come from one address, and what the server needs to look through the packs.
const UNPACKING: u64 = 256 << 20;

#[rstest]
// Two results of 336 MB from each other: git holds both at once.
#[case::deltas(bombs::delta_bomb(2, 20, 1 << 20), 1, "memory")]
// Each of these directories takes git three times its size.
#[case::directories(bombs::wide_tree(230_000), 6, "ng refs/heads/main")]
#[case::wider_directories(bombs::wide_tree(250_000), 6, "the limit is")]
// Directories of 128 MiB, complete in 128 KiB.
#[case::huge_directories(bombs::huge_tree(128 << 20), 6, "the limit is")]
fn pushes_of_one_stranger_take_the_memory_of_one_ration(
    #[case] bomb: Vec<u8>,
    #[case] at_once: usize,
    #[case] refusal: &str,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Signed::on(crowded(engine).start());
    let attacker = Key::new(9);
    let push = signed_push(&mut setup, &attacker, &bomb);
    let addr = setup.server.http_addr();
    let before = setup.server.rss_bytes();
    let (told, peak) = Peak::during(setup.server.pid(), || {
        thread::scope(|scope| {
            let pushes: Vec<_> = (0..at_once).map(|_| scope.spawn(|| report(addr, &attacker, &push))).collect();
            pushes.into_iter().map(|push| push.join().expect("there is a report")).collect::<Vec<_>>()
        })
    });
    assert!(told.iter().all(|told| told.contains(refusal)), "{told:?}");
    assert!(peak.bytes() < before + UNPACKING, "{} before, {}", before >> 20, peak.describe());
}

/// git holds the former version of a file as a whole, whatever the size of the one that is shown.
#[rstest]
fn a_blame_of_a_file_that_was_large_is_refused_to_strangers_with_the_reason(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::on(crowded(engine).start(), Road::Http);
    let (work, _) = setup.pushed();
    let text = format!("{}\n", "large ".repeat(200_000)).repeat(150);
    setup.git().commit_file(&work, "f", text, "large");
    setup.git().commit_file(&work, "f", "small\n", "small");
    setup.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    let addr = setup.server.http_addr();
    let blame = Request::new("GET", "/alice/demo/blame/main/f");
    let (answer, peak) = Peak::during(setup.server.pid(), || blame.send_from(ATTACKER, addr));
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.text().contains("more processor time or memory than the server allows"), "{}", answer.text());
    assert!(peak.bytes() < setup.server.rss_bytes() + (160 << 20), "{}", peak.describe());
    assert_eq!(Request::new("GET", "/alice/demo/blob/main/f").send_from(ATTACKER, addr).status, 200);
}

/// A git that does not come back from a blame of `held…` for as long as a file is there.
fn slow_git(dir: &Path) -> (PathBuf, PathBuf) {
    let (binary, gate) = (dir.join("slow-git"), dir.join("gate"));
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in blame*held*) while [ -e '{}' ]; do sleep 0.05; done;; esac\nexec git \"$@\"\n",
        gate.display()
    );
    fs::write(&binary, script).expect("writable");
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).expect("ours");
    fs::write(&gate, "").expect("writable");
    (binary, gate)
}

#[rstest]
fn questions_about_history_keep_nobody_from_pushing_or_asking(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let (binary, gate) = slow_git(dir.path());
    let server = crowded(engine).env("ABIDE_GIT__BINARY", &binary).env("ABIDE_GIT__QUEUE", "1s").start();
    let setup = Setup::on(server, Road::Http);
    let (work, _) = setup.pushed();
    for number in 0..12 {
        for kind in ["held", "other"] {
            fs::write(work.join(format!("{kind}{number}")), "text\n").expect("writable");
        }
    }
    setup.git().ok(&work, &["add", "."]);
    setup.git().commit_file(&work, "free", "text\n", "files");
    setup.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    let addr = setup.server.http_addr();
    let blame = |file: &str| Request::new("GET", &format!("/alice/demo/blame/main/{file}"));
    let ask = |number: usize| blame(&format!("held{number}")).to_bytes(addr);
    let mut held: Vec<_> = (0..12).map(|number| hold(&setup.server, &ask(number))).collect();
    // Each file once: an answer that was given is remembered.
    let mut others = (0..12).map(|number| blame(&format!("other{number}")).send_from(ATTACKER, addr));
    let busy = others.find(|answer| answer.status == 503).expect("one address has only so many slots");
    assert_eq!(busy.header("retry-after"), Some("10"));

    assert_eq!(blame("free").send(addr).status, 200, "somebody else asks");
    assert_eq!(Request::new("GET", "/alice/demo").send(addr).status, 200);
    setup.clone(&[]);
    setup.git().commit_file(&work, "README.md", "more\n", "more");
    setup.git().ok(&work, &["push", "--quiet", "origin", "main"]);
    // Pushes without a slot are refused, one after the other; the attack went on meanwhile.
    eventually(Duration::from_secs(30), || {
        held.retain(is_open);
        held.len() <= 2
    });
    assert_eq!(held.len(), 2, "those with a slot stay");
    fs::remove_file(&gate).expect("ours");
    for mut connection in held {
        let mut answer = [0; 12];
        connection.read_exact(&mut answer).expect("they are answered in the end");
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
}
