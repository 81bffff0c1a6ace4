//! Closing and reopening an issue.

use super::IssueError;
use super::context::IssueContext;
use abide_core::Oid;
use abide_core::event::{IssueState, Origin, Payload};
use abide_core::issues::timeline::{Detail, StateDetail};
use abide_core::issues::{self as rules, Reason, State};
use abide_core::policy::IssueAction;
use abide_store::issues::timeline::NewEntry;
use abide_store::{Tx, issues};

/// Sets the state of an issue. `by`: the commit of its own repository that closes it.
pub(super) async fn step(
    tx: &mut Tx,
    context: &mut IssueContext,
    to: State,
    why: Option<Reason>,
    by: Option<Oid>,
) -> Result<(), IssueError> {
    context.ensure(if to == State::Open { IssueAction::Reopen } else { IssueAction::Close })?;
    let Some((state, reason)) = rules::moved(context.issue.state, context.issue.reason, to, why) else { return Ok(()) };
    issues::set_state(tx, &context.issue, state, reason, context.who.user).await?;
    (context.issue.state, context.issue.reason) = (state, reason);
    let commit = by.map(|commit| commit.to_string());
    let changed = IssueState { issue: context.issue_ref(), reason, commit: commit.clone() };
    let (timeline, payload) = match state {
        State::Open => ("reopened", Payload::IssueReopened(Origin::Local(changed))),
        State::Closed => ("closed", Payload::IssueClosed(Origin::Local(changed))),
    };
    let detail = Detail::State(StateDetail { state_reason: reason }).stored();
    let entry =
        NewEntry { kind: timeline, detail, source_repo: by.map(|_| context.repo.id), commit, ..NewEntry::default() };
    context.append_entry(tx, entry).await?;
    Ok(context.emit(tx, payload).await?)
}
