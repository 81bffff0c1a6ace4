//! Commands that show repositories.

use crate::failure::Failure;
use crate::show;
use abide_core::{RepoId, Timestamp};
use abide_forge::repos::redirects::Redirect;
use abide_forge::repos::transfer::Offer;
use abide_forge::repos::{Repo, list, redirects, restore, transfer};
use abide_forge::{Caller, Forge};
use serde_json::{Value, json};

pub(super) async fn one(forge: &Forge, repo: &Repo, as_json: bool) -> Result<(), Failure> {
    let operator = Caller::operator();
    let offer = transfer::pending(forge, &operator, repo).await?;
    let old = redirects::list(forge, &operator, repo).await?;
    let mut value = describe(forge, repo);
    value["offer"] = offer.as_ref().map(describe_offer).unwrap_or_default();
    value["old_names"] = old.iter().map(slug).collect();
    match &value {
        Value::Object(fields) if !as_json => {
            let rows: Vec<_> = fields.iter().map(|(name, value)| vec![name.clone(), in_words(value)]).collect();
            show::table(&["FIELD", "VALUE"], &rows);
        }
        _ => show::json(&value),
    }
    Ok(())
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name} {}", in_words(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// An old name of a repository, after the current name of its owner at that time.
fn slug(old: &Redirect) -> String {
    match &old.owner {
        Some(owner) => format!("{owner}/{}", old.name),
        None => old.name.to_string(),
    }
}

/// A transfer offer as JSON.
pub(super) fn describe_offer(Offer { transfer, .. }: &Offer) -> Value {
    json!({
        "id": transfer.id.get(),
        "to": transfer.recipient_name.as_ref().map(ToString::to_string),
        "expires_at": transfer.expires_at.to_string(),
    })
}

/// The repository's row, for `--json`.
pub(super) fn describe(forge: &Forge, repo: &Repo) -> Value {
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    json!({
        "id": repo.id.get(),
        "slug": repo.slug(),
        "description": repo.description,
        "visibility": repo.visibility.as_str(),
        "state": repo.state().phase().as_str(),
        "default_branch": repo.default_branch.as_branch(),
        "governance": repo.governance.as_str(),
        "size_bytes": repo.size_bytes,
        "path": list::path(forge, repo).display().to_string(),
        "created_at": repo.created_at.to_string(),
        "pushed_at": time(repo.pushed_at),
        "archived_at": time(repo.archived_at),
        "deleted_at": time(repo.deleted_at),
        "restore_until": time(restore::until(forge, repo)),
    })
}

pub(super) async fn all(forge: &Forge, as_json: bool) -> Result<(), Failure> {
    const PAGE: i64 = 500;
    let mut all = Vec::new();
    let mut after = RepoId::new(0);
    loop {
        let page = list::everything(forge, after, PAGE).await?;
        let short = page.len() < PAGE as usize;
        after = page.last().map_or(after, |last| last.id);
        all.extend(page);
        if short {
            break;
        }
    }
    if as_json {
        show::json(&all.iter().map(|repo| describe(forge, repo)).collect());
        return Ok(());
    }
    let rows: Vec<_> = all
        .iter()
        .map(|repo| {
            let pushed = repo.pushed_at.map_or_else(|| "never".into(), |at| at.to_string());
            vec![
                repo.id.to_string(),
                repo.slug(),
                repo.visibility.to_string(),
                repo.state().phase().as_str().into(),
                pushed,
            ]
        })
        .collect();
    show::table(&["ID", "REPOSITORY", "VISIBILITY", "STATE", "PUSHED"], &rows);
    Ok(())
}
