//! `abide repo`

use super::with_forge;
use crate::config::Config;
use crate::failure::Failure;
use crate::show;
use abide_core::RepoId;
use abide_forge::Forge;
use abide_forge::repos::{Repo, find, list};
use serde_json::{Value, json};

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Show all repositories, deleted ones included.
    List {
        /// JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Show one repository.
    Show {
        /// owner/name or id.
        repo: String,
        /// JSON instead of lines.
        #[arg(long)]
        json: bool,
    },
    /// Print where a repository is on disk.
    Path {
        /// owner/name or id.
        repo: String,
    },
}

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    with_forge(config, async |forge| match action {
        Action::List { json } => show_all(forge, json).await,
        Action::Show { repo, json } => {
            let repo = named(forge, &repo).await?;
            let value = describe(forge, &repo);
            match (json, &value) {
                (false, Value::Object(fields)) => {
                    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let rows: Vec<_> = fields.iter().map(|(name, value)| vec![name.clone(), text(value)]).collect();
                    show::table(&["FIELD", "VALUE"], &rows);
                }
                _ => show::json(&value),
            }
            Ok(())
        }
        Action::Path { repo } => {
            println!("{}", list::path(forge, &named(forge, &repo).await?).display());
            Ok(())
        }
    })
    .await
}

/// A repository by slug or id, whatever its state.
async fn named(forge: &Forge, text: &str) -> Result<Repo, Failure> {
    find::for_operator(forge, text)
        .await?
        .ok_or_else(|| Failure::not_found(format!("there is no repository {text}")).hint("`abide repo list` shows all"))
}

fn state(repo: &Repo) -> &'static str {
    match (repo.deleted_at, repo.archived_at) {
        (Some(_), _) => "deleted",
        (None, Some(_)) => "archived",
        (None, None) => "active",
    }
}

fn describe(forge: &Forge, repo: &Repo) -> Value {
    let time = |at: Option<abide_core::Timestamp>| at.map(|at| at.to_string());
    json!({
        "id": repo.id.get(),
        "slug": repo.slug(),
        "description": repo.description,
        "visibility": repo.visibility.as_str(),
        "state": state(repo),
        "default_branch": repo.default_branch.as_branch(),
        "governance": repo.governance.as_str(),
        "size_bytes": repo.size_bytes,
        "path": list::path(forge, repo).display().to_string(),
        "created_at": repo.created_at.to_string(),
        "pushed_at": time(repo.pushed_at),
        "archived_at": time(repo.archived_at),
        "deleted_at": time(repo.deleted_at),
    })
}

async fn show_all(forge: &Forge, as_json: bool) -> Result<(), Failure> {
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
            vec![repo.id.to_string(), repo.slug(), repo.visibility.to_string(), state(repo).into(), pushed]
        })
        .collect();
    show::table(&["ID", "REPOSITORY", "VISIBILITY", "STATE", "PUSHED"], &rows);
    Ok(())
}
