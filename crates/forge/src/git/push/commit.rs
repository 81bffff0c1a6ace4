//! The part of a push that must reach its end: from the lease to the finished row.

use super::conversation::Verdicts;
use crate::git::{maintain, reconcile, snapshots};
use crate::issues::keywords;
use crate::repos::open::open_locked;
use crate::tell::{Who, audit_repo, event_repo};
use crate::{Access, Caller, Fault, Forge};
use abide_core::policy::Action;
use abide_core::{RepoId, failpoint};
use abide_git::{Incoming, RefTxError, reftx};
use abide_store::leases::{self, Lease};
use abide_store::pushes::{self, Intent, Outcome, Push};
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx, events};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// A push whose objects are here and complete.
pub(super) struct Work {
    pub repo: RepoId,
    pub caller: Caller,
    pub transport: &'static str,
    pub key: String,
    pub incoming: Option<Incoming>,
    pub verdicts: Verdicts,
}

/// Takes the lease, writes the intent, moves the refs, writes the end. Returns what became of each ref.
pub(super) async fn commit(forge: Forge, mut work: Work) -> Result<Verdicts, Fault> {
    let Some((push, repo, lease)) = begin(&forge, &mut work).await? else {
        return Ok(work.verdicts);
    };
    let alive = heartbeat(&forge, &lease);
    let ended = tokio::select! {
        ended = apply(&forge, &mut work, &push, &repo, &lease) => ended,
        lost = alive => Err(lost),
    };
    if let Err(fault) = &ended {
        put_right(&forge, &push, &lease, fault).await;
    }
    forge.lease_freed().notify_waiters();
    if let Some(incoming) = work.incoming.take() {
        // The objects are in the repository, or not wanted; nobody waits for the folder to go.
        forge.tasks().spawn(async move { drop(incoming.discard().await) });
    }
    ended.map(|()| work.verdicts)
}

/// After a failure of ours, looks at what became of the refs and writes it down, so that nobody has to wait for the
/// lease to end. If that fails too, the next holder of the lease does it.
async fn put_right(forge: &Forge, push: &Push, lease: &Lease, fault: &Fault) {
    tracing::error!(error = %fault, push = push.id.get(), repo = push.repo_id.get(), "a push could not be finished");
    let ended = match reconcile::one(forge, lease, push).await {
        Ok(_) => release(forge, Some(lease.clone())).await,
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::warn!(%error, push = push.id.get(), "the push is left for the next holder of the lease");
    }
}

/// What one try to begin came to.
enum Begun {
    Started(Box<(Push, Repo, Lease)>),
    /// The lease is ours, but someone died with it: put that right first.
    Unfinished(Lease),
}

/// Why one try to begin came to nothing. Rolls the try back, the lease included.
enum NotBegun {
    /// Someone else holds the lease.
    Busy,
    /// The refs are not those that were judged.
    Moved,
    Access(Access),
}

