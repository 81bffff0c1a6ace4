//! A repository's life, where time passes and things happen at once.

mod bearers;
mod names;
mod offers;
mod races;
mod removal;
mod seeds;

use crate::rig::{Rig, rig};
use abide_core::policy::Action;
use abide_core::repo::Visibility;
use abide_forge::repos::create::{self, Init};
use abide_forge::repos::open::{self, RepoLocator};
use abide_forge::repos::{Page, Repo, rename, trail, transfer};
use abide_forge::{Access, Caller, Forge, doctor};
use abide_store::events;
use abide_testkit::Engine;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// Alice and Bob.
pub(crate) struct World {
    pub rig: Rig,
    pub alice: Caller,
    pub bob: Caller,
}

pub(crate) async fn world(engine: Engine) -> World {
    of(rig(engine).await).await
}

pub(crate) async fn of(rig: Rig) -> World {
    let alice = rig.user("alice").await;
    let bob = rig.user("bob").await;
    World { rig, alice, bob }
}

impl World {
    pub(crate) fn forge(&self) -> &Forge {
        &self.rig.forge
    }

    /// A repository with a README.
    pub(crate) async fn repo(&self, owner: &Caller, name: &str, visibility: Visibility) -> Repo {
        let request = create::Request {
            name: name.into(),
            description: String::new(),
            visibility,
            default_branch: None,
            init: Some(Init { readme: true, ..Init::default() }),
        };
        create::create(self.forge(), owner, request).await.expect("created").repo
    }

    pub(crate) async fn public(&self, owner: &Caller, name: &str) -> Repo {
        self.repo(owner, name, Visibility::Public).await
    }

    /// Result of resolving a name: an id, or nothing.
    async fn leads(&self, caller: &Caller, slug: &str) -> Option<i64> {
        let (owner, name) = slug.split_once('/').expect("a slug");
        match open::open(self.forge(), caller, &RepoLocator::slug(owner, name), Action::RepoRead).await {
            Ok(repo) => Some(repo.id.get()),
            Err(Access::NotFound) => None,
            Err(other) => panic!("{other}"),
        }
    }

    async fn rename(&self, repo: &Repo, name: &str) -> Repo {
        rename::rename(self.forge(), &self.alice, repo, name).await.expect("renamed").repo
    }

    async fn offer(&self, repo: &Repo) -> String {
        let offer = transfer::offer(self.forge(), &self.alice, repo, "bob").await.expect("offered");
        offer.transfer.id.to_string()
    }

    /// Audit rows of a repository, the oldest first.
    pub(crate) async fn audited(&self, repo: &Repo) -> Vec<String> {
        let operator = Caller::operator();
        let alive = Repo { deleted_at: None, ..repo.clone() };
        let page = trail::page(self.forge(), &operator, &alive, None, 1000).await.expect("readable");
        page.into_iter().rev().map(|row| row.record.action).collect()
    }

    /// How many events of a kind there are, whether or not their repository is.
    pub(crate) async fn events(&self, kind: &str) -> usize {
        abide_forge::sequencer::catch_up(self.forge()).await.expect("numbered");
        let mut conn = self.rig.store.read().await.expect("readable");
        let all = events::after(&mut conn, 0, 10_000).await.expect("readable");
        all.iter().filter(|event| event.kind == kind).count()
    }

    pub(crate) async fn assert_healthy(&self) {
        assert_eq!(doctor::examine(self.forge()).await.expect("examined").findings, []);
    }
}

const FIRST: Page = Page { limit: 100, offset: 0 };
