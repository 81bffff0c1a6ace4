//! Feeds against a reader that goes through the whole log and asks the rule about each event.

use crate::support::{World, repo, run, sql, unit, user};
use abide_core::attention::event_visible;
use abide_core::event::{Body, Kind, Publicity, RepoThen, SubjectKind};
use abide_core::feed::{Period, is_in_feeds};
use abide_core::policy::{Actor, RepoFacts};
use abide_core::repo::{Role, Visibility};
use abide_core::{RepoId, UserId, WatchLevel};
use abide_store::accounts::users;
use abide_store::attention::feeds::{self, Feed, Run};
use abide_store::attention::{follows, stars, trending, watches};
use abide_store::events::{self, NewEvent};
use abide_store::leases;
use abide_store::repos::collaborators;
use abide_store::repos::{self, Viewer};
use abide_store::{Sql, Store, StoreError, sequencer};
use abide_testkit::{Engine, sample_payload};
use rstest::rstest;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const HIDE: Sql = sql("UPDATE repos SET visibility = $2 WHERE id = $1");
const DELETE: Sql = sql("UPDATE repos SET deleted_at = $2 WHERE id = $1");

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

struct Happened {
    seq: i64,
    kind: Kind,
    actor: Option<UserId>,
    repo: Option<RepoId>,
    about_user: Option<UserId>,
    public: bool,
}

async fn number(store: &Store) {
    let numbered: Result<(), StoreError> = unit!(store, (), |tx, _| {
        let lease = leases::take(tx, sequencer::LEASE, "test", Duration::from_secs(60)).await?.unwrap();
        sequencer::step(tx, &lease, &[1; 32], 10_000).await?;
        leases::release(tx, &lease).await
    })
    .await;
    numbered.unwrap();
}

/// An event of a kind. Its body comes from a sample: feeds go by the columns.
fn event(
    kind: Kind,
    actor: Option<UserId>,
    repo: Option<RepoId>,
    subject: (SubjectKind, i64),
    public: bool,
) -> NewEvent {
    NewEvent {
        actor,
        repo,
        subject_kind: subject.0,
        subject_id: subject.1,
        publicity: if public { Publicity::Public } else { Publicity::Private },
        body: Body { repo: RepoThen::default(), payload: sample_payload(kind) },
    }
}

async fn emit(store: &Store, event: NewEvent) {
    let written: Result<(), StoreError> =
        store.write(event, |tx, event| Box::pin(async move { events::append(tx, event).await })).await;
    written.unwrap();
}

