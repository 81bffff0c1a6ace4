//! Whatever happens, in whatever order: the counters equal the lists, and the lists hold what their viewer may read.

use super::*;
use abide_core::WatchLevel;
use abide_core::policy::Action;
use abide_core::repo::{Role, Visibility};
use abide_forge::accounts::suspend;
use abide_forge::attention::{star, watch};
use abide_forge::repos::open::{self, RepoLocator};
use abide_forge::repos::{collaborators, delete, marks, rename, restore, transfer};
use abide_forge::{Access, Caller};
use abide_store::attention::{stars, watches};
use rstest::rstest;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const PEOPLE: [&str; 4] = ["alice", "bob", "carol", "dave"];
const STEPS: usize = 60;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// The expected state.
#[derive(Default)]
struct Model {
    stars: BTreeSet<(usize, RepoId)>,
    watches: BTreeMap<(usize, RepoId), WatchLevel>,
    suspended: BTreeSet<usize>,
}

impl Model {
    fn counted<'a>(&self, who: impl Iterator<Item = &'a (usize, RepoId)>, id: RepoId) -> i64 {
        who.filter(|(person, repo)| *repo == id && !self.suspended.contains(person)).count() as i64
    }
}

#[rstest]
#[case::sqlite(Engine::Sqlite, 11)]
#[case::sqlite(Engine::Sqlite, 4_242)]
#[case::postgres(Engine::Postgres, 4_242)]
#[case::postgres(Engine::Postgres, 987_654_321)]
#[tokio::test(flavor = "multi_thread")]
async fn counters_equal_the_lists(#[case] engine: Engine, #[case] seed: u64) {
    let world = unlimited(engine).await;
    for name in &PEOPLE[2..] {
        world.rig.user(name).await;
    }
    let mut ids = Vec::new();
    for (owner, name) in [(&world.alice, "one"), (&world.alice, "two"), (&world.bob, "three")] {
        ids.push(world.public(owner, name).await.id);
    }
    let (mut dice, mut model) = (Dice(seed), Model::default());
    // Who makes a repository watches it.
    model.watches = [(0, ids[0]), (0, ids[1]), (1, ids[2])].map(|made| (made, WatchLevel::All)).into();
    for step in 0..STEPS {
        world.rig.clock.advance(Duration::from_secs(1));
        let did = act(&world, &mut dice, &mut model, &ids, step).await;
        check(&world, &model, &ids, &format!("seed {seed}, step {step}: {did}")).await;
    }
    assert!(!model.stars.is_empty() && !model.watches.is_empty(), "the sequence did nothing worth looking at");
    world.assert_healthy().await;
}

