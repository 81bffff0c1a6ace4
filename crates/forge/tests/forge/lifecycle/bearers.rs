//! Resolution of names, against a model that remembers everything and searches all of it.

use super::*;
use crate::rig::rig_with;
use abide_forge::Rate;
use abide_forge::repos::{delete, marks, purge, redirects, restore};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use rstest::rstest;

const OWNERS: [&str; 2] = ["alice", "bob"];
const NAMES: [&str; 3] = ["one", "two", "three"];
const SEQUENCES: usize = 12;
const STEPS: usize = 40;

/// A step of the model; numbers are taken modulo the number of objects.
#[derive(Debug, Clone, Copy)]
enum Step {
    Create { owner: usize, name: usize, private: bool },
    Rename { repo: usize, name: usize },
    Transfer { repo: usize },
    Flip { repo: usize },
    Delete { repo: usize },
    Restore { repo: usize, name: Option<usize> },
    Purge { repo: usize },
    Release { repo: usize, place: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let repo = || 0..8_usize;
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => (0..OWNERS.len(), name(), any::<bool>())
            .prop_map(|(owner, name, private)| Step::Create { owner, name, private }),
        4 => (repo(), name()).prop_map(|(repo, name)| Step::Rename { repo, name }),
        2 => repo().prop_map(|repo| Step::Transfer { repo }),
        1 => repo().prop_map(|repo| Step::Flip { repo }),
        3 => repo().prop_map(|repo| Step::Delete { repo }),
        3 => (repo(), prop::option::of(name())).prop_map(|(repo, name)| Step::Restore { repo, name }),
        1 => repo().prop_map(|repo| Step::Purge { repo }),
        1 => (repo(), 0..4_usize).prop_map(|(repo, place)| Step::Release { repo, place }),
    ]
}

#[derive(Debug, Clone)]
struct Kept {
    repo: Repo,
    owner: usize,
    name: usize,
    private: bool,
    deleted_at: Option<usize>,
}

/// Every name that was ever left: by which repository, and when.
#[derive(Debug, Clone, Copy)]
struct Left {
    owner: usize,
    name: usize,
    repo: i64,
    at: usize,
}

#[derive(Debug, Default)]
struct Model {
    repos: Vec<Kept>,
    left: Vec<Left>,
}

impl Model {
    fn live(&self, owner: usize, name: usize) -> Option<&Kept> {
        self.repos.iter().find(|it| it.owner == owner && it.name == name && it.deleted_at.is_none())
    }

    fn leads(&self, viewer: Option<usize>, owner: usize, name: usize) -> Option<i64> {
        let reads = |it: &Kept| !it.private || viewer == Some(it.owner);
        if let Some(bearer) = self.live(owner, name) {
            return reads(bearer).then(|| bearer.repo.id.get());
        }
        let mut left: Vec<_> = self.left.iter().filter(|left| left.owner == owner && left.name == name).collect();
        left.sort_by_key(|left| std::cmp::Reverse(left.at));
        let live = |id: i64| self.repos.iter().find(|it| it.repo.id.get() == id && it.deleted_at.is_none());
        left.into_iter().find_map(|left| live(left.repo).filter(|it| reads(it)).map(|it| it.repo.id.get()))
    }

    fn leave(&mut self, owner: usize, name: usize, repo: i64, at: usize) {
        self.left.retain(|left| (left.owner, left.name, left.repo) != (owner, name, repo));
        self.left.push(Left { owner, name, repo, at });
    }

    fn take(&mut self, owner: usize, name: usize, repo: i64) {
        self.left.retain(|left| (left.owner, left.name, left.repo) != (owner, name, repo));
    }
}

struct Run<'a> {
    world: &'a World,
    model: Model,
    now: usize,
}

