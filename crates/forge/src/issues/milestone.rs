//! Putting an issue into a milestone.

use super::IssueError;
use super::scene::Scene;
use abide_core::event::{IssueMilestone, Payload};
use abide_core::policy::IssueAction;
use abide_store::issue_timeline::Told;
use abide_store::milestones::Milestone;
use abide_store::{Tx, issues, milestones};
use serde_json::json;

/// Puts an issue into the milestone of that number, or out of the one it is in.
pub(super) async fn step(tx: &mut Tx, scene: &mut Scene, number: Option<i64>) -> Result<(), IssueError> {
    scene.ensure(IssueAction::Triage)?;
    let wanted = match number {
        None => None,
        Some(number) => {
            let found = milestones::by_number(tx, scene.repo.id, number).await?;
            Some(found.ok_or(IssueError::UnknownMilestone(number))?)
        }
    };
    let before = scene.issue.milestone_id;
    let after = wanted.as_ref().map(|milestone| milestone.id);
    if before == after {
        return Ok(());
    }
    issues::set_milestone(tx, scene.issue.id, after).await?;
    scene.issue.milestone_id = after;
    if let Some(before) = before
        && let Some(left) = milestones::by_ids(tx, &[before]).await?.first()
    {
        told(tx, scene, left, false).await?;
    }
    if let Some(milestone) = wanted {
        told(tx, scene, &milestone, true).await?;
    }
    Ok(())
}

async fn told(tx: &mut Tx, scene: &Scene, milestone: &Milestone, on: bool) -> Result<(), IssueError> {
    let changed = IssueMilestone { issue: scene.issue_ref(), milestone_id: Some(milestone.id) };
    let (timeline, payload) = match on {
        true => ("milestoned", Payload::IssueMilestoned(changed)),
        false => ("demilestoned", Payload::IssueDemilestoned(changed)),
    };
    let detail = json!({ "milestone": { "title": milestone.title } });
    scene.tell(tx, Told { kind: timeline, detail, ..Told::default() }).await?;
    Ok(scene.emit(tx, payload).await?)
}
