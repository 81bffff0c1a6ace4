//! The part of a push that must run to its end: from the lease to the finished row.

use super::authority::{Authority, Judging, NotBegun, Plan, SignedPushes};
use super::details::{self, Brought};
use super::verdicts::Verdicts;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::error::REVOKED;
use crate::git::{maintain, reconcile, snapshots};
use crate::jobs::{self, Kind};
use crate::{Access, Caller, Fault, Forge, lease};
use abide_core::event::{self, NoDetails, Payload};
use abide_core::{RefName, RefUpdate, RepoId, UserId, failpoint, push};
use abide_git::reftx::{self, ConflictKind};
use abide_git::{Connected, RefTxError};
use abide_nostr::grasp::align::Plan as Alignment;
use abide_store::leases::{self, Lease};
use abide_store::repos::pushes::{self, Intent, Outcome, Push};
use abide_store::repos::{self, RefState, Repo};
use abide_store::{StoreError, Tx};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// A push whose objects are here and complete.
pub(crate) struct Work {
    /// The repository as it was opened. The transaction that writes the intent locks its row and decides again.
    pub repo: Repo,
    pub caller: Caller,
    pub transport: &'static str,
    pub key: String,
    /// Objects outside the repository, proved complete for it. `None`: the push sets no ref, or only to existing
    /// objects.
    pub objects: Option<Connected>,
    pub verdicts: Verdicts,
    /// Decides about the push.
    pub authority: Arc<dyn Authority>,
    /// Bytes reserved under the push's key.
    pub reserved: Option<u64>,
}

impl Work {
    /// Releases the reservation for git data that is not stored.
    async fn give_back(&self, forge: &Forge) {
        if self.reserved.is_some() {
            self.authority.give_back(forge, &self.key).await;
        }
    }
}

/// Outcome of a push.
pub(crate) struct Committed {
    pub verdicts: Verdicts,
    /// Whether anything was written.
    pub moved: bool,
}

/// Takes the lease, writes the intent, moves the refs, writes the end. Returns the verdict on each ref.
pub(crate) async fn commit(forge: Forge, mut work: Work) -> Result<Committed, Fault> {
    let (push, repo, lease) = match begin(&forge, &mut work).await {
        Ok(Some(begun)) => begun,
        not_begun => {
            work.give_back(&forge).await;
            return not_begun.map(|_| Committed { verdicts: work.verdicts, moved: false });
        }
    };
    // Counted before it is charged: briefly twice, but never not at all.
    work.authority.begun(&forge, work.reserved.unwrap_or(0));
    let ended = lease::keep(&forge, &lease, apply(&forge, &mut work, &push, &repo, &lease)).await;
    let (ended, settled) = match ended {
        Err(fault) => match put_right(&forge, &push, &lease, &fault).await {
            // The refs have moved and it is written down: that is what the client hears.
            Some(Outcome::Done) => (Ok(true), true),
            ended => (Err(fault), ended.is_some()),
        },
        Ok(moved) => (Ok(moved), !moved),
    };
    if settled {
        work.give_back(&forge).await;
    }
    forge.lease_freed().notify_waiters();
    if let Some(objects) = work.objects.take() {
        // The objects are in the repository, or not needed; nobody waits for the removal of the area.
        forge.tasks().spawn(async move { drop(objects.discard().await) });
    }
    ended.map(|moved| Committed { verdicts: work.verdicts, moved })
}

/// After a failure of ours, looks at what became of the refs and writes it down, so that nobody has to wait for the
/// lease to end. If that fails too, the next holder of the lease does it, and `None` is returned.
async fn put_right(forge: &Forge, push: &Push, lease: &Lease, fault: &Fault) -> Option<Outcome> {
    tracing::error!(error = %fault, push = push.id.get(), repo = push.repo_id.get(), "a push could not be finished");
    match reconcile::one(forge, lease, push).await {
        Ok(outcome) => {
            if let Err(error) = lease::release(forge, lease.clone()).await {
                tracing::warn!(%error, push = push.id.get(), "the lease of a push is left to expire");
            }
            Some(outcome)
        }
        Err(error) => {
            tracing::warn!(%error, push = push.id.get(), "the next lease holder finishes the push");
            None
        }
    }
}

