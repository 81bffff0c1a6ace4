//! Job runner: a few workers that claim due jobs under a hold, which they renew.

use super::{Job, JobError, handle};
use crate::{Fault, Forge, hold};
use abide_core::Timestamp;
use abide_macros::boxed;
use abide_store::{StoreError, jobs};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Hold of a claimed job.
const HOLD: Duration = Duration::from_secs(60);
/// Pause after the first failure; doubles with each.
const BACKOFF: Duration = Duration::from_secs(10);
/// Pause of a job that something is in the way of.
const LATER: Duration = Duration::from_secs(300);
/// Age of a job from which it no longer waits for what is in its way: longer than the longest run of maintenance, whose
/// locks are removed then.
pub(super) const LATEST: Duration = Duration::from_secs(2 * 3600);
/// Longest pause.
const BACKOFF_CAP: Duration = Duration::from_secs(3600);

/// Runs workers until stopped; a running job is then finished or returned.
#[boxed]
pub async fn run(forge: Forge, stop: CancellationToken) {
    let workers = (0..forge.settings().jobs.workers.max(1)).map(|_| tokio::spawn(work(forge.clone(), stop.clone())));
    for worker in workers.collect::<Vec<_>>() {
        if let Err(error) = worker.await {
            tracing::error!(%error, "a job worker ended early");
        }
    }
}

async fn work(forge: Forge, stop: CancellationToken) {
    while !stop.is_cancelled() {
        match claim(&forge).await {
            Ok(Some(job)) => run_one(&forge, &job, &stop).await,
            Ok(None) => idle(&forge, &stop).await,
            Err(error) => {
                tracing::warn!(%error, "cannot read jobs; retrying");
                idle(&forge, &stop).await;
            }
        }
    }
}

async fn idle(forge: &Forge, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = forge.store().jobs_grew() => {}
        () = tokio::time::sleep(forge.settings().jobs.poll) => {}
    }
}

/// Checks without the write lock first, so that an idle server writes nothing.
async fn claim(forge: &Forge) -> Result<Option<Job>, Fault> {
    let now = forge.clock().now();
    if !jobs::anything_to_do(&mut *forge.store().read().await?, now).await? {
        return Ok(None);
    }
    let holder = forge.node().holder().to_owned();
    forge
        .store()
        .write(holder, |tx, holder| {
            Box::pin(async move {
                jobs::reap(tx).await?;
                Ok(jobs::claim(tx, holder, HOLD).await?)
            })
        })
        .await
}

/// Runs a claimed job, renews its hold, and records its end.
pub(super) async fn run_one(forge: &Forge, job: &Job, stop: &CancellationToken) {
    let drained = async {
        stop.cancelled().await;
        tokio::time::sleep(forge.settings().drain_timeout).await;
    };
    let outcome = tokio::select! {
        outcome = AssertUnwindSafe(handle(forge, job)).catch_unwind() => {
            Some(outcome.unwrap_or_else(|_| Err(JobError::Final("the job panicked; see the log".into()))))
        }
        () = keep(forge, job) => None,
        () = drained => {
            let back: Result<(), StoreError> =
                forge.store().write(job.clone(), |tx, job| Box::pin(jobs::hand_back(tx, job))).await;
            if let Err(error) = back {
                tracing::warn!(%error, job = job.id, "cannot release a job; its hold expires");
            }
            None
        }
    };
    let Some(outcome) = outcome else { return };
    if let Err(error) = end(forge, job, &outcome).await {
        tracing::warn!(%error, job = job.id, "cannot store the end of a job; it runs again");
    }
}

/// Renews the hold; returns only if it was lost.
async fn keep(forge: &Forge, job: &Job) {
    hold::keep(HOLD, || forge.store().write(job.clone(), |tx, job| Box::pin(jobs::renew(tx, job, HOLD)))).await;
    tracing::warn!(job = job.id, "a job was taken over by another runner");
}

async fn end(forge: &Forge, job: &Job, outcome: &Result<(), JobError>) -> Result<(), StoreError> {
    let (error, retry_at) = match outcome {
        Ok(()) => {
            metrics::counter!("abide_jobs_total", "kind" => job.kind.clone(), "end" => "done").increment(1);
            return forge.store().write(job.clone(), |tx, job| Box::pin(jobs::finish(tx, job))).await.map(drop);
        }
        Err(JobError::Later(fault)) if forge.clock().now() < job.created_at.plus(LATEST) => {
            return postpone(forge, job, fault).await;
        }
        Err(JobError::Final(_)) => (outcome, None),
        Err(JobError::Fault(_) | JobError::Later(_)) if job.attempts >= job.max_attempts => (outcome, None),
        Err(JobError::Fault(_) | JobError::Later(_)) => (outcome, Some(next_try(forge, job))),
    };
    let text = error.as_ref().err().map(ToString::to_string).unwrap_or_default();
    tracing::warn!(job = job.id, kind = job.kind, error = text, again = retry_at.is_some(), "a job failed");
    metrics::counter!("abide_jobs_total", "kind" => job.kind.clone(), "end" => "failed").increment(1);
    forge
        .store()
        .write((job.clone(), text, retry_at), |tx, (job, text, retry_at)| {
            Box::pin(jobs::fail(tx, job, text, *retry_at))
        })
        .await
        .map(drop)
}

/// Returns a job that waits for something else, without an attempt.
async fn postpone(forge: &Forge, job: &Job, fault: &Fault) -> Result<(), StoreError> {
    tracing::info!(job = job.id, kind = job.kind, reason = %fault, "a job waits");
    let input = (job.clone(), fault.to_string(), forge.clock().now().plus(LATER));
    let postponed: Result<bool, StoreError> =
        forge.store().write(input, |tx, (job, reason, at)| Box::pin(jobs::postpone(tx, job, reason, *at))).await;
    postponed.map(drop)
}

/// Exponential backoff with a jitter of a fifth, so that jobs that failed together do not return together.
fn next_try(forge: &Forge, job: &Job) -> Timestamp {
    let doublings = u32::try_from(job.attempts.clamp(1, 20) - 1).unwrap_or(0);
    let wait = BACKOFF.saturating_mul(1 << doublings).min(BACKOFF_CAP);
    let mut random = [0; 1];
    forge.random().fill(&mut random);
    forge.clock().now().plus(wait.mul_f64(0.8 + 0.4 * f64::from(random[0]) / 255.0))
}
