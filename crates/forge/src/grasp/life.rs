//! Effects of deleting and restoring a repository on the relay: events of a deleted repository are not served, events
//! of a restored one are served again.

use super::context::{GraspContext, Stage};
use super::promote::free_name;
use super::spread;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::{Fault, Forge, GraspSettings};
use abide_core::event::{NameChange, Payload, RepoSoftDeleted};
use abide_core::lifecycle::{self, Change};
use abide_core::repo::Governance;
use abide_core::{RepoId, RepoName, failpoint};
use abide_git::bare;
use abide_nostr::git::Identifier;
use abide_nostr::{PublicKey, RelayLimits, kinds};
use abide_store::nostr::events::deleted;
use abide_store::repos::{self, Repo, purges, redirects};
use abide_store::{StoreError, Tx, nostr};
use serde_json::json;
use std::time::Duration;

/// States of one identifier that are examined.
const AT_MOST: i64 = 2_000;

/// Reason why signed events delete a repository, without an action of its owner on the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The owner's key deleted the announcement.
    Deleted,
    /// A newer announcement no longer lists this server.
    Withdrawn,
}

/// Stops serving the announcement of a repository, and the states that govern no other repository here. Call it in the
/// transaction that deletes the repository, before the deletion.
pub(crate) async fn hide(tx: &mut Tx, settings: &GraspSettings, repo: &Repo) -> Result<(), Fault> {
    let Some((owner, identifier)) = coordinate(tx, repo).await? else { return Ok(()) };
    let context = GraspContext::load(settings, tx, &identifier, owner).await?;
    let maintainers = context.maintainers(owner);
    let speaks_elsewhere = |author: PublicKey| {
        let mut others = context.ruled_by(author).filter(|known| known.owner() != owner);
        others.any(|known| matches!(known.stage, Stage::Served(_)))
    };
    for said in &context.stored {
        let author = said.event.pubkey;
        if maintainers.contains(&author) && !speaks_elsewhere(author) {
            nostr::events::set_hidden(tx, said.event.id.as_bytes(), true).await?;
        }
    }
    if let Some(kept) = nostr::events::in_slot(tx, kinds::ANNOUNCEMENT, owner.as_bytes(), &identifier).await? {
        nostr::events::set_hidden(tx, &kept.id, true).await?;
    }
    Ok(())
}

/// Serves the announcement of a repository and its states again.
pub(crate) async fn show(tx: &mut Tx, settings: &GraspSettings, repo: &Repo) -> Result<(), Fault> {
    let Some((owner, identifier)) = coordinate(tx, repo).await? else { return Ok(()) };
    if let Some(kept) = nostr::events::in_slot(tx, kinds::ANNOUNCEMENT, owner.as_bytes(), &identifier).await? {
        nostr::events::set_hidden(tx, &kept.id, false).await?;
    }
    let maintainers = GraspContext::load(settings, tx, &identifier, owner).await?.maintainers(owner);
    for (id, author) in nostr::events::hidden_of_slot(tx, kinds::STATE, &identifier, AT_MOST).await? {
        if maintainers.contains(&PublicKey::from_byte_array(author)) {
            nostr::events::set_hidden(tx, &id, false).await?;
        }
    }
    Ok(spread::enqueue_for(tx, repo.id).await?)
}

/// Whether the owner's key deleted a repository. Then only a newer announcement restores it.
pub(crate) async fn is_deleted_by_key(tx: &mut Tx, repo: &Repo) -> Result<bool, StoreError> {
    let Some((owner, identifier)) = coordinate(tx, repo).await? else { return Ok(false) };
    let target = format!("a:{}:{}:{identifier}", kinds::ANNOUNCEMENT, owner.to_hex());
    let Some(at) = deleted::at(tx, owner.as_bytes(), &target).await? else { return Ok(false) };
    let kept = nostr::events::in_slot(tx, kinds::ANNOUNCEMENT, owner.as_bytes(), &identifier).await?;
    Ok(kept.is_none_or(|kept| kept.created_at <= at))
}

/// Free name for a repository governed by signed events that returns while its own name is taken. A name clash never
/// prevents the restore.
pub(crate) async fn other_name(tx: &mut Tx, repo: &Repo) -> Result<Option<RepoName>, StoreError> {
    let Some((_, identifier)) = coordinate(tx, repo).await? else { return Ok(None) };
    let Ok(identifier) = Identifier::new(&identifier, &RelayLimits::default()) else { return Ok(None) };
    match repos::name_taken(tx, repo.owner_id, &repo.name).await? {
        true => free_name(tx, repo.owner_id, &identifier).await.map(Some),
        false => Ok(None),
    }
}

