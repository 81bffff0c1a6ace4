//! A server that dies at the worst moment loses nothing it acknowledged and leaves nothing half done.
//!
//! Every failpoint is passed on both engines.

mod lifecycle;
mod notify;

use crate::support::{Person, assert_healthy, builder, crowded, person, push_events, query};
use abide_core::failpoint;
use abide_testkit::{Engine, GitClient, Server, eventually, http};
use rstest::rstest;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// Refs as the server tells them: `oid name`, sorted by name.
fn refs(git: &GitClient, url: &str) -> Vec<String> {
    let listed = git.ok(Path::new("/"), &["ls-remote", "--refs", url]);
    listed.lines().map(str::to_owned).collect()
}

fn no_incoming(server: &Server) {
    let incoming = server.data_dir().join("incoming");
    let empty = || std::fs::read_dir(&incoming).is_ok_and(|mut entries| entries.next().is_none());
    assert!(empty(), "something is left in {}", incoming.display());
}

/// A repository with three refs, and a work tree that wants to move one, delete one and make one.
struct Setup {
    server: Server,
    alice: Person,
    repo: i64,
    tree: PathBuf,
    before: Vec<String>,
}

const PUSH: &[&str] = &["push", "origin", "main", "+:refs/heads/old", "HEAD:refs/heads/new"];

fn setup(engine: Engine) -> Setup {
    // Every push stays a pack, so that the failpoint between pack and index is passed too.
    let server = builder(engine).env("ABIDE_GIT__UNPACK_LIMIT", "1").start();
    let alice = person(&server, "alice");
    let repo = alice.create(&server, "project", false)["id"].as_i64().expect("an id");
    let tree = alice.git.init_work_tree_of(&server.http_url("alice", "project"));
    alice.git.commit_file(&tree, "a", "one", "one");
    alice.git.ok(&tree, &["push", "origin", "main", "main:refs/heads/old", "main:refs/tags/v1"]);
    let before = refs(&alice.git, &server.http_url("alice", "project"));
    assert_eq!(before.len(), 3);
    alice.git.commit_file(&tree, "a", "two", "two");
    Setup { server, alice, repo, tree, before }
}

#[rstest]
fn crash_in_a_push_leaves_all_of_it_or_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(
        failpoint::PUSH_PACK_RECEIVED,
        failpoint::PUSH_CONNECTED,
        failpoint::PUSH_INTENT_COMMITTED,
        failpoint::PUSH_PACK_WITHOUT_INDEX,
        failpoint::PUSH_OBJECTS_MIGRATED,
        failpoint::PUSH_REFS_UPDATED,
        failpoint::PUSH_FINISH_BEFORE_COMMIT,
        failpoint::PUSH_FINISHED,
        failpoint::PUSH_REPORTED
    )]
    point: &str,
) {
    let Setup { mut server, alice, repo, tree, before } = setup(engine);
    let url = server.http_url("alice", "project");
    server.restart_with_failpoint(point);

    let push = alice.git.run(&tree, PUSH);
    server.wait_exit();
    server.restart();

    assert_healthy(&server);
    no_incoming(&server);
    let moved = [
        failpoint::PUSH_REFS_UPDATED,
        failpoint::PUSH_FINISH_BEFORE_COMMIT,
        failpoint::PUSH_FINISHED,
        failpoint::PUSH_REPORTED,
    ]
    .contains(&point);
    let after = refs(&alice.git, &url);
    if moved {
        let head = alice.git.ok(&tree, &["rev-parse", "HEAD"]);
        let first = &before[0][..40];
        let expected = [
            format!("{}\trefs/heads/main", head.trim()),
            format!("{}\trefs/heads/new", head.trim()),
            format!("{first}\trefs/tags/v1"),
        ];
        assert_eq!(after, expected, "every ref moved");
    } else {
        assert_eq!(after, before, "no ref moved");
        assert!(!push.status.success(), "nobody was told that it worked");
    }
    assert_eq!(push_events(&server, repo), 1 + i64::from(moved), "each push that happened has its event");
    let reported = query(&server, "SELECT payload FROM domain_events WHERE kind = 'push' ORDER BY id DESC LIMIT 1");
    let subject = if moved { "two" } else { "one" };
    assert!(reported.contains(&format!("\"message\":\"{subject}\"")), "the event tells of the commit: {reported}");

    // Nothing is stuck: the same push works, or has nothing left to do.
    if !moved {
        alice.git.ok(&tree, PUSH);
        assert_eq!(refs(&alice.git, &url).len(), 3);
        assert_eq!(push_events(&server, repo), 2);
    }
    alice.git.ok(&tree, &["fetch", "origin"]);
    alice.git.ok(&tree, &["fsck", "--connectivity-only"]);
    assert_healthy(&server);
}

