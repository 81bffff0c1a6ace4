//! Units that get in each other's way. On PostgreSQL they really run at the same time.

use crate::support::{World, joined, repo, unit, user};
use abide_core::RepoId;
use abide_store::{Store, StoreError, repos};
use abide_testkit::Engine;
use rstest::rstest;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Barrier;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_decided_under_a_lock_is_still_true_when_written(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = World::new(engine).await;
    let owner = user(&world.store, "alice").await;
    let id = repo(&world.store, owner, "tool").await;

    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    count_up(&store, id).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        joined(task).await;
    }

    let counted = repos::by_id(&mut world.store.read().await.unwrap(), id, None).await.unwrap().unwrap();
    assert_eq!(counted.description, "800");
}

async fn count_up(store: &Store, id: RepoId) -> Result<(), StoreError> {
    unit!(store, id, |tx, &id| {
        let repo = repos::lock(tx, id, None).await?.unwrap();
        let count = repo.description.parse().unwrap_or(0) + 1;
        repos::set_about(tx, id, &count.to_string(), &repo.default_branch).await
    })
    .await
}

/// Two units that each hold what the other one wants.
struct Embrace {
    both_hold_one: Barrier,
    runs: AtomicU32,
    ignores_the_error: bool,
}

#[rstest]
#[case::and_says_so(false)]
#[case::and_ignores_it(true)]
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_lost_a_deadlock_runs_again(#[case] ignores_the_error: bool) {
    let world = World::new(Engine::Postgres).await;
    let owner = user(&world.store, "alice").await;
    let (one, two) = (repo(&world.store, owner, "one").await, repo(&world.store, owner, "two").await);
    let embrace = Arc::new(Embrace { both_hold_one: Barrier::new(2), runs: AtomicU32::new(0), ignores_the_error });

    let tasks = [(one, two), (two, one)].map(|(first, second)| {
        let (store, embrace) = (world.store.clone(), embrace.clone());
        tokio::spawn(async move {
            unit!(store, (embrace, first, second), |tx, (embrace, first, second)| {
                repos::lock(tx, *first, None).await?;
                if embrace.runs.fetch_add(1, Ordering::SeqCst) < 2 {
                    embrace.both_hold_one.wait().await;
                }
                match repos::lock(tx, *second, None).await {
                    Err(_) if embrace.ignores_the_error => drop(repos::touch_pushed(tx, *first).await),
                    Err(error) => return Err(error),
                    Ok(_) => repos::touch_pushed(tx, *first).await?,
                }
                Ok(())
            })
            .await
        })
    });
    for task in tasks {
        joined(task).await.unwrap();
    }

    // On a busy machine the loser may have its first row again before the winner has woken up, and they meet once more.
    let runs = embrace.runs.load(Ordering::SeqCst);
    assert!(runs >= 3, "nobody ran again: {runs} runs");
    let mut conn = world.store.read().await.unwrap();
    for id in [one, two] {
        assert!(repos::by_id(&mut conn, id, None).await.unwrap().unwrap().pushed_at.is_some());
    }
}