/// Removes the announcement and the states of a repository that is purged. Recorded deletions stay.
pub(crate) async fn forget(tx: &mut Tx, settings: &GraspSettings, repo: &Repo) -> Result<(), Fault> {
    let Some((owner, identifier)) = coordinate(tx, repo).await? else { return Ok(()) };
    let context = GraspContext::load(settings, tx, &identifier, owner).await?;
    if let Some(kept) = nostr::events::in_slot(tx, kinds::ANNOUNCEMENT, owner.as_bytes(), &identifier).await? {
        nostr::events::remove(tx, &kept.id).await?;
    }
    // A hidden state whose author governs no repository here is of no use. States that govern another repository were
    // not hidden.
    for (id, author) in nostr::events::hidden_of_slot(tx, kinds::STATE, &identifier, AT_MOST).await? {
        if context.ruled_by(PublicKey::from_byte_array(author)).next().is_none() {
            nostr::events::remove(tx, &id).await?;
        }
    }
    Ok(())
}

async fn coordinate(tx: &mut Tx, repo: &Repo) -> Result<Option<(PublicKey, String)>, StoreError> {
    if repo.governance != Governance::Nostr {
        return Ok(None);
    }
    let found = nostr::repos::coordinate(tx, repo.id).await?;
    Ok(found.map(|(owner, identifier)| (PublicKey::from_byte_array(owner), identifier)))
}

/// Deletes a served repository because a signed event says so, with the usual grace period.
pub(super) async fn soft_delete(
    tx: &mut Tx,
    settings: &GraspSettings,
    who: &Who,
    repo: &Repo,
    grace: Duration,
    fate: Fate,
) -> Result<(), Fault> {
    let until = tx.now().plus(grace);
    let Ok(Change::To(state)) = lifecycle::transition(repo.state(), lifecycle::Action::SoftDelete, tx.now()) else {
        return Ok(());
    };
    hide(tx, settings, repo).await?;
    repos::set_marks(tx, repo.id, &state).await?;
    let by = match fate {
        Fate::Deleted => "deletion request",
        Fate::Withdrawn => "newer announcement",
    };
    audit_repo(tx, who, AuditAction::RepoSoftDeleted, repo, json!({ "slug": repo.slug(), "by": by })).await?;
    let payload = Payload::RepoSoftDeleted(RepoSoftDeleted { restore_until: Some(until) });
    emit(tx, who, Subject::Repo(repo), repo.visibility.into(), payload).await?;
    Ok(())
}

/// Restores a deleted repository under a newer announcement, under another name if its own is taken. This works after
/// the grace period too: no data is gone while the row exists, and the coordinate would be unusable otherwise.
pub(super) async fn restore(tx: &mut Tx, settings: &GraspSettings, who: &Who, repo: &Repo) -> Result<(), Fault> {
    let action = lifecycle::Action::Restore { grace: Duration::MAX };
    let Ok(Change::To(state)) = lifecycle::transition(repo.state(), action, tx.now()) else {
        return Err(Fault::Internal("a repository that can be restored cannot be restored".into()));
    };
    let mut restored = repo.clone();
    if let Some(name) = other_name(tx, repo).await? {
        repos::rename(tx, repo.id, &name).await?;
        restored.name = name;
    }
    repos::set_marks(tx, repo.id, &state).await?;
    restored.deleted_at = None;
    redirects::take(tx, repo.owner_id, &restored.name, repo.id, Some(repo.owner_id).into()).await?;
    if let Some(left_at) = repo.deleted_at.filter(|_| restored.name != repo.name) {
        redirects::leave(tx, repo.owner_id, &repo.name, repo.id, left_at).await?;
    }
    show(tx, settings, &restored).await?;
    let names = NameChange { old_name: repo.name.to_string(), new_name: restored.name.to_string() };
    let payload = Payload::RepoRestored(names);
    audit_repo(tx, who, AuditAction::RepoRestored, &restored, payload.details()).await?;
    emit(tx, who, Subject::Repo(&restored), restored.visibility.into(), payload).await?;
    Ok(())
}

/// Removes the directory of a repository that left purgatory without git data. The purge row stays until this is done,
/// so that the sweep finishes the removal after a crash.
pub(super) async fn clear_directory(forge: &Forge, repo: RepoId) -> Result<(), Fault> {
    bare::remove_repo(forge.layout(), repo).await?;
    failpoint::hit(failpoint::PURGE_DIRECTORY_REMOVED);
    let forgotten: Result<(), StoreError> =
        forge.store().write(repo, |tx, repo| Box::pin(purges::remove(tx, *repo))).await;
    Ok(forgotten?)
}
