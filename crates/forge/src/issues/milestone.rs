//! Milestone of an issue.

use super::IssueError;
use super::context::IssueContext;
use abide_core::event::{IssueMilestone, Payload};
use abide_core::issues::timeline::{Detail, MilestoneDetail, MilestoneThen};
use abide_core::policy::IssueAction;
use abide_store::Tx;
use abide_store::issues::milestones::Milestone;
use abide_store::issues::timeline::NewEntry;
use abide_store::issues::{self, milestones};

/// Sets or removes the milestone of an issue.
pub(super) async fn step(tx: &mut Tx, context: &mut IssueContext, number: Option<i64>) -> Result<(), IssueError> {
    context.ensure(IssueAction::Triage)?;
    let wanted = match number {
        None => None,
        Some(number) => {
            let found = milestones::by_number(tx, context.repo.id, number).await?;
            Some(found.ok_or(IssueError::UnknownMilestone(number))?)
        }
    };
    let before = context.issue.milestone_id;
    let after = wanted.as_ref().map(|milestone| milestone.id);
    if before == after {
        return Ok(());
    }
    issues::set_milestone(tx, context.issue.id, after).await?;
    context.issue.milestone_id = after;
    if let Some(before) = before
        && let Some(left) = milestones::by_ids(tx, &[before]).await?.first()
    {
        record_change(tx, context, left, false).await?;
    }
    if let Some(milestone) = wanted {
        record_change(tx, context, &milestone, true).await?;
    }
    Ok(())
}

async fn record_change(tx: &mut Tx, context: &IssueContext, milestone: &Milestone, on: bool) -> Result<(), IssueError> {
    let changed = IssueMilestone { issue: context.issue_ref(), milestone_id: Some(milestone.id) };
    let (timeline, payload) = match on {
        true => ("milestoned", Payload::IssueMilestoned(changed)),
        false => ("demilestoned", Payload::IssueDemilestoned(changed)),
    };
    let milestone_then = MilestoneThen { title: milestone.title.clone() };
    let detail = Detail::Milestone(MilestoneDetail { milestone: milestone_then }).stored();
    context.append_entry(tx, NewEntry { kind: timeline, detail, ..NewEntry::default() }).await?;
    Ok(context.emit(tx, payload).await?)
}
