//! Labels of an issue.

use super::IssueError;
use super::change::Names;
use super::context::IssueContext;
use crate::open::may;
use abide_core::event::{IssueLabel, Payload};
use abide_core::issues::text::{Colour, LabelName};
use abide_core::issues::timeline::{Detail, LabelDetail, LabelThen};
use abide_core::policy::{Action, IssueAction};
use abide_store::issues::labels::{self, Label, Look};
use abide_store::issues::timeline::NewEntry;
use abide_store::{Tx, issues};

/// Adds labels to an issue or removes them. An unknown label is created if the caller may manage labels.
pub(super) async fn step(tx: &mut Tx, context: &IssueContext, names: &Names) -> Result<(), IssueError> {
    if *names == Names::Add(Vec::new()) {
        return Ok(());
    }
    context.ensure(IssueAction::Triage)?;
    let mut all = labels::of_many(tx, &[context.issue.id]).await?;
    let before = all.remove(&context.issue.id).unwrap_or_default();
    let (wanted, unwanted) = match names {
        Names::Add(names) => (resolve(tx, context, names).await?, Vec::new()),
        Names::Set(names) => {
            let wanted = resolve(tx, context, names).await?;
            let unwanted = before.iter().filter(|label| !wanted.contains(label)).cloned().collect();
            (wanted, unwanted)
        }
        Names::Remove(names) => {
            let named = |name: &String| {
                let found = before.iter().find(|label| label.name.folded() == name.trim().to_lowercase());
                found.cloned().ok_or(IssueError::NotFound("label"))
            };
            (Vec::new(), names.iter().map(named).collect::<Result<_, _>>()?)
        }
    };
    let limit = context.settings.labels_per_issue;
    let fresh = wanted.iter().filter(|label| !before.contains(label)).count();
    if before.len() + fresh - unwanted.len().min(before.len()) > limit {
        return Err(IssueError::TooMany { field: "labels", limit: limit as i64 });
    }
    let mut changed = false;
    for label in &unwanted {
        if labels::detach(tx, context.issue.id, label.id).await? {
            record_change(tx, context, label, false).await?;
            changed = true;
        }
    }
    for label in &wanted {
        if labels::attach(tx, context.issue.id, label.id).await? {
            record_change(tx, context, label, true).await?;
            changed = true;
        }
    }
    if changed {
        issues::touch(tx, context.issue.id).await?;
    }
    Ok(())
}

async fn record_change(tx: &mut Tx, context: &IssueContext, label: &Label, on: bool) -> Result<(), IssueError> {
    let label_then = LabelThen { color: label.color.as_str().to_owned(), name: label.name.as_str().to_owned() };
    let detail = Detail::Label(LabelDetail { label: label_then }).stored();
    let changed = IssueLabel { issue: context.issue_ref(), label_id: Some(label.id) };
    let (timeline, payload) = match on {
        true => ("labeled", Payload::IssueLabeled(changed)),
        false => ("unlabeled", Payload::IssueUnlabeled(changed)),
    };
    context.append_entry(tx, NewEntry { kind: timeline, detail, ..NewEntry::default() }).await?;
    Ok(context.emit(tx, payload).await?)
}

/// The labels with these names, without duplicates.
async fn resolve(tx: &mut Tx, context: &IssueContext, names: &[String]) -> Result<Vec<Label>, IssueError> {
    let mut found: Vec<Label> = Vec::new();
    for name in names {
        let name: LabelName = name.parse().map_err(IssueError::at("labels"))?;
        let label = match labels::by_name(tx, context.repo.id, &name.folded()).await? {
            Some(label) => label,
            None if may(&context.caller, &context.repo, Action::IssueModerate) => {
                let look = Look { name, color: Colour::default(), description: String::new() };
                super::labels::add(tx, &context.who, &context.repo, &look, context.settings.labels).await?
            }
            None => return Err(IssueError::UnknownLabel(name.to_string())),
        };
        if !found.contains(&label) {
            found.push(label);
        }
        // Checked in the loop, so that a longer list costs no more than the first name beyond the limit.
        if found.len() > context.settings.labels_per_issue {
            let limit = context.settings.labels_per_issue as i64;
            return Err(IssueError::TooMany { field: "labels", limit });
        }
    }
    Ok(found)
}
