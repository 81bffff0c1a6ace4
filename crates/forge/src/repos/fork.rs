//! Forking: a repository that begins as a copy of another. It has its own objects, so it never depends on its source,
//! and it is not visible before it is complete.
//!
//! The copy is built in an area below `incoming/`; the area's name contains the id that was reserved for the fork. The
//! copy moves to its place and only then gets its row. After a crash, the area shows which directory may lack a row,
//! see [`abandon`].

use super::create::{has_name, made_too_many};
use crate::attention::watch;
use crate::blocking::blocking;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::git::{maintain, snapshots};
use crate::open::{judge, open_locked, viewer};
use crate::throttle;
use crate::{Access, Caller, Fault, Forge, Rate, disk};
use abide_core::event::{Payload, RepoForked};
use abide_core::names::InvalidName;
use abide_core::policy::{Action, DenyCode};
use abide_core::repo::Governance;
use abide_core::{InputError, RepoId, RepoName, UserId, failpoint};
use abide_git::copy::Draft;
use abide_git::{GitError, Ref, Snapshot, bare, incoming, maintain::disk_usage};
use abide_macros::boxed;
use abide_store::repos::forks;
use abide_store::repos::redirects;
use abide_store::repos::{self, Content, NewRepo, Page, Repo};
use abide_store::{StoreError, Tx};
use std::collections::HashMap;
use std::time::Duration;

/// Input of a fork.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// As typed; the source's name if not given.
    pub name: Option<String>,
    /// Copy only the default branch and the objects reachable from it.
    pub default_branch_only: bool,
}

/// Result of a fork.
#[derive(Debug, Clone)]
pub struct Forked {
    pub repo: Repo,
    /// The caller had this fork already.
    pub existed: bool,
    /// The name redirected to another repository before; the redirect is inactive now.
    pub replaced: bool,
}

impl Forked {
    /// The result for a fork that existed before.
    fn known(repo: Repo) -> Self {
        Self { repo, existed: true, replaced: false }
    }
}

/// Why the fork was not created.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The caller lacks permission, or the repository does not exist.
    #[error(transparent)]
    Access(#[from] Access),
    /// The name breaks a rule.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The caller has another repository with this name.
    #[error("you already have a repository with this name; choose another name for the fork")]
    NameTaken,
    /// The source has no content.
    #[error("the repository is empty; push to it first")]
    Empty,
    /// The account has no username.
    #[error("choose a user name first; it is part of the repository URL")]
    Nameless,
    /// The account has reached its repository limit.
    #[error("this account owns {0} repositories, the limit (repos.per_user); delete one or ask the operator")]
    TooMany(i64),
    /// The account has reached its rate limit.
    #[error("{}", throttle::wait(*.retry_after))]
    TooOften { retry_after: Duration },
}

impl InputError for ForkError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::InvalidName(_) | Self::NameTaken => Some("name"),
            Self::Access(_) | Self::Empty | Self::Nameless | Self::TooMany(_) | Self::TooOften { .. } => None,
        }
    }
}

impl From<StoreError> for ForkError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unique => Self::NameTaken,
            other => Self::Access(other.into()),
        }
    }
}

impl From<Fault> for ForkError {
    fn from(fault: Fault) -> Self {
        Self::Access(fault.into())
    }
}

impl From<GitError> for ForkError {
    fn from(error: GitError) -> Self {
        Self::Access(Fault::from(error).into())
    }
}

