//! Maintenance makes repositories faster and loses no object.

use crate::support::{Server, Work, update};
use abide_core::Oid;
use abide_git::GitError;
use abide_git::maintain::{self, Level, Owner};
use rstest::rstest;

#[rstest]
#[tokio::test]
async fn every_object_is_still_there_afterwards(#[values(Level::Light, Level::Full)] level: Level) {
    let (server, work) = (Server::new().await, Work::new());
    let one = work.commit("one");
    server.push(&work.pack(&["HEAD"]), &[update("refs/heads/main", Oid::ZERO, one)]).await.unwrap();
    let two = work.commit("two");
    server.push(&work.pack(&["HEAD"]), &[update("refs/heads/side", Oid::ZERO, two)]).await.unwrap();
    server.run(&["update-ref", "-d", "refs/heads/side"]);
    for _ in 0..2 {
        maintain::maintain(&server.git, &server.repo, level, Owner::Account).await.unwrap();
        maintain::pack_refs(&server.git, &server.repo).await.unwrap();
        assert_eq!(server.run(&["cat-file", "-t", &two.to_string()]), "commit");
        assert_eq!(server.run(&["rev-parse", "refs/heads/main"]), one.to_string());
        assert_eq!(server.run(&["count-objects"]), "0 objects, 0 kilobytes");
        server.fsck();
    }
    let bitmaps = std::fs::read_dir(server.repo.join("objects/pack")).unwrap();
    let bitmaps = bitmaps.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|x| x == "bitmap"));
    assert_eq!(bitmaps.count(), 1);
    assert!(server.repo.join("objects/info/commit-graphs").exists());
}

#[tokio::test]
async fn an_empty_repository_is_maintained_too() {
    let server = Server::new().await;
    maintain::maintain(&server.git, &server.repo, Level::Light, Owner::Account).await.unwrap();
    maintain::maintain(&server.git, &server.repo, Level::Full, Owner::Account).await.unwrap();
    maintain::pack_refs(&server.git, &server.repo).await.unwrap();
}

#[tokio::test]
async fn maintenance_leaves_a_repository_alone_in_which_another_run_may_be_at_work() {
    let server = Server::new().await;
    let lock = server.repo.join("objects/pack/multi-pack-index.lock");
    std::fs::write(&lock, "").unwrap();
    let run = async || maintain::maintain(&server.git, &server.repo, Level::Light, Owner::Account).await;
    assert!(matches!(run().await, Err(GitError::Locked(path)) if path == lock));
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    run().await.unwrap();
    assert!(!lock.exists());
}

#[tokio::test]
async fn disk_usage_grows_with_what_is_pushed() {
    let (server, work) = (Server::new().await, Work::new());
    let before = maintain::disk_usage(&server.repo).unwrap();
    let tip = work.commits(100);
    server.push(&work.pack(&["main"]), &[update("refs/heads/main", Oid::ZERO, tip)]).await.unwrap();
    let after = maintain::disk_usage(&server.repo).unwrap();
    assert!(before > 0 && after > before + 4096, "{before} {after}");
}

#[tokio::test]
async fn what_is_small_has_no_pack_and_few_loose_files() {
    let (server, work) = (Server::new().await, Work::new());
    let small = || maintain::is_small(&server.repo).unwrap();
    assert!(small(), "empty");
    let one = work.commit("one");
    server.push(&work.pack(&["HEAD"]), &[update("refs/heads/main", Oid::ZERO, one)]).await.unwrap();
    assert!(small(), "a commit, its tree, its file, a branch");
    for number in 4..100 {
        server.run(&["update-ref", &format!("refs/tags/{number}"), &one.to_string()]);
    }
    assert!(small(), "a hundred files");
    server.run(&["update-ref", "refs/tags/100", &one.to_string()]);
    assert!(!small(), "one more");
    maintain::pack_refs(&server.git, &server.repo).await.unwrap();
    assert!(small(), "many refs, in one file");
    maintain::maintain(&server.git, &server.repo, Level::Light, Owner::Account).await.unwrap();
    assert!(!small(), "a pack is joined with what comes after it");
}