#[rstest]
fn crash_in_creating_leaves_a_working_repository_or_none(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(
        failpoint::CREATE_BEFORE_COMMIT,
        failpoint::CREATE_COMMITTED,
        failpoint::DIRECTORY_HALF_MADE,
        failpoint::CREATE_DIRECTORY_MADE
    )]
    point: &str,
) {
    let mut server = builder(engine).start();
    let alice = person(&server, "alice");
    server.restart_with_failpoint(point);

    let create =
        http::Request::new("POST", "/api/v3/user/repos").token(Some(&alice.token)).json(&json!({ "name": "x" }));
    let answer = std::panic::catch_unwind(|| create.send(server.http_addr()));
    assert!(answer.is_err(), "the server died before it could answer");
    server.wait_exit();
    // Older versions made directories among the repositories, named by process id, which repeats in a container.
    let [old, young] = ["old", "young"].map(|name| server.data_dir().join(format!("repos/01/.1.git.new-1-{name}")));
    for draft in [&old, &young] {
        std::fs::create_dir_all(draft.join("objects")).expect("writable");
    }
    std::fs::File::open(&old).expect("ours").set_modified(std::time::UNIX_EPOCH).expect("ours");
    server.restart();

    assert_healthy(&server);
    no_incoming(&server);
    assert!(!old.exists(), "the next start removes it");
    assert!(young.exists(), "another node of an older version may be making it");
    let exists = point != failpoint::CREATE_BEFORE_COMMIT;
    let show = http::get(server.http_addr(), "/api/v3/repos/alice/x", None);
    assert_eq!(show.status, if exists { 200 } else { 404 });
    if !exists {
        alice.create(&server, "x", false);
    }
    assert_eq!(query(&server, "SELECT count(*) FROM domain_events WHERE kind = 'repo_created'"), "1");
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "one", "one");
    alice.git.ok(&tree, &["push", &server.http_url("alice", "x"), "main"]);
    assert_healthy(&server);
}

/// HEAD follows the database: the change is committed before HEAD is written.
#[rstest]
fn crash_in_changing_the_default_branch_keeps_the_change_and_blocks_nobody(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("edit", "first push")] by: &str,
) {
    let Setup { mut server, alice, tree, .. } = setup(engine);
    let (url, first) = (server.http_url("alice", "project"), server.http_url("alice", "first"));
    alice.create(&server, "first", false);
    server.restart_with_failpoint(failpoint::HEAD_DRAFTED);
    let (name, url) = match by {
        "edit" => {
            let body = json!({ "default_branch": "old" });
            let edit = http::Request::new("PATCH", "/api/v3/repos/alice/project").token(Some(&alice.token)).json(&body);
            assert!(std::panic::catch_unwind(|| edit.send(server.http_addr())).is_err(), "the server died");
            ("project", url)
        }
        _ => {
            alice.git.run(&tree, &["push", &first, "main:refs/heads/old"]);
            ("first", first)
        }
    };
    server.wait_exit();
    server.restart();

    assert_healthy(&server);
    no_incoming(&server);
    let show = http::get(server.http_addr(), &format!("/api/v3/repos/alice/{name}"), None);
    assert_eq!((show.status, &show.json()["default_branch"]), (200, &json!("old")));
    let clone = alice.git.fresh_dir();
    alice.git.ok(&clone, &["clone", "--quiet", &url, "."]);
    assert_eq!(alice.git.ok(&clone, &["symbolic-ref", "HEAD"]).trim(), "refs/heads/old");
    // Nothing is locked: the branch that HEAD names moves.
    alice.git.ok(&tree, &["push", &url, "main:refs/heads/old"]);
    assert_healthy(&server);
}

