//! The transaction that moves refs.

use crate::support::{Server, Work, name, update};
use abide_core::{Oid, RefUpdate};
use abide_git::reftx::{ConflictKind, refs_left, refs_match, update_refs};
use abide_git::{RefTxError, RefsMatch, Snapshot, locks, maintain};

struct Fixture {
    server: Server,
    one: Oid,
    two: Oid,
}

/// `refs/heads/main` is at `one`; `two` exists, but no ref points to it.
async fn fixture() -> Fixture {
    let (server, work) = (Server::new().await, Work::new());
    let one = work.commit("one");
    work.push_to(&server);
    let two = work.commit("two");
    let incoming = server.incoming("seed").await;
    incoming.receive(&work.pack(&["HEAD"])[..], &Default::default(), None).await.unwrap();
    server.take_unproved(incoming).await;
    Fixture { server, one, two }
}

impl Fixture {
    async fn apply(&self, updates: &[RefUpdate]) -> Result<(), RefTxError> {
        update_refs(&self.server.git, &self.server.repo, updates).await
    }

    fn at(&self, name: &str) -> Option<Oid> {
        Snapshot::read(&self.server.repo).unwrap().get(name.as_bytes()).map(|found| found.oid)
    }

    async fn conflict(&self, updates: &[RefUpdate]) -> (String, ConflictKind) {
        let before = Snapshot::read(&self.server.repo).unwrap();
        let (name, kind) = match self.apply(updates).await {
            Err(RefTxError::Conflict { name, kind }) => (name.to_string(), kind),
            other => panic!("{other:?}"),
        };
        assert_eq!(Snapshot::read(&self.server.repo).unwrap(), before, "none or all");
        (name, kind)
    }
}

#[tokio::test]
async fn refs_are_created_moved_and_deleted_together() {
    let f = fixture().await;
    f.apply(&[update("refs/heads/gone", Oid::ZERO, f.one)]).await.unwrap();
    let updates = [
        update("refs/heads/main", f.one, f.two),
        update("refs/tags/v1", Oid::ZERO, f.one),
        update("refs/heads/gone", f.one, Oid::ZERO),
    ];
    assert_eq!(refs_match(&f.server.repo, &updates).await.unwrap(), RefsMatch::NoneApplied);
    f.apply(&updates).await.unwrap();
    assert_eq!(refs_match(&f.server.repo, &updates).await.unwrap(), RefsMatch::AllApplied);
    assert_eq!((f.at("refs/heads/main"), f.at("refs/heads/gone")), (Some(f.two), None));
    f.server.run(&["update-ref", "-d", "refs/tags/v1"]);
    assert_eq!(refs_match(&f.server.repo, &updates).await.unwrap(), RefsMatch::Mixed);
}

#[tokio::test]
async fn a_ref_that_moved_meanwhile_stops_all_of_them() {
    let f = fixture().await;
    let fine = update("refs/heads/new", Oid::ZERO, f.one);
    let moved = [fine.clone(), update("refs/heads/main", f.two, f.one)];
    assert_eq!(f.conflict(&moved).await, ("refs/heads/main".into(), ConflictKind::Moved));
    let exists = [fine.clone(), update("refs/heads/main", Oid::ZERO, f.two)];
    assert_eq!(f.conflict(&exists).await, ("refs/heads/main".into(), ConflictKind::Exists));
    let gone = [fine.clone(), update("refs/heads/other", f.one, f.two)];
    assert_eq!(f.conflict(&gone).await, ("refs/heads/other".into(), ConflictKind::Gone));
    let deleted = [fine, update("refs/heads/other", f.one, Oid::ZERO)];
    assert_eq!(f.conflict(&deleted).await, ("refs/heads/other".into(), ConflictKind::Gone));
}

