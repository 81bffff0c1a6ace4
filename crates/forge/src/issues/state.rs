//! Closing an issue and opening it again.

use super::IssueError;
use super::scene::Scene;
use abide_core::Oid;
use abide_core::event::{IssueState, Origin, Payload};
use abide_core::issues::{self as rules, Reason, State};
use abide_core::policy::IssueAction;
use abide_store::issue_timeline::Told;
use abide_store::{Tx, issues};
use serde_json::json;

/// Puts an issue into a state, perhaps because a commit in its own repository says so.
pub(super) async fn step(
    tx: &mut Tx,
    scene: &mut Scene,
    to: State,
    why: Option<Reason>,
    by: Option<Oid>,
) -> Result<(), IssueError> {
    scene.ensure(if to == State::Open { IssueAction::Reopen } else { IssueAction::Close })?;
    let Some((state, reason)) = rules::moved(scene.issue.state, scene.issue.reason, to, why) else { return Ok(()) };
    issues::set_state(tx, &scene.issue, state, reason, scene.who.user).await?;
    (scene.issue.state, scene.issue.reason) = (state, reason);
    let commit = by.map(|commit| commit.to_string());
    let changed = IssueState { issue: scene.issue_ref(), reason, commit: commit.clone() };
    let (timeline, payload) = match state {
        State::Open => ("reopened", Payload::IssueReopened(Origin::Local(changed))),
        State::Closed => ("closed", Payload::IssueClosed(Origin::Local(changed))),
    };
    let detail = json!({ "state_reason": reason.map(Reason::as_str) });
    let told = Told { kind: timeline, detail, source_repo: by.map(|_| scene.repo.id), commit, ..Told::default() };
    scene.tell(tx, told).await?;
    Ok(scene.emit(tx, payload).await?)
}
