//! Every operation of a repository's life, cut short at each of its steps: it happened as a whole, with its audit row and
//! its event, or not at all; and what was begun on disk is finished by the next sweep.

use crate::support::{Person, assert_healthy, builder, person, query};
use abide_core::failpoint;
use abide_testkit::{Engine, Server, http};
use rstest::rstest;
use serde_json::{Value, json};

/// A server whose clock never sweeps by itself, alice with a repository that has content and an old name, and bob.
struct Setup {
    server: Server,
    alice: Person,
    bob: Person,
    id: i64,
}

fn setup(engine: Engine) -> Setup {
    let server = builder(engine).env("ABIDE_LIFECYCLE__SWEEP_INTERVAL", "1h").start();
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let id = alice.create(&server, "first", false)["id"].as_i64().expect("an id");
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "one", "one");
    alice.git.ok(&tree, &["push", "--quiet", &server.http_url("alice", "first"), "main"]);
    let setup = Setup { server, alice, bob, id };
    setup.must(&setup.alice, "PATCH", "/repos/alice/first", json!({ "name": "project" }));
    setup
}

impl Setup {
    fn request(&self, who: &Person, method: &str, path: &str, body: &Value) -> http::Request {
        http::Request::new(method, &format!("/api/v3{path}")).token(Some(&who.token)).json(body)
    }

    fn must(&self, who: &Person, method: &str, path: &str, body: Value) -> Value {
        let answer = self.request(who, method, path, &body).send(self.server.http_addr());
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
        if answer.text().is_empty() { Value::Null } else { answer.json() }
    }

    fn offer(&self) -> i64 {
        let made = self.must(&self.alice, "POST", "/repos/alice/project/transfer", json!({ "new_owner": "bob" }));
        made["id"].as_i64().expect("an id")
    }

    /// How often the audit log and the event log tell of something.
    fn records(&self, action: &str) -> (String, String) {
        let audited = query(&self.server, &format!("SELECT count(*) FROM audit_log WHERE action = '{action}'"));
        let events = query(&self.server, &format!("SELECT count(*) FROM domain_events WHERE kind = '{action}'"));
        (audited, events)
    }

    /// The row, in the words that an operation changes.
    fn state(&self) -> String {
        let marks = "CASE WHEN archived_at IS NULL THEN '' ELSE 'archived' END, \
            CASE WHEN deleted_at IS NULL THEN '' ELSE 'deleted' END";
        let sql = format!("SELECT owner_id, name, visibility, {marks} FROM repos WHERE id = {}", self.id);
        query(&self.server, &sql)
    }

    /// The bytes are where they were, whatever the repository is called and whosever it is.
    fn assert_content(&self) {
        let bare = self.server.data_dir().join(format!("repos/{:02x}/{}.git", self.id & 0xff, self.id));
        assert_eq!(self.alice.git.ok(&bare, &["show", "main:a"]), "one");
        self.alice.git.ok(&bare, &["fsck", "--strict"]);
    }
}

/// An operation over the API: what it needs, the request, what it is called in the logs, and how the row looks after it.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Rename,
    Archive,
    Unarchive,
    Visibility,
    Delete,
    Restore,
    Offer,
    Accept,
    Decline,
    Cancel,
    Release,
}

impl Operation {
    fn request(self, setup: &Setup) -> http::Request {
        let alice = &setup.alice;
        let repo = "/repos/alice/project";
        match self {
            Self::Rename => setup.request(alice, "PATCH", repo, &json!({ "name": "renamed" })),
            Self::Archive => setup.request(alice, "PATCH", repo, &json!({ "archived": true })),
            Self::Unarchive => {
                setup.must(alice, "PATCH", repo, json!({ "archived": true }));
                setup.request(alice, "PATCH", repo, &json!({ "archived": false }))
            }
            Self::Visibility => setup.request(alice, "PATCH", repo, &json!({ "private": true })),
            Self::Delete => setup.request(alice, "DELETE", repo, &json!({})),
            Self::Restore => {
                setup.must(alice, "DELETE", repo, json!({}));
                setup.request(alice, "POST", &format!("/repositories/{}/restore", setup.id), &json!({ "name": "back" }))
            }
            Self::Offer => setup.request(alice, "POST", &format!("{repo}/transfer"), &json!({ "new_owner": "bob" })),
            Self::Accept | Self::Decline | Self::Cancel => {
                let (who, word) = match self {
                    Self::Accept => (&setup.bob, "accept"),
                    Self::Decline => (&setup.bob, "decline"),
                    _ => (alice, "cancel"),
                };
                let path = format!("/repository_transfers/{}/{word}", setup.offer());
                setup.request(who, "POST", &path, &json!({}))
            }
            Self::Release => {
                let names = setup.must(alice, "GET", &format!("{repo}/redirects"), json!({}));
                let path = format!("{repo}/redirects/{}", names[0]["id"]);
                setup.request(alice, "DELETE", &path, &json!({}))
            }
        }
    }

