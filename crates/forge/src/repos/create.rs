//! Creating a repository: one transaction, then the empty directory, then an optional first commit.
//!
//! The row is authoritative. If the process dies before the directory is created, the next start creates it; until then
//! the repository reads as empty, which it is. The first commit is an ordinary push.

mod first_commit;
mod templates;

use crate::attention::watch;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::throttle;
use crate::{Caller, Fault, Forge, Rate, disk};
use abide_core::event::{Payload, RepoCreated};
use abide_core::failpoint;
use abide_core::names::InvalidName;
use abide_core::policy::Actor;
use abide_core::refs::InvalidRefName;
use abide_core::repo::{Governance, Visibility};
use abide_core::{InputError, RefName, RepoName, UserId};
use abide_git::{GitError, bare};
use abide_macros::boxed;
use abide_store::accounts::users;
use abide_store::repos::redirects;
use abide_store::repos::{self, NewRepo, Repo};
use abide_store::{StoreError, Tx, throttles};
use first_commit::Plan;
use serde_json::json;
use std::time::Duration;

pub use first_commit::{Init, UnknownChoice};
pub use templates::{Choice, gitignores, licences};

/// Maximum length of a description, in characters.
pub const MAX_DESCRIPTION: usize = 350;

/// Input of a new repository.
#[derive(Debug, Clone)]
pub struct Request {
    pub name: String,
    pub description: String,
    pub visibility: Visibility,
    /// Default branch without `refs/heads/`; `main` if not given.
    pub default_branch: Option<String>,
    /// First commit; without one the repository is empty.
    pub init: Option<Init>,
}

/// Why the repository was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Nobody is logged in.
    #[error("authentication required to create a repository")]
    LoginRequired,
    #[error("this account is suspended and cannot create repositories")]
    Suspended,
    /// The name breaks a rule.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The owner has a repository with this name.
    #[error("you already have a repository with this name")]
    NameTaken,
    /// The description is too long or has control characters.
    #[error("must have at most {MAX_DESCRIPTION} characters and no control characters")]
    Description,
    /// The branch name breaks a rule.
    #[error(transparent)]
    Branch(#[from] InvalidRefName),
    /// The template does not exist.
    #[error(transparent)]
    Template(#[from] UnknownChoice),
    /// The account has reached its repository limit.
    #[error("this account owns {0} repositories, the limit (repos.per_user); delete one or ask the operator")]
    TooMany(i64),
    /// The account has reached its rate limit.
    #[error("{}", throttle::wait(*.retry_after))]
    TooOften { retry_after: Duration },
    /// The account has no username.
    #[error("choose a user name first; it is part of the repository URL")]
    Nameless,
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for CreateError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::InvalidName(_) | Self::NameTaken => Some("name"),
            Self::Description => Some("description"),
            Self::Branch(_) => Some("default_branch"),
            Self::Template(unknown) => unknown.field(),
            Self::LoginRequired
            | Self::Suspended
            | Self::TooMany(_)
            | Self::TooOften { .. }
            | Self::Nameless
            | Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for CreateError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unique => Self::NameTaken,
            other => Self::Fault(other.into()),
        }
    }
}

impl From<GitError> for CreateError {
    fn from(error: GitError) -> Self {
        Self::Fault(error.into())
    }
}

/// A new repository.
#[derive(Debug, Clone)]
pub struct Created {
    pub repo: Repo,
    /// The name redirected to another repository before. The redirect is inactive while this repository has the name.
    pub replaced: bool,
}

/// Creates a repository for the caller.
#[boxed]
pub async fn create(forge: &Forge, caller: &Caller, request: Request) -> Result<Created, CreateError> {
    let owner = match caller.actor {
        Actor::Anonymous | Actor::Operator => return Err(CreateError::LoginRequired),
        Actor::User { suspended: true, .. } => return Err(CreateError::Suspended),
        Actor::User { id, .. } => id,
    };
    disk::ensure_room(forge, disk::Writer::of(caller))?;
    let plan = Plan::of(request.init.clone())?;
    let new = check(owner, request)?;
    let unit = Unit {
        new,
        who: Who::from(caller),
        limit: forge.settings().repos.per_user,
        rate: forge.settings().repos.created,
    };
    let Created { repo, replaced } = forge.store().write(unit, |tx, unit| Box::pin(insert(tx, unit))).await?;
    failpoint::hit(failpoint::CREATE_COMMITTED);
    bare::init_bare(forge.layout(), repo.id, &repo.default_branch).await?;
    failpoint::hit(failpoint::CREATE_DIRECTORY_MADE);
    let Some(plan) = plan else { return Ok(Created { repo, replaced }) };
    first_commit::push(forge, caller, &repo, &plan).await?;
    let pushed = repos::by_id(&mut *forge.store().read().await?, repo.id, Some(owner)).await?;
    Ok(Created { repo: pushed.unwrap_or(repo), replaced })
}