/// Result of one attempt to begin.
enum Begun {
    Started(Box<(Push, Repo, Lease)>),
    /// The lease is ours, but its previous holder died: reconcile first.
    Unfinished(Lease),
}

/// One attempt: everything that must be true in the transaction that writes the intent.
struct Try {
    repo: RepoId,
    caller: Caller,
    intent: Intent,
    /// Refs that the plan was judged against; `None`: they were moving.
    judged: Option<RefState>,
    held: Option<Lease>,
    holder: String,
    ttl: Duration,
    authority: Arc<dyn Authority>,
    plan: Plan,
}

/// Writes the intent under the lease, waiting for another push if necessary. `None` if nothing is left to do.
///
/// The row that the push was admitted with is judged as long as its refs did not change; the transaction of the intent
/// locks and decides again.
async fn begin(forge: &Forge, work: &mut Work) -> Result<Option<(Push, Repo, Lease)>, Fault> {
    let deadline = tokio::time::Instant::now() + forge.settings().git.lease_wait;
    let mut held = None;
    loop {
        if !refresh(forge, work).await? {
            release(forge, held).await?;
            return Ok(None);
        }
        let refs = snapshots::read(forge, &work.repo).await?;
        let judging = Judging {
            repo: &work.repo,
            caller: &work.caller,
            refs: &refs,
            verdicts: &mut work.verdicts,
            objects: work.objects.as_ref(),
            key: &work.key,
            reserved: &mut work.reserved,
        };
        let Some(plan) = work.authority.judge(forge, judging).await? else {
            release(forge, held).await?;
            return Ok(None);
        };
        if !prove(forge, work, &plan.updates).await? {
            release(forge, held).await?;
            return Ok(None);
        }
        let intent = Intent {
            repo_id: work.repo.id,
            actor: plan.actor,
            transport: work.transport,
            incoming: work.key.clone(),
            updates: plan.updates.clone(),
            signed: plan.signed.clone(),
        };
        let one = Try {
            repo: work.repo.id,
            caller: work.caller.clone(),
            intent,
            judged: refs.generation.map(|_| work.repo.ref_state()),
            held: held.clone(),
            holder: forge.node().holder().to_owned(),
            ttl: forge.settings().git.lease_ttl,
            authority: work.authority.clone(),
            plan,
        };
        match forge.store().write(one, |tx, one| Box::pin(try_begin(tx, one))).await {
            Ok(Begun::Started(started)) => {
                failpoint::hit(failpoint::PUSH_INTENT_COMMITTED);
                return Ok(Some(*started));
            }
            Ok(Begun::Unfinished(lease)) => {
                reconcile::under_lease(forge, &lease, work.repo.id).await?;
                held = Some(lease);
            }
            Err(NotBegun::Busy | NotBegun::Moved) if tokio::time::Instant::now() >= deadline => {
                release(forge, held).await?;
                work.verdicts.refuse_rest("the repository is busy with another push; try again in a moment");
                return Ok(None);
            }
            Err(NotBegun::Moved) => {}
            Err(NotBegun::Busy) => lease::freed(forge).await,
            Err(NotBegun::Access(Access::Fault(Fault::Revoked))) => {
                release(forge, held).await?;
                work.verdicts.refuse_all(REVOKED);
                return Ok(None);
            }
            Err(NotBegun::Access(Access::Fault(fault))) => return Err(fault),
            Err(NotBegun::Access(denied)) => {
                release(forge, held).await?;
                work.verdicts.refuse_rest(&denied.to_string());
                return Ok(None);
            }
        }
    }
}

