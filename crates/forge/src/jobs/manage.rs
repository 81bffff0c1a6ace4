//! Operator commands for jobs: list, run now, retry.

use super::{Job, Kind, runner};
use crate::emit::{AuditAction, Who, audit_account};
use crate::{By, Fault, Forge};
use abide_macros::boxed;
use abide_store::jobs;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Hold of a job started by hand.
const HOLD: Duration = Duration::from_secs(60);

/// Jobs, newest first; in any state if none is given.
#[boxed]
pub async fn list(forge: &Forge, by: &By, state: Option<&str>, limit: i64) -> Result<Vec<Job>, Fault> {
    page(forge, by, state, None, limit).await
}

/// As [`list`], before a job.
#[boxed]
pub async fn page(
    forge: &Forge,
    _: &By,
    state: Option<&str>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Job>, Fault> {
    Ok(jobs::list(&mut *forge.store().read().await?, state, before, limit).await?)
}

/// One job; `None` if it does not exist or was pruned.
#[boxed]
pub async fn find(forge: &Forge, _: &By, id: i64) -> Result<Option<Job>, Fault> {
    Ok(jobs::by_id(&mut *forge.store().read().await?, id).await?)
}

/// Number of jobs in each state.
#[boxed]
pub async fn counts(forge: &Forge, _: &By) -> Result<Vec<(String, i64)>, Fault> {
    by_state(forge).await
}

/// As [`counts`], for the metrics of this server.
pub(crate) async fn by_state(forge: &Forge) -> Result<Vec<(String, i64)>, Fault> {
    Ok(jobs::counts(&mut *forge.store().read().await?).await?)
}

/// Runs one job of a kind now, in this process, and waits for its end. Returns the finished job.
#[boxed]
pub async fn run_now(forge: &Forge, _: &By, kind: Kind, payload: serde_json::Value) -> Result<Job, Fault> {
    let holder = forge.node().holder().to_owned();
    let payload = if payload.is_null() { json!({}) } else { payload };
    let job: Job = forge
        .store()
        .write((kind, payload, holder), |tx, (kind, payload, holder)| {
            Box::pin(async move {
                let new = jobs::NewJob {
                    kind: kind.as_str(),
                    payload: payload.clone(),
                    unique_key: None,
                    priority: 0,
                    run_at: tx.now(),
                    max_attempts: 1,
                };
                let id = jobs::enqueue(tx, &new).await?.ok_or(abide_store::StoreError::Missing)?;
                Ok::<_, Fault>(jobs::start(tx, id, holder, HOLD).await?)
            })
        })
        .await?;
    runner::run_one(forge, &job, &CancellationToken::new()).await;
    let ended = jobs::by_id(&mut *forge.store().read().await?, job.id).await?;
    ended.ok_or_else(|| Fault::Internal("the job vanished while it ran".into()))
}

/// Enqueues a finished job again; `false` if it does not exist or has not finished. The audit log has what site admins
/// retry.
#[boxed]
pub async fn retry(forge: &Forge, by: &By, id: i64) -> Result<bool, Fault> {
    forge
        .store()
        .write((id, by.clone()), |tx, (id, by)| {
            Box::pin(async move {
                let queued = jobs::again(tx, *id).await?;
                if queued && matches!(by, By::Admin(..)) {
                    audit_account(tx, &Who::from(by), AuditAction::JobRetried, json!({ "job_id": id })).await?;
                }
                Ok(queued)
            })
        })
        .await
}