/// Forks a repository for the caller, or returns the caller's existing fork.
///
/// Cancelling this future stops the copy. The steps after the copy run to their end in any case.
#[boxed]
pub async fn fork(forge: &Forge, caller: &Caller, source: &Repo, request: Request) -> Result<Forked, ForkError> {
    judge(caller, Some(source.clone()), Action::ForkCreate)?;
    let owner = caller.user_id().ok_or(Access::Denied(DenyCode::LoginRequired))?;
    let name: RepoName = match &request.name {
        Some(typed) => typed.parse()?,
        None => source.name.clone(),
    };
    if let Some(repo) = existing(forge, source, owner).await? {
        return Ok(Forked::known(repo));
    }
    if repos::name_taken(&mut *forge.store().read().await?, owner, &name).await? {
        return Err(ForkError::NameTaken);
    }
    let refs = wanted(&*snapshots::read(forge, source).await?, source, request.default_branch_only);
    if refs.is_empty() {
        return Err(ForkError::Empty);
    }
    ensure_room(forge, source).await?;

    let reserved: Result<RepoId, StoreError> = forge.store().write((), |tx, ()| Box::pin(repos::reserve_id(tx))).await;
    let id = reserved?;
    failpoint::hit(failpoint::FORK_RESERVED);
    let draft = Draft::create(forge.layout(), &area_key(forge, id), &source.default_branch).await?;
    draft.copy(forge.git(), &forge.layout().repo(source.id), &refs).await?;
    failpoint::hit(failpoint::FORK_BUILT);

    let unit = Unit {
        caller: caller.clone(),
        source: source.id,
        id,
        owner,
        name,
        ref_count: refs.len(),
        limit: forge.settings().repos.per_user,
        rate: forge.settings().repos.created,
    };
    let ended = forge.tasks().spawn(finish(forge.clone(), draft, unit)).await;
    ended.map_err(|error| Fault::Internal(format!("a fork's task ended early: {error}")))?
}

/// The caller's fork of this repository.
async fn existing(forge: &Forge, source: &Repo, owner: UserId) -> Result<Option<Repo>, StoreError> {
    let mut conn = forge.store().read().await?;
    match forks::of_owner(&mut conn, source.id, owner).await? {
        Some(id) => repos::by_id(&mut conn, id, Some(owner)).await,
        None => Ok(None),
    }
}

/// Refs that a fork gets: branches and tags. It gets none of the refs that are kept for the server or for others.
fn wanted(refs: &Snapshot, source: &Repo, default_branch_only: bool) -> Vec<Ref> {
    if default_branch_only {
        return refs.get(source.default_branch.as_str().as_bytes()).cloned().into_iter().collect();
    }
    refs.prefixed(b"refs/heads/").chain(refs.prefixed(b"refs/tags/")).cloned().collect()
}

async fn ensure_room(forge: &Forge, source: &Repo) -> Result<(), Fault> {
    let dir = forge.layout().repo(source.id);
    let bytes = blocking("measuring a repository", move || disk_usage(&dir)).await??;
    disk::ensure_room_for(forge, disk::Writer::Account, bytes)
}

struct Unit {
    caller: Caller,
    source: RepoId,
    id: RepoId,
    owner: UserId,
    name: RepoName,
    ref_count: usize,
    limit: i64,
    rate: Rate,
}

/// Result of one attempt to write the row.
enum Written {
    Made {
        repo: Box<Repo>,
        replaced: bool,
    },
    /// Another request of the same user was faster.
    Existing(Box<Repo>),
}

