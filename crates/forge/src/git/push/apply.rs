//! The part of a push that must run to its end: from the lease to the finished row.

use super::details::{self, Brought};
use super::verdicts::Verdicts;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::error::REVOKED;
use crate::git::snapshots::{self, Refs};
use crate::git::{maintain, reconcile};
use crate::grasp::GraspSettings;
use crate::grasp::align::{self, Bringer};
use crate::grasp::push::{Coordinate, Decision, Order, Plan, View, decide};
use crate::grasp::quota::{self, Weighing, weigh};
use crate::grasp::signed::{self, Signed};
use crate::issues::keywords;
use crate::repos::open::open_locked;
use crate::{Access, Caller, Fault, Forge};
use abide_core::event::{self, NoDetails, Payload};
use abide_core::policy::{Action, DenyCode};
use abide_core::{RefName, RepoId, failpoint, push};
use abide_git::{Client, Connected, RefTxError, bare, reftx};
use abide_store::leases::{self, Lease};
use abide_store::nostr::purgatory;
use abide_store::repos::pushes::{self, Intent, Outcome, Push};
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A push whose objects are here and complete.
pub(crate) struct Work {
    pub repo: RepoId,
    pub caller: Caller,
    pub transport: &'static str,
    pub key: String,
    /// Objects outside the repository, proved complete for it. `None`: the push sets no ref, or only to existing
    /// objects.
    pub objects: Option<Connected>,
    pub verdicts: Verdicts,
    /// The signed events that authorise the push, where they are the authority instead of the caller's role.
    pub signed: Option<Signing>,
}

/// A change that signed events order.
pub(crate) struct Signing {
    pub coordinate: Coordinate,
    pub order: Order,
    pub bringer: Bringer,
    /// Bytes reserved under the push's key.
    pub reserved: Option<u64>,
}

impl Work {
    /// Client whose slots git uses for this push.
    fn client(&self) -> Client {
        self.signed.as_ref().map_or_else(|| self.caller.client(), |signing| signing.bringer.client)
    }

    fn reserved(&self) -> Option<u64> {
        self.signed.as_ref().and_then(|signing| signing.reserved)
    }