/// The seqs of a feed, read run by run.
async fn all_of(store: &Store, feed: Feed, viewer: Viewer) -> Vec<i64> {
    let (mut seen, mut before) = (Vec::new(), i64::MAX);
    loop {
        let mut conn = store.read().await.unwrap();
        let Run { items, end } = feeds::before(&mut conn, feed, viewer, before).await.unwrap();
        seen.extend(items.iter().map(|item| item.seq));
        match end {
            Some((seq, true)) => before = seq,
            _ => return seen,
        }
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_feed_shows_each_viewer_what_the_rule_lets_them_know(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(1, 2)] seed: u64,
) {
    let World { store, .. } = &World::new(engine).await;
    let dice = &mut Dice(seed);
    let mut people = Vec::new();
    for name in ["ann", "bob", "cem", "dot", "eve"] {
        people.push(user(store, name).await);
    }
    let mut repo_ids = Vec::new();
    for index in 0..8_usize {
        repo_ids.push((repo(store, people[index % 4], &format!("r{index}")).await, people[index % 4]));
    }
    let mut roles = BTreeSet::new();
    let (mut watching, mut following) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..12 {
        let (who, (repo_id, owner)) = (people[dice.below(5)], repo_ids[dice.below(8)]);
        let (watcher, watched) = (people[dice.below(5)], repo_ids[dice.below(8)].0);
        let level = WatchLevel::ALL[dice.below(3)];
        let (follower, followed) = (people[dice.below(5)], people[dice.below(5)]);
        let done: Result<(), StoreError> = unit!(store, (), |tx, _| {
            if who != owner {
                collaborators::set(tx, repo_id, who, Role::Read).await?;
            }
            watches::set(tx, watcher, watched, level).await?;
            if follower != followed {
                follows::add(tx, follower, followed).await?;
            }
            Ok(())
        })
        .await;
        done.unwrap();
        roles.extend((who != owner).then_some((repo_id, who)));
        following.extend((follower != followed).then_some((follower, followed)));
        if level == WatchLevel::Ignore {
            watching.remove(&(watcher, watched));
        } else {
            watching.insert((watcher, watched));
        }
    }

    let in_feeds = Kind::ALL.iter().copied().filter(|kind| is_in_feeds(*kind));
    let kinds: Vec<Kind> = in_feeds.chain([Kind::Unstar, Kind::RepoEdited]).collect();
    let mut log = Vec::new();
    for seq in 1..=300 {
        let (repo_id, _) = repo_ids[dice.below(8)];
        let actor = (dice.below(12) > 0).then(|| people[dice.below(5)]);
        let kind = kinds[dice.below(kinds.len())];
        let (public, about) = (dice.below(3) > 0, people[dice.below(5)]);
        let follow = kind == Kind::Follow;
        let happened = Happened {
            seq,
            kind,
            actor,
            repo: (!follow).then_some(repo_id),
            about_user: follow.then_some(about),
            public,
        };
        let subject = if follow { (SubjectKind::User, about.get()) } else { (SubjectKind::Repo, repo_id.get()) };
        emit(store, event(kind, actor, happened.repo, subject, public)).await;
        log.push(happened);
    }
    number(store).await;

    // Then the world changes: some are hidden, one is deleted, someone is suspended.
    let mut facts = BTreeMap::new();
    for (index, (repo_id, owner)) in repo_ids.iter().enumerate() {
        let (hidden, deleted) = (index % 3 == 1, index == 6);
        if hidden {
            run(store, HIDE, vec![repo_id.get().into(), "private".into()]).await.unwrap();
        }
        if deleted {
            run(store, DELETE, vec![repo_id.get().into(), 1_i64.into()]).await.unwrap();
        }
        let visibility = if hidden { Visibility::Private } else { Visibility::Public };
        facts.insert(*repo_id, RepoFacts { owner: *owner, visibility, archived: false, deleted });
    }
    let suspended = people[3];
    let done: Result<(), StoreError> = unit!(store, (), |tx, _| users::set_suspended(tx, suspended, true).await).await;
    done.unwrap();

    let viewers = people[..3].iter().map(|id| (Some(*id), false)).chain([(None, false), (Some(people[4]), true)]);
    for (viewer, admin) in viewers {
        let actor = viewer.map_or(Actor::Anonymous, |id| Actor::User { id, site_admin: admin, suspended: false });
        let may_know = |event: &Happened| {
            let silent = event.actor == Some(suspended) || event.about_user == Some(suspended);
            let reported = is_in_feeds(event.kind);
            let visible = match event.repo {
                Some(repo_id) => {
                    let role = viewer.is_some_and(|who| roles.contains(&(repo_id, who))).then_some(Role::Read);
                    event_visible(&actor, event.public, &facts[&repo_id], role)
                }
                None => event.public,
            };
            reported && !silent && visible
        };
        let expected = |wanted: &dyn Fn(&Happened) -> bool| -> Vec<i64> {
            log.iter().rev().filter(|event| wanted(event) && may_know(event)).map(|event| event.seq).collect()
        };
        let looks = Viewer { user: viewer, reads_everything: admin };
        let public = all_of(store, Feed::Public, looks).await;
        assert_eq!(public, expected(&|event| event.public), "public to {viewer:?}");
        for (repo_id, _) in &repo_ids {
            let of_repo = all_of(store, Feed::Repo(*repo_id), looks).await;
            assert_eq!(of_repo, expected(&|event| event.repo == Some(*repo_id)), "{repo_id} to {viewer:?}");
        }
        for who in &people {
            let by = all_of(store, Feed::Actor(*who), looks).await;
            assert_eq!(by, expected(&|event| event.actor == Some(*who)), "by {who} to {viewer:?}");
            let home = all_of(store, Feed::Home(*who), looks).await;
            let kept = |event: &Happened| {
                let watched = |repo_id| viewer == Some(*who) && watching.contains(&(*who, repo_id));
                let here = event.repo.is_some_and(|repo_id| facts[&repo_id].owner == *who || watched(repo_id));
                let inside = event.repo.is_some_and(|repo_id| {
                    Some(facts[&repo_id].owner) == viewer
                        || admin
                        || viewer.is_some_and(|me| roles.contains(&(repo_id, me)))
                });
                let theirs = event.actor.is_some_and(|actor| actor == *who || following.contains(&(*who, actor)));
                let own = event.actor.is_some() && event.actor == viewer;
                (here && (event.public || inside)) || (theirs && (event.public || own))
            };
            assert_eq!(home, expected(&kept), "home of {who} to {viewer:?}");
        }
        // The other way round, for those who follow the log as it grows.
        let (mut after, mut seen) = (0, Vec::new());
        loop {
            let mut conn = store.read().await.unwrap();
            let Run { items, end } = feeds::after(&mut conn, looks, after).await.unwrap();
            seen.extend(items.iter().map(|item| item.seq));
            match end {
                Some((seq, true)) => after = seq,
                _ => break,
            }
        }
        seen.reverse();
        assert_eq!(seen, expected(&|_| true), "after, to {viewer:?}");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn home_leaves_nothing_out_where_more_sources_are_kept_than_a_run_has_places(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(1, 2)] seed: u64,
) {
    let World { store, .. } = &World::new(engine).await;
    let dice = &mut Dice(seed);
    let reader = user(store, "reader").await;
    let (mut people, mut repo_ids) = (Vec::new(), Vec::new());
    for index in 0..130 {
        people.push(user(store, &format!("p{index}")).await);
        repo_ids.push(repo(store, people[index], "r").await);
    }
    // Every other one is kept. The first are busy and the last are quiet, some for the whole log.
    let mut log = Vec::new();
    for _ in 0..700 {
        let mut busy = || dice.below(130) * dice.below(130) / 130;
        let (actor, repo_id) = (busy(), busy());
        log.push((actor, repo_id, dice.below(4) > 0));
    }
    let written: Result<(), StoreError> =
        unit!(store, (log.clone(), people.clone(), repo_ids.clone()), |tx, (log, people, repo_ids)| {
            for index in (0..130).step_by(2) {
                watches::set(tx, reader, repo_ids[index], WatchLevel::All).await?;
                follows::add(tx, reader, people[index]).await?;
            }
            for (actor, repo_id, public) in log {
                let (actor, repo_id) = (people[*actor], repo_ids[*repo_id]);
                let subject = (SubjectKind::Repo, repo_id.get());
                events::append(tx, &event(Kind::Star, Some(actor), Some(repo_id), subject, *public)).await?;
            }
            Ok(())
        })
        .await;
    written.unwrap();
    number(store).await;
    let kept = |(_, (actor, repo_id, public)): &(i64, (usize, usize, bool))| {
        *public && (actor.is_multiple_of(2) || repo_id.is_multiple_of(2))
    };
    let mut expected: Vec<i64> = (1..).zip(log).filter(kept).map(|(seq, _)| seq).collect();
    expected.reverse();
    let viewer = Viewer { user: Some(reader), reads_everything: false };
    assert_eq!(all_of(store, Feed::Home(reader), viewer).await, expected);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_is_popular_goes_by_distinct_people_and_what_they_did_on_balance(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let World { store, clock, .. } = &World::new(engine).await;
    let owner = user(store, "owner").await;
    let old: Vec<_> = [user(store, "old1").await, user(store, "old2").await, user(store, "old3").await].into();
    clock.advance(Duration::from_secs(30 * 86_400));
    let mut fresh = Vec::new();
    for index in 0..9 {
        fresh.push(user(store, &format!("new{index}")).await);
    }
    let names = ["liked", "pushed-up", "undone", "own", "hidden", "gone"];
    let mut repo_ids = Vec::new();
    for name in names {
        repo_ids.push(repo(store, owner, name).await);
    }
    let [liked, pushed_up, undone, own, hidden, gone] = repo_ids[..] else { unreachable!() };
    let act = async |who: UserId, kind: Kind, repo_id: RepoId| {
        emit(store, event(kind, Some(who), Some(repo_id), (SubjectKind::Repo, repo_id.get()), true)).await;
    };
    for who in &old[..2] {
        act(*who, Kind::Star, liked).await;
        act(*who, Kind::RepoForked, liked).await;
    }
    for who in &fresh {
        act(*who, Kind::Star, pushed_up).await;
    }
    for _ in 0..20 {
        act(old[0], Kind::Star, undone).await;
        act(old[0], Kind::Unstar, undone).await;
    }
    act(old[1], Kind::Star, undone).await;
    act(old[2], Kind::Unstar, undone).await;
    act(owner, Kind::Star, own).await;
    for who in &old {
        act(*who, Kind::Star, hidden).await;
        act(*who, Kind::Star, gone).await;
    }
    number(store).await;
    let count = async |period: Period| {
        let since = abide_core::Clock::now(clock).minus(period.length());
        let counted: Result<(), StoreError> =
            unit!(store, (), |tx, _| trending::count(tx, period, since, 100).await).await;
        counted.unwrap();
    };
    let list = async |period: Period, viewer: Option<UserId>| -> Vec<RepoId> {
        let viewer = Viewer { user: viewer, reads_everything: false };
        let mut conn = store.read().await.unwrap();
        trending::list(&mut conn, period, viewer, 10).await.unwrap().iter().map(|repo| repo.id).collect()
    };
    count(Period::Day).await;
    assert_eq!(list(Period::Day, None).await, [gone, hidden, liked, pushed_up]);
    // A repository that is hidden or deleted after it was counted is not shown, not even to its owner.
    run(store, HIDE, vec![hidden.get().into(), "private".into()]).await.unwrap();
    run(store, DELETE, vec![gone.get().into(), 1_i64.into()]).await.unwrap();
    for viewer in [None, Some(owner)] {
        assert_eq!(list(Period::Day, viewer).await, [liked, pushed_up]);
    }
    clock.advance(Duration::from_secs(2 * 86_400));
    count(Period::Day).await;
    count(Period::Week).await;
    assert!(list(Period::Day, None).await.is_empty(), "that was not today");
    assert_eq!(list(Period::Week, None).await, [liked, pushed_up]);
    let mut conn = store.read().await.unwrap();
    assert!(repos::by_id(&mut conn, liked, None).await.unwrap().is_some());
    assert_eq!(stars::count_of_repo(&mut conn, liked).await.unwrap(), 0, "only the log was written here");
}
