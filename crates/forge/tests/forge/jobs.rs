//! Jobs and schedules, with a clock that only the test turns.

use crate::rig::{Rig, node, node_with, node_within, rig};
use abide_forge::By;
use abide_forge::git::maintain;
use abide_forge::jobs::{Kind, manage, runner, schedule};
use abide_git::GitLimits;
use abide_store::jobs::{self, Job, NewJob};
use abide_store::{Store, StoreError};
use abide_testkit::Engine;
use rstest::rstest;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

async fn job(store: &Store, id: i64) -> Job {
    let mut conn = store.read().await.expect("readable");
    jobs::by_id(&mut conn, id).await.expect("readable").expect("there")
}

/// Waits until a job is as wanted; the runner looks every few milliseconds.
async fn until(store: &Store, id: i64, wanted: impl Fn(&Job) -> bool) -> Job {
    for _ in 0..1000 {
        let job = job(store, id).await;
        if wanted(&job) {
            return job;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the job never got there: {:?}", job(store, id).await);
}

async fn enqueue(rig: &Rig, payload: serde_json::Value) -> i64 {
    let new = NewJob {
        kind: Kind::RepoMaintain.as_str(),
        payload,
        unique_key: None,
        priority: 1,
        run_at: rig.store.clock().now(),
        max_attempts: 3,
    };
    let id: Result<Option<i64>, StoreError> = rig.store.write(new, |tx, new| Box::pin(jobs::enqueue(tx, new))).await;
    id.expect("queued").expect("not queued yet")
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_job_is_tried_again_later_and_later_and_then_given_up(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig(engine).await;
    let (repo, _) = rig.repo_with_commit().await;
    // A repository that git cannot tidy.
    std::fs::remove_dir_all(rig.dir(repo.id).join("objects")).expect("removable");
    std::fs::write(rig.dir(repo.id).join("objects"), "not a directory").expect("writable");
    let id = enqueue(&rig, json!({ "repo_id": repo.id.get() })).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(runner::run(rig.forge.clone(), stop.clone()));

    let mut pauses = Vec::new();
    for attempt in 1..3 {
        let waiting = until(&rig.store, id, |job| job.attempts == attempt && job.state == "waiting").await;
        assert!(waiting.last_error.is_some_and(|text| text.contains("git")), "it says what went wrong");
        pauses.push(waiting.run_at.since(rig.store.clock().now()));
        rig.clock.advance(Duration::from_secs(60));
    }
    let ended = until(&rig.store, id, |job| job.state == "failed").await;
    assert_eq!(ended.attempts, 3);
    assert!(pauses[0] >= Duration::from_secs(8) && pauses[0] <= Duration::from_secs(12), "{pauses:?}");
    assert!(pauses[1] >= Duration::from_secs(16) && pauses[1] <= Duration::from_secs(24), "{pauses:?}");

    assert!(manage::retry(&rig.forge, &By::Operator, id).await.expect("writable"), "an operator may try again");
    stop.cancel();
    running.await.expect("the runner stops");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_cannot_succeed_is_not_tried_again(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let id = enqueue(&rig, json!({ "nothing": true })).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(runner::run(rig.forge.clone(), stop.clone()));
    let ended = until(&rig.store, id, |job| job.state == "failed").await;
    assert_eq!(ended.attempts, 1);
    assert!(ended.last_error.is_some_and(|text| text.contains("repo_id")));
    stop.cancel();
    running.await.expect("the runner stops");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_fires_once_however_many_nodes_watch_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let (other, _) = node(&rig.database, &rig.clock, "second").await;
    let stop = CancellationToken::new();
    // The first look only notes when each entry is due; the second comes after that.
    let watch = |stop: &CancellationToken| {
        [&rig.forge, &other].map(|forge| tokio::spawn(schedule::run(forge.clone(), stop.clone())))
    };
    let first = watch(&stop);
    let noted = async || {
        let mut conn = rig.store.read().await.expect("readable");
        jobs::schedule_is_due(&mut conn, Kind::PushReconcile.as_str(), rig.store.clock().now()).await.expect("readable")
    };
    for _ in 0..500 {
        if !noted().await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    for task in first {
        task.await.expect("the schedule stops");
    }
    assert!(
        manage::list(&rig.forge, &By::Operator, None, 100).await.expect("readable").is_empty(),
        "nothing is due yet"
    );

    rig.clock.advance(Duration::from_secs(2 * 3600));
    let stop = CancellationToken::new();
    let second = watch(&stop);
    for _ in 0..500 {
        if manage::list(&rig.forge, &By::Operator, None, 100).await.expect("readable").len() >= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    for task in second {
        task.await.expect("the schedule stops");
    }
    let mut kinds: Vec<_> = manage::list(&rig.forge, &By::Operator, None, 100)
        .await
        .expect("readable")
        .into_iter()
        .map(|job| job.kind)
        .collect();
    kinds.sort();
    let all = ["grasp:sweep", "history:prune", "lifecycle:sweep", "notify:mail", "push:reconcile", "relay:expire"];
    assert_eq!(kinds[..6], all);
    assert_eq!(kinds[6..], ["trending:count"]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_job_run_by_hand_tells_how_it_ended(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let rig = rig(engine).await;
    let (repo, _) = rig.repo_with_commit().await;
    let done =
        manage::run_now(&rig.forge, &By::Operator, Kind::RepoMaintain, json!({ "repo_id": repo.id.get() })).await;
    assert_eq!(done.expect("it ran").state, "done");
    let failed =
        manage::run_now(&rig.forge, &By::Operator, Kind::RepoMaintain, serde_json::Value::Null).await.expect("it ran");
    assert_eq!(failed.state, "failed");
    assert!(failed.last_error.is_some_and(|text| text.contains("repo_id")));
}

/// A server that died may have left git at work, or its lock, which is removed when it is old enough.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn maintenance_that_finds_a_lock_waits_without_an_attempt_and_not_for_ever(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig(engine).await;
    let (repo, _) = rig.repo_with_commit().await;
    rig.git(repo.id, &["repack", "-a", "-d", "-q"]);
    let lock = rig.dir(repo.id).join("objects/pack/multi-pack-index.lock");
    std::fs::write(&lock, "").expect("writable");
    let id = enqueue(&rig, json!({ "repo_id": repo.id.get() })).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(runner::run(rig.forge.clone(), stop.clone()));
    // More often than the job may be tried.
    for _ in 0..4 {
        let before = rig.store.clock().now();
        let waits = |job: &Job| job.state == "waiting" && job.run_at > before;
        let waiting = until(&rig.store, id, waits).await;
        assert_eq!(waiting.attempts, 0);
        assert!(waiting.last_error.is_some_and(|text| text.contains("multi-pack-index.lock")));
        rig.clock.advance(Duration::from_secs(301));
    }
    rig.clock.advance(Duration::from_secs(2 * 3600));
    until(&rig.store, id, |job| job.attempts == 1 && job.state == "waiting").await;
    std::fs::File::options().write(true).open(&lock).expect("ours").set_modified(std::time::UNIX_EPOCH).expect("ours");
    rig.clock.advance(Duration::from_secs(3600));
    until(&rig.store, id, |job| job.state == "done").await;
    assert!(!lock.exists());
    stop.cancel();
    running.await.expect("it ends");
}

/// Makes the owner a key that nobody claimed.
const UNCLAIM: abide_store::Sql = abide_store::Sql::new("test", "UNCLAIM", UNCLAIMED, UNCLAIMED);
const UNCLAIMED: &str = "UPDATE users SET name = NULL, password_hash = NULL, npub = 'npub1stranger'";

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn maintenance_of_a_stranger_that_needs_too_much_is_skipped_and_that_of_an_account_fails(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig(engine).await;
    let (repo, _) = rig.repo_with_commit().await;
    // A commit with a long message: git reads it whole.
    let file = rig.dir(repo.id).join("message");
    std::fs::write(&file, "words that deflate well\n".repeat(1_000_000)).expect("writable");
    let commit = rig.git(repo.id, &["commit-tree", "main^{tree}", "-F", "message"]);
    rig.git(repo.id, &["update-ref", "refs/heads/main", &commit]);
    rig.git(repo.id, &["repack", "-a", "-d", "-q"]);
    let limits = GitLimits { memory: 8 << 20, ..GitLimits::default() };
    let (small, _) = node_within(&rig.database, &rig.clock, "small", limits, |_| {}).await;
    let failed = maintain::run(&small, repo.id).await;
    assert!(failed.is_err_and(|fault| fault.is_over_limit()), "the operator hears of it");
    let unclaimed: Result<u64, StoreError> =
        rig.store.write((), |tx, _| Box::pin(async move { tx.execute(&UNCLAIM, &[]).await })).await;
    assert_eq!(unclaimed.expect("written"), 1);
    maintain::run(&small, repo.id).await.expect("it is skipped");
}

/// A repack needs room for a second copy of the repository.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_not_repacked_while_the_disk_is_nearly_full(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let rig = rig(engine).await;
    let (repo, _) = rig.repo_with_commit().await;
    // A repository with a pack is worth maintaining.
    rig.git(repo.id, &["repack", "-a", "-d", "-q"]);
    let written = rig.dir(repo.id).join("objects/pack/multi-pack-index");
    // No disk has more than 100 percent free space.
    let (full, _) = node_with(&rig.database, &rig.clock, "full", |settings| settings.disk.min_free_percent = 101).await;
    maintain::run(&full, repo.id).await.expect("it is skipped");
    assert!(!written.exists());
    maintain::run(&rig.forge, repo.id).await.expect("there is room");
    assert!(written.exists());
}
