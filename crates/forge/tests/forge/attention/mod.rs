//! Stars, watches and follows: permissions, events, rate limits, and that the counters are always right.

mod always;
mod follows;
mod stars;
mod watches;

use crate::lifecycle::{World, of};
use crate::rig::rig_with;
use abide_core::{RepoId, UserId};
use abide_forge::accounts;
use abide_forge::attention::Person;
use abide_forge::repos::{Page, Repo};
use abide_store::repos;
use abide_testkit::Engine;

const FIRST: Page = Page { limit: 100, offset: 0 };

/// Alice and Bob, who may do as much as they like.
async fn unlimited(engine: Engine) -> World {
    let rig = rig_with(engine, |settings| {
        let attention = &mut settings.attention;
        for rate in [&mut attention.stars, &mut attention.watches, &mut attention.follows] {
            rate.times = i64::MAX;
        }
    });
    of(rig.await).await
}

impl World {
    /// A repository as its row is now, deleted or not.
    async fn now(&self, id: RepoId) -> Repo {
        self.seen_by(id, None).await
    }

    /// The same with the role that someone has in it.
    async fn seen_by(&self, id: RepoId, user: Option<UserId>) -> Repo {
        let mut conn = self.rig.store.read().await.expect("readable");
        repos::by_id(&mut conn, id, user).await.expect("readable").expect("there")
    }

    /// Audit rows of an account's actions, the oldest first, and the rows' repositories.
    async fn deeds(&self, name: &str) -> Vec<String> {
        let user = self.account(name).await;
        let filter = abide_store::audit::Filter { actor: Some(user.id), ..Default::default() };
        let mut conn = self.rig.store.read().await.expect("readable");
        let rows = abide_store::audit::page(&mut conn, &filter, i64::MAX, 1000).await.expect("readable");
        rows.into_iter().rev().map(|row| row.record.action).collect()
    }

    async fn account(&self, name: &str) -> accounts::User {
        let name = name.parse().expect("a name");
        accounts::find(self.forge(), &name).await.expect("readable").expect("the account exists")
    }
}

fn names(people: &[Person]) -> Vec<&str> {
    people.iter().filter_map(|person| person.name.as_ref()).map(|name| name.as_str()).collect()
}
