//! Handlers of each kind of job.

use super::{Job, Kind};
use crate::accounts::{delete, reset};
use crate::git::{maintain, reconcile};
use crate::issues::keywords;
use crate::mail::{self, DeliveryError};
use crate::notify::mailing;
use crate::repos::purge;
use crate::{Fault, Forge, feeds, grasp, relay};
use abide_core::{RepoId, Timestamp};
use abide_store::accounts::{links, sessions, user_keys};
use abide_store::repos::pushes;
use abide_store::webhooks::{self, deliveries};
use abide_store::{StoreError, events, jobs, throttles};
use std::time::Duration;

/// Longest window of a rate limit: settings above it are refused.
const LONGEST_WINDOW: Duration = Duration::from_secs(86_400);

/// Age from which an unused incoming area has no owner.
const INCOMING_AGE: Duration = Duration::from_secs(6 * 3600);

/// Failure of a job.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobError {
    /// A retry can help.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A retry cannot help.
    #[error("{0}")]
    Final(String),
}

impl From<StoreError> for JobError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

impl From<DeliveryError> for JobError {
    fn from(error: DeliveryError) -> Self {
        match error {
            DeliveryError::Later(reason) => Self::Fault(Fault::Internal(reason)),
            DeliveryError::Never(reason) => Self::Final(reason),
        }
    }
}

/// Runs one job.
pub(super) async fn handle(forge: &Forge, job: &Job) -> Result<(), JobError> {
    match Kind::parse(&job.kind) {
        Some(Kind::RepoMaintain) => Ok(maintain::run(forge, repo_id(job)?).await?),
        Some(Kind::PushReconcile) => {
            reconcile::all(forge).await?;
            reconcile::sweep_incoming(forge, INCOMING_AGE).await?;
            Ok(())
        }
        Some(Kind::LifecycleSweep) => {
            let swept = purge::sweep(forge).await?;
            if swept != purge::Swept::default() {
                tracing::info!(?swept, "swept repositories and offers");
            }
            Ok(())
        }
        Some(Kind::HistoryPrune) => prune(forge).await,
        Some(Kind::MailSend) => Ok(mail::deliver(forge, job, &payload(job)).await?),
        Some(Kind::AccountReset) => Ok(reset::answer(forge, &payload(job)).await?),
        Some(Kind::AccountErase) => match delete::erase(forge, &payload(job)).await? {
            true => Ok(()),
            false => {
                Err(JobError::Final("the payload names no deleted account; this job is queued with a deletion".into()))
            }
        },
        Some(Kind::TrendingCount) => Ok(feeds::count_popular(forge).await?),
        Some(Kind::IssueKeywords) => match keywords::run(forge, &payload(job)).await? {
            true => Ok(()),
            false => Err(JobError::Final("the payload lacks what was pushed; this job is queued by a push".into())),
        },
        Some(Kind::NotifyMail) => Ok(mailing::run(forge).await?),
        Some(Kind::GraspSettle) => match grasp::settle::run(forge, &payload(job)).await? {
            true => Ok(()),
            false => Err(JobError::Final("the payload lacks whose repository; this job is queued by a push".into())),
        },
        Some(Kind::GraspSpread) => match grasp::spread::run(forge, &payload(job)).await? {
            true => Ok(()),
            false => Err(JobError::Final("the payload lacks the PR event".into())),
        },
        Some(Kind::GraspSweep) => {
            let swept = grasp::sweep::sweep(forge).await?;
            if swept != grasp::sweep::Swept::default() {
                tracing::info!(?swept, "dropped expired purgatory entries");
            }
            Ok(())
        }
        Some(Kind::RelayExpire) => {
            relay::expire(forge).await?;
            Ok(())
        }
        None => Err(JobError::Final(format!("this version does not know jobs of the kind {}", job.kind))),
    }
}

fn payload(job: &Job) -> serde_json::Value {
    serde_json::from_str(&job.payload).unwrap_or_default()
}

fn repo_id(job: &Job) -> Result<RepoId, JobError> {
    payload(job)["repo_id"]
        .as_i64()
        .map(RepoId::new)
        .ok_or_else(|| JobError::Final("the payload lacks repo_id; run it for one repository".into()))
}

/// Prunes old events and deliveries, in batches so that others can write in between.
async fn prune_logs(forge: &Forge, deliveries_from: Timestamp) -> Result<(), StoreError> {
    let events_from = forge.clock().now().minus(forge.settings().attention.event_retention);
    let unit = (events_from, deliveries_from);
    loop {
        let forgotten: Result<bool, StoreError> = forge
            .store()
            .write(unit, |tx, (events_from, deliveries_from)| {
                Box::pin(async move {
                    let events = events::prune(tx, *events_from).await?;
                    Ok(deliveries::prune(tx, *deliveries_from).await? > 0 || events)
                })
            })
            .await;
        if !forgotten? {
            return Ok(());
        }
    }
}

async fn prune(forge: &Forge) -> Result<(), JobError> {
    let before = forge.clock().now().minus(forge.settings().jobs.history);
    mail::prune(forge, before).await;
    let deliveries_before = forge.clock().now().minus(forge.settings().webhooks.retention);
    prune_logs(forge, deliveries_before).await?;
    forge
        .store()
        .write((before, deliveries_before), |tx, (before, deliveries_before)| {
            Box::pin(async move {
                webhooks::prune_gone(tx, *deliveries_before).await?;
                jobs::prune(tx, *before).await?;
                pushes::prune(tx, *before).await?;
                sessions::prune(tx).await?;
                links::prune(tx).await?;
                user_keys::prune(tx).await?;
                let counted = tx.now().minus(LONGEST_WINDOW);
                throttles::prune(tx, counted).await?;
                Ok(())
            })
        })
        .await
}