impl From<StoreError> for NotBegun {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

/// One try: everything that has to be true at the same moment as the intent is written.
struct Try {
    repo: RepoId,
    caller: Caller,
    intent: Intent,
    judged: Option<i64>,
    held: Option<Lease>,
    holder: String,
    ttl: Duration,
}

/// Writes the intent under the lease, waiting for another push if need be. `None` if nothing is left to do.
async fn begin(forge: &Forge, work: &mut Work) -> Result<Option<(Push, Repo, Lease)>, Fault> {
    let deadline = tokio::time::Instant::now() + forge.settings().lease_wait;
    let mut held = None;
    loop {
        let repo = repos::by_id(&mut *forge.store().read().await?, work.repo, work.caller.user_id()).await?;
        let Some(repo) = repo else {
            work.verdicts.refuse_rest("repository not found");
            return Ok(None);
        };
        let refs = snapshots::read(forge, &repo).await?;
        work.verdicts.refuse_by_rule(&repo.default_branch, &refs);
        if work.verdicts.none_left() {
            release(forge, held).await?;
            return Ok(None);
        }
        let intent = Intent {
            repo_id: work.repo,
            actor: work.caller.user_id(),
            transport: work.transport,
            incoming: work.key.clone(),
            updates: work.verdicts.accepted(),
        };
        let one = Try {
            repo: work.repo,
            caller: work.caller.clone(),
            intent,
            judged: refs.generation,
            held: held.clone(),
            holder: forge.node().holder().to_owned(),
            ttl: forge.settings().lease_ttl,
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
            Err(NotBegun::Access(Access::Fault(fault))) => return Err(fault),
            Err(NotBegun::Access(denied)) => {
                release(forge, held).await?;
                work.verdicts.refuse_rest(&denied.to_string());
                return Ok(None);
            }
        }
    }
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
    let repo = open_locked(tx, &one.caller, one.repo, Action::GitPush).await.map_err(NotBegun::Access)?;
    if repo.refs_generation % 2 != 0 {
        return Ok(Begun::Unfinished(lease));
    }
    if one.judged != Some(repo.refs_generation) {
        return Err(NotBegun::Moved);
    }
    let push = pushes::begin(tx, &one.intent, &lease).await?;
    Ok(Begun::Started(Box::new((push, repo, lease))))
}

async fn release(forge: &Forge, lease: Option<Lease>) -> Result<(), Fault> {
    if let Some(lease) = lease {
        forge
            .store()
            .write(lease, |tx, lease| Box::pin(async { Ok::<_, Fault>(leases::release(tx, lease).await?) }))
            .await?;
        forge.lease_freed().notify_waiters();
    }
    Ok(())
}

/// Keeps the lease until dropped; comes back only if it was lost.
async fn heartbeat(forge: &Forge, lease: &Lease) -> Fault {
    let ttl = forge.settings().lease_ttl;
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

/// Moves objects and refs, and writes the end of the push.
async fn apply(forge: &Forge, work: &mut Work, push: &Push, repo: &Repo, lease: &Lease) -> Result<(), Fault> {
    if let Some(incoming) = &work.incoming {
        incoming.migrate().await?;
    }
    failpoint::hit(failpoint::PUSH_OBJECTS_MIGRATED);
    let moved = reftx::update_refs(forge.git(), &forge.layout().repo(repo.id), &push.updates).await;
    failpoint::hit(failpoint::PUSH_REFS_UPDATED);
    let outcome = match moved {
        Ok(()) => Outcome::Done,
        Err(RefTxError::Conflict { name, kind }) => {
            work.verdicts.refuse(&name, &kind.to_string());
            work.verdicts.refuse_rest("not moved, because another ref of this push could not be");
            Outcome::Aborted
        }
        // Whether any ref moved is uncertain; the caller looks.
        Err(RefTxError::Git(error)) => return Err(error.into()),
    };
    let who = Who::from(&work.caller);
    let end = End { push: push.clone(), outcome, who, lease: lease.clone(), maintain: maintain::wanted(push) };
    forge.store().write(end, |tx, end| Box::pin(write_end(tx, end))).await?;
    failpoint::hit(failpoint::PUSH_FINISHED);
    Ok(())
}

struct End {
    push: Push,
    outcome: Outcome,
    who: Who,
    lease: Lease,
    maintain: bool,
}

async fn write_end(tx: &mut Tx, end: &End) -> Result<(), Fault> {
    leases::check(tx, &end.lease).await?;
    finish(tx, &end.push, end.outcome, &end.who).await?;
    if end.maintain {
        maintain::enqueue(tx, end.push.repo_id).await?;
    }
    leases::release(tx, &end.lease).await?;
    failpoint::hit(failpoint::PUSH_FINISH_BEFORE_COMMIT);
    Ok(())
}

/// Ends a push's row and tells about it. Called by the push itself or by whoever finds it unfinished, never twice.
pub(crate) async fn finish(tx: &mut Tx, push: &Push, outcome: Outcome, who: &Who) -> Result<(), StoreError> {
    let mine = pushes::end(tx, push, outcome).await?;
    if !mine || outcome == Outcome::Aborted {
        return Ok(());
    }
    let Some(repo) = repos::by_id(tx, push.repo_id, None).await? else { return Ok(()) };
    repos::touch_pushed(tx, repo.id).await?;
    let refs = told_refs(push);
    let told = json!({ "push_id": push.id.get(), "ref_count": push.updates.len(), "refs": refs });
    event_repo(tx, who, "push", &repo, told.clone()).await?;
    audit_repo(tx, who, "push", &repo, json!({ "transport": push.transport, "push": told })).await?;
    keywords::enqueue(tx, push, &repo, who.user).await
}

/// As many refs, before and after, as fit into an event; `ref_count` tells how many there were.
fn told_refs(push: &Push) -> Vec<Json> {
    const ROOM: usize = events::MAX_PAYLOAD - 512;
    let mut used = 0;
    let told = push.updates.iter().map(|update| {
        json!({ "name": update.name.as_str(), "before": update.old.to_string(), "after": update.new.to_string() })
    });
    told.take_while(|entry| {
        used += entry.to_string().len() + 1;
        used < ROOM
    })
    .collect()
}
