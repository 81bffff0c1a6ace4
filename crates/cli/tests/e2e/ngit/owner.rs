//! Work of an owner alone.

use super::Published;
use super::person::served;
use crate::grasp::setup::{now, state};
use crate::support::assert_healthy;
use abide_testkit::{Engine, Nostr};
use rstest::rstest;

#[rstest]
#[ignore = "needs ngit: ./test ngit"]
fn ngit_publishes_a_repository_and_pushes_to_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let repo = Published::new(engine);
    let (owner, work) = (&repo.owner, &repo.work);
    assert_eq!(repo.refs(), [("refs/heads/main".to_owned(), repo.first.clone())]);
    assert_eq!((served(&repo.server, 30_617).len(), served(&repo.server, 30_618).len()), (1, 1));

    let second = owner.git.commit_file(work, "README.md", "hello again\n", "second");
    owner.git(work, &["push", "origin", "main"]);
    assert_eq!(repo.at("refs/heads/main"), Some(second.clone()));

    owner.git(work, &["checkout", "-b", "feature"]);
    let third = owner.git.commit_file(work, "feature", "1\n", "a feature");
    owner.git(work, &["push", "-u", "origin", "feature"]);
    assert_eq!(repo.at("refs/heads/feature"), Some(third));

    owner.git(work, &["tag", "-a", "v1", "-m", "the first", "main"]);
    owner.git(work, &["push", "origin", "v1"]);
    assert_eq!(repo.at("refs/tags/v1"), Some(owner.oid(work, "v1")), "the tag itself, not what it points at");

    owner.git(work, &["push", "origin", "--delete", "feature"]);
    assert_eq!(repo.at("refs/heads/feature"), None);
    assert_eq!(repo.at("refs/heads/main"), Some(second));
    assert_healthy(&repo.server);
}

#[rstest]
#[ignore = "needs ngit: ./test ngit"]
fn what_ngit_published_is_cloned_with_it_and_without(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let repo = Published::new(engine);
    let (owner, work) = (&repo.owner, &repo.work);
    owner.git(work, &["tag", "-a", "v1", "-m", "the first"]);
    owner.git(work, &["push", "origin", "main:other"]);
    owner.git(work, &["push", "origin", "v1"]);
    for url in [repo.nostr(), repo.http()] {
        let clone = owner.clone(&url);
        assert_eq!(owner.oid(&clone, "HEAD"), repo.first, "{url}");
        assert_eq!(owner.oid(&clone, "origin/other"), repo.first, "{url}");
        assert_eq!(owner.oid(&clone, "v1"), owner.oid(work, "v1"), "{url}");
        assert_eq!(owner.git.ok(&clone, &["symbolic-ref", "HEAD"]), "refs/heads/main", "{url}");
    }
}

/// ngit dates a state like the one before it, with a lower id, for as long as its clock is not past that one. A state
/// that is dated ahead makes every push a push of the same second.
#[rstest]
#[ignore = "needs ngit: ./test ngit"]
fn pushes_of_one_second_end_where_the_last_one_did(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let repo = Published::new(engine);
    let (owner, work) = (&repo.owner, &repo.work);
    let dated = |at| state(&owner.key, at, "demo", &[("refs/heads/main", &repo.first)], Some("main"));
    // A high id: there is room below it.
    let ahead = (now() + 300..).map(dated).find(|event| event.id.as_bytes()[0] >= 0x80).expect("every other one is");
    assert_eq!(Nostr::connect(&repo.server.url()).publish(&ahead), (true, String::new()));

    let mut before = ahead;
    for n in 1..=3 {
        let commit = owner.git.commit_file(work, "count", format!("{n}\n"), "count");
        owner.git(work, &["push", "origin", "main"]);
        let states = served(&repo.server, 30_618);
        assert_eq!(states.len(), 1, "{states:?}");
        assert!(states[0].created_at == before.created_at && states[0].id < before.id, "{states:?} after {before:?}");
        assert_eq!(repo.at("refs/heads/main"), Some(commit));
        before = states[0].clone();
    }
    assert_healthy(&repo.server);
}
