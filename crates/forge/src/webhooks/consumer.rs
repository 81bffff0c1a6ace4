//! Consumer of the event log: it writes one delivery for each webhook that subscribes to an event, in the transaction that
//! moves the cursor past the event.

use super::{guid, payload};
use crate::consumer::{Consumer, read};
use crate::{Fault, Forge};
use abide_core::event::{Kind, Payload};
use abide_core::repo::Visibility;
use abide_core::webhooks::hook_events;
use abide_store::Tx;
use abide_store::events::Numbered;
use abide_store::webhooks::{self, deliveries};
use futures_util::future::BoxFuture;

/// Part numbers reserved for each webhook event. The number of a delivery must not depend on the current subscriptions,
/// because a repeated batch finds existing deliveries by it.
const PARTS: i64 = 1_000_000;

/// Consumer `webhooks`.
pub(crate) struct Webhooks;

impl Consumer for Webhooks {
    fn name(&self) -> &'static str {
        "webhooks"
    }

    fn wants(&self, kind: Kind) -> bool {
        !hook_events(kind, None).is_empty()
    }

    fn apply<'a>(&'a self, tx: &'a mut Tx, forge: &'a Forge, event: &'a Numbered) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(enqueue(tx, forge, event))
    }
}

async fn enqueue(tx: &mut Tx, forge: &Forge, event: &Numbered) -> Result<(), Fault> {
    let body = read(event)?;
    // Deleting a repository clears the event's column (`ON DELETE SET NULL`); the payload keeps the id.
    let Some(repo) = event.repo.or(body.repo.repo_id) else { return Ok(()) };
    let hooks = webhooks::listening(tx, repo, event.created_at).await?;
    for (index, sent) in (0..).zip(hook_events(body.payload.kind(), new_visibility(&body.payload))) {
        let wanted: Vec<_> = hooks.iter().filter(|hook| hook.events.contain(sent.kind)).collect();
        if wanted.is_empty() {
            continue;
        }
        let messages = payload::of_event(tx, forge, event, &body, repo, *sent).await?;
        for (part, message) in (index * PARTS..).zip(messages) {
            for hook in &wanted {
                let new = message.for_hook(hook.id, guid(forge), Some((event.id, part)));
                deliveries::enqueue(tx, &new).await?;
            }
        }
    }
    if body.payload.kind() == Kind::RepoHardDeleted {
        webhooks::gone(tx, repo).await?;
    }
    Ok(())
}

fn new_visibility(payload: &Payload) -> Option<Visibility> {
    let Payload::RepoVisibilityChanged(changed) = payload else { return None };
    Some(changed.after)
}
