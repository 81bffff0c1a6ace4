//! Deleting, restoring, and the end.

use super::*;
use crate::log::stored_json;
use abide_core::lifecycle::Refusal;
use abide_core::transfer::Answer;
use abide_forge::repos::{LifeError, Repo, delete, fork, purge, restore};
use abide_store::{StoreError, leases};
use rstest::rstest;
use std::path::Path;

/// Every file below a directory with its bytes.
fn bytes(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).expect("readable") {
            let path = entry.expect("readable").path();
            match path.is_dir() {
                true => left.push(path),
                false => {
                    let name = path.strip_prefix(dir).expect("below").display().to_string();
                    all.push((name, std::fs::read(&path).expect("readable")));
                }
            }
        }
    }
    all.sort();
    all
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_repository_is_the_same_byte_for_byte_and_its_name_was_free_meanwhile(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    let before = bytes(&world.rig.dir(repo.id));
    let until = delete::delete(forge, &world.alice, &repo).await.expect("deleted");
    assert_eq!(until.to_string(), "2026-01-08T00:00:00Z");
    assert_eq!(world.leads(&world.alice, "alice/project").await, None);
    let (deleted, total) = restore::list(forge, &world.alice, FIRST).await.expect("listed");
    assert_eq!((deleted[0].id, total, restore::until(forge, &deleted[0])), (repo.id, 1, Some(until)));

    let other = world.public(&world.alice, "project").await;
    let id = repo.id.to_string();
    let taken = restore::restore(forge, &world.alice, &id, None).await;
    assert!(matches!(taken, Err(LifeError::NameTaken)), "{taken:?}");
    assert_eq!(restore::list(forge, &world.alice, FIRST).await.expect("listed").1, 1, "it stays in the list");
    let stranger = restore::restore(forge, &world.bob, &id, None).await;
    assert!(matches!(stranger, Err(LifeError::Access(Access::NotFound))), "{stranger:?}");

    let back = restore::restore(forge, &world.alice, &id, Some("project-back")).await.expect("restored as");
    assert_eq!(back.slug(), "alice/project-back");
    assert_eq!(bytes(&world.rig.dir(repo.id)), before);
    assert_eq!(world.leads(&world.bob, "alice/project").await, Some(other.id.get()), "the new holder keeps it");
    let twice = restore::restore(forge, &world.alice, &id, None).await;
    assert!(matches!(twice, Err(LifeError::Refused(Refusal::NotDeleted))), "{twice:?}");
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_second_soft_delete_does_not_restart_the_clock(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    delete::delete(forge, &world.alice, &repo).await.expect("deleted");
    world.rig.clock.advance(5 * DAY);
    let again = delete::delete(forge, &world.alice, &repo).await;
    assert!(matches!(again, Err(LifeError::Access(Access::NotFound))), "{again:?}");
    let again = delete::delete(forge, &Caller::operator(), &repo).await;
    assert!(matches!(again, Err(LifeError::Refused(Refusal::AlreadyDeleted))), "nor for the operator: {again:?}");
    world.rig.clock.advance(2 * DAY);
    let late = restore::restore(forge, &world.alice, &repo.id.to_string(), None).await;
    assert!(matches!(late, Err(LifeError::Refused(Refusal::PastGrace))), "{late:?}");
    assert_eq!(world.events("repo_soft_deleted").await, 1);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_hears_of_a_deleted_repository(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    let doors = [RepoLocator::slug("alice", "project"), RepoLocator::Id(repo.id.to_string())];
    let hears = async |caller: &Caller| {
        let mut heard = Vec::new();
        for locator in &doors {
            heard.push(restore::tombstone(forge, caller, locator).await.expect("readable").is_some());
        }
        heard
    };
    assert_eq!(hears(&world.alice).await, [false, false], "it is not deleted");
    delete::delete(forge, &world.alice, &repo).await.expect("deleted");
    assert_eq!(hears(&world.alice).await, [true, true]);
    assert_eq!(hears(&world.bob).await, [false, false]);
    assert_eq!(hears(&Caller::anonymous(None)).await, [false, false]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_sweep_removes_what_is_past_its_grace_and_the_event_survives_the_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let old = world.public(&world.alice, "old").await;
    let young = world.public(&world.alice, "young").await;
    delete::delete(forge, &world.alice, &old).await.expect("deleted");
    world.rig.clock.advance(DAY);
    delete::delete(forge, &world.alice, &young).await.expect("deleted");
    world.rig.clock.advance(6 * DAY - Duration::from_micros(1));
    assert_eq!(purge::sweep(forge).await.expect("swept").removed, 0, "a moment too early");
    world.rig.clock.advance(Duration::from_micros(1));
    let swept = purge::sweep(forge).await.expect("swept");
    assert_eq!((swept.removed, swept.failed), (1, 0));
    assert!(!world.rig.dir(old.id).exists() && world.rig.dir(young.id).exists());

    abide_forge::sequencer::catch_up(forge).await.expect("numbered");
    let all = events::after(&mut world.rig.store.read().await.expect("readable"), 0, 1000).await.expect("readable");
    let mut of_old = Vec::new();
    for event in &all {
        let stored = stored_json(&world.rig.store, event.seq).await;
        if stored.contains("alice/old") {
            of_old.push((event, stored));
        }
    }
    let kinds: Vec<_> = of_old.iter().map(|(event, _)| event.kind.as_str()).collect();
    assert_eq!(kinds, ["repo_created", "push", "repo_soft_deleted", "repo_hard_deleted"]);
    assert!(of_old.iter().all(|(event, _)| event.repo.is_none()), "they tell of something that is gone");
    let payload: serde_json::Value = serde_json::from_str(&of_old[3].1).expect("JSON");
    assert_eq!(payload["snapshot"]["slug"], "alice/old");
    assert_eq!(world.audited(&old).await.last().map(String::as_str), Some("repo_hard_deleted"));
    let late = restore::restore(forge, &world.alice, &old.id.to_string(), None).await;
    assert!(matches!(late, Err(LifeError::Access(Access::NotFound))), "{late:?}");
    assert_eq!(purge::sweep(forge).await.expect("swept"), purge::Swept::default());
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_stuck_repository_does_not_keep_the_others(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let mut repos = Vec::new();
    for name in ["a", "b", "c"] {
        let repo = world.public(&world.alice, name).await;
        delete::delete(forge, &world.alice, &repo).await.expect("deleted");
        repos.push(repo);
    }
    // Something in the way of the first one's removal: its place is a file, and so is its grave.
    let (place, grave) = (world.rig.dir(repos[0].id), world.rig.dir(repos[0].id).with_file_name(".1.git.gone"));
    std::fs::create_dir(&grave).expect("writable");
    std::fs::write(grave.join("x"), "").expect("writable");
    world.rig.clock.advance(8 * DAY);
    let swept = purge::sweep(forge).await.expect("swept");
    assert_eq!((swept.removed, swept.failed), (2, 1), "{swept:?}");
    assert!(place.exists() && !world.rig.dir(repos[1].id).exists() && !world.rig.dir(repos[2].id).exists());
    let report = doctor::examine(forge).await.expect("examined");
    assert_eq!((report.findings, report.purges_waiting), (vec![], 1), "it is known what is left to do");

    std::fs::remove_dir_all(&grave).expect("removed");
    assert_eq!(purge::sweep(forge).await.expect("swept").failed, 0);
    assert!(!place.exists());
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn forks_survive_rename_transfer_soft_and_hard_delete_of_their_source_byte_for_byte(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let source = world.public(&world.alice, "source").await;
    let carol = world.rig.user("carol").await;
    let forked: Repo = fork::fork(forge, &carol, &source, fork::Request::default()).await.expect("forked").repo;
    let before = bytes(&world.rig.dir(forked.id));
    let same = |what: &str| assert_eq!(bytes(&world.rig.dir(forked.id)), before, "after {what}");

    let source = world.rename(&source, "renamed").await;
    same("rename");
    let offer = world.offer(&source).await;
    let source = transfer::answer(forge, &world.bob, &offer, Answer::Accept).await.expect("accepted").repo;
    same("transfer");
    delete::delete(forge, &world.bob, &source).await.expect("deleted");
    same("soft delete");
    world.rig.clock.advance(8 * DAY);
    assert_eq!(purge::sweep(forge).await.expect("swept").removed, 1);
    same("hard delete");
    world.rig.git(forked.id, &["fsck", "--strict", "--full"]);
    let orphan =
        open::open(forge, &carol, &RepoLocator::slug("carol", "source"), Action::RepoRead).await.expect("there");
    assert_eq!(orphan.fork_of, None);
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_removes_a_deleted_repository_without_waiting_and_a_live_one_never(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    let live = purge::purge(forge, &Caller::operator(), &repo).await;
    assert!(matches!(live, Err(LifeError::Refused(Refusal::NotDeleted))), "{live:?}");
    delete::delete(forge, &world.alice, &repo).await.expect("deleted");
    let owner = purge::purge(forge, &world.alice, &repo).await;
    assert!(matches!(owner, Err(LifeError::Access(Access::NotFound))), "{owner:?}");
    purge::purge(forge, &Caller::operator(), &repo).await.expect("purged");
    assert!(!world.rig.dir(repo.id).exists());
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_sets_aside_what_does_not_belong_and_removes_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let repo = world.public(&world.alice, "project").await;
    let shard = world.rig.dir(repo.id).parent().expect("a shard").to_owned();
    let orphan = shard.join("257.git");
    std::fs::create_dir_all(orphan.join("objects")).expect("writable");
    std::fs::write(orphan.join("HEAD"), "ref: refs/heads/main\n").expect("writable");
    std::fs::write(shard.join("notes.txt"), "mine").expect("writable");
    std::fs::write(world.rig.dir(repo.id).join("HEAD.lock"), "").expect("writable");
    let checks = async || {
        let findings = doctor::examine(world.forge()).await.expect("examined").findings;
        findings.iter().map(|found| found.check).collect::<Vec<_>>()
    };
    assert_eq!(checks().await, ["lock", "orphan", "stray"]);
    let done = doctor::fix(world.forge()).await.expect("fixed");
    assert_eq!(done.len(), 3, "{done:?}");
    assert_eq!(checks().await, [] as [&str; 0]);
    let kept = bytes(&world.rig.database.data_dir().join("quarantine"));
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert!(kept.iter().any(|(name, content)| name.ends_with("notes.txt") && content == b"mine"));
    assert!(world.rig.dir(repo.id).join("HEAD").exists());
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_is_being_tidied_is_removed_afterwards(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    delete::delete(forge, &world.alice, &repo).await.expect("deleted");
    let name = format!("maintain:{}", repo.id);
    let taken: Result<_, StoreError> = world
        .rig
        .store
        .write(name, |tx, name| Box::pin(leases::take(tx, name, "someone", Duration::from_secs(30))))
        .await;
    let lease = taken.expect("written").expect("free");
    let dir = world.rig.dir(repo.id);
    let removing = {
        let (forge, repo) = (forge.clone(), repo.clone());
        tokio::spawn(async move { purge::purge(&forge, &Caller::operator(), &repo).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(dir.exists() && !removing.is_finished(), "git would make what vanishes anew");
    let released: Result<(), StoreError> =
        world.rig.store.write(lease, |tx, lease| Box::pin(leases::release(tx, lease))).await;
    released.expect("released");
    removing.await.expect("not interrupted").expect("removed");
    assert!(!dir.exists());
}