    /// Releases the reservation for git data that is not stored.
    async fn give_back(&self, forge: &Forge) {
        if self.reserved().is_some() {
            quota::give_back(forge, &self.key).await;
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
    forge.relay().strangers.add(work.reserved().unwrap_or(0));
    let alive = heartbeat(&forge, &lease);
    let ended = tokio::select! {
        ended = apply(&forge, &mut work, &push, &repo, &lease) => ended,
        lost = alive => Err(lost),
    };
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
            if let Err(error) = release(forge, Some(lease.clone())).await {
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

/// Reason why an attempt did not begin. Rolls the attempt back, including the lease.
enum NotBegun {
    /// Another holder has the lease.
    Busy,
    /// The refs changed since they were judged.
    Moved,
    Access(Access),
}

impl From<StoreError> for NotBegun {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

/// One attempt: everything that must be true in the transaction that writes the intent.
struct Try {
    repo: RepoId,
    caller: Caller,
    intent: Intent,
    judged: Option<i64>,
    held: Option<Lease>,
    holder: String,
    ttl: Duration,
    plan: Option<Box<Plan>>,
    after_push: Duration,
}

/// Writes the intent under the lease, waiting for another push if necessary. `None` if nothing is left to do.
async fn begin(forge: &Forge, work: &mut Work) -> Result<Option<(Push, Repo, Lease)>, Fault> {
    let deadline = tokio::time::Instant::now() + forge.settings().git.lease_wait;
    let mut held = None;
    loop {
        let repo = repos::by_id(&mut *forge.store().read().await?, work.repo, work.caller.user_id()).await?;
        let Some(repo) = repo else {
            work.verdicts.refuse_rest("repository not found");
            return Ok(None);
        };
        let refs = snapshots::read(forge, &repo).await?;
        let plan = match judge(forge, work, &repo, &refs).await? {
            Judged::Go(plan) => plan,
            Judged::Done => {
                release(forge, held).await?;
                return Ok(None);
            }
        };
        if !prove(forge, work, plan.as_deref()).await? {
            release(forge, held).await?;
            return Ok(None);
        }
        let intent = Intent {
            repo_id: work.repo,
            actor: plan.as_ref().map_or(work.caller.user_id(), |plan| plan.actor),
            transport: work.transport,
            incoming: work.key.clone(),
            updates: plan.as_ref().map_or_else(|| work.verdicts.accepted(), |plan| plan.updates.clone()),
            signed: plan.as_ref().map(|plan| plan.signed.encode()),
        };
        let one = Try {
            repo: work.repo,
            caller: work.caller.clone(),
            intent,
            judged: refs.generation,
            held: held.clone(),
            holder: forge.node().holder().to_owned(),
            ttl: forge.settings().git.lease_ttl,
            plan,
            after_push: forge.settings().grasp.expiry.after_push,
        };
        match forge.store().write(one, |tx, one| Box::pin(try_begin(tx, one))).await {
            Ok(Begun::Started(started)) => {
                failpoint::hit(failpoint::PUSH_INTENT_COMMITTED);
                return Ok(Some(*started));
            }
            Ok(Begun::Unfinished(lease)) => {
                reconcile::under_lease(forge, &lease, work.repo).await?;
                held = Some(lease);
            }
            Err(NotBegun::Busy | NotBegun::Moved) if tokio::time::Instant::now() >= deadline => {
                release(forge, held).await?;
                work.verdicts.refuse_rest("the repository is busy with another push; try again in a moment");
                return Ok(None);
            }
            Err(NotBegun::Moved) => {}
            Err(NotBegun::Busy) => {
                tokio::select! {
                    () = forge.lease_freed().notified() => {}
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
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

/// Whether there is anything to do.
enum Judged {
    Go(Option<Box<Plan>>),
    /// Nothing is left, or nothing changes.
    Done,
}

/// Asks the authority about the current refs: the rules of an account's repository, or the signed events.
async fn judge(forge: &Forge, work: &mut Work, repo: &Repo, refs: &Refs) -> Result<Judged, Fault> {
    let Some(Signing { coordinate, order, bringer, reserved }) = &mut work.signed else {
        work.verdicts.refuse_by_rule(&repo.default_branch, refs);
        return Ok(if work.verdicts.none_left() { Judged::Done } else { Judged::Go(None) });
    };
    let mut object_dirs = vec![forge.layout().repo(repo.id)];
    object_dirs.extend(work.objects.as_ref().and_then(Connected::area).map(Path::to_owned));
    match decide(forge, coordinate, order, &View::of(refs, object_dirs)).await? {
        Decision::Go(mut plan) => {
            if let Some(area) = work.objects.as_ref().and_then(Connected::area) {
                let (objects, owner, from) = (area.join("objects"), coordinate.owner, work.caller.ip);
                let weighing = Weighing { objects, owner, from, paying: &bringer.paying, key: &work.key, more: 0 };
                match weigh(forge, &mut plan.signed, weighing).await? {
                    Ok(bytes) => *reserved = bytes,
                    Err(refusal) => {
                        work.verdicts.refuse_all(&refusal.reason);
                        return Ok(Judged::Done);
                    }
                }
            }
            Ok(Judged::Go(Some(plan)))
        }
        Decision::Nothing => Ok(Judged::Done),
        Decision::Refuse(reason) => {
            work.verdicts.refuse_all(&reason);
            Ok(Judged::Done)
        }
    }
}

/// Proves that every ref to be set is complete in this repository. Objects that a signed state names may have arrived
/// by another push, so unproved tips are proved here. `false`: something is missing.
async fn prove(forge: &Forge, work: &mut Work, plan: Option<&Plan>) -> Result<bool, Fault> {
    let dir = forge.layout().repo(work.repo);
    let updates = plan.map_or_else(|| work.verdicts.accepted(), |plan| plan.updates.clone());
    if updates.iter().all(|update| update.is_delete()) {
        return Ok(true);
    }
    let client = work.client();
    let objects = work.objects.get_or_insert_with(|| Connected::in_place(forge.git(), dir.clone()).of(client));
    if !objects.holds_in(&dir) {
        work.verdicts.refuse_all("another repository took this name while you pushed; push again");
        return Ok(false);
    }
    let refused = objects.extend(&updates).await?;
    if let Some(tip) = refused.first() {
        work.verdicts.refuse_all(&format!("{}: {}", tip.name, tip.reason));
    }
    Ok(refused.is_empty())
}

/// Preconditions of a signed push in the transaction of its intent: the repository accepts changes, and the authorising
/// state still waits and will not expire during the push.
async fn still_allowed(tx: &mut Tx, one: &Try, plan: &Plan) -> Result<Repo, NotBegun> {
    let repo = repos::lock(tx, one.repo, None).await?.filter(|repo| repo.deleted_at.is_none());
    let repo = repo.ok_or(NotBegun::Access(Access::NotFound))?;
    if repo.archived_at.is_some() {
        return Err(NotBegun::Access(Access::Denied(DenyCode::Archived(Action::GitPush))));
    }
    if let Some(state) = plan.waits {
        let until = tx.now().plus(one.after_push);
        if !purgatory::raise_state(tx, state.as_bytes(), until).await? {
            return Err(NotBegun::Moved);
        }
    }
    Ok(repo)
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
    let repo = match &one.plan {
        Some(plan) => still_allowed(tx, one, plan).await?,
        None => open_locked(tx, &one.caller, one.repo, Action::GitPush).await.map_err(NotBegun::Access)?,
    };
    if repo.refs_generation % 2 != 0 {
        return Ok(Begun::Unfinished(lease));
    }
    if one.judged != Some(repo.refs_generation) {
        return Err(NotBegun::Moved);
    }
    let push = pushes::begin(tx, &one.intent, &lease).await?;
    Ok(Begun::Started(Box::new((push, repo, lease))))
}

pub(crate) async fn release(forge: &Forge, lease: Option<Lease>) -> Result<(), Fault> {
    if let Some(lease) = lease {
        forge
            .store()
            .write(lease, |tx, lease| Box::pin(async { Ok::<_, Fault>(leases::release(tx, lease).await?) }))
            .await?;
        forge.lease_freed().notify_waiters();
    }
    Ok(())
}

/// Renews the lease until dropped; returns only if it was lost.
pub(crate) async fn heartbeat(forge: &Forge, lease: &Lease) -> Fault {
    let ttl = forge.settings().git.lease_ttl;
    loop {
        tokio::time::sleep(ttl / 3).await;
        let renewed: Result<(), StoreError> = forge
            .store()
            .write((lease.clone(), ttl), |tx, (lease, ttl)| Box::pin(leases::renew(tx, lease, *ttl)))
            .await;
        match renewed {
            Ok(()) => {}
            Err(StoreError::LeaseLost(name)) => return StoreError::LeaseLost(name).into(),
            Err(error) => tracing::warn!(%error, "could not renew a repository's lease; trying again"),
        }
    }
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
        settings: forge.settings().grasp.clone(),
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
        // HEAD follows the database: if this fails, the next reader of the refs sets it.
        if let Err(error) = bare::set_head(&dir, &branch).await {
            tracing::warn!(%error, repo = repo.id.get(), "HEAD could not be written; the next reader of the refs corrects it");
        }
    }
    if outcome == Outcome::Done
        && let Some(signed) = &push.signed
    {
        // It was decoded before, in the transaction that ended the push.
        let events = Signed::decode(signed).map(|signed| signed.events()).unwrap_or_default();
        forge.relay().publish(&events.into_iter().map(Arc::new).collect::<Vec<_>>());
    }
    Ok(outcome == Outcome::Done)
}

/// Moves refs in one transaction, except for some signed states. Deleting `a` and creating `a/b` needs two ref
/// transactions; deletions run first. Reconciliation completes a crash in between.
async fn move_refs(forge: &Forge, push: &Push, repo: &Repo) -> Result<(), RefTxError> {
    let dir = forge.layout().repo(repo.id);
    if push.signed.is_none() {
        return reftx::update_refs(forge.git(), &dir, &push.updates).await;
    }
    for step in align::steps(&push.updates) {
        reftx::update_refs(forge.git(), &dir, &step).await?;
    }
    Ok(())
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
    settings: GraspSettings,
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
    finish(tx, &end.push, &end.settings, &end.brought, end.first.as_ref(), end.outcome, &end.who).await?;
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
    settings: &GraspSettings,
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
        signed::finish(tx, settings, &repo, signed).await?;
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
    keywords::enqueue(tx, push, &repo, who.user).await
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