#[tokio::test]
async fn a_name_below_another_ref_is_a_conflict_loose_and_packed() {
    let f = fixture().await;
    for packed in [false, true] {
        if packed {
            maintain::pack_refs(&f.server.git, &f.server.repo).await.unwrap();
        }
        let below = [update("refs/heads/main/x", Oid::ZERO, f.one)];
        assert_eq!(f.conflict(&below).await, ("refs/heads/main/x".into(), ConflictKind::NameTaken));
    }
    let both = [update("refs/heads/a", Oid::ZERO, f.one), update("refs/heads/a/b", Oid::ZERO, f.one)];
    assert_eq!(f.conflict(&both).await.1, ConflictKind::NameTaken);
    f.apply(&[update("refs/heads/d/e", Oid::ZERO, f.one)]).await.unwrap();
    let above = [update("refs/heads/d", Oid::ZERO, f.one)];
    assert_eq!(f.conflict(&above).await, ("refs/heads/d".into(), ConflictKind::NameTaken));
}

#[tokio::test]
async fn an_object_that_is_missing_or_no_commit_is_a_conflict() {
    let f = fixture().await;
    let missing = [update("refs/heads/x", Oid::ZERO, Oid::from_bytes([7; 20]))];
    assert_eq!(f.conflict(&missing).await, ("refs/heads/x".into(), ConflictKind::BadObject));
    let tree = f.server.run(&["rev-parse", "refs/heads/main^{tree}"]).parse().unwrap();
    let no_commit = [update("refs/heads/x", Oid::ZERO, tree)];
    assert_eq!(f.conflict(&no_commit).await, ("refs/heads/x".into(), ConflictKind::BadObject));
}

#[tokio::test]
async fn a_lock_left_by_a_crash_is_reported_and_can_be_cleared() {
    let f = fixture().await;
    std::fs::write(f.server.repo.join("refs/heads/main.lock"), "").unwrap();
    let updates = [update("refs/heads/main", f.one, f.two)];
    assert_eq!(f.conflict(&updates).await, ("refs/heads/main".into(), ConflictKind::Locked));
    assert_eq!(locks::clear_stale_locks(&f.server.repo).unwrap().len(), 1);
    f.apply(&updates).await.unwrap();
    assert_eq!(f.at("refs/heads/main"), Some(f.two));
}

#[tokio::test]
async fn thousands_of_refs_move_in_one_transaction() {
    let f = fixture().await;
    let updates: Vec<_> = (0..3000).map(|number| update(&format!("refs/heads/n/{number}"), Oid::ZERO, f.one)).collect();
    f.apply(&updates).await.unwrap();
    assert_eq!(refs_match(&f.server.repo, &updates).await.unwrap(), RefsMatch::AllApplied);

    // Again with packed refs: some move, some stay, the others are deleted.
    maintain::pack_refs(&f.server.git, &f.server.repo).await.unwrap();
    let target = |number: usize| [f.two, f.one, Oid::ZERO][number % 3];
    let again: Vec<_> =
        (0..3000).map(|number| update(&format!("refs/heads/n/{number}"), f.one, target(number))).collect();
    f.apply(&again).await.unwrap();
    assert_eq!(refs_match(&f.server.repo, &again).await.unwrap(), RefsMatch::AllApplied);
    assert_eq!(Snapshot::read(&f.server.repo).unwrap().refs.len(), 2000 + 1);
}

#[tokio::test]
async fn a_transaction_that_was_cut_short_shows_what_is_left_of_it() {
    let f = fixture().await;
    let made = update("refs/heads/made", Oid::ZERO, f.one);
    let open = update("refs/heads/main", f.one, f.two);
    let elsewhere = update("refs/heads/elsewhere", Oid::ZERO, f.two);
    f.apply(&[made.clone(), update("refs/heads/elsewhere", Oid::ZERO, f.one)]).await.unwrap();
    let (left, strayed) = refs_left(&f.server.repo, &[made, open.clone(), elsewhere.clone()]).await.unwrap();
    assert_eq!((left, strayed), (vec![open], vec![elsewhere]));
}

#[test]
fn reasons_are_helpful() {
    let error = RefTxError::Conflict { name: name("refs/heads/x"), kind: ConflictKind::Moved };
    assert_eq!(error.to_string(), "refs/heads/x: the ref was updated by someone else; fetch and try again");
}
