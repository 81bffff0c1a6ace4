//! An issue in its repository while it is being changed, with its timeline and events.

use super::IssueError;
use crate::emit::{Subject, Who, emit};
use crate::open::{judge_decision, open_locked};
use crate::{Access, Caller, IssueSettings, Rate};
use abide_core::event::{IssueRef, Payload};
use abide_core::policy::{self, Action, IssueAction};
use abide_core::{RepoId, UserId};
use abide_store::issues::timeline::NewEntry;
use abide_store::issues::{self, Issue};
use abide_store::repos::Repo;
use abide_store::throttles::{self, Limit};
use abide_store::{StoreError, Tx};

/// Target of a unit of work about one issue.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub caller: Caller,
    pub repo: RepoId,
    pub number: i64,
    pub settings: IssueSettings,
}

/// An issue whose repository is locked.
pub(super) struct IssueContext {
    pub caller: Caller,
    pub who: Who,
    pub repo: Repo,
    pub issue: Issue,
    pub settings: IssueSettings,
}

impl IssueContext {
    /// Locks the repository, which the caller must be able to read, and loads the issue.
    pub(super) async fn open(tx: &mut Tx, target: &Target) -> Result<Self, IssueError> {
        let repo = open_locked(tx, &target.caller, target.repo, Action::RepoRead).await?;
        let issue = issues::by_number(tx, repo.id, target.number).await?.ok_or(IssueError::NotFound("issue"))?;
        let who = Who::from(&target.caller);
        Ok(Self { caller: target.caller.clone(), who, repo, issue, settings: target.settings.clone() })
    }

    /// Asks the policy about the issue itself.
    pub(super) fn ensure(&self, action: IssueAction) -> Result<(), Access> {
        self.ensure_of(action, self.issue.author_id)
    }

    /// Asks the policy about a text of an author in this issue.
    pub(super) fn ensure_of(&self, action: IssueAction, author: Option<UserId>) -> Result<(), Access> {
        let facts = self.repo.facts();
        judge_decision(policy::can_issue(&self.caller.actor, action, author, &facts, self.repo.role))
    }

    /// Appends to the timeline; `false` if the entry exists.
    pub(super) async fn append_entry(&self, tx: &mut Tx, entry: NewEntry) -> Result<bool, StoreError> {
        issues::timeline::append(tx, self.issue.id, self.who.user, &entry).await
    }

    /// Emits the event of a change. The log outlives texts that people edit or remove, so payloads contain none; readers
    /// take titles and texts from the live rows.
    pub(super) async fn emit(&self, tx: &mut Tx, payload: Payload) -> Result<(), StoreError> {
        let subject = Subject::Issue(&self.repo, self.issue.id);
        emit(tx, &self.who, subject, self.repo.visibility.into(), payload).await
    }

    /// The issue, for the details of an event.
    pub(super) fn issue_ref(&self) -> IssueRef {
        IssueRef { issue_id: self.issue.id, number: self.issue.number, author_id: self.issue.author_id }
    }
}

/// Counts an action of an account against its rate limit.
pub(super) async fn throttle(tx: &mut Tx, scope: &'static str, rate: Rate, user: UserId) -> Result<(), IssueError> {
    let limit = Limit { scope, times: rate.times, window: rate.window };
    match throttles::hit(tx, limit, &format!("user:{user}")).await? {
        Some(wait) => Err(IssueError::TooOften(wait)),
        None => Ok(()),
    }
}

/// Only accounts may write.
pub(super) fn writer(caller: &Caller) -> Result<UserId, Access> {
    caller.user_id().ok_or(Access::Denied(policy::DenyCode::LoginRequired))
}