    fn action(self) -> &'static str {
        match self {
            Self::Rename => "repo_renamed",
            Self::Archive => "repo_archived",
            Self::Unarchive => "repo_unarchived",
            Self::Visibility => "repo_visibility_changed",
            Self::Delete => "repo_soft_deleted",
            Self::Restore => "repo_restored",
            Self::Offer => "repo_transfer_requested",
            Self::Accept => "repo_transfer_accepted",
            Self::Decline => "repo_transfer_declined",
            Self::Cancel => "repo_transfer_canceled",
            Self::Release => "repo_redirect_released",
        }
    }

    /// The row after it, for those that change the row.
    fn after(self) -> &'static str {
        match self {
            Self::Rename => "1|renamed|public||",
            Self::Archive => "1|project|public|archived|",
            Self::Visibility => "1|project|private||",
            Self::Delete => "1|project|public||deleted",
            Self::Restore => "1|back|public||",
            Self::Accept => "2|project|public||",
            Self::Unarchive | Self::Offer | Self::Decline | Self::Cancel | Self::Release => "1|project|public||",
        }
    }

    /// Answer of the same request after the operation.
    fn again(self) -> &'static [u16] {
        match self {
            // By the old name, which leads on, to a repository that is called so already.
            Self::Rename => &[200],
            Self::Archive | Self::Unarchive | Self::Visibility => &[200],
            Self::Delete | Self::Release => &[404],
            Self::Restore | Self::Offer | Self::Accept | Self::Decline | Self::Cancel => &[409],
        }
    }
}

#[rstest]
#[case::rename(Operation::Rename, failpoint::RENAME_BEFORE_COMMIT, failpoint::RENAME_COMMITTED)]
#[case::archive(Operation::Archive, failpoint::ARCHIVE_BEFORE_COMMIT, failpoint::ARCHIVE_COMMITTED)]
#[case::unarchive(Operation::Unarchive, failpoint::UNARCHIVE_BEFORE_COMMIT, failpoint::UNARCHIVE_COMMITTED)]
#[case::visibility(Operation::Visibility, failpoint::VISIBILITY_BEFORE_COMMIT, failpoint::VISIBILITY_COMMITTED)]
#[case::delete(Operation::Delete, failpoint::DELETE_BEFORE_COMMIT, failpoint::DELETE_COMMITTED)]
#[case::restore(Operation::Restore, failpoint::RESTORE_BEFORE_COMMIT, failpoint::RESTORE_COMMITTED)]
#[case::offer(Operation::Offer, failpoint::OFFER_BEFORE_COMMIT, failpoint::OFFER_COMMITTED)]
#[case::accept(Operation::Accept, failpoint::ACCEPT_BEFORE_COMMIT, failpoint::ACCEPT_COMMITTED)]
#[case::decline(Operation::Decline, failpoint::DECLINE_BEFORE_COMMIT, failpoint::DECLINE_COMMITTED)]
#[case::cancel(Operation::Cancel, failpoint::CANCEL_BEFORE_COMMIT, failpoint::CANCEL_COMMITTED)]
#[case::release(Operation::Release, failpoint::RELEASE_BEFORE_COMMIT, failpoint::RELEASE_COMMITTED)]
fn crash_in_a_lifecycle_operation_leaves_all_of_it_or_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] operation: Operation,
    #[case] before_commit: &str,
    #[case] committed: &str,
) {
    let mut setup = setup(engine);
    let request = operation.request(&setup);
    let (before, recorded) = (setup.state(), setup.records(operation.action()));
    for point in [before_commit, committed] {
        setup.server.restart_with_failpoint(point);
        let address = setup.server.http_addr();
        let answer = std::panic::catch_unwind(|| request.send(address));
        assert!(answer.is_err(), "the server died before it could answer");
        setup.server.wait_exit();
        setup.server.restart();
        assert_healthy(&setup.server);
        if point == before_commit {
            assert_eq!(setup.state(), before, "nothing happened");
            assert_eq!(setup.records(operation.action()), recorded, "and nobody says it did");
        }
    }
    assert_eq!(setup.state(), operation.after());
    let once_more = |count: &str| (count.parse::<i64>().expect("a count") + 1).to_string();
    assert_eq!(
        setup.records(operation.action()),
        (once_more(&recorded.0), once_more(&recorded.1)),
        "told once in each log"
    );
    setup.assert_content();

    let again = request.send(setup.server.http_addr());
    assert!(operation.again().contains(&again.status), "{} {}", again.status, again.text());
    assert_healthy(&setup.server);
}

