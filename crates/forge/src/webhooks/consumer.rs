//! From the log to deliveries: each event becomes a row for every hook that asked for it, in the transaction that moves
//! the cursor past the event.

use super::{guid, payload};
use crate::consumers::Consumer;
use crate::{Fault, Forge};
use abide_core::RepoId;
use abide_core::webhooks::tellings;
use abide_store::events::Numbered;
use abide_store::{Tx, deliveries, webhooks};
use futures_util::future::BoxFuture;
use serde_json::Value as Json;

/// Room for the parts of one telling, so that a part keeps its number whoever asked for what.
const TELLING: i64 = 1_000_000;

/// The consumer.
pub(crate) struct Webhooks;

impl Consumer for Webhooks {
    fn name(&self) -> &'static str {
        "webhooks"
    }

    fn wants(&self, kind: &str) -> bool {
        !tellings(kind, None).is_empty()
    }

    fn apply<'a>(&'a self, tx: &'a mut Tx, forge: &'a Forge, event: &'a Numbered) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(tell(tx, forge, event))
    }
}

async fn tell(tx: &mut Tx, forge: &Forge, event: &Numbered) -> Result<(), Fault> {
    let told: Json = serde_json::from_str(&event.payload).unwrap_or_default();
    // An event loses its repository with the row, and its payload keeps the number.
    let Some(repo) = event.repo.or_else(|| told["repo_id"].as_i64().map(RepoId::new)) else { return Ok(()) };
    let hooks = webhooks::listening(tx, repo, event.created_at).await?;
    for (place, telling) in (0..).zip(tellings(&event.kind, told["after"].as_str())) {
        let wanted: Vec<_> = hooks.iter().filter(|hook| hook.events.contain(telling.kind)).collect();
        if wanted.is_empty() {
            continue;
        }
        let messages = payload::of_event(tx, forge, event, &told, repo, *telling).await?;
        for (part, message) in (place * TELLING..).zip(messages) {
            for hook in &wanted {
                let new = message.for_hook(hook.id, guid(forge), Some((event.id, part)));
                deliveries::enqueue(tx, &new).await?;
            }
        }
    }
    if event.kind == "repo_hard_deleted" {
        webhooks::gone(tx, repo).await?;
    }
    Ok(())
}