/// Loads the row again if its refs changed since it was loaded, which may be long ago: a pack was received meanwhile.
/// `false`: the repository is gone.
async fn refresh(forge: &Forge, work: &mut Work) -> Result<bool, Fault> {
    let mut conn = forge.store().read().await?;
    let now = repos::ref_state(&mut conn, work.repo.id).await?;
    if now.as_ref() == Some(&work.repo.ref_state()) {
        return Ok(true);
    }
    match repos::by_id(&mut conn, work.repo.id, work.caller.user_id()).await? {
        Some(repo) => work.repo = repo,
        None => work.verdicts.refuse_rest("repository not found"),
    }
    Ok(now.is_some())
}

async fn release(forge: &Forge, held: Option<Lease>) -> Result<(), Fault> {
    match held {
        Some(lease) => lease::release(forge, lease).await,
        None => Ok(()),
    }
}

/// Proves that every ref to be set is complete in this repository. Objects that a signed state names may have arrived
/// by another push, so unproved tips are proved here. `false`: something is missing.
async fn prove(forge: &Forge, work: &mut Work, updates: &[RefUpdate]) -> Result<bool, Fault> {
    let dir = forge.layout().repo(work.repo.id);
    if updates.iter().all(|update| update.is_delete()) {
        return Ok(true);
    }
    let client = work.authority.client(&work.caller);
    let objects = work.objects.get_or_insert_with(|| Connected::in_place(forge.git(), dir.clone()).of(client));
    if !objects.holds_in(&dir) {
        work.verdicts.refuse_all("another repository took this name while you pushed; push again");
        return Ok(false);
    }
    let refused = objects.extend(updates).await?;
    if let Some(tip) = refused.first() {
        work.verdicts.refuse_all(&format!("{}: {}", tip.name, tip.reason));
    }
    Ok(refused.is_empty())
}

async fn try_begin(tx: &mut Tx, one: &Try) -> Result<Begun, NotBegun> {
    let lease = match &one.held {
        Some(lease) => {
            leases::check(tx, lease).await?;
            lease.clone()
        }
        None => match leases::take(tx, &pushes::lease_name(one.repo), &one.holder, one.ttl).await? {
            Some(lease) => lease,
            None => return Err(NotBegun::Busy),
        },
    };
    let now = tx.now();
    if !one.caller.standing.holds_at(tx, now).await? {
        return Err(NotBegun::Access(Access::Fault(Fault::Revoked)));
    }
    let repo = one.authority.still_holds(tx, &one.caller, one.repo, &one.plan).await?;
    if repo.refs_generation % 2 != 0 {
        return Ok(Begun::Unfinished(lease));
    }
    if one.judged != Some(repo.ref_state()) {
        return Err(NotBegun::Moved);
    }
    let push = pushes::begin(tx, &one.intent, &lease).await?;
    Ok(Begun::Started(Box::new((push, repo, lease))))
}

