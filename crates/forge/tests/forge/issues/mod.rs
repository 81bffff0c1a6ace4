//! Issues: permissions, events and recipients.

mod involvement;
mod keywords;
mod references;
mod searching;
mod talking;

use crate::rig::{Rig, rig_with};
use abide_core::UserId;
use abide_core::repo::{Role, Visibility};
use abide_forge::issues::{Issue, IssueError, create, show};
use abide_forge::repos::create::{self as new_repo, Init};
use abide_forge::repos::{Page, Repo, collaborators};
use abide_forge::{Access, Caller, Forge, Settings, accounts, sequencer};
use abide_store::events::{self, Numbered};
use abide_store::issues;
use abide_testkit::Engine;

const FIRST: Page = Page { limit: 100, offset: 0 };

/// Alice owns, bob looks after issues, carol only reads.
struct World {
    rig: Rig,
    alice: Caller,
    bob: Caller,
    carol: Caller,
    repo: Repo,
}

async fn world(engine: Engine) -> World {
    world_with(engine, |_| {}).await
}

async fn world_with(engine: Engine, change: impl FnOnce(&mut Settings)) -> World {
    let rig = rig_with(engine, change).await;
    let (alice, bob, carol) = (rig.user("alice").await, rig.user("bob").await, rig.user("carol").await);
    let repo = make(&rig.forge, &alice, "tool", Visibility::Public).await;
    share(&rig.forge, &alice, &repo, "bob", Role::Triage).await;
    World { rig, alice, bob, carol, repo }
}

async fn make(forge: &Forge, owner: &Caller, name: &str, visibility: Visibility) -> Repo {
    let request = new_repo::Request {
        name: name.into(),
        description: String::new(),
        visibility,
        default_branch: None,
        init: Some(Init { readme: true, ..Init::default() }),
    };
    new_repo::create(forge, owner, request).await.expect("created").repo
}

async fn share(forge: &Forge, owner: &Caller, repo: &Repo, name: &str, role: Role) {
    let name = name.parse().expect("a name");
    let user = accounts::find(forge, &name).await.expect("readable").expect("the account exists");
    collaborators::set(forge, owner, repo, &user, role).await.expect("shared");
}

impl World {
    fn forge(&self) -> &Forge {
        &self.rig.forge
    }

    async fn open(&self, caller: &Caller, title: &str, body: &str) -> Issue {
        self.open_in(caller, &self.repo, title, body).await
    }

    async fn open_in(&self, caller: &Caller, repo: &Repo, title: &str, body: &str) -> Issue {
        let request = create::Request { title: title.into(), body: body.into(), ..create::Request::default() };
        create::create(self.forge(), caller, repo, request).await.expect("opened")
    }

    async fn read(&self, issue: &Issue) -> Issue {
        show::show(self.forge(), &self.repo, &issue.number.to_string()).await.expect("there")
    }

    /// Timeline of an issue for a reader.
    async fn timeline(&self, caller: &Caller, issue: &Issue) -> Vec<String> {
        let (entries, total) = show::timeline(self.forge(), caller, issue, FIRST).await.expect("readable");
        assert_eq!(entries.len() as i64, total);
        entries.into_iter().map(|entry| entry.kind).collect()
    }

    async fn events(&self) -> Vec<Numbered> {
        sequencer::catch_up(self.forge()).await.expect("numbered");
        let mut conn = self.rig.store.read().await.expect("readable");
        events::after(&mut conn, 0, 10_000).await.expect("readable")
    }

    async fn kinds(&self) -> Vec<String> {
        let about = |event: &Numbered| event.kind.starts_with("issue_") || event.kind.starts_with("label_");
        self.events().await.into_iter().filter(about).map(|event| event.kind).collect()
    }

    /// Who hears of an issue, by name, with why.
    async fn heard_by(&self, issue: &Issue) -> Vec<(UserId, String)> {
        let mut conn = self.rig.store.read().await.expect("readable");
        issues::people::subscribers(&mut conn, issue.id, UserId::new(0), 100).await.expect("readable")
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, IssueError>) {
    assert!(matches!(result, Err(IssueError::Access(Access::Denied(_)))), "{result:?}");
}

#[track_caller]
fn hidden<T: std::fmt::Debug>(result: Result<T, IssueError>) {
    assert!(matches!(result, Err(IssueError::Access(Access::NotFound))), "{result:?}");
}
