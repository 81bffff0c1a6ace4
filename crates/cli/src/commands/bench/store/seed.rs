//! What a database holds before the clock runs, and what each unit writes.

use super::failed;
use crate::failure::Failure;
use abide_core::repo::{Governance, Visibility};
use abide_core::{RepoId, RepoName, UserId, UserName};
use abide_store::repos::NewRepo;
use abide_store::users::NewUser;
use abide_store::{Store, StoreError, repos, users};
use serde_json::{Value, json};

/// Enough that writers rarely meet at one row, as on a forge.
const REPOS: usize = 512;

pub(super) struct Seed {
    pub owner: UserName,
    pub user: UserId,
    pub repos: Vec<(RepoId, RepoName)>,
}

impl Seed {
    /// Fills a fresh database.
    pub(super) async fn plant(store: &Store) -> Result<Self, Failure> {
        let owner: UserName = "bench".parse().map_err(failed)?;
        let new = NewUser {
            name: owner.clone(),
            email: "bench@example.org".to_owned(),
            password_hash: "none".to_owned(),
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

    /// The repository that one of several workers turns to in this turn: each walks the list from its own place.
    pub(super) fn repo(&self, worker: usize, turn: usize) -> &(RepoId, RepoName) {
        &self.repos[(worker * 37 + turn) % self.repos.len()]
    }

    /// What the event of a push tells, and near enough its audit row too.
    pub(super) fn payload(&self, repo: &(RepoId, RepoName), turn: usize) -> Value {
        let (before, after) = (format!("{turn:040x}"), format!("{:040x}", turn + 1));
        json!({
            "repo_id": repo.0.get(), "slug": format!("{}/{}", self.owner, repo.1), "push_id": turn, "ref_count": 1,
            "refs": [{ "name": "refs/heads/main", "before": before, "after": after }],
        })
    }
}