/// Moves objects and refs, and writes the end of the push. Returns whether the refs moved.
async fn apply(forge: &Forge, work: &mut Work, push: &Push, repo: &Repo, lease: &Lease) -> Result<bool, Fault> {
    let dir = forge.layout().repo(repo.id);
    if let Some(objects) = &work.objects {
        objects.migrate(&dir).await?;
    }
    failpoint::hit(failpoint::PUSH_OBJECTS_MIGRATED);
    let first = first_default(forge, repo, push).await?;
    let default = first.as_ref().unwrap_or(&repo.default_branch);
    let (moved, brought) =
        tokio::join!(move_refs(forge, push, repo), details::brought(dir.clone(), default, &push.updates));
    failpoint::hit(failpoint::PUSH_REFS_UPDATED);
    let outcome = match moved {
        Ok(()) => Outcome::Done,
        Err(RefTxError::Conflict { name, kind }) => {
            match push.signed {
                Some(_) => work.verdicts.refuse_all(&format!("{name}: {kind}")),
                None => {
                    work.verdicts.refuse(&name, &kind.to_string());
                    work.verdicts.refuse_rest("not updated, because another ref of this push failed");
                }
            }
            Outcome::Aborted
        }
        // Some refs may have moved; the caller checks.
        Err(RefTxError::Git(error)) => return Err(error.into()),
    };
    let who = Who { user: push.actor, ip: work.caller.ip_text() };
    let end = End {
        push: push.clone(),
        authority: forge.part::<Arc<dyn SignedPushes>>().clone(),
        brought,
        first: first.clone(),
        outcome,
        who,
        lease: lease.clone(),
        maintain: maintain::wanted(push),
    };
    forge.store().write(end, |tx, end| Box::pin(write_end(tx, end))).await?;
    failpoint::hit(failpoint::PUSH_FINISHED);
    if let Some(branch) = first.filter(|_| outcome == Outcome::Done) {
        crate::git::follow_head(forge, repo.id, &branch).await;
    }
    if outcome == Outcome::Done
        && let Some(signed) = &push.signed
    {
        forge.part::<Arc<dyn SignedPushes>>().publish(forge, signed);
    }
    Ok(outcome == Outcome::Done)
}

/// Moves refs. The lease is held, so a lock that stays belongs to no writer: the machine died while git had it. Such locks
/// are removed, and the refs are moved once more.
async fn move_refs(forge: &Forge, push: &Push, repo: &Repo) -> Result<(), RefTxError> {
    let moved = try_to_move_refs(forge, push, repo).await;
    if !matches!(moved, Err(RefTxError::Conflict { kind: ConflictKind::Locked, .. })) {
        return moved;
    }
    if let Err(error) = reconcile::clear_locks(&forge.layout().repo(repo.id)).await {
        tracing::warn!(%error, repo = repo.id.get(), "locks of refs could not be removed");
        return moved;
    }
    try_to_move_refs(forge, push, repo).await
}

/// Moves refs in one transaction, except for some signed states. Deleting `a` and creating `a/b` needs two ref
/// transactions; deletions run first. Reconciliation completes a crash in between.
async fn try_to_move_refs(forge: &Forge, push: &Push, repo: &Repo) -> Result<(), RefTxError> {
    let dir = forge.layout().repo(repo.id);
    if push.signed.is_none() {
        return reftx::update_refs(forge.git(), &dir, &push.updates).await;
    }
    for step in steps(&push.updates) {
        reftx::update_refs(forge.git(), &dir, &step).await?;
    }
    Ok(())
}

/// Ref transactions for a list of updates. Deleting `a` and creating `a/b` needs two ref transactions; deletions run
/// first.
fn steps(updates: &[RefUpdate]) -> Vec<Vec<RefUpdate>> {
    let (deletes, sets): (Vec<_>, Vec<_>) = updates.iter().cloned().partition(RefUpdate::is_delete);
    let both = Alignment { deletes, sets, head: None };
    if both.in_two_steps() { vec![both.deletes, both.sets] } else { vec![updates.to_vec()] }
}

/// New default branch of a repository whose default branch does not exist, from this push. The caller holds the lease,
/// and the repository has the push's objects.
pub(crate) async fn first_default(forge: &Forge, repo: &Repo, push: &Push) -> Result<Option<RefName>, Fault> {
    // Signed states name the default branch themselves.
    let Some(first) = push::first_default(&repo.default_branch, &push.updates).filter(|_| push.signed.is_none()) else {
        return Ok(None);
    };
    let exists = reftx::ref_exists(&forge.layout().repo(repo.id), &repo.default_branch).await?;
    Ok((!exists).then_some(first))
}

struct End {
    push: Push,
    authority: Arc<dyn SignedPushes>,
    brought: Brought,
    /// New default branch of the repository, if it changes.
    first: Option<RefName>,
    outcome: Outcome,
    who: Who,
    lease: Lease,
    maintain: bool,
}