#[rstest]
fn crash_in_handing_over_by_the_operator_leaves_all_of_it_or_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine);
    let dies = |point: &str| {
        let mut command = setup.server.command(&["repo", "transfer", "alice/project", "bob"]);
        let output = command.env("ABIDE_FAILPOINT", point).output().expect("it starts");
        assert_eq!(output.status.code(), None, "it died: {}", String::from_utf8_lossy(&output.stderr));
        assert_healthy(&setup.server);
    };
    dies(failpoint::HAND_OVER_BEFORE_COMMIT);
    assert_eq!(setup.state(), "1|project|public||");
    dies(failpoint::HAND_OVER_COMMITTED);
    assert_eq!(setup.state(), "2|project|public||");
    assert_eq!(setup.records("repo_transfer_accepted"), ("1".into(), "1".into()));
    setup.assert_content();
}

/// Runs the sweep in a process that dies at a place.
fn sweep_dies(setup: &Setup, settings: &[(&str, &str)], point: &str) {
    let mut command = setup.server.command(&["jobs", "run", "lifecycle:sweep"]);
    let output = command.envs(settings.iter().copied()).env("ABIDE_FAILPOINT", point).output().expect("it starts");
    assert_eq!(output.status.code(), None, "it died: {}", String::from_utf8_lossy(&output.stderr));
}

fn sweep(setup: &Setup, settings: &[(&str, &str)]) {
    let output = setup.server.command(&["jobs", "run", "lifecycle:sweep"]).envs(settings.iter().copied()).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const AT_ONCE: &[(&str, &str)] = &[("ABIDE_LIFECYCLE__GRACE", "0s")];

#[rstest]
fn crash_in_a_hard_delete_is_finished_by_the_next_sweep(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(
        failpoint::PURGE_BEFORE_COMMIT,
        failpoint::PURGE_COMMITTED,
        failpoint::PURGE_BURIED,
        failpoint::PURGE_DIRECTORY_REMOVED,
        failpoint::PURGE_FINISHED
    )]
    point: &str,
) {
    let setup = setup(engine);
    let fork = setup.must(&setup.bob, "POST", "/repos/alice/project/forks", json!({}));
    setup.must(&setup.alice, "DELETE", "/repos/alice/project", json!({}));
    let shard = setup.server.data_dir().join(format!("repos/{:02x}", setup.id & 0xff));
    let left = || std::fs::read_dir(&shard).expect("readable").count();

    sweep_dies(&setup, AT_ONCE, point);
    assert_healthy(&setup.server);
    let gone = point != failpoint::PURGE_BEFORE_COMMIT;
    assert_eq!(setup.state().is_empty(), gone);
    assert_eq!(setup.records("repo_hard_deleted").0, i64::from(gone).to_string());
    if !gone {
        setup.assert_content();
    }

    sweep(&setup, AT_ONCE);
    assert_eq!((setup.state(), left()), (String::new(), 0), "nothing is left of it");
    assert_eq!(setup.records("repo_hard_deleted"), ("1".into(), "1".into()));
    assert_eq!(query(&setup.server, "SELECT count(*) FROM repo_purges"), "0");
    assert_healthy(&setup.server);
    let url = format!("{}.git", fork["html_url"].as_str().expect("an address"));
    setup.bob.git.ok(&setup.bob.git.fresh_dir(), &["clone", "--quiet", &url, "."]);
}

#[rstest]
fn crash_in_letting_offers_expire_leaves_all_of_them_or_none(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine);
    setup.offer();
    let long_ago = "UPDATE repo_transfers SET expires_at = 1";
    query(&setup.server, long_ago);
    let status = || query(&setup.server, "SELECT status FROM repo_transfers");

    sweep_dies(&setup, &[], failpoint::EXPIRE_BEFORE_COMMIT);
    assert_eq!((status(), setup.records("repo_transfer_expired").1), ("pending".into(), "0".into()));
    sweep_dies(&setup, &[], failpoint::EXPIRE_COMMITTED);
    assert_eq!((status(), setup.records("repo_transfer_expired").1), ("expired".into(), "1".into()));
    sweep(&setup, &[]);
    assert_eq!(setup.records("repo_transfer_expired"), ("0".into(), "1".into()), "told once, and only as an event");
    assert_healthy(&setup.server);
}
