//! Objects enter a repository only with a proof that nothing they need is missing there.

use crate::support::{Server, Work, name, update};
use abide_core::{Oid, RepoId};
use abide_git::{GitError, Incoming, ReceiveLimits, bare};

fn creating(tip: Oid) -> [abide_core::RefUpdate; 1] {
    [update("refs/nostr/1", Oid::ZERO, tip)]
}

/// A server with the first commit, and an area with only the second.
async fn second_alone(server: &Server, work: &Work) -> (Oid, Oid, Incoming) {
    let one = work.commit("one");
    server.push(&work.pack(&["HEAD"]), &[update("refs/heads/main", Oid::ZERO, one)]).await.unwrap();
    let two = work.commit("two");
    let incoming = server.incoming("second").await;
    let pack = work.pack(&["HEAD", &format!("^{one}")]);
    incoming.receive(&pack[..], &ReceiveLimits::default(), None).await.unwrap();
    (one, two, incoming)
}

async fn other_repository(server: &Server) -> std::path::PathBuf {
    let other = RepoId::new(8);
    bare::init_bare(&server.layout, other, &name("refs/heads/main")).await.unwrap();
    server.layout.repo(other)
}

#[tokio::test]
async fn a_proof_for_one_repository_opens_no_other() {
    let (server, work) = (Server::new().await, Work::new());
    let (_, two, incoming) = second_alone(&server, &work).await;
    let other = other_repository(&server).await;
    let connected = server.connected(incoming, &creating(two)).await;
    assert!(connected.covers(&server.repo, two) && !connected.covers(&other, two));
    assert!(matches!(connected.migrate(&other).await, Err(GitError::Unproved(_))));
    connected.migrate(&server.repo).await.unwrap();
}

#[tokio::test]
async fn what_was_received_for_one_repository_is_proved_again_for_another() {
    let (server, work) = (Server::new().await, Work::new());
    let (one, two, incoming) = second_alone(&server, &work).await;
    incoming.keep(&server.layout, "aside").await.unwrap();
    let other = other_repository(&server).await;
    let again = |repo| Incoming::reopen(&server.git, &server.layout, repo, "aside").unwrap();
    let (connected, refused) = again(other.clone()).connect(&creating(two)).await.unwrap();
    assert_eq!(refused.len(), 1);
    assert!(!connected.covers(&other, two));
    let (connected, refused) = again(server.repo.clone()).connect(&creating(two)).await.unwrap();
    assert_eq!(refused, []);
    // The first repository and its area hold everything that the other lacks.
    let filled = Incoming::create_beside(&server.git, &server.layout, other.clone(), "filled").await.unwrap();
    let area = connected.area().unwrap().join("objects");
    filled.fill(&[area, server.repo.join("objects")], &[two], &[]).await.unwrap();
    let (connected, refused) = filled.connect(&creating(two)).await.unwrap();
    assert_eq!(refused, []);
    connected.migrate(&other).await.unwrap();
    for oid in [one, two] {
        abide_git::reftx::update_refs(&server.git, &other, &[update(&format!("refs/tags/{oid}"), Oid::ZERO, oid)])
            .await
            .unwrap();
    }
    crate::support::feed(crate::support::plain_git(&other).args(["fsck", "--strict", "--full"]), b"");
}

#[tokio::test]
async fn what_was_received_beside_nothing_holds_everywhere() {
    let (server, work) = (Server::new().await, Work::new());
    let tip = work.commit("one");
    let empty = bare::init_empty(&server.layout).await.unwrap();
    let incoming = Incoming::create_beside(&server.git, &server.layout, empty, "first").await.unwrap();
    incoming.receive(&work.pack(&["HEAD"])[..], &ReceiveLimits::default(), None).await.unwrap();
    let connected = server.connected(incoming, &creating(tip)).await;
    connected.migrate(&server.repo).await.unwrap();
    server.fsck();
}

/// A single object in a repository does not prove that its history is complete there.
#[tokio::test]
async fn an_object_that_lies_there_is_not_complete_for_that() {
    let (server, work) = (Server::new().await, Work::new());
    second_alone(&server, &work).await;
    let three = work.commit("three");
    // Strict unpacking would refuse the object, so copy it by hand.
    let name = three.to_string();
    let from = work.path().join(".git/objects").join(&name[..2]).join(&name[2..]);
    let shard = server.repo.join("objects").join(&name[..2]);
    std::fs::create_dir_all(&shard).unwrap();
    std::fs::copy(from, shard.join(&name[2..])).unwrap();
    let mut here = abide_git::Connected::in_place(&server.git, server.repo.clone());
    assert_eq!(here.extend(&creating(three)).await.unwrap().len(), 1);
    assert!(!here.covers(&server.repo, three));
}

#[tokio::test]
async fn a_copy_of_a_broken_repository_fails() {
    for lost in ["HEAD:file", "HEAD^{tree}", "HEAD~1", "HEAD~1:file", "HEAD~1^{tree}"] {
        let (server, source) = (Server::new().await, Work::new());
        source.commit("one");
        let tip = source.commit("two");
        let oid = source.oid(lost).to_string();
        std::fs::remove_file(source.path().join(".git/objects").join(&oid[..2]).join(&oid[2..])).unwrap();
        let incoming = server.incoming("copy").await;
        let copied = incoming.copied(&source.path().join(".git"), &[tip]).await;
        assert!(matches!(copied, Err(GitError::Failed { .. })), "{lost}: {copied:?}");
    }
}

#[tokio::test]
async fn a_part_of_a_push_comes_without_the_rest() {
    let (server, work) = (Server::new().await, Work::new());
    let (_, two, incoming) = second_alone(&server, &work).await;
    drop(incoming);
    work.run(&["checkout", "-q", "-b", "other", "HEAD~1"]);
    let other = work.commit("other");
    let incoming = server.incoming("both").await;
    incoming.receive(&work.pack(&["main", "other"])[..], &ReceiveLimits::default(), None).await.unwrap();
    let updates = [creating(two), [update("refs/nostr/2", Oid::ZERO, other)]].concat();
    let both = server.connected(incoming, &updates).await;
    let part = both.select(&server.layout, "part", &[other]).await.unwrap();
    assert!(part.covers(&server.repo, other) && !part.covers(&server.repo, two));
    part.migrate(&server.repo).await.unwrap();
    server.run(&["update-ref", "refs/nostr/2", &other.to_string()]);
    server.fsck();
    assert_eq!(server.run(&["cat-file", "-t", &other.to_string()]), "commit");
    assert!(abide_git::read::present(&server.repo, [two]).unwrap().is_empty());
}
