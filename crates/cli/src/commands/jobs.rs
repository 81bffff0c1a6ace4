//! `abide jobs`

use super::with_forge;
use crate::config::Config;
use crate::failure::Failure;
use crate::show::{self, say};
use abide_forge::By;
use abide_forge::jobs::{Job, Kind, manage};
use serde_json::{Value, json};

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// List jobs, newest first.
    List {
        /// Only jobs in this state: waiting, running, done or failed.
        #[arg(long, value_parser = ["waiting", "running", "done", "failed"])]
        state: Option<String>,
        /// Maximum number of jobs.
        #[arg(long, default_value_t = 100)]
        limit: i64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run one job now and wait for it to end.
    Run {
        /// Kind of job, e.g. repo:maintain. An unknown kind prints the list of kinds.
        kind: String,
        /// Payload of the job as JSON, e.g. {"repo_id": 1}.
        #[arg(long, value_name = "JSON")]
        payload: Option<String>,
    },
    /// Queue an ended job again.
    Retry {
        /// Job id.
        id: i64,
    },
}

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    with_forge(config, async |forge| match action {
        Action::List { state, limit, json } => {
            show_all(&manage::list(forge, &By::Operator, state.as_deref(), limit.clamp(1, 10_000)).await?, json);
            Ok(())
        }
        Action::Run { kind, payload } => {
            let kinds: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
            let kind = Kind::parse(&kind).ok_or_else(|| {
                Failure::usage(format!("unknown kind of job {kind}")).hint(format!("kinds: {}", kinds.join(", ")))
            })?;
            let payload = payload.map_or(Ok(Value::Null), |text| serde_json::from_str(&text));
            let payload = payload.map_err(|error| Failure::usage(format!("--payload is not valid JSON: {error}")))?;
            let job = manage::run_now(forge, &By::Operator, kind, payload).await?;
            match job.state.as_str() {
                "done" => {
                    say!("{} done", job.kind);
                    Ok(())
                }
                _ => Err(Failure::failed(format!("{} failed: {}", job.kind, job.last_error.unwrap_or_default()))),
            }
        }
        Action::Retry { id } => match manage::retry(forge, &By::Operator, id).await? {
            true => {
                say!("queued job {id} again");
                Ok(())
            }
            false => {
                Err(Failure::not_found(format!("no ended job has the id {id}, or the same job is queued already")))
            }
        },
    })
    .await
}

fn show_all(all: &[Job], as_json: bool) {
    if as_json {
        let items = all.iter().map(|job| {
            json!({
                "id": job.id, "kind": job.kind, "state": job.state, "attempts": job.attempts,
                "max_attempts": job.max_attempts, "priority": job.priority, "run_at": job.run_at.to_string(),
                "created_at": job.created_at.to_string(), "finished_at": job.finished_at.map(|at| at.to_string()),
                "last_error": job.last_error, "payload": serde_json::from_str::<Value>(&job.payload).ok(),
            })
        });
        return show::json(&items.collect());
    }
    let rows: Vec<_> = all
        .iter()
        .map(|job| {
            let tries = format!("{}/{}", job.attempts, job.max_attempts);
            let error = job.last_error.clone().unwrap_or_default();
            vec![job.id.to_string(), job.kind.clone(), job.state.clone(), tries, job.run_at.to_string(), error]
        })
        .collect();
    show::table(&["ID", "KIND", "STATE", "TRIES", "DUE", "LAST ERROR"], &rows);
}