/// Moves the copy to its place and writes its row; removes the copy if the row is refused.
async fn finish(forge: Forge, draft: Draft, unit: Unit) -> Result<Forked, ForkError> {
    let id = unit.id;
    draft.install(forge.layout(), id).await?;
    failpoint::hit(failpoint::FORK_PLACED);
    let written = forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await;
    let forked = match written {
        Ok(Written::Made { repo, replaced }) => {
            failpoint::hit(failpoint::FORK_COMMITTED);
            Ok(Forked { repo: *repo, existed: false, replaced })
        }
        Ok(Written::Existing(repo)) => Ok(Forked::known(*repo)),
        Err(error) => Err(error),
    };
    // After a database failure it is unknown whether the row was written, so it is looked up.
    if !matches!(&forked, Ok(Forked { existed: false, .. })) {
        remove_unless_known(&forge, id).await?;
    }
    draft.discard().await?;
    forked
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Written, ForkError> {
    // The lock on the source's row makes a second fork by the same user wait for this one.
    let source = open_locked(tx, &unit.caller, unit.source, Action::ForkCreate).await?;
    if let Some(id) = forks::of_owner(tx, source.id, unit.owner).await? {
        let repo = repos::by_id(tx, id, Some(unit.owner)).await?.ok_or(StoreError::Missing)?;
        return Ok(Written::Existing(Box::new(repo)));
    }
    if !has_name(tx, unit.owner).await? {
        return Err(ForkError::Nameless);
    }
    if throttle::owns_too_many(tx, unit.owner, unit.limit).await? {
        return Err(ForkError::TooMany(unit.limit));
    }
    if let Some(retry_after) = made_too_many(tx, unit.owner, unit.rate).await? {
        return Err(ForkError::TooOften { retry_after });
    }
    let new = NewRepo {
        owner_id: unit.owner,
        name: unit.name.clone(),
        description: source.description.clone(),
        // The visibility at this moment: a source that became private in the meantime gives a private fork.
        visibility: source.visibility,
        governance: Governance::Account,
        default_branch: source.default_branch.clone(),
    };
    let content = Content { fork_of: Some(source.id), pushed_at: source.pushed_at };
    repos::insert_filled(tx, unit.id, &new, content).await?;
    let replaced = redirects::take(tx, unit.owner, &unit.name, unit.id, Some(unit.owner).into()).await?.is_some();
    watch::on_ownership(tx, unit.owner, unit.id).await?;
    let repo = repos::by_id(tx, unit.id, Some(unit.owner)).await?.ok_or(StoreError::Missing)?;
    let who = Who::from(&unit.caller);
    let forked = RepoForked { source_id: source.id, source: source.slug(), ref_count: unit.ref_count };
    let payload = Payload::RepoForked(forked);
    audit_repo(tx, &who, AuditAction::RepoForked, &repo, payload.details()).await?;
    emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    maintain::enqueue(tx, repo.id).await?;
    failpoint::hit(failpoint::FORK_BEFORE_COMMIT);
    Ok(Written::Made { repo: Box::new(repo), replaced })
}

/// A page of the forks of a repository that the caller may read, latest first, and their total number.
#[boxed]
pub async fn list(forge: &Forge, caller: &Caller, source: &Repo, page: Page) -> Result<(Vec<Repo>, i64), Fault> {
    Ok(forks::list(&mut *forge.store().read().await?, source.id, viewer(caller), page).await?)
}

/// Number of forks of each repository that the caller may read; repositories without forks are absent.
#[boxed]
pub async fn counts(forge: &Forge, caller: &Caller, sources: &[RepoId]) -> Result<HashMap<RepoId, i64>, Fault> {
    Ok(forks::counts(&mut *forge.store().read().await?, sources, viewer(caller)).await?)
}

/// Separates the node's prefix from the repository id in the name of a fork's area.
const MARK: &str = "fork-";

fn area_key(forge: &Forge, id: RepoId) -> String {
    format!("{}{MARK}{id}", forge.node().incoming_prefix())
}

/// The repository that is built in an area, if the area belongs to a fork.
fn repo_of(key: &str) -> Option<RepoId> {
    key.rsplit_once(MARK)?.1.parse().ok()
}

/// Removes the directory of a fork whose process died before its row was written. Call it for an area that is about to
/// be removed.
pub(crate) async fn abandon(forge: &Forge, key: &str) -> Result<(), Fault> {
    match repo_of(key) {
        Some(id) => remove_unless_known(forge, id).await,
        None => Ok(()),
    }
}

async fn remove_unless_known(forge: &Forge, id: RepoId) -> Result<(), Fault> {
    if repos::by_id(&mut *forge.store().read().await?, id, None).await?.is_none() {
        bare::remove_repo(forge.layout(), id).await?;
    }
    Ok(())
}

/// Whether a fork with this reserved id is being built.
pub(crate) fn under_way(forge: &Forge, id: RepoId) -> Result<bool, Fault> {
    Ok(incoming::list_incoming(forge.layout())?.iter().any(|key| repo_of(key) == Some(id)))
}
