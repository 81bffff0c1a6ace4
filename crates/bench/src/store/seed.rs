//! Initial rows of a database, and the rows of each unit.

use super::failed;
use crate::Failure;
use abide_core::event::{Body, Payload, Push, PushedRef, RepoThen};
use abide_core::repo::{Governance, Visibility};
use abide_core::{PushId, RepoId, RepoName, UserId, UserName};
use abide_store::accounts::users;
use abide_store::accounts::users::NewUser;
use abide_store::repos::NewRepo;
use abide_store::{Store, StoreError, repos};

/// Enough repositories that writers rarely lock the same row, as on a forge.
const REPOS: usize = 512;

pub(crate) struct Seed {
    pub owner: UserName,
    pub user: UserId,
    pub repos: Vec<(RepoId, RepoName)>,
}

impl Seed {
    /// Fills a fresh database.
    pub(crate) async fn plant(store: &Store) -> Result<Self, Failure> {
        let owner: UserName = "bench".parse().map_err(failed)?;
        let new = NewUser {
            name: owner.clone(),
            email: "bench@example.org".to_owned(),
            password_hash: "none".into(),
            site_admin: false,
        };
        let user: Result<UserId, StoreError> = store.write(new, |tx, new| Box::pin(users::insert(tx, new))).await;
        let user = user.map_err(failed)?;
        let mut planted = Vec::with_capacity(REPOS);
        for number in 0..REPOS {
            let name: RepoName = format!("repo-{number}").parse().map_err(failed)?;
            let new = NewRepo {
                owner_id: user,
                name: name.clone(),
                description: "A repository of the benchmark".to_owned(),
                visibility: Visibility::Public,
                governance: Governance::Account,
                default_branch: "refs/heads/main".parse().map_err(failed)?,
            };
            let id: Result<RepoId, StoreError> = store.write(new, |tx, new| Box::pin(repos::insert(tx, new))).await;
            planted.push((id.map_err(failed)?, name));
        }
        Ok(Self { owner, user, repos: planted })
    }

    /// The repository that one of several workers uses in this turn: each walks the list from its own start.
    pub(crate) fn repo(&self, worker: usize, turn: usize) -> &(RepoId, RepoName) {
        &self.repos[(worker * 37 + turn) % self.repos.len()]
    }

    /// The body of a push event; its JSON stands for the details of the audit row too.
    pub(crate) fn body(&self, repo: &(RepoId, RepoName), turn: usize) -> Body {
        let moved = PushedRef {
            name: "refs/heads/main".into(),
            before: format!("{turn:040x}"),
            after: format!("{:040x}", turn + 1),
            commits: Vec::new(),
        };
        let push = Push { push_id: Some(PushId::new(turn as i64)), ref_count: Some(1), refs: Some(vec![moved]) };
        let slug = format!("{}/{}", self.owner, repo.1);
        let repo = RepoThen { repo_id: Some(repo.0), slug: Some(slug), owner_id: None };
        Body { repo, payload: Payload::Push(push) }
    }
}
