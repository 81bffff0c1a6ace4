//! The database of a released version is migrated when the store opens it, and everything in it stays readable.
//!
//! `tests/fixtures/VERSION/` has rows of that version for each engine; its `schema_migrations` say which migrations had run.

use crate::migrations::{self, schema};
use crate::sequencer::KEY;
use crate::support::{self, World, options, raw, stored_json};
use abide_core::feed::Period;
use abide_core::issues::State;
use abide_core::notify::{Reason, State as Read};
use abide_core::{IssueId, MilestoneId, RepoId, Timestamp, UserId};
use abide_store::accounts::links::Purpose;
use abide_store::accounts::{emails, links, sessions, ssh_keys, tokens, totp, user_keys, user_redirects, users};
use abide_store::attention::feeds::{self, Feed};
use abide_store::attention::lists::Part;
use abide_store::attention::{follows, inbox, notification_mail, stars, trending, watches};
use abide_store::issues::{self, comments, labels, milestones};
use abide_store::nostr::{self, purgatory, quotas};
use abide_store::repos::{self, collaborators, forks, purges, pushes, redirects, topics, transfers};
use abide_store::repos::{Page, Viewer};
use abide_store::webhooks::{self, deliveries};
use abide_store::{Conn, Store, audit, consumers, events, jobs, leases, migrate, sequencer};
use abide_testkit::{Engine, TestClock, TestDatabase};
use rstest::rstest;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const ALICE: UserId = UserId::new(1);
const BOB: UserId = UserId::new(2);
const KEY_HOLDER: UserId = UserId::new(4);
const TOOL: RepoId = RepoId::new(1);
const SECRET: RepoId = RepoId::new(2);
const FORK: RepoId = RepoId::new(3);
const GONE: RepoId = RepoId::new(4);
const DEMO: RepoId = RepoId::new(5);
const ALL: Page = Page { limit: 100, offset: 0 };
/// The key that governs `demo`, and the key of bob.
const OWNER_KEY: &str = "e493dbf1c10d80f3581e4904930b1404cc6c13900ee0758474fa94abe8c4cd13";
const BOB_KEY: &str = "2f8bde4d1a07209355b4a7250a5c5128e88b84bddc619ab7cba8d569b240efe4";
const ISSUE_EVENT: &str = "7061ed792f84ff8e9db0373bf28f66b7013c7b3d47b5a67c6c59a0158e6662bd";

/// A database with the rows of a version, as that version left it.
async fn left_by(version: &str, engine: Engine) -> TestDatabase {
    let name = if engine == Engine::Sqlite { "sqlite" } else { "postgres" };
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{version}/{name}.sql"));
    let rows = fs::read_to_string(fixture).unwrap();
    let database = TestDatabase::new(engine);
    if engine == Engine::Sqlite {
        fs::File::create(database.data_dir().join("abide.db")).unwrap();
    }
    let mut raw = raw(&database).await;
    migrations::apply(&mut raw, engine, |migration| rows.contains(&format!("'{}'", migration.name))).await;
    raw.execute(&rows).await;
    database
}

async fn opened(database: &TestDatabase) -> Store {
    Store::open(&options(database), Arc::new(TestClock::new())).await.unwrap()
}

/// Opens the database of 0.1.0 with the store of today.
async fn upgraded(engine: Engine) -> (TestDatabase, Store) {
    let database = left_by("0.1.0", engine).await;
    let store = opened(&database).await;
    (database, store)
}

