//! Work that is done later. A job is a row, queued in the transaction that wants it.
//!
//! [`runner`] runs what is due, [`schedule`] queues what the clock asks for, once per cluster.

mod handle;
pub mod manage;
pub mod runner;
pub mod schedule;

use abide_store::jobs::{self, NewJob};
use abide_store::{StoreError, Tx};
use serde_json::Value as Json;

pub use abide_store::jobs::Job;

/// Smaller is more urgent.
const PRIORITY: i64 = 100;

/// What kinds of jobs there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tidies one repository.
    RepoMaintain,
    /// Puts crashed pushes right and removes what they left.
    PushReconcile,
    /// Forgets ended jobs and pushes, ended logins, dead links, old counts and mails.
    HistoryPrune,
    /// Lets offers expire and removes deleted repositories past their grace.
    LifecycleSweep,
    /// Delivers one mail.
    MailSend,
    /// Answers someone who has forgotten their password.
    AccountReset,
    /// Removes what a deleted account wrote.
    AccountErase,
    /// Reads what a push brought for what it says about issues.
    IssueKeywords,
    /// Writes the mails about what people were told that are due.
    NotifyMail,
    /// Removes events that asked to be forgotten.
    RelayExpire,
    /// Counts which repositories are popular.
    TrendingCount,
    /// Takes away what waited in vain for git data, or for its event.
    GraspSweep,
    /// Makes every repository of one identifier follow the state that rules it.
    GraspSettle,
    /// Gives the commit of a proposal to every repository it is for, or takes it away once the proposal is deleted.
    GraspSpread,
}

impl Kind {
    /// Every kind.
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

    /// What it is called in the table and on the command line.
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

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// How often to try before giving up.
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
            // With growing pauses that is about a day and a half: mail servers may be down for a night.
            Self::MailSend => 40,
        }
    }
}

/// Queues a job in the caller's transaction. With a key, only if none of the same kind and key waits or runs.
pub(crate) async fn enqueue(tx: &mut Tx, kind: Kind, payload: Json, key: Option<String>) -> Result<(), StoreError> {
    let new = NewJob {
        kind: kind.as_str(),
        payload,
        unique_key: key.map(|key| format!("{}:{key}", kind.as_str())),
        priority: PRIORITY,
        run_at: tx.now(),
        max_attempts: kind.max_attempts(),
    };
    jobs::enqueue(tx, &new).await.map(drop)
}
