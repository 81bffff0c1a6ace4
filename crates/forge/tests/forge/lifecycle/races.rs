//! Two things at once, from two nodes on one database (PostgreSQL) or two tasks (SQLite): exactly one wins, the other
//! hears a named reason, and nothing is half done. Each in a loop, because a race is not lost at the first try.

use super::*;
use crate::rig::node;
use abide_core::lifecycle::Refusal as Life;
use abide_core::transfer::{Answer, Refusal, Status};
use abide_forge::repos::{LifeError, delete, purge, restore};
use rstest::rstest;
use std::future::Future;

/// So often each race is run.
const ROUNDS: usize = 25;

/// The forge of a second node where there can be one.
async fn second(world: &World, engine: Engine) -> Forge {
    match engine {
        Engine::Postgres => node(&world.rig.database, &world.rig.clock, "second").await.0,
        Engine::Sqlite => world.forge().clone(),
    }
}

/// Runs two things at once; every other round the second one starts first.
async fn at_once<A, B>(
    round: usize,
    first: impl Future<Output = A> + Send + 'static,
    second: impl Future<Output = B> + Send + 'static,
) -> (A, B)
where
    A: Send + 'static,
    B: Send + 'static,
{
    let (first, second) = match round % 2 {
        0 => {
            let first = tokio::spawn(first);
            (first, tokio::spawn(second))
        }
        _ => {
            let second = tokio::spawn(second);
            (tokio::spawn(first), second)
        }
    };
    (first.await.expect("no panic"), second.await.expect("no panic"))
}

