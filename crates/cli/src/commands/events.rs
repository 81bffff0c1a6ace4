//! `abide events`

use super::with_forge;
use crate::config::Config;
use crate::failure::Failure;
use crate::show::{self, say};
use abide_forge::consumers;
use abide_forge::consumers::manage::{self, Settle, SettleError};
use serde_json::json;

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// Show how far each consumer of the log of events has come.
    Status {
        /// JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Show events that a consumer could not take in, the latest first.
    Failures {
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: i64,
        /// JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Have a consumer take in an event after all.
    Retry {
        /// Which consumer.
        consumer: String,
        /// The event's number in the list.
        event: i64,
    },
    /// Let go of an event that a consumer could not take in.
    Drop {
        /// Which consumer.
        consumer: String,
        /// The event's number in the list.
        event: i64,
    },
}

pub(crate) async fn run(config: &Config, action: Action) -> Result<(), Failure> {
    with_forge(config, async |forge| match action {
        Action::Status { json } => {
            let all = manage::status(forge).await?;
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
            let all = manage::failures(forge, i64::MAX, limit.clamp(1, 10_000)).await?;
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
            manage::settle(forge, &consumers::all(), (&consumer, event), Settle::Retry).await.map_err(told)?;
            say!("{consumer} has taken in event {event}");
            Ok(())
        }
        Action::Drop { consumer, event } => {
            manage::settle(forge, &consumers::all(), (&consumer, event), Settle::Drop).await.map_err(told)?;
            say!("{consumer} lets go of event {event}");
            Ok(())
        }
    })
    .await
}

fn told(error: SettleError) -> Failure {
    match error {
        SettleError::NoConsumer(_) | SettleError::NotSetAside { .. } => Failure::not_found(error.to_string()),
        SettleError::Again(_) | SettleError::Access(_) => Failure::failed(error.to_string()),
    }
}
