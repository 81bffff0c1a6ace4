//! Opens a repository: the only way from an address to a repository that the caller may use.

use crate::{Access, Caller, Fault, Forge};
use abide_core::policy::{self, Action, Decision, DenyCode};
use abide_core::repo::Visibility;
use abide_core::{RepoId, RepoName, UserId, UserName};
use abide_macros::boxed;
use abide_nostr::git::Coordinate;
use abide_nostr::{PublicKey, nip19};
use abide_store::accounts::user_keys;
use abide_store::repos::{self, Repo, Viewer, redirects};
use abide_store::{Conn, StoreError, Tx, nostr};

/// Coordinate of a repository as the client wrote it. No part of it is validated yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepoLocator {
    /// `owner/name`
    Slug {
        /// The part before the slash.
        owner: String,
        /// The part after the slash, without `.git`.
        name: String,
    },
    /// The permanent URL: an id.
    Id(String),
    /// A key and the identifier of its repository.
    Nostr {
        owner: PublicKey,
        /// Any text, decoded.
        identifier: String,
    },
}

/// Coordinate of a repository without its kind: owner key and identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepoCoordinate {
    pub owner: PublicKey,
    pub identifier: String,
}

impl From<&Coordinate> for RepoCoordinate {
    fn from(coordinate: &Coordinate) -> Self {
        Self { owner: coordinate.author, identifier: coordinate.identifier.clone() }
    }
}

impl RepoCoordinate {
    /// The coordinate as the store takes it.
    pub(crate) fn stored(&self) -> ([u8; 32], String) {
        (self.owner.to_bytes(), self.identifier.clone())
    }
}

impl RepoLocator {
    /// Locator of `owner/name`, where the owner may be a key: `npub1…/identifier`.
    pub fn slug(owner: impl Into<String>, name: impl Into<String>) -> Self {
        let (owner, name) = (owner.into(), name.into());
        match nip19::parse_npub(&owner) {
            // No database can hold NUL, so nobody has announced such an identifier. The empty identifier matches
            // nothing.
            Ok(owner) if name.contains('\0') => Self::Nostr { owner, identifier: String::new() },
            Ok(owner) => Self::Nostr { owner, identifier: name },
            Err(_) => Self::Slug { owner, name },
        }
    }
}

/// Finds the repository of a locator and asks the policy. A repository that the caller may not see is reported as not
/// found.
#[boxed]
pub async fn open(forge: &Forge, caller: &Caller, locator: &RepoLocator, action: Action) -> Result<Repo, Access> {
    let viewer = caller.user_id();
    let found = match locator {
        RepoLocator::Slug { owner, name } => match (owner.parse::<UserName>(), name.parse::<RepoName>()) {
            (Ok(owner), Ok(name)) => {
                let reader = self::viewer(caller);
                repos::by_slug(&mut *forge.store().read().await?, &owner, &name, reader).await?
            }
            _ => None,
        },
        RepoLocator::Id(id) => match id.parse::<RepoId>() {
            Ok(id) => repos::by_id(&mut *forge.store().read().await?, id, viewer).await?,
            Err(_) => None,
        },
        RepoLocator::Nostr { owner, identifier } => {
            let mut conn = forge.store().read().await?;
            match nostr::repos::by_coordinate(&mut conn, owner.as_bytes(), identifier, viewer).await? {
                Some(repo) => Some(repo),
                None => by_name(&mut conn, owner, identifier, viewer).await?,
            }
        }
    };
    let repo = judge(caller, found, action)?;
    if let RepoLocator::Slug { owner, name } = locator
        && moved(locator, &repo)
        && let (Ok(owner), Ok(name)) = (owner.parse(), name.parse())
        && let Err(error) = note_use(forge, &owner, &name, &repo).await
    {
        tracing::warn!(%error, repo = repo.id.get(), "cannot record the use of an old name");
    }
    Ok(repo)
}

/// Records, to the hour, that a request used an old name of a repository.
async fn note_use(forge: &Forge, owner: &UserName, name: &RepoName, repo: &Repo) -> Result<(), Fault> {
    let before = forge.clock().now().minus(redirects::GRAIN);
    let stale = redirects::to_note(&mut *forge.store().read().await?, owner, name, repo.id, before).await?;
    let Some(id) = stale else { return Ok(()) };
    let noted: Result<(), StoreError> = forge.store().write(id, |tx, id| Box::pin(redirects::touch(tx, *id))).await;
    Ok(noted?)
}

/// The repository of a key whose identifier no URL can hold, by the name that stands in the URL instead.
async fn by_name(
    conn: &mut Conn,
    owner: &PublicKey,
    text: &str,
    viewer: Option<UserId>,
) -> Result<Option<Repo>, StoreError> {
    let Ok(name) = text.parse::<RepoName>() else { return Ok(None) };
    let found = user_keys::repo_by_name(conn, &nip19::npub(owner), &name, viewer).await?;
    Ok(found.filter(Repo::goes_by_name))
}

/// Whether the repository of a locator has another slug now.
pub fn moved(locator: &RepoLocator, repo: &Repo) -> bool {
    match locator {
        RepoLocator::Slug { owner, name } => !repo.slug().eq_ignore_ascii_case(&format!("{owner}/{name}")),
        RepoLocator::Id(_) | RepoLocator::Nostr { .. } => false,
    }
}

/// Loads a repository for a change, locks it until the unit ends, and asks the policy about the current state.
pub(crate) async fn open_locked(tx: &mut Tx, caller: &Caller, id: RepoId, action: Action) -> Result<Repo, Access> {
    let found = repos::lock(tx, id, caller.user_id()).await?;
    judge(caller, found, action)
}

/// Asks the policy; the caller's role comes with the row. For a token without a repository scope, a private repository
/// does not exist.
pub(crate) fn judge(caller: &Caller, found: Option<Repo>, action: Action) -> Result<Repo, Access> {
    let repo = found.filter(|repo| caller.reaches(repo.visibility)).ok_or(Access::NotFound)?;
    judge_decision(policy::can(&caller.actor, action, &repo.facts(), repo.role))?;
    Ok(repo)
}

/// The caller as lists and counts take it. A caller whose token does not reach private repositories sees only public
/// ones.
pub(crate) fn viewer(caller: &Caller) -> Viewer {
    if !caller.reaches(Visibility::Private) {
        return Viewer { user: None, reads_everything: false };
    }
    let reads_everything = policy::reads_everything(&caller.actor);
    Viewer { user: caller.user_id(), reads_everything }
}

/// Turns the policy's answer into an error: a hidden repository is reported as not found.
pub(crate) fn judge_decision(decision: Decision) -> Result<(), Access> {
    match decision {
        Decision::Allow => Ok(()),
        Decision::Deny { hidden: true, .. } => Err(Access::NotFound),
        Decision::Deny { code, hidden: false } => Err(Access::Denied(code)),
    }
}

/// Whether the caller may perform an action on a repository that was opened already.
pub fn may(caller: &Caller, repo: &Repo, action: Action) -> bool {
    policy::can(&caller.actor, action, &repo.facts(), repo.role).is_allowed()
}

/// Whether only a missing login keeps the caller from an action. Then pages offer the action and ask for the login.
pub fn needs_login(caller: &Caller, repo: &Repo, action: Action) -> bool {
    let decision = policy::can(&caller.actor, action, &repo.facts(), repo.role);
    caller.user_id().is_none() && matches!(decision, Decision::Deny { code: DenyCode::LoginRequired, hidden: false })
}
