//! Offers to hand a repository over.

use super::*;
use abide_core::policy::DenyCode;
use abide_core::repo::Role;
use abide_core::transfer::{Answer, Refusal, Status};
use abide_forge::accounts::{self, suspend};
use abide_forge::repos::{LifeError, collaborators, delete, purge};
use abide_store::repos::transfers::{self, NewTransfer};
use rstest::rstest;

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_offer_moves_the_repository_and_its_old_address_keeps_leading_to_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.repo(&world.alice, "project", Visibility::Private).await;
    let bob = accounts::find(forge, &"bob".parse().expect("a name")).await.expect("readable").expect("bob");
    collaborators::set(forge, &world.alice, &repo, &bob, Role::Write).await.expect("added");
    let id = world.offer(&repo).await;

    let offer = transfer::answer(forge, &world.bob, &id, Answer::Accept).await.expect("accepted");
    assert_eq!((offer.repo.slug().as_str(), offer.transfer.status), ("bob/project", Status::Accepted));
    assert_eq!(world.leads(&world.bob, "alice/project").await, Some(repo.id.get()));
    assert_eq!(world.leads(&world.alice, "alice/project").await, None, "the old owner's access ends");
    let (people, _) = collaborators::list(forge, &offer.repo, FIRST).await.expect("readable");
    assert!(people.is_empty(), "an owner is no collaborator");
    let trail = world.audited(&repo).await;
    assert_eq!(trail[trail.len() - 2..], ["repo_transfer_requested", "repo_transfer_accepted"]);
    assert_eq!(world.events("repo_transfer_accepted").await, 1);
    // The giver still hears what became of the offer, under the name that they know.
    let seen = transfer::see(forge, &world.alice, &id).await.expect("theirs too");
    assert_eq!((seen.slug().as_str(), seen.transfer.status), ("alice/project", Status::Accepted));
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_sees_the_offer_of_a_private_repository_and_a_stranger_cannot_tell_it_from_none(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let carol = world.rig.user("carol").await;
    let repo = world.repo(&world.alice, "secret", Visibility::Private).await;
    let id = world.offer(&repo).await;

    let seen = transfer::see(forge, &world.bob, &id).await.expect("it is for bob");
    assert_eq!((seen.slug().as_str(), seen.repo.pushed_at), ("alice/secret", repo.pushed_at));
    let (inbox, total) = transfer::inbox(forge, &world.bob, FIRST).await.expect("readable");
    assert_eq!((inbox.len(), total, transfer::to_answer(forge, &world.bob).await.expect("counted")), (1, 1, 1));
    assert_eq!(transfer::to_answer(forge, &world.alice).await.expect("counted"), 0, "hers to cancel, not to answer");
    assert_eq!(world.leads(&world.bob, "alice/secret").await, None, "the offer is not the repository");

    for stranger in [&carol, &Caller::anonymous(None)] {
        for id in [id.as_str(), "999", "0", "x", ""] {
            let seen = transfer::see(forge, stranger, id).await;
            assert!(matches!(seen, Err(Access::NotFound)), "{id}: {seen:?}");
            for answer in [Answer::Accept, Answer::Decline, Answer::Cancel] {
                let tried = transfer::answer(forge, stranger, id, answer).await;
                assert!(matches!(tried, Err(LifeError::Access(Access::NotFound))), "{id}: {tried:?}");
            }
        }
    }
    // Each side has its own answers.
    let wrong = transfer::answer(forge, &world.bob, &id, Answer::Cancel).await;
    assert!(matches!(wrong, Err(LifeError::Access(Access::Denied(DenyCode::OtherSide)))), "{wrong:?}");
    let wrong = transfer::answer(forge, &world.alice, &id, Answer::Accept).await;
    assert!(matches!(wrong, Err(LifeError::Access(Access::Denied(DenyCode::OtherSide)))), "{wrong:?}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_old_offer_cannot_take_a_repository_that_moved_meanwhile(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    world.rig.user("carol").await;
    let repo = world.public(&world.alice, "project").await;
    let old = world.offer(&repo).await;
    let moved = transfer::hand_over(forge, &Caller::operator(), &repo, "carol").await.expect("handed over");
    assert_eq!(moved.slug(), "carol/project");

    let late = transfer::answer(forge, &world.bob, &old, Answer::Accept).await;
    assert!(matches!(late, Err(LifeError::Offer(Refusal::Terminal(Status::Canceled)))), "{late:?}");
    // Even if one from the time before were still open.
    let stale = NewTransfer {
        repo_id: repo.id,
        slug: repo.slug(),
        from_owner: repo.owner_id,
        recipient: world.bob.user_id().expect("bob"),
        created_by: None,
        status: Status::Pending,
        expires_at: world.rig.clock.advance(DAY).plus(DAY),
    };
    let stale = world.rig.store.write(stale, |tx, new| Box::pin(transfers::insert(tx, new))).await.expect("inserted");
    let late = transfer::answer(forge, &world.bob, &stale.to_string(), Answer::Accept).await;
    assert!(matches!(late, Err(LifeError::Offer(Refusal::Moved))), "{late:?}");
    assert_eq!(world.leads(&world.alice, "carol/project").await, Some(repo.id.get()));
    assert_eq!(world.leads(&world.alice, "bob/project").await, None);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_recipient_cannot_accept(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    let id = world.offer(&repo).await;
    suspend::set_suspended(forge, world.bob.user_id().expect("bob"), true).await.expect("suspended");
    // Also with a request that was let in before.
    for bob in [world.bob.clone(), world.rig.caller("bob").await] {
        let refused = transfer::answer(forge, &bob, &id, Answer::Accept).await;
        assert!(matches!(refused, Err(LifeError::Access(Access::Denied(DenyCode::Suspended)))), "{refused:?}");
    }
    let carol = world.public(&world.alice, "other").await;
    let refused = transfer::offer(forge, &world.alice, &carol, "bob").await;
    assert!(matches!(refused, Err(LifeError::UnknownRecipient)), "{refused:?}");
    assert_eq!(world.audited(&repo).await.last().map(String::as_str), Some("repo_transfer_requested"));
    suspend::set_suspended(forge, world.bob.user_id().expect("bob"), false).await.expect("back");
    transfer::answer(forge, &world.bob, &id, Answer::Accept).await.expect("accepted");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn offers_that_make_no_sense_are_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    let offer = async |caller: &Caller, to: &str| transfer::offer(forge, caller, &repo, to).await;
    let itself = offer(&world.alice, "Alice").await;
    assert!(matches!(itself, Err(LifeError::Offer(Refusal::ToSelf))), "{itself:?}");
    for nobody in ["nobody", "", "a/b"] {
        let refused = offer(&world.alice, nobody).await;
        assert!(matches!(refused, Err(LifeError::UnknownRecipient)), "{nobody}: {refused:?}");
    }
    let stranger = offer(&world.bob, "bob").await;
    assert!(matches!(stranger, Err(LifeError::Access(Access::Denied(_)))), "{stranger:?}");
    let by_user = transfer::hand_over(forge, &world.alice, &repo, "bob").await;
    assert!(
        matches!(by_user, Err(LifeError::Access(Access::Denied(_)))),
        "only the operator does not ask: {by_user:?}"
    );
    offer(&world.alice, "bob").await.expect("offered");
    let second = offer(&world.alice, "bob").await;
    assert!(matches!(second, Err(LifeError::Offer(Refusal::Pending))), "{second:?}");

    // The recipient has one of that name: nothing moves, and the offer stays open.
    let taken = world.public(&world.bob, "project").await;
    let refused = transfer::answer(forge, &world.bob, "1", Answer::Accept).await;
    assert!(matches!(refused, Err(LifeError::NameTaken)), "{refused:?}");
    rename::rename(forge, &world.bob, &taken, "mine").await.expect("renamed");
    transfer::answer(forge, &world.bob, "1", Answer::Accept).await.expect("accepted");
    assert_eq!(world.leads(&world.alice, "bob/project").await, Some(repo.id.get()), "not the one that was renamed");
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn deleting_cancels_offers_and_answers_that_come_too_late_write_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    let id = world.offer(&repo).await;
    delete::delete(forge, &world.alice, &repo).await.expect("deleted");
    let trail = world.audited(&repo).await;
    assert_eq!(trail[trail.len() - 2..], ["repo_transfer_canceled", "repo_soft_deleted"]);
    for (who, answer) in [(&world.bob, Answer::Accept), (&world.bob, Answer::Decline), (&world.alice, Answer::Cancel)] {
        let late = transfer::answer(forge, who, &id, answer).await;
        assert!(matches!(late, Err(LifeError::Offer(Refusal::Terminal(Status::Canceled)))), "{late:?}");
    }
    assert_eq!(world.audited(&repo).await, trail, "who comes too late leaves no trace");
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_nobody_answers_expires_with_an_event_for_each_side_and_no_audit_row(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let forge = world.forge();
    let repo = world.public(&world.alice, "project").await;
    let id = world.offer(&repo).await;
    world.rig.clock.advance(7 * DAY);
    let late = transfer::answer(forge, &world.bob, &id, Answer::Accept).await;
    assert!(matches!(late, Err(LifeError::Offer(Refusal::Expired))), "before any sweep: {late:?}");
    assert_eq!(purge::sweep(forge).await.expect("swept").expired, 1);
    assert_eq!(purge::sweep(forge).await.expect("swept").expired, 0);
    assert_eq!(transfer::see(forge, &world.bob, &id).await.expect("seen").transfer.status, Status::Expired);
    assert_eq!(world.events("repo_transfer_expired").await, 1);
    assert_eq!(world.audited(&repo).await.last().map(String::as_str), Some("repo_transfer_requested"));

    // An expired offer is not in the way of the next one, swept or not.
    world.offer(&repo).await;
    world.rig.clock.advance(7 * DAY);
    world.offer(&repo).await;
    assert_eq!(world.events("repo_transfer_expired").await, 2);
}