impl Run<'_> {
    fn caller(&self, owner: usize) -> &Caller {
        [&self.world.alice, &self.world.bob][owner]
    }

    fn nth(&self, number: usize, deleted: bool) -> Option<usize> {
        let fit: Vec<_> = (0..self.model.repos.len())
            .filter(|&place| self.model.repos[place].deleted_at.is_some() == deleted)
            .collect();
        (!fit.is_empty()).then(|| fit[number % fit.len()])
    }

    async fn take(&mut self, step: Step) {
        let (forge, operator) = (self.world.forge(), Caller::operator());
        match step {
            Step::Create { owner, name, private } => {
                let led = self.model.leads(Some(owner), owner, name).is_some();
                let request = create::Request {
                    name: NAMES[name].into(),
                    description: String::new(),
                    visibility: if private { Visibility::Private } else { Visibility::Public },
                    default_branch: None,
                    init: None,
                };
                let created = create::create(forge, self.caller(owner), request).await;
                assert_eq!(created.is_err(), self.model.live(owner, name).is_some());
                if let Ok(created) = created {
                    assert_eq!(created.replaced, led, "who takes a name hears where it led");
                    self.model.repos.push(Kept { repo: created.repo, owner, name, private, deleted_at: None });
                }
            }
            Step::Rename { repo, name } => {
                let Some(place) = self.nth(repo, false) else { return };
                let kept = self.model.repos[place].clone();
                let id = kept.repo.id.get();
                if kept.name == name {
                    return;
                }
                let renamed = rename::rename(forge, &operator, &kept.repo, NAMES[name]).await;
                assert_eq!(renamed.is_err(), self.model.live(kept.owner, name).is_some());
                if let Ok(renamed) = renamed {
                    self.model.take(kept.owner, name, id);
                    self.model.leave(kept.owner, kept.name, id, self.now);
                    (self.model.repos[place].repo, self.model.repos[place].name) = (renamed.repo, name);
                }
            }
            Step::Transfer { repo } => {
                let Some(place) = self.nth(repo, false) else { return };
                let kept = self.model.repos[place].clone();
                let (id, to) = (kept.repo.id.get(), 1 - kept.owner);
                let moved = transfer::hand_over(forge, &operator, &kept.repo, OWNERS[to]).await;
                assert_eq!(moved.is_err(), self.model.live(to, kept.name).is_some());
                if let Ok(moved) = moved {
                    self.model.take(to, kept.name, id);
                    self.model.leave(kept.owner, kept.name, id, self.now);
                    (self.model.repos[place].repo, self.model.repos[place].owner) = (moved, to);
                }
            }
            Step::Flip { repo } => {
                let Some(place) = self.nth(repo, false) else { return };
                let kept = &self.model.repos[place];
                let to = if kept.private { Visibility::Public } else { Visibility::Private };
                let flipped = marks::set_visibility(forge, self.caller(kept.owner), &kept.repo, to).await;
                let private = !kept.private;
                (self.model.repos[place].repo, self.model.repos[place].private) = (flipped.expect("flipped"), private);
            }
            Step::Delete { repo } => {
                let Some(place) = self.nth(repo, false) else { return };
                let kept = &self.model.repos[place];
                delete::delete(forge, self.caller(kept.owner), &kept.repo).await.expect("deleted");
                self.model.repos[place].deleted_at = Some(self.now);
            }
            Step::Restore { repo, name } => {
                let Some(place) = self.nth(repo, true) else { return };
                let kept = self.model.repos[place].clone();
                let (id, to) = (kept.repo.id.get(), name.unwrap_or(kept.name));
                let typed = name.map(|name| NAMES[name]);
                let restored = restore::restore(forge, self.caller(kept.owner), &id.to_string(), typed).await;
                assert_eq!(restored.is_err(), self.model.live(kept.owner, to).is_some());
                if let Ok(restored) = restored {
                    self.model.take(kept.owner, to, id);
                    if to != kept.name {
                        self.model.leave(kept.owner, kept.name, id, kept.deleted_at.expect("it was deleted"));
                    }
                    self.model.repos[place] = Kept { repo: restored, name: to, deleted_at: None, ..kept };
                }
            }
            Step::Purge { repo } => {
                let Some(place) = self.nth(repo, true) else { return };
                let kept = self.model.repos.remove(place);
                purge::purge(forge, &operator, &kept.repo).await.expect("gone");
                self.model.left.retain(|left| left.repo != kept.repo.id.get());
            }
            Step::Release { repo, place } => {
                let Some(at) = self.nth(repo, false) else { return };
                let kept = &self.model.repos[at];
                let (caller, id) = (self.caller(kept.owner), kept.repo.id.get());
                let listed = redirects::list(forge, caller, &kept.repo).await.expect("readable");
                assert_eq!(listed.len(), self.model.left.iter().filter(|left| left.repo == id).count());
                let Some(old) = listed.get(place) else { return };
                redirects::release(forge, caller, &kept.repo, &old.id.to_string()).await.expect("released");
                let owner = OWNERS.iter().position(|it| old.owner.as_ref().is_some_and(|name| name.as_str() == *it));
                let name = NAMES.iter().position(|it| *it == old.name.as_str()).expect("one of ours");
                self.model.take(owner.expect("one of ours"), name, id);
            }
        }
    }

    async fn check(&self, reported: &[Step]) {
        let anonymous = Caller::anonymous(None);
        for (viewer, caller) in [(None, &anonymous), (Some(0), &self.world.alice), (Some(1), &self.world.bob)] {
            for (owner, owner_name) in OWNERS.iter().enumerate() {
                for (name, repo_name) in NAMES.iter().enumerate() {
                    let slug = format!("{owner_name}/{repo_name}");
                    let expected = self.model.leads(viewer, owner, name);
                    assert_eq!(
                        self.world.leads(caller, &slug).await,
                        expected,
                        "{slug} to {viewer:?} after {reported:?}"
                    );
                }
            }
        }
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_name_leads_where_the_naive_model_says(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let seeded = Config { rng_seed: RngSeed::Fixed(20_260_101), ..Config::default() };
    let mut runner = TestRunner::new(seeded);
    for _ in 0..SEQUENCES {
        let steps = prop::collection::vec(step(), STEPS).new_tree(&mut runner).expect("steps").current();
        let free = rig_with(engine, |settings| {
            settings.repos.created = Rate { times: 10_000, ..settings.repos.created };
        });
        let world = of(free.await).await;
        let mut run = Run { world: &world, model: Model::default(), now: 0 };
        for (index, &step) in steps.iter().enumerate() {
            world.rig.clock.advance(Duration::from_secs(1));
            run.now = index + 1;
            run.take(step).await;
            run.check(&steps[..=index]).await;
        }
        world.assert_healthy().await;
    }
}