fn check(owner_id: UserId, request: Request) -> Result<NewRepo, CreateError> {
    let name: RepoName = request.name.parse()?;
    let default_branch = RefName::branch(request.default_branch.as_deref().unwrap_or("main"))?;
    let description = check_description(&request.description).ok_or(CreateError::Description)?;
    Ok(NewRepo {
        owner_id,
        name,
        description,
        visibility: request.visibility,
        governance: Governance::Account,
        default_branch,
    })
}

/// The description as it is stored; `None` if it breaks a rule.
pub(super) fn check_description(typed: &str) -> Option<String> {
    let text = typed.trim();
    (text.chars().count() <= MAX_DESCRIPTION && !text.chars().any(char::is_control)).then(|| text.to_owned())
}

/// Whether an account has a username, which repository URLs need. Under a key's npub there are only repositories that
/// the key announced.
pub(super) async fn has_name(tx: &mut Tx, owner: UserId) -> Result<bool, StoreError> {
    Ok(users::by_id(tx, owner).await?.is_some_and(|user| user.name.is_some()))
}

struct Unit {
    new: NewRepo,
    who: Who,
    limit: i64,
    rate: Rate,
}

async fn insert(tx: &mut Tx, unit: &Unit) -> Result<Created, CreateError> {
    let owner = unit.new.owner_id;
    if !has_name(tx, owner).await? {
        return Err(CreateError::Nameless);
    }
    if throttle::owns_too_many(tx, owner, unit.limit).await? {
        return Err(CreateError::TooMany(unit.limit));
    }
    if let Some(retry_after) = made_too_many(tx, owner, unit.rate).await? {
        return Err(CreateError::TooOften { retry_after });
    }
    let id = repos::insert(tx, &unit.new).await?;
    let replaced = redirects::take(tx, owner, &unit.new.name, id, Some(owner).into()).await?.is_some();
    watch::on_ownership(tx, owner, id).await?;
    let repo = repos::by_id(tx, id, Some(owner)).await?.ok_or(StoreError::Missing)?;
    let meta = json!({ "slug": repo.slug(), "visibility": repo.visibility.as_str() });
    audit_repo(tx, &unit.who, AuditAction::RepoCreated, &repo, meta).await?;
    let payload = Payload::RepoCreated(RepoCreated { default_branch: repo.default_branch.to_string() });
    emit(tx, &unit.who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    failpoint::hit(failpoint::CREATE_BEFORE_COMMIT);
    Ok(Created { repo, replaced })
}

/// Counts a new repository of an account; returns how long to wait if the rate limit is reached.
pub(super) async fn made_too_many(tx: &mut Tx, owner: UserId, rate: Rate) -> Result<Option<Duration>, StoreError> {
    throttles::hit(tx, throttle::limit("repo", rate), &format!("user:{owner}")).await
}

/// Creates the directories that are missing after a crash. Runs at start; only empty repositories can lack a directory.
#[boxed]
pub async fn heal_directories(forge: &Forge) -> Result<u64, Fault> {
    const PAGE: i64 = 500;
    let mut healed = 0;
    let mut after = abide_core::RepoId::new(0);
    loop {
        let page = repos::empty_page(&mut *forge.store().read().await?, after, PAGE).await?;
        for repo in &page {
            after = repo.id;
            if !forge.layout().repo(repo.id).exists() {
                bare::init_bare(forge.layout(), repo.id, &repo.default_branch).await?;
                healed += 1;
            }
        }
        if page.len() < PAGE as usize {
            return Ok(healed);
        }
    }
}
