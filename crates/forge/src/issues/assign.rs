//! Assignees of an issue.

use super::IssueError;
use super::change::Names;
use super::context::IssueContext;
use super::involve::involved;
use abide_core::UserId;
use abide_core::event::{IssueAssignee, Payload};
use abide_core::issues::assignable;
use abide_core::issues::timeline::{AssigneeDetail, Detail};
use abide_core::policy::IssueAction;
use abide_store::accounts::users;
use abide_store::issues::people::{Person, Why};
use abide_store::issues::timeline::NewEntry;
use abide_store::repos::collaborators;
use abide_store::{Tx, issues};

/// Adds or removes assignees.
pub(super) async fn step(tx: &mut Tx, context: &IssueContext, names: &Names) -> Result<(), IssueError> {
    if *names == Names::Add(Vec::new()) {
        return Ok(());
    }
    context.ensure(IssueAction::Triage)?;
    let mut all = issues::people::assignees_of_many(tx, &[context.issue.id]).await?;
    let before = all.remove(&context.issue.id).unwrap_or_default();
    let (wanted, unwanted) = match names {
        Names::Add(names) => (resolve(tx, context, names).await?, Vec::new()),
        Names::Set(names) => {
            let wanted = resolve(tx, context, names).await?;
            let unwanted = before.iter().filter(|person| wanted.iter().all(|(id, _)| *id != person.id)).collect();
            (wanted, unwanted)
        }
        // Removing a name that is no assignee, or no account, changes nothing.
        Names::Remove(names) => (Vec::new(), before.iter().filter(|person| is_named(person, names)).collect()),
    };
    let limit = context.settings.assignees_per_issue;
    let fresh = wanted.iter().filter(|(id, _)| before.iter().all(|person| person.id != *id)).count();
    if before.len() + fresh - unwanted.len() > limit {
        return Err(IssueError::TooMany { field: "assignees", limit: limit as i64 });
    }
    let mut changed = false;
    for person in unwanted {
        if issues::people::unassign(tx, context.issue.id, person.id).await? {
            let name = person.name.as_ref().map(ToString::to_string).unwrap_or_default();
            record_change(tx, context, person.id, &name, false).await?;
            changed = true;
        }
    }
    for (id, name) in wanted {
        if issues::people::assign(tx, context.issue.id, id).await? {
            involved(tx, id, &context.repo, &context.issue, Why::Assign).await?;
            record_change(tx, context, id, &name, true).await?;
            changed = true;
        }
    }
    if changed {
        issues::touch(tx, context.issue.id).await?;
    }
    Ok(())
}

fn is_named(person: &Person, names: &[String]) -> bool {
    person.name.as_ref().is_some_and(|name| names.iter().any(|typed| typed.eq_ignore_ascii_case(name.as_str())))
}

async fn record_change(
    tx: &mut Tx,
    context: &IssueContext,
    user: UserId,
    name: &str,
    on: bool,
) -> Result<(), IssueError> {
    let assignee = IssueAssignee { issue: context.issue_ref(), assignee: name.to_owned(), assignee_id: user };
    let (timeline, payload) = match on {
        true => ("assigned", Payload::IssueAssigned(assignee)),
        false => ("unassigned", Payload::IssueUnassigned(assignee)),
    };
    let detail = Detail::Assignee(AssigneeDetail { assignee: name.to_owned(), assignee_id: user.get() }).stored();
    context.append_entry(tx, NewEntry { kind: timeline, detail, ..NewEntry::default() }).await?;
    Ok(context.emit(tx, payload).await?)
}

async fn resolve(tx: &mut Tx, context: &IssueContext, names: &[String]) -> Result<Vec<(UserId, String)>, IssueError> {
    let mut found: Vec<(UserId, String)> = Vec::new();
    for typed in names {
        let unknown = || IssueError::UnknownAssignee(typed.chars().take(40).collect());
        let name = typed.trim().trim_start_matches('@').parse().map_err(|_| unknown())?;
        let user = users::by_name(tx, &name).await?.ok_or_else(unknown)?;
        let role = collaborators::role(tx, context.repo.id, user.id).await?;
        if !assignable(user.id, context.repo.owner_id, role, user.suspended_at.is_some()) {
            return Err(unknown());
        }
        if found.iter().all(|(id, _)| *id != user.id) {
            found.push((user.id, name.to_string()));
        }
        if found.len() > context.settings.assignees_per_issue {
            let limit = context.settings.assignees_per_issue as i64;
            return Err(IssueError::TooMany { field: "assignees", limit });
        }
    }
    Ok(found)
}
