//! On a full disk the callers get an error, and nobody is notified of a change that was not stored.

use crate::support::{NOTE, World, joined, note, notes, sql, started, unit};
use abide_store::{Sql, StoreError, params};
use abide_testkit::Engine;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeSet;
use std::process::Command;

const BIG: usize = 64 * 1024;

/// SQLite rolls the whole transaction back on its own, and a further statement would commit by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_finds_no_room_fails_alone() {
    // As many pages as there are; a database cannot be limited below that.
    const NO_MORE: Sql = sql("PRAGMA max_page_count = 1");
    let world = World::new(Engine::Sqlite).await;
    let mut lock = world.raw().await;
    lock.execute("BEGIN IMMEDIATE").await;

    let mut units = Vec::new();
    for index in 0..60_usize {
        let store = world.store.clone();
        units.push(
            started(async move {
                unit!(store, index, |tx, &index| {
                    let big = index % 10 == 5;
                    let name = format!("{index:02}{}", "x".repeat(if big { BIG } else { 0 }));
                    if big {
                        tx.only(&NO_MORE, &[]).await?;
                    }
                    tx.execute(&NOTE, params![name, 0_i64]).await
                })
                .await
            })
            .await,
        );
    }
    lock.execute("ROLLBACK").await;

    for (index, unit) in units.into_iter().enumerate() {
        let answer = unit.await;
        let fits = if index % 10 == 5 { matches!(answer, Err(StoreError::Full(_))) } else { answer.is_ok() };
        assert!(fits, "unit {index} was told {answer:?}");
    }
    note(&world.store, "later").await.unwrap();
    world.store.close().await;
    let kept: BTreeSet<String> = notes(&world.another_store().await).await.into_iter().collect();
    let expected = (0..60).filter(|index| index % 10 != 5).map(|index| format!("{index:02}"));
    assert_eq!(kept, expected.chain(["later".into()]).collect());
}

/// A unit that goes on after SQLite has rolled back leaves nothing behind.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_unit_that_ignores_the_lack_of_room_stays() {
    const NO_MORE: Sql = sql("PRAGMA max_page_count = 1");
    let world = World::new(Engine::Sqlite).await;

    let claimed = unit!(world.store, (), |tx, _| {
        tx.execute(&NOTE, params!["before", 0_i64]).await?;
        tx.only(&NO_MORE, &[]).await?;
        let _ = tx.execute(&NOTE, params!["x".repeat(BIG), 0_i64]).await;
        let _ = tx.execute(&NOTE, params!["after", 0_i64]).await;
        Ok::<_, StoreError>(())
    });

    assert!(claimed.await.is_err());
    assert!(notes(&world.store).await.is_empty());
    note(&world.store, "later").await.unwrap();
}

const CHILD: &str = "ABIDE_TEST_DISK_FULL";

/// The limit on the size of files is the whole process's, so this runs in one of its own.
#[test]
fn on_a_full_disk_nobody_is_told_of_something_that_is_not_there() {
    if std::env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        return runtime.block_on(fill_the_disk());
    }
    let run = Command::new("sh")
        // A write beyond the limit then fails instead of ending the process.
        .args(["-c", "trap '' XFSZ && exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "disk_full::on_a_full_disk_nobody_is_told_of_something_that_is_not_there", "--nocapture"])
        .env(CHILD, "yes")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

async fn fill_the_disk() {
    let world = World::new(Engine::Sqlite).await;
    note(&world.store, "first").await.unwrap();
    let limit = getrlimit(Resource::Fsize);
    let largest =
        std::fs::read_dir(world.database.data_dir()).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    let room = largest.max().unwrap() + 400 * 1024;
    setrlimit(Resource::Fsize, Rlimit { current: Some(room), ..limit }).unwrap();

    let mut tasks = Vec::new();
    for index in 0..150_usize {
        let store = world.store.clone();
        tasks.push(tokio::spawn(async move {
            let name = format!("{index:03}{}", "x".repeat(8 * 1024));
            let answer = note(&store, &name).await;
            (name, answer)
        }));
    }
    let mut acknowledged = BTreeSet::from(["first".to_owned()]);
    let mut refused = Vec::new();
    for task in tasks {
        match joined(task).await {
            (name, Ok(())) => drop(acknowledged.insert(name)),
            (_, Err(error)) => refused.push(error),
        }
    }
    assert!(acknowledged.len() > 10, "the disk was full too early: {refused:?}");
    assert!(refused.len() > 10, "the disk was not full");
    for error in refused {
        assert!(matches!(error, StoreError::Full(_) | StoreError::Io(_)), "{error:?}");
    }
    assert_eq!(notes(&world.store).await.into_iter().collect::<BTreeSet<_>>(), acknowledged);

    setrlimit(Resource::Fsize, limit).unwrap();
    note(&world.store, "later").await.unwrap();
    acknowledged.insert("later".into());
    world.store.close().await;

    let kept: BTreeSet<String> = notes(&world.another_store().await).await.into_iter().collect();
    assert_eq!(kept, acknowledged);
}
