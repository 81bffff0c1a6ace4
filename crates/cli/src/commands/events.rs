//! `abide events`

use super::with_forge;
use crate::config::Config;
use crate::failure::Failure;
use crate::show::{self, say};
use abide_forge::By;
use abide_forge::consumers;
use abide_forge::consumers::manage::{self, Settle, SettleError};
use serde_json::json;

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Show for every consumer the number of the last event it processed (cursor) and how many follow (lag).
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List failed events, newest first.
    Failures {
        /// Maximum number of events.
        #[arg(long, default_value_t = 100)]
        limit: i64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Retry a failed event.
    Retry {
        /// Name of the consumer: notifications or webhooks.
        consumer: String,
        /// Number of the event.
        event: i64,
    },
    /// Discard a failed event.
    Drop {
        /// Name of the consumer: notifications or webhooks.
        consumer: String,
        /// Number of the event.
        event: i64,
    },
}

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    with_forge(config, async |forge| match action {
        Action::Status { json } => {
            let all = manage::status(forge, &By::Operator).await?;
            if json {
                let items = all.iter().map(|it| {
                    json!({
                        "name": it.name, "cursor": it.cursor, "head": it.head, "lag": it.lag(), "tries": it.tries,
                        "last_error": it.last_error, "retry_at": it.retry_at.map(|at| at.to_string()),
                        "moved_at": it.moved_at.to_string(), "failures": it.failures,
                    })
                });
                show::json(&items.collect());
                return Ok(());
            }
            let row = |it: &manage::Progress| {
                let error = it.last_error.clone().unwrap_or_default();
                let numbers = [it.cursor, it.lag(), it.failures].map(|number| number.to_string());
                let [cursor, lag, failures] = numbers;
                vec![it.name.clone(), cursor, lag, failures, it.moved_at.to_string(), error]
            };
            show::table(
                &["CONSUMER", "AT", "BEHIND", "SET ASIDE", "MOVED", "STUCK ON"],
                &all.iter().map(row).collect::<Vec<_>>(),
            );
            Ok(())
        }
        Action::Failures { limit, json } => {
            let all = manage::failures(forge, &By::Operator, i64::MAX, limit.clamp(1, 10_000)).await?;
            if json {
                let items = all.iter().map(|it| {
                    json!({
                        "consumer": it.consumer, "event": it.seq, "kind": it.kind, "error": it.error,
                        "tries": it.tries, "failed_at": it.failed_at.to_string(),
                    })
                });
                show::json(&items.collect());
                return Ok(());
            }
            let row = |it: &manage::Failure| {
                let (event, at) = (it.seq.to_string(), it.failed_at.to_string());
                vec![it.consumer.clone(), event, it.kind.clone(), at, it.error.clone()]
            };
            show::table(&["CONSUMER", "EVENT", "KIND", "WHEN", "ERROR"], &all.iter().map(row).collect::<Vec<_>>());
            Ok(())
        }
        Action::Retry { consumer, event } => {
            manage::settle(forge, &By::Operator, &consumers::all(), (&consumer, event), Settle::Retry)
                .await
                .map_err(failure)?;
            say!("{consumer} processed event {event}");
            Ok(())
        }
        Action::Drop { consumer, event } => {
            manage::settle(forge, &By::Operator, &consumers::all(), (&consumer, event), Settle::Drop)
                .await
                .map_err(failure)?;
            say!("{consumer} discarded event {event}");
            Ok(())
        }
    })
    .await
}

fn failure(error: SettleError) -> Failure {
    match error {
        SettleError::NoConsumer(_) | SettleError::NotSetAside { .. } => Failure::not_found(error.to_string()),
        SettleError::Again(_) | SettleError::Access(_) => Failure::failed(error.to_string()),
    }
}