fn bytes(hex: &str) -> [u8; 32] {
    let byte = |at: usize| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap();
    std::array::from_fn(byte)
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn anyone() -> Viewer {
    None.into()
}

async fn by_slug(conn: &mut Conn, owner: &str, name: &str, viewer: Option<UserId>) -> Option<repos::Repo> {
    repos::by_slug(conn, &owner.parse().unwrap(), &name.parse().unwrap(), viewer).await.unwrap()
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_0_1_0_gets_the_schema_of_today(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    const APPLIED: &str = "SELECT name FROM schema_migrations ORDER BY version";
    let database = left_by("0.1.0", engine).await;
    let mut before = raw(&database).await;
    assert_eq!(before.texts(APPLIED).await.last().unwrap(), "0015_proposed", "the fixture is as 0.1.0 left it");

    opened(&database).await.close().await;

    let all: Vec<&str> = migrate::ALL.iter().map(|migration| migration.name).collect();
    assert_eq!(raw(&database).await.texts(APPLIED).await, all);
    let fresh = World::new(engine).await;
    for part in schema(engine) {
        let upgraded: BTreeSet<String> = raw(&database).await.texts(part).await.into_iter().collect();
        let made: BTreeSet<String> = fresh.raw().await.texts(part).await.into_iter().collect();
        assert_eq!(upgraded, made);
    }
    // Opening once more changes nothing and refuses nothing.
    let again = opened(&database).await;
    support::note(&again, "written").await.unwrap();
    assert_eq!(raw(&database).await.texts(APPLIED).await, all);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_0_1_0_are_readable(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (_database, store) = upgraded(engine).await;
    let conn = &mut store.read().await.unwrap();
    let now = TestClock::START;

    let alice = users::by_name(conn, &"alice".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((alice.id, alice.site_admin, alice.location.as_str()), (ALICE, true, "Berlin"));
    assert_eq!((alice.email.as_deref(), alice.deleted_at), (Some("Alice@example.org"), None));
    let carol = users::by_name(conn, &"carol".parse().unwrap()).await.unwrap().unwrap();
    assert!(carol.suspended_at.is_some());
    let former = users::by_any_name(conn, &"alicia".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(former.id, ALICE);
    assert_eq!(user_redirects::list(conn, ALICE).await.unwrap().len(), 1);
    let bob = users::by_id(conn, BOB).await.unwrap().unwrap();
    let by_key = user_keys::by_npub(conn, bob.npub.as_deref().unwrap()).await.unwrap().unwrap();
    assert_eq!(by_key.id, BOB);

    let addresses = emails::list(conn, ALICE).await.unwrap();
    assert_eq!(addresses.iter().map(|email| email.verified_at.is_some()).collect::<Vec<_>>(), [true, false]);
    let token = tokens::by_hash(conn, &hash("token one")).await.unwrap().unwrap();
    assert!(token.is_live(now) && token.scopes.to_string().contains("repo"));
    assert!(!tokens::by_hash(conn, &hash("token two")).await.unwrap().unwrap().is_live(now));
    assert_eq!(ssh_keys::list(conn, ALICE, 10, 0).await.unwrap()[0].title, "laptop");
    let (session, person) = sessions::open(conn, &hash("session"), now).await.unwrap().unwrap();
    assert_eq!((person.id, session.confirmed_at), (ALICE, session.created_at), "confirmed when it was opened");
    assert_eq!(links::invites(conn, now, 10).await.unwrap()[0].address.as_deref(), Some("dora@example.org"));
    assert!(links::open(conn, Purpose::Verify, &hash("verify"), now).await.unwrap().is_some());
    assert!(totp::get(conn, ALICE).await.unwrap().is_some());
    assert_eq!(totp::count_codes(conn, ALICE).await.unwrap(), 1);
    assert_eq!(follows::counts(conn, ALICE).await.unwrap(), (1, 0));
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn repositories_of_0_1_0_are_readable_under_every_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (_database, store) = upgraded(engine).await;
    let conn = &mut store.read().await.unwrap();

    let tool = by_slug(conn, "alice", "tool", Some(BOB)).await.unwrap();
    assert_eq!((tool.id, tool.star_count, tool.watcher_count), (TOOL, 1, 2), "the suspended account does not count");
    assert_eq!((tool.refs_generation, tool.role.is_some()), (2, true));
    for (owner, name) in [("alice", "gadget"), ("alicia", "gadget"), ("bob", "gizmo")] {
        assert_eq!(by_slug(conn, owner, name, None).await.unwrap().id, TOOL, "{owner}/{name}");
    }
    assert!(redirects::list(conn, TOOL).await.unwrap().iter().all(|old| old.since > Timestamp::from_micros(0)));
    assert!(by_slug(conn, "bob", "secret", Some(BOB)).await.unwrap().id == SECRET);
    let fork = repos::by_id(conn, FORK, None).await.unwrap().unwrap();
    assert_eq!((fork.fork_of, fork.archived_at.is_some()), (Some(TOOL), true));
    assert_eq!(forks::list(conn, TOOL, anyone(), ALL).await.unwrap().1, 1);
    let (deleted, _) = repos::deleted_of_owner(conn, ALICE, ALL).await.unwrap();
    assert_eq!(deleted.iter().map(|repo| repo.id).collect::<Vec<_>>(), [GONE]);

    assert!(collaborators::role(conn, TOOL, BOB).await.unwrap().is_some());
    let topics: Vec<String> = topics::of_repo(conn, TOOL).await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(topics, ["git", "forge"]);
    assert_eq!(stars::of_repo(conn, TOOL, ALL.into()).await.unwrap().len(), 1);
    assert!(stars::miscounted(conn, 10).await.unwrap().is_empty());
    assert!(watches::miscounted(conn, 10).await.unwrap().is_empty());
    assert!(watches::choice(conn, ALICE, TOOL).await.unwrap().is_some());
    assert_eq!(transfers::pending_of(conn, SECRET).await.unwrap().unwrap().recipient, ALICE);
    assert_eq!(purges::count(conn).await.unwrap(), 1);
    let push = pushes::latest_of(conn, TOOL).await.unwrap().unwrap();
    assert_eq!((push.updates.len(), push.transport.as_str(), push.signed), (1, "ssh", None));
    assert_eq!(leases::holder(conn, "repo:1", TestClock::START).await.unwrap(), None);
    let trending = trending::list(conn, Period::Week, anyone(), 10).await.unwrap();
    assert_eq!(trending[0].id, TOOL);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn issues_of_0_1_0_are_readable(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (_database, store) = upgraded(engine).await;
    let conn = &mut store.read().await.unwrap();

    let slow = issues::by_number(conn, TOOL, 1).await.unwrap().unwrap();
    assert_eq!((slow.title.as_str(), slow.state, slow.comment_count), ("It is slow", State::Open, 1));
    let typo = issues::by_number(conn, TOOL, 2).await.unwrap().unwrap();
    assert_eq!((typo.state, typo.closed_by), (State::Closed, Some(ALICE)));
    assert_eq!(issues::counts(conn, TOOL).await.unwrap(), issues::Counts { open: 1, closed: 1 });
    assert_eq!(comments::of_issue(conn, slow.id, None, ALL).await.unwrap().0[0].body, "How slow?");
    assert_eq!(labels::of_many(conn, &[slow.id]).await.unwrap()[&slow.id][0].color.as_str(), "d73a4a");
    assert_eq!(slow.milestone_id, Some(MilestoneId::new(1)));
    assert_eq!(milestones::by_number(conn, TOOL, 1).await.unwrap().unwrap().title.to_string(), "1.0");
    assert_eq!(issues::people::assignees_of_many(conn, &[slow.id]).await.unwrap()[&slow.id][0].id, ALICE);
    assert_eq!(issues::people::subscription(conn, slow.id, ALICE).await.unwrap().unwrap().reason, "mention");
    let (timeline, _) = issues::timeline::page(conn, slow.id, anyone(), ALL).await.unwrap();
    assert_eq!(timeline.iter().map(|entry| entry.kind.as_str()).collect::<Vec<_>>(), ["labeled", "commented"]);
    let (renamed, _) = issues::timeline::page(conn, IssueId::new(2), anyone(), ALL).await.unwrap();
    assert_eq!(renamed[0].detail["from"], "Tpyo");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn logs_and_work_of_0_1_0_are_readable(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (_database, store) = upgraded(engine).await;
    let conn = &mut store.read().await.unwrap();

    let log = events::after(conn, 0, 100).await.unwrap();
    assert_eq!(log.len(), 10, "the eleventh has no number yet");
    for event in &log {
        assert!(event.known_kind().is_some() && event.subject_kind.is_some(), "{event:?}");
        assert!(event.body().is_ok(), "{event:?}");
        let text = stored_json(conn, event.seq).await;
        assert!(!text.contains("It is slow") && !text.contains("How slow?"), "texts of people are removed: {text}");
    }
    assert_eq!(events::count_unnumbered(conn).await.unwrap(), 1);
    let run = feeds::before(conn, Feed::Repo(TOOL), anyone(), i64::MAX).await.unwrap();
    let opened = run.items.iter().find(|item| item.title == "It is slow");
    assert!(opened.is_some(), "feeds take titles from the issue: {:?}", run.items);
    let report = audit::verify(conn, KEY).await.unwrap();
    assert_eq!(report, audit::ChainReport { sealed: 3, unsealed: 1, broken_at: None });
    assert_eq!(audit::page_of_repo(conn, TOOL, i64::MAX, 10).await.unwrap().len(), 2);
    assert!(sequencer::anything_waits(conn).await.unwrap(), "the sequencer continues where it stopped");

    let jobs = jobs::list(conn, None, None, 10).await.unwrap();
    let states: Vec<_> = jobs.iter().map(|job| (job.kind.as_str(), job.state.as_str())).collect();
    assert_eq!(states, [("mail:send", "failed"), ("repos:maintain", "waiting"), ("mail:send", "done")]);
    assert_eq!(jobs[2].payload, "{}", "a mail that was sent is not kept");
    let progress = consumers::all(conn).await.unwrap();
    let cursors: Vec<_> = progress.iter().map(|consumer| (consumer.name.as_str(), consumer.lag())).collect();
    assert_eq!(cursors, [("notify", 1), ("webhooks", 2)]);
    assert_eq!(consumers::failures(conn, i64::MAX, 10).await.unwrap()[0].kind, "push");

    let hooks = webhooks::of_repo(conn, TOOL, ALL).await.unwrap();
    assert_eq!((hooks.len(), hooks[0].secret.is_some(), hooks[0].next_at.is_some()), (1, true, true));
    let sent = deliveries::latest_tried(conn, hooks[0].id).await.unwrap().unwrap();
    assert_eq!((sent.attempts, sent.content_type), (1, None), "it gets the content type of its webhook");
    assert_eq!(deliveries::waiting(conn, hooks[0].id).await.unwrap(), 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn notifications_of_0_1_0_are_readable(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (_database, store) = upgraded(engine).await;
    let conn = &mut store.read().await.unwrap();

    let filter = inbox::Filter { all: true, ..inbox::Filter::default() };
    let items = inbox::list(conn, Some(ALICE).into(), filter, Part::from(ALL)).await.unwrap();
    let read: Vec<_> = items.iter().map(|item| (item.title.as_str(), item.reason, item.state)).collect();
    let expected =
        [("It is slow", Reason::Mention, Read::Unread), ("alice/tool was renamed", Reason::Lifecycle, Read::Read)];
    assert_eq!(read, expected);
    assert!(notification_mail::of(conn, ALICE, items[0].thread).await.unwrap().is_some());
    assert_eq!(notification_mail::opted_out(conn, BOB).await.unwrap(), [Reason::Watching]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn nostr_data_of_0_1_0_is_readable_and_counted(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (_database, store) = upgraded(engine).await;
    let conn = &mut store.read().await.unwrap();
    let (owner, bob, issue) = (bytes(OWNER_KEY), bytes(BOB_KEY), bytes(ISSUE_EVENT));
    let start = 1_764_547_200;

    let demo = nostr::repos::by_coordinate(conn, &owner, "demo", None).await.unwrap().unwrap();
    assert_eq!((demo.id, demo.owner_id), (DEMO, KEY_HOLDER));
    let announcement = nostr::events::in_slot(conn, 30617, &owner, "demo").await.unwrap().unwrap();
    assert!(!announcement.hidden && announcement.json.contains("\"demo\""));
    let coordinate = format!("30617:{OWNER_KEY}:demo");
    let tags = vec![vec![nostr::events::tag_key('a', &coordinate)]];
    let query = nostr::query::Query { tags, limit: 10, ..nostr::query::Query::default() };
    let found = nostr::query::positions(conn, &query, start + 100).await.unwrap();
    assert_eq!(found.len(), 2, "the issue and its status");
    assert_eq!(found[1].id, issue);
    let words = nostr::statuses::newest(conn, &[(issue, bob)], &[], 1, start + 100).await.unwrap();
    assert_eq!((words.len(), words[0].kind), (1, 1632), "older statuses know their thread");
    assert_eq!(nostr::relations::events(conn, &[issue]).await.unwrap().len(), 1);
    assert_eq!(nostr::deleted::at(conn, &owner, &format!("e:{}", "ab".repeat(32))).await.unwrap(), Some(start + 8));

    let waiting = purgatory::announcement(conn, &bob, "draft").await.unwrap().unwrap();
    assert_eq!(waiting.repo_id, Some(RepoId::new(6)));
    assert_eq!(purgatory::states(conn, "draft", 10, 1 << 20).await.unwrap().len(), 1);
    let (proposals, total) = purgatory::prs::of_repo(conn, &owner, "demo", 10).await.unwrap();
    assert_eq!((proposals.len(), total), (1, 1));
    let commit = purgatory::prs::get(conn, &hash("an event that is not here")).await.unwrap().unwrap();
    assert_eq!((commit.pubkey, commit.bytes), (None, 512));
    assert!(purgatory::remembered(conn, &hash("an event that waited in vain")).await.unwrap().is_some());

    let usage = quotas::of_key(conn, &owner).await.unwrap();
    assert_eq!((usage.events, usage.repos, usage.repo_bytes), (3, 1, 2048), "what was there counts for the quotas");
    assert_eq!(quotas::of_key(conn, &bob).await.unwrap().events, 2 + 3, "served and waiting");
}