/// Locks that the machine left when it died at another moment than in a push.
#[rstest]
fn locks_that_a_dead_machine_left_are_removed_by_the_next_writer(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, alice, repo, tree, .. } = setup(engine);
    let dir = server.data_dir().join(format!("repos/{:02x}/{repo}.git", repo & 0xff));
    let leave = |names: &[&str]| names.iter().for_each(|name| std::fs::write(dir.join(name), "").expect("writable"));
    let left = || {
        ["HEAD.lock", "packed-refs.lock", "packed-refs.new", "refs/heads/old.lock"].map(|name| dir.join(name).exists())
    };

    leave(&["packed-refs.lock", "packed-refs.new", "refs/heads/old.lock"]);
    maintain(&server, repo);
    assert_eq!(left(), [false; 4]);
    let packed = std::fs::read_to_string(dir.join("packed-refs")).expect("refs are packed");
    assert!(packed.contains("refs/heads/old") && packed.contains("refs/tags/v1"), "{packed}");

    // git rewrites `packed-refs` when it deletes a ref that is there.
    for (lock, deleted) in [("packed-refs.lock", "refs/heads/old"), ("packed-refs.new", "refs/tags/v1")] {
        leave(&[lock]);
        alice.git.ok(&tree, &["push", "origin", &format!(":{deleted}")]);
        assert_eq!(left(), [false; 4]);
    }
    // git locks HEAD when it moves the branch that HEAD names.
    leave(&["HEAD.lock"]);
    alice.git.ok(&tree, &["push", "origin", "main"]);
    assert_eq!(refs(&alice.git, &server.http_url("alice", "project")).len(), 1);
    assert_healthy(&server);
}

/// Runs the maintenance of a repository to its end, once that after the first push is over: one of them works at a time.
fn maintain(server: &Server, repo: i64) {
    let left = "SELECT count(*) FROM jobs WHERE kind = 'repo:maintain' AND state <> 'done'";
    eventually(SOON, || query(server, left) == "0");
    server.cli_ok(&["jobs", "run", "repo:maintain", "--payload", &json!({ "repo_id": repo }).to_string()]);
}

/// A repository with content of the server's own: the first commit is a push, and a crash in it leaves a repository
/// with that commit or an empty one.
#[rstest]
fn crash_in_a_first_commit_leaves_it_whole_or_an_empty_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(
        failpoint::CREATE_DIRECTORY_MADE,
        failpoint::PUSH_INTENT_COMMITTED,
        failpoint::PUSH_OBJECTS_MIGRATED,
        failpoint::PUSH_REFS_UPDATED,
        failpoint::PUSH_FINISH_BEFORE_COMMIT,
        failpoint::PUSH_FINISHED
    )]
    point: &str,
) {
    let mut server = builder(engine).start();
    let alice = person(&server, "alice");
    server.restart_with_failpoint(point);

    let body = json!({ "name": "x", "auto_init": true, "license_template": "mit" });
    let create = http::Request::new("POST", "/api/v3/user/repos").token(Some(&alice.token)).json(&body);
    let answer = std::panic::catch_unwind(|| create.send(server.http_addr()));
    assert!(answer.is_err(), "the server died before it could answer");
    server.wait_exit();
    server.restart();

    assert_healthy(&server);
    no_incoming(&server);
    let moved = [failpoint::PUSH_REFS_UPDATED, failpoint::PUSH_FINISH_BEFORE_COMMIT, failpoint::PUSH_FINISHED];
    let there = moved.contains(&point);
    let url = server.http_url("alice", "x");
    assert_eq!(refs(&alice.git, &url).len(), usize::from(there), "the commit is there or it is not");
    let repo = query(&server, "SELECT id FROM repos").parse().expect("an id");
    assert_eq!(push_events(&server, repo), i64::from(there));
    let clone = alice.git.fresh_dir();
    alice.git.ok(&clone, &["clone", "--quiet", &url, "."]);
    assert_eq!(clone.join("README.md").exists() && clone.join("LICENSE").exists(), there);
}

#[rstest]
fn crash_in_forking_leaves_a_whole_fork_or_no_trace(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(
        failpoint::FORK_RESERVED,
        failpoint::FORK_BUILT,
        failpoint::FORK_PLACED,
        failpoint::FORK_BEFORE_COMMIT,
        failpoint::FORK_COMMITTED
    )]
    point: &str,
) {
    let Setup { mut server, alice, before, .. } = setup(engine);
    let bob = person(&server, "bob");
    server.restart_with_failpoint(point);

    let ask = http::Request::new("POST", "/api/v3/repos/alice/project/forks").token(Some(&bob.token)).json(&json!({}));
    let answer = std::panic::catch_unwind(|| ask.send(server.http_addr()));
    assert!(answer.is_err(), "the server died before it could answer");
    server.wait_exit();
    server.restart();

    assert_healthy(&server);
    no_incoming(&server);
    let there = point == failpoint::FORK_COMMITTED;
    let show = http::get(server.http_addr(), "/api/v3/repos/bob/project", None);
    assert_eq!(show.status, if there { 200 } else { 404 });
    assert_eq!(
        query(&server, "SELECT count(*) FROM domain_events WHERE kind = 'repo_forked'"),
        i64::from(there).to_string()
    );

    // The same request again gives the fork, whichever it is.
    assert_eq!(ask.send(server.http_addr()).status, 202);
    assert_eq!(refs(&bob.git, &server.http_url("bob", "project")), before);
    assert_eq!(query(&server, "SELECT count(*) FROM domain_events WHERE kind = 'repo_forked'"), "1");
    alice.git.ok(&alice.git.fresh_dir(), &["clone", "--quiet", &server.http_url("bob", "project"), "."]);
    assert_healthy(&server);
}