async fn write_end(tx: &mut Tx, end: &End) -> Result<(), Fault> {
    leases::check(tx, &end.lease).await?;
    finish(tx, &end.push, &*end.authority, &end.brought, end.first.as_ref(), end.outcome, &end.who).await?;
    if end.maintain {
        maintain::enqueue(tx, end.push.repo_id).await?;
    }
    leases::release(tx, &end.lease).await?;
    failpoint::hit(failpoint::PUSH_FINISH_BEFORE_COMMIT);
    Ok(())
}

/// Ends a push's row and emits its event. Called by the push itself or by reconciliation, never twice.
pub(crate) async fn finish(
    tx: &mut Tx,
    push: &Push,
    authority: &dyn SignedPushes,
    brought: &Brought,
    first: Option<&RefName>,
    outcome: Outcome,
    who: &Who,
) -> Result<(), StoreError> {
    let mine = pushes::end(tx, push, outcome).await?;
    if !mine || outcome == Outcome::Aborted {
        return Ok(());
    }
    let Some(mut repo) = repos::by_id(tx, push.repo_id, None).await? else { return Ok(()) };
    repos::touch_pushed(tx, repo.id).await?;
    if let Some(branch) = first.filter(|branch| **branch != repo.default_branch) {
        choose_default(tx, &mut repo, branch, who).await?;
    }
    if let Some(signed) = &push.signed {
        authority.finish(tx, &repo, signed).await?;
    }
    if push.updates.iter().all(|update| update.name.as_str().starts_with("refs/nostr/")) && push.signed.is_some() {
        // The commit of a PR event: the PR event's own event reports it.
        return Ok(());
    }
    let pushed = |brought| event::Push {
        push_id: Some(push.id),
        ref_count: Some(push.updates.len() as u64),
        refs: Some(details::refs(push, &repo, brought)),
    };
    let payload = Payload::Push(pushed(brought));
    emit(tx, who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    let meta = json!({ "transport": push.transport, "push": pushed(&Brought::default()) });
    audit_repo(tx, who, AuditAction::Push, &repo, meta).await?;
    enqueue_keywords(tx, push, &repo, who.user).await
}

/// Payload of the search for closing keywords, which `issues/keywords.rs` runs.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeywordSearch {
    pub repo_id: RepoId,
    pub pusher: UserId,
    /// Commit of the default branch before the push, and after it.
    pub old: String,
    pub new: String,
}

/// Queues the search for closing keywords in the commits of the default branch, in the transaction that ends the push.
async fn enqueue_keywords(tx: &mut Tx, push: &Push, repo: &Repo, pusher: Option<UserId>) -> Result<(), StoreError> {
    let moved = push.updates.iter().find(|update| update.name == repo.default_branch && !update.is_delete());
    let (Some(update), Some(pusher)) = (moved, pusher) else { return Ok(()) };
    let payload = KeywordSearch { repo_id: repo.id, pusher, old: update.old.to_string(), new: update.new.to_string() };
    jobs::enqueue(tx, Kind::IssueKeywords, &payload, Some(push.id.to_string())).await
}

/// Makes the first pushed branch the default branch.
async fn choose_default(tx: &mut Tx, repo: &mut Repo, branch: &RefName, who: &Who) -> Result<(), StoreError> {
    let before = std::mem::replace(&mut repo.default_branch, branch.clone());
    repos::set_about(tx, repo.id, &repo.description, branch).await?;
    let meta = json!({
        "description_changed": false,
        "before": { "default_branch": before.as_str() },
        "after": { "default_branch": branch.as_str() },
    });
    audit_repo(tx, who, AuditAction::RepoEdited, repo, meta).await?;
    emit(tx, who, Subject::Repo(repo), repo.visibility.into(), Payload::RepoEdited(NoDetails {})).await
}
