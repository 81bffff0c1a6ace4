//! Review requests. No road uses them until there are pull requests.

use super::IssueError;
use super::context::{IssueContext, Target};
use super::involve::{involved, reads};
use crate::{Caller, Forge};
use abide_core::UserName;
use abide_core::event::{Payload, ReviewRequested};
use abide_core::policy::IssueAction;
use abide_macros::boxed;
use abide_store::Tx;
use abide_store::accounts::users;
use abide_store::issues::people::Why;
use abide_store::repos::Repo;

/// Requests a review from an account that may read the repository.
#[boxed]
pub async fn request(
    forge: &Forge,
    caller: &Caller,
    repo: &Repo,
    number: i64,
    reviewer: &UserName,
) -> Result<(), IssueError> {
    let settings = forge.settings().issues.clone();
    let target = Target { caller: caller.clone(), repo: repo.id, number, settings };
    let unit = (target, reviewer.clone());
    forge.store().write(unit, |tx, (target, reviewer)| Box::pin(write(tx, target, reviewer))).await
}

async fn write(tx: &mut Tx, target: &Target, reviewer: &UserName) -> Result<(), IssueError> {
    let context = IssueContext::open(tx, target).await?;
    context.ensure(IssueAction::Triage)?;
    let unknown = IssueError::NotFound("reviewer");
    let Some(user) = users::by_name(tx, reviewer).await? else { return Err(unknown) };
    if !reads(tx, &user, &context.repo).await? {
        return Err(unknown);
    }
    involved(tx, user.id, &context.repo, &context.issue, Why::ReviewRequested).await?;
    let request = ReviewRequested { issue: context.issue_ref(), reviewer: reviewer.to_string(), reviewer_id: user.id };
    Ok(context.emit(tx, Payload::ReviewRequested(request)).await?)
}