#[test]
fn crash_tests_walk_every_failpoint() {
    let source = [
        include_str!("crash.rs"),
        include_str!("crash/lifecycle.rs"),
        include_str!("crash/notify.rs"),
        include_str!("grasp/deletions.rs"),
        include_str!("grasp/restarts.rs"),
        include_str!("sync/crash.rs"),
        include_str!("webhooks/reliable.rs"),
    ]
    .concat();
    for name in failpoint::ALL {
        let constant = name.to_uppercase().replace([':', '-'], "_");
        assert!(source.contains(&format!("failpoint::{constant}")), "no crash test passes {name}");
    }
}

/// SIGKILL at moments nobody chose, while a client pushes commit after commit.
#[rstest]
fn crash_at_any_moment_keeps_every_acknowledged_push(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut server = crowded(engine).start();
    let alice = person(&server, "alice");
    let repo = alice.create(&server, "project", false)["id"].as_i64().expect("an id");
    let url = server.http_url("alice", "project");
    let tree = alice.git.init_work_tree();
    let acknowledged = AtomicI64::new(0);

    for round in 0..6_u64 {
        let before = acknowledged.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0.. {
                    alice.git.commit_file(&tree, "n", format!("{round}/{number}"), &format!("commit {round}/{number}"));
                    if !alice.git.run(&tree, &["push", &url, "HEAD:refs/heads/main"]).status.success() {
                        break;
                    }
                    let head = alice.git.ok(&tree, &["rev-parse", "HEAD"]);
                    alice.git.ok(&tree, &["update-ref", "refs/acknowledged", head.trim()]);
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
            });
            // Some push got through; the next one is cut at another moment each round.
            eventually(SOON, || acknowledged.load(Ordering::Relaxed) > before);
            std::thread::sleep(Duration::from_millis(10 + round * 13));
            server.kill();
        });
        let acknowledged = acknowledged.load(Ordering::Relaxed);
        server.restart();
        assert_healthy(&server);
        let tip = alice.git.ok(&tree, &["ls-remote", &url, "refs/heads/main"]);
        let tip = tip.split_whitespace().next().expect("a push was acknowledged, so the branch is there");
        alice.git.ok(&tree, &["merge-base", "--is-ancestor", "refs/acknowledged", tip]);
        let commits: i64 =
            alice.git.ok(&tree, &["rev-list", "--count", tip]).trim().parse().expect("a count is a number");
        let events = push_events(&server, repo);
        assert!(events >= acknowledged, "every acknowledged push has its event: {events} for {acknowledged}");
        assert!(events <= commits, "no push has two events: {events} for {commits} commits");
    }
}

#[rstest]
fn slow_uploader_blocks_nobody_and_leaves_nothing(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    use std::io::Write as _;
    let server = builder(engine).start();
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "one", "one");
    let url = server.http_url("alice", "project");

    // A push that announces a pack, sends its head, and then nothing more.
    let oid = "1".repeat(40);
    let command = format!("{} {oid} refs/heads/slow\0 report-status side-band-64k", "0".repeat(40));
    let mut body = format!("{:04x}{command}0000", command.len() + 4).into_bytes();
    body.extend(b"PACK\0\0\0\x02\0\0\x01\0");
    let mut slow = std::net::TcpStream::connect(server.http_addr()).expect("the server listens");
    let head = format!(
        "POST /alice/project.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nAuthorization: token {}\r\n\
         Content-Type: application/x-git-receive-pack-request\r\nContent-Length: 100000000\r\n\r\n",
        alice.token
    );
    slow.write_all(head.as_bytes()).expect("the head is taken");
    slow.write_all(&body).expect("the body's start is taken");
    let incoming = server.data_dir().join("incoming");
    let waiting = || std::fs::read_dir(&incoming).is_ok_and(|mut entries| entries.next().is_some());
    eventually(SOON, waiting);

    alice.git.ok(&tree, &["push", &url, "main"]);
    assert_eq!(refs(&alice.git, &url).len(), 1, "the other push is through while the slow one waits");
    assert!(waiting(), "the slow one is still waiting");

    drop(slow);
    eventually(SOON, || !waiting());
    assert_healthy(&server);
}
