//! Background jobs. A job is a row, enqueued in the caller's transaction.
//!
//! [`runner`] runs due jobs, [`schedule`] enqueues periodic ones, once per cluster. The work of each kind is done by the
//! module that it belongs to; `work/` lists them all.

pub mod manage;
pub mod runner;
pub mod schedule;

use crate::{Fault, Forge};
use abide_store::jobs::{self, NewJob};
use abide_store::{StoreError, Tx};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

pub use abide_store::jobs::Job;

/// Smaller is more urgent.
const PRIORITY: i64 = 100;

/// Kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Maintains one repository.
    RepoMaintain,
    /// Reconciles crashed pushes and removes their leftovers.
    PushReconcile,
    /// Prunes finished jobs and pushes, expired sessions and links, rate limits and mails.
    HistoryPrune,
    /// Expires offers and purges deleted repositories after their grace.
    LifecycleSweep,
    /// Delivers one mail.
    MailSend,
    /// Sends a password reset.
    AccountReset,
    /// Removes the texts of a deleted account.
    AccountErase,
    /// Scans the commits of a push for closing keywords.
    IssueKeywords,
    /// Writes due notification mails.
    NotifyMail,
    /// Removes expired nostr events.
    RelayExpire,
    /// Counts trending repositories.
    TrendingCount,
    /// Removes expired purgatory entries.
    GraspSweep,
    /// Aligns every repository of one identifier with its authoritative state.
    GraspSettle,
    /// Copies the commit of a PR event to every target repository, or removes it once the PR event is deleted.
    GraspSpread,
}

impl Kind {
    pub const ALL: &[Self] = &[
        Self::RepoMaintain,
        Self::PushReconcile,
        Self::HistoryPrune,
        Self::LifecycleSweep,
        Self::MailSend,
        Self::AccountReset,
        Self::AccountErase,
        Self::IssueKeywords,
        Self::NotifyMail,
        Self::RelayExpire,
        Self::TrendingCount,
        Self::GraspSweep,
        Self::GraspSettle,
        Self::GraspSpread,
    ];

    /// Name in the table and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RepoMaintain => "repo:maintain",
            Self::PushReconcile => "push:reconcile",
            Self::HistoryPrune => "history:prune",
            Self::LifecycleSweep => "lifecycle:sweep",
            Self::MailSend => "mail:send",
            Self::AccountReset => "account:reset",
            Self::AccountErase => "account:erase",
            Self::IssueKeywords => "issues:keywords",
            Self::NotifyMail => "notify:mail",
            Self::RelayExpire => "relay:expire",
            Self::TrendingCount => "trending:count",
            Self::GraspSweep => "grasp:sweep",
            Self::GraspSettle => "grasp:settle",
            Self::GraspSpread => "grasp:spread",
        }
    }

    /// The kind with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// Most attempts.
    const fn max_attempts(self) -> i64 {
        match self {
            Self::RepoMaintain | Self::TrendingCount => 3,
            Self::PushReconcile
            | Self::HistoryPrune
            | Self::LifecycleSweep
            | Self::AccountReset
            | Self::AccountErase
            | Self::IssueKeywords
            | Self::NotifyMail
            | Self::GraspSweep
            | Self::GraspSettle
            | Self::GraspSpread
            | Self::RelayExpire => 5,
            // With growing pauses that is about a day and a half: mail servers may be down overnight.
            Self::MailSend => 40,
        }
    }
}

/// Enqueues a job in the caller's transaction. With a key, only if none of the same kind and key waits or runs.
pub(crate) async fn enqueue(
    tx: &mut Tx,
    kind: Kind,
    payload: &(impl Serialize + Sync),
    key: Option<String>,
) -> Result<(), StoreError> {
    let new = NewJob {
        kind: kind.as_str(),
        payload: json!(payload),
        unique_key: key.map(|key| format!("{}:{key}", kind.as_str())),
        priority: PRIORITY,
        run_at: tx.now(),
        max_attempts: kind.max_attempts(),
    };
    jobs::enqueue(tx, &new).await.map(drop)
}

/// Failure of a job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// A retry can help.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// Something is in the way that goes away by itself. This is no attempt, until the job has waited for
    /// [`runner::LATEST`].
    #[error(transparent)]
    Later(Fault),
    /// A retry cannot help.
    #[error("{0}")]
    Final(String),
}

impl From<StoreError> for JobError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Runs one job.
pub(crate) type Handler = for<'a> fn(&'a Forge, &'a Job) -> BoxFuture<'a, Result<(), JobError>>;

/// The handler of each kind, given by the top of the crate: the queue knows no use case.
pub(crate) struct Handlers(fn(Kind) -> Handler);

impl Handlers {
    pub(crate) fn new(handler_of: fn(Kind) -> Handler) -> Self {
        Self(handler_of)
    }
}

/// Runs one job.
async fn handle(forge: &Forge, job: &Job) -> Result<(), JobError> {
    let Some(kind) = Kind::parse(&job.kind) else {
        return Err(JobError::Final(format!("this version does not know jobs of the kind {}", job.kind)));
    };
    let Handlers(handler_of) = forge.part();
    handler_of(kind)(forge, job).await
}

/// The payload of a kind without one.
#[derive(Debug, Serialize)]
pub(crate) struct NoPayload {}

/// The payload of a job; `None` if it is not one of its kind, as when an operator queued the job by hand.
pub(crate) fn payload<T: DeserializeOwned>(job: &Job) -> Option<T> {
    serde_json::from_str(&job.payload).ok()
}

/// Jobs outlive the version that queued them: `stored` is the text that earlier versions wrote and read.
#[cfg(test)]
pub(crate) fn assert_stored<T>(payload: &T, stored: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    // As values: the order of keys depends on a feature of serde_json that only some builds have.
    let parsed: serde_json::Value = serde_json::from_str(stored).expect("JSON");
    assert_eq!(json!(payload), parsed);
    assert_eq!(&serde_json::from_str::<T>(stored).expect("a payload"), payload);
}