/// Does one thing that someone may or may not be allowed to, and notes what should have come of it.
async fn act(world: &World, dice: &mut Dice, model: &mut Model, ids: &[RepoId], step: usize) -> String {
    let (forge, person) = (world.forge(), dice.roll(PEOPLE.len()));
    let (id, caller) = (ids[dice.roll(ids.len())], world.rig.caller(PEOPLE[person]).await);
    let repo = world.seen_by(id, caller.user_id()).await;
    let owner = world.rig.caller(repo.owner_name.as_ref().expect("named").as_str()).await;
    let may = |action| open::may(&caller, &repo, action);
    let other = world.account(PEOPLE[dice.roll(PEOPLE.len())]).await;
    let what = dice.roll(14);
    let reported = format!("{} does {what} to {}", PEOPLE[person], repo.slug());
    match what {
        0..=2 => {
            let done = star::star(forge, &caller, &repo).await;
            assert_eq!(done.is_ok(), may(Action::StarCreate), "{reported}: {done:?}");
            if let Ok(changed) = done {
                assert_eq!(changed, model.stars.insert((person, id)), "{reported}");
            }
        }
        3 => {
            if let Ok(changed) = star::unstar(forge, &caller, &repo).await {
                assert_eq!(changed, model.stars.remove(&(person, id)), "{reported}");
            }
        }
        4..=6 => {
            let level = WatchLevel::ALL[what - 4];
            let done = watch::set(forge, &caller, &repo, level).await;
            assert_eq!(done.is_ok(), may(Action::WatchSet), "{reported}: {done:?}");
            if let Ok(changed) = done {
                assert_eq!(changed, model.watches.insert((person, id), level) != Some(level), "{reported}");
            }
        }
        7 => {
            if let Ok(changed) = watch::clear(forge, &caller, &repo).await {
                assert_eq!(changed, model.watches.remove(&(person, id)).is_some(), "{reported}");
            }
        }
        8 => {
            let to = if repo.visibility == Visibility::Public { Visibility::Private } else { Visibility::Public };
            let _ = marks::set_visibility(forge, &owner, &repo, to).await;
        }
        9 => {
            let suspended = model.suspended.insert(person) || !model.suspended.remove(&person);
            let user = world.account(PEOPLE[person]).await;
            suspend::set_suspended(forge, user.id, suspended).await.expect("the operator may");
        }
        10 => match repo.deleted_at {
            None => drop(delete::delete(forge, &owner, &repo).await),
            Some(_) => drop(restore::restore(forge, &owner, &id.to_string(), None).await),
        },
        11 => {
            let fresh = collaborators::role(forge, &repo, other.id).await.expect("readable").is_none();
            let added = collaborators::set(forge, &owner, &repo, &other, Role::Read).await;
            let place = PEOPLE.iter().position(|name| other.name.as_ref().is_some_and(|n| n.as_str() == *name));
            if added.is_ok() && fresh {
                model.watches.entry((place.expect("one of them"), id)).or_insert(WatchLevel::All);
            }
        }
        12 => drop(collaborators::remove(forge, &owner, &repo, &other).await),
        _ => match dice.roll(2) {
            0 => drop(rename::rename(forge, &Caller::operator(), &repo, &format!("name-{step}")).await),
            _ => {
                let to = other.name.as_ref().expect("named");
                if transfer::hand_over(forge, &Caller::operator(), &repo, to.as_str()).await.is_ok() {
                    let place = PEOPLE.iter().position(|name| *name == to.as_str()).expect("one of them");
                    model.watches.entry((place, id)).or_insert(WatchLevel::All);
                }
            }
        },
    }
    reported
}

/// Compares everything with what it should be.
async fn check(world: &World, model: &Model, ids: &[RepoId], reported: &str) {
    for &id in ids {
        let repo = world.now(id).await;
        let mut conn = world.rig.store.read().await.expect("readable");
        let starring = stars::of_repo(&mut conn, id, FIRST.into()).await.expect("readable").len() as i64;
        let watching = watches::of_repo(&mut conn, id, FIRST.into()).await.expect("readable").len() as i64;
        assert_eq!((repo.star_count, repo.watcher_count), (starring, watching), "{reported}");
        let watchers = model.watches.iter().filter(|(_, level)| level.watches()).map(|(who, _)| who);
        let expected = (model.counted(model.stars.iter(), id), model.counted(watchers, id));
        assert_eq!((starring, watching), expected, "{reported}");
        assert_eq!(stars::count_of_repo(&mut conn, id).await.expect("readable"), starring, "{reported}");
        assert_eq!(watches::count_of_repo(&mut conn, id).await.expect("readable"), watching, "{reported}");
    }
    let mut viewers = vec![Caller::anonymous(None)];
    for name in PEOPLE {
        viewers.push(world.rig.caller(name).await);
    }
    for viewer in &viewers {
        let mut readable = BTreeSet::new();
        for &id in ids {
            match open::open(world.forge(), viewer, &RepoLocator::Id(id.to_string()), Action::RepoRead).await {
                Ok(_) => drop(readable.insert(id)),
                Err(Access::NotFound) => {}
                Err(other) => panic!("{reported}: {other}"),
            }
        }
        for (place, name) in PEOPLE.iter().enumerate() {
            let user = world.account(name).await.id;
            let (list, total) = star::of_user(world.forge(), viewer, user, FIRST).await.expect("readable");
            let listed: BTreeSet<_> = list.iter().map(|kept| kept.repo.id).collect();
            let mine = model.stars.iter().filter(|(person, _)| *person == place).map(|(_, id)| *id);
            let expected: BTreeSet<_> = mine.filter(|id| readable.contains(id)).collect();
            assert_eq!((&listed, total), (&expected, expected.len() as i64), "{reported}: {name} to {viewer:?}");
        }
    }
}