/// Fails if an error is the machine's fault.
fn named<T>(result: &Result<T, LifeError>) {
    if let Err(LifeError::Access(Access::Fault(fault))) = result {
        panic!("a race is nobody's fault: {fault}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_two_renames_to_one_name_one_wins(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let other = second(&world, engine).await;
    for round in 0..ROUNDS {
        let one = world.public(&world.alice, &format!("one-{round}")).await;
        let two = world.public(&world.alice, &format!("two-{round}")).await;
        let to = format!("best-{round}");
        let rename = |forge: Forge, repo: Repo| {
            let (alice, to) = (world.alice.clone(), to.clone());
            async move { rename::rename(&forge, &alice, &repo, &to).await }
        };
        let (a, b) =
            at_once(round, rename(world.forge().clone(), one.clone()), rename(other.clone(), two.clone())).await;
        named(&a);
        named(&b);
        assert_eq!(usize::from(a.is_ok()) + usize::from(b.is_ok()), 1, "{a:?} {b:?}");
        let lost = if a.is_ok() { b } else { a };
        assert!(matches!(lost, Err(LifeError::NameTaken)), "{lost:?}");
    }
    assert_eq!(world.events("repo_renamed").await, ROUNDS);
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn two_renames_of_one_repository_both_happen_one_after_the_other(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let other = second(&world, engine).await;
    for round in 0..ROUNDS {
        let repo = world.public(&world.alice, &format!("start-{round}")).await;
        let rename = |forge: Forge, to: String| {
            let (alice, repo) = (world.alice.clone(), repo.clone());
            async move { rename::rename(&forge, &alice, &repo, &to).await }
        };
        let (a, b) = (format!("a-{round}"), format!("b-{round}"));
        let both = at_once(round, rename(world.forge().clone(), a.clone()), rename(other.clone(), b.clone())).await;
        assert!(both.0.is_ok() && both.1.is_ok(), "{both:?}");
        for name in [format!("start-{round}"), a, b] {
            assert_eq!(world.leads(&world.bob, &format!("alice/{name}")).await, Some(repo.id.get()), "{name}");
        }
    }
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_rename_beside_an_accept_moves_the_repository_once_and_no_link_is_lost(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let other = second(&world, engine).await;
    for round in 0..ROUNDS {
        let repo = world.public(&world.alice, &format!("old-{round}")).await;
        let offer = world.offer(&repo).await;
        let (alice, bob, to) = (world.alice.clone(), world.bob.clone(), format!("new-{round}"));
        let (forge, name) = (world.forge().clone(), to.clone());
        let copy = repo.clone();
        let renaming = async move { rename::rename(&forge, &alice, &copy, &name).await };
        let forge = other.clone();
        let accepting = async move { transfer::answer(&forge, &bob, &offer, Answer::Accept).await };
        let (renamed, accepted) = at_once(round, renaming, accepting).await;
        named(&renamed);
        let accepted = accepted.expect("nothing is in its way");
        match renamed {
            Ok(_) => assert_eq!(accepted.repo.slug(), format!("bob/{to}")),
            // Too late: it was bob's by then.
            Err(LifeError::Access(Access::Denied(_))) => assert_eq!(accepted.repo.slug(), format!("bob/old-{round}")),
            other => panic!("{other:?}"),
        }
        assert_eq!(world.leads(&world.alice, &format!("alice/old-{round}")).await, Some(repo.id.get()));
    }
    assert_eq!(world.events("repo_transfer_accepted").await, ROUNDS);
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_to_one_offer_one_counts(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Answer::Accept, Answer::Cancel, Answer::Decline)] against: Answer,
) {
    let world = world(engine).await;
    let other = second(&world, engine).await;
    let mut accepted = 0;
    for round in 0..ROUNDS {
        let repo = world.public(&world.alice, &format!("project-{round}")).await;
        let offer = world.offer(&repo).await;
        let answer = |forge: Forge, caller: &Caller, answer: Answer| {
            let (caller, offer) = (caller.clone(), offer.clone());
            async move { transfer::answer(&forge, &caller, &offer, answer).await }
        };
        let rival = if against == Answer::Cancel { &world.alice } else { &world.bob };
        let accepting = answer(world.forge().clone(), &world.bob, Answer::Accept);
        let (a, b) = at_once(round, accepting, answer(other.clone(), rival, against)).await;
        named(&a);
        named(&b);
        assert_eq!(usize::from(a.is_ok()) + usize::from(b.is_ok()), 1, "{a:?} {b:?}");
        let (won, lost) = if a.is_ok() { (a, b) } else { (b, a) };
        let status = won.expect("the winner").transfer.status;
        assert!(matches!(lost, Err(LifeError::Offer(Refusal::Terminal(ended))) if ended == status), "{lost:?}");
        accepted += usize::from(status == Status::Accepted);
        let owner = if status == Status::Accepted { "bob" } else { "alice" };
        assert_eq!(world.leads(&world.alice, &format!("{owner}/project-{round}")).await, Some(repo.id.get()));
        let trail = world.audited(&repo).await;
        assert_eq!(trail.len(), 4, "created, pushed, offered and one answer: {trail:?}");
    }
    assert_eq!(world.events("repo_transfer_accepted").await, accepted);
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_accept_beside_a_delete_gives_it_away_or_removes_it_and_never_both(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let other = second(&world, engine).await;
    for round in 0..ROUNDS {
        let repo = world.public(&world.alice, &format!("project-{round}")).await;
        let offer = world.offer(&repo).await;
        let (alice, bob) = (world.alice.clone(), world.bob.clone());
        let (forge, copy) = (world.forge().clone(), repo.clone());
        let deleting = async move { delete::delete(&forge, &alice, &copy).await };
        let forge = other.clone();
        let accepting = async move { transfer::answer(&forge, &bob, &offer, Answer::Accept).await };
        let (deleted, accepted) = at_once(round, deleting, accepting).await;
        named(&deleted);
        named(&accepted);
        match (deleted, accepted) {
            (Ok(_), Err(LifeError::Offer(Refusal::Terminal(Status::Canceled)))) => {}
            (Err(LifeError::Access(Access::Denied(_))), Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_a_restore_and_a_creation_of_the_same_name_one_wins(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let world = world(engine).await;
    let other = second(&world, engine).await;
    for round in 0..ROUNDS {
        let name = format!("project-{round}");
        let repo = world.public(&world.alice, &name).await;
        delete::delete(world.forge(), &world.alice, &repo).await.expect("deleted");
        let (forge, alice, id) = (world.forge().clone(), world.alice.clone(), repo.id.to_string());
        let restoring = async move { restore::restore(&forge, &alice, &id, None).await };
        let request = create::Request {
            name: name.clone(),
            description: String::new(),
            visibility: Visibility::Public,
            default_branch: None,
            init: None,
        };
        let (forge, alice) = (other.clone(), world.alice.clone());
        let creating = async move { create::create(&forge, &alice, request).await };
        let (restored, created) = at_once(round, restoring, creating).await;
        named(&restored);
        let holder = world.leads(&world.bob, &format!("alice/{name}")).await;
        match (restored, created) {
            (Ok(back), Err(create::CreateError::NameTaken)) => assert_eq!(holder, Some(back.id.get())),
            (Err(LifeError::NameTaken), Ok(new)) => assert_eq!(holder, Some(new.repo.id.get())),
            other => panic!("{other:?}"),
        }
    }
    world.assert_healthy().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn of_a_sweep_and_a_restore_one_wins(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let world = world(engine).await;
    let other = second(&world, engine).await;
    let (mut removed, mut restored) = (0, 0);
    for round in 0..ROUNDS {
        let repo = world.public(&world.alice, &format!("project-{round}")).await;
        delete::delete(world.forge(), &world.alice, &repo).await.expect("deleted");
        // The operator removes it at once, so that both are possible at the same moment.
        let (forge, copy) = (world.forge().clone(), repo.clone());
        let removing = async move { purge::purge(&forge, &Caller::operator(), &copy).await };
        let (forge, alice, id) = (other.clone(), world.alice.clone(), repo.id.to_string());
        let restoring = async move { restore::restore(&forge, &alice, &id, None).await };
        let (gone, back) = at_once(round, removing, restoring).await;
        named(&gone);
        named(&back);
        match (gone, back) {
            (Ok(()), Err(LifeError::Access(Access::NotFound))) => removed += 1,
            (Err(LifeError::Refused(Life::NotDeleted)), Ok(_)) => restored += 1,
            other => panic!("{other:?}"),
        }
        let there = world.rig.dir(repo.id).exists();
        assert_eq!(there, world.leads(&world.bob, &repo.slug()).await.is_some(), "database and disk agree");
    }
    assert_eq!(removed + restored, ROUNDS);
    assert_eq!(world.events("repo_hard_deleted").await, removed);
    assert_eq!(world.events("repo_restored").await, restored);
    world.assert_healthy().await;
}
