//! Labelling an issue.

use super::IssueError;
use super::change::Names;
use super::scene::Scene;
use crate::repos::open::may;
use abide_core::event::{IssueLabel, Payload};
use abide_core::issues::text::{Colour, LabelName};
use abide_core::policy::{Action, IssueAction};
use abide_store::issue_timeline::Told;
use abide_store::labels::{self, Label, Look};
use abide_store::{Tx, issues};
use serde_json::json;

/// Gives an issue labels or takes them off. A label that is not there yet is made by those who may make labels.
pub(super) async fn step(tx: &mut Tx, scene: &Scene, names: &Names) -> Result<(), IssueError> {
    if *names == Names::Add(Vec::new()) {
        return Ok(());
    }
    scene.ensure(IssueAction::Triage)?;
    let mut all = labels::of_many(tx, &[scene.issue.id]).await?;
    let before = all.remove(&scene.issue.id).unwrap_or_default();
    let (wanted, unwanted) = match names {
        Names::Add(names) => (resolve(tx, scene, names).await?, Vec::new()),
        Names::Set(names) => {
            let wanted = resolve(tx, scene, names).await?;
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
    let limit = scene.settings.labels_per_issue;
    let fresh = wanted.iter().filter(|label| !before.contains(label)).count();
    if before.len() + fresh - unwanted.len().min(before.len()) > limit {
        return Err(IssueError::TooMany { field: "labels", limit: limit as i64 });
    }
    let mut changed = false;
    for label in &unwanted {
        if labels::detach(tx, scene.issue.id, label.id).await? {
            told(tx, scene, label, false).await?;
            changed = true;
        }
    }
    for label in &wanted {
        if labels::attach(tx, scene.issue.id, label.id).await? {
            told(tx, scene, label, true).await?;
            changed = true;
        }
    }
    if changed {
        issues::touch(tx, scene.issue.id).await?;
    }
    Ok(())
}

async fn told(tx: &mut Tx, scene: &Scene, label: &Label, on: bool) -> Result<(), IssueError> {
    let detail = json!({ "label": { "name": label.name.as_str(), "color": label.color.as_str() } });
    let changed = IssueLabel { issue: scene.issue_ref(), label_id: Some(label.id) };
    let (timeline, payload) = match on {
        true => ("labeled", Payload::IssueLabeled(changed)),
        false => ("unlabeled", Payload::IssueUnlabeled(changed)),
    };
    scene.tell(tx, Told { kind: timeline, detail, ..Told::default() }).await?;
    Ok(scene.emit(tx, payload).await?)
}

/// The labels of those names, each once.
async fn resolve(tx: &mut Tx, scene: &Scene, names: &[String]) -> Result<Vec<Label>, IssueError> {
    let mut found: Vec<Label> = Vec::new();
    for name in names {
        let name: LabelName = name.parse().map_err(IssueError::at("labels"))?;
        let label = match labels::by_name(tx, scene.repo.id, &name.folded()).await? {
            Some(label) => label,
            None if may(&scene.caller, &scene.repo, Action::IssueModerate) => {
                let look = Look { name, color: Colour::default(), description: String::new() };
                super::labels::add(tx, &scene.who, &scene.repo, &look, scene.settings.labels).await?
            }
            None => return Err(IssueError::UnknownLabel(name.to_string())),
        };
        if !found.contains(&label) {
            found.push(label);
        }
        // Within the loop: a list of any length costs no more than one that is too long by one.
        if found.len() > scene.settings.labels_per_issue {
            let limit = scene.settings.labels_per_issue as i64;
            return Err(IssueError::TooMany { field: "labels", limit });
        }
    }
    Ok(found)
}
