//! One connection to a relay, from its claim to its end.

use super::conversation::{Conversation, Stop};
use super::interest::Interest;
use super::{HOLD, Shared};
use crate::relay::Relay as Ours;
use crate::{Fault, Forge};
use abide_core::Timestamp;
use abide_core::settings::value::DAY;
use abide_core::sync::relays::pause;
use abide_nostr::client::{Capability, ClientLimits, ClientSession};
use abide_outbound::{GateError, RelayUrl, SocketLimits};
use abide_store::StoreError;
use abide_store::sync::relays::{self, Ended, Relay};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time after which a relay that nothing is asked of is looked at again: a deleted repository may have been restored.
const IDLE: Duration = Duration::from_secs(600);

/// Pause if all outbound connections are in use, or the store failed.
const CROWDED: Duration = Duration::from_secs(30);

/// Follows a claimed relay and ends its claim.
pub(super) async fn run(forge: Forge, relay: Relay, shared: Arc<Shared>, stop: CancellationToken) {
    let ended = tokio::select! {
        ended = follow(&forge, &relay, &shared) => ended,
        () = stop.cancelled() => Err(Stop::Ended(Ended::Idle(forge.clock().now()))),
    };
    let ended = match ended {
        Ok(ended) | Err(Stop::Ended(ended)) => ended,
        Err(Stop::Lost) => {
            tracing::info!(relay = relay.url, "another node follows a relay, or an administrator lets it rest");
            return;
        }
        Err(Stop::Fault(fault)) => {
            tracing::warn!(error = %fault, relay = relay.url, "cannot follow a relay; trying again later");
            Ended::Idle(forge.clock().now().plus(CROWDED))
        }
    };
    tracing::debug!(relay = relay.url, ?ended, "no longer following a relay");
    let input = (relay, ended);
    let stored: Result<bool, StoreError> =
        forge.store().write(input, |tx, (relay, ended)| Box::pin(relays::end(tx, relay, ended))).await;
    if let Err(error) = stored {
        tracing::warn!(%error, "cannot store the end of a connection to a relay; its hold expires");
    }
}

/// The end after a failure: the pause doubles with each in a row.
pub(super) fn failed(relay: &Relay, now: Timestamp, reason: impl Into<String>) -> Ended {
    let failing_for = relay.failing_from.map_or(Duration::ZERO, |from| now.since(from));
    Ended::Failed(now.plus(pause(relay.failures, failing_for)), reason.into())
}

async fn follow(forge: &Forge, relay: &Relay, shared: &Shared) -> Result<Ended, Stop> {
    let (mut interest, next) = Interest::load(forge, relay).await?;
    let now = forge.clock().now();
    if interest == Interest::default() {
        let idle = now.plus(IDLE);
        return Ok(Ended::Idle(next.map_or(idle, |next| next.min(idle))));
    }
    interest.load_roots(forge).await?;
    let url = match relay.url.parse::<RelayUrl>() {
        Ok(url) => url,
        Err(rule) => return Ok(failed(relay, now, format!("the URL {rule}"))),
    };
    let limits = ClientLimits { relay: Ours::of(forge).limits().clone(), ..ClientLimits::default() };
    let message = limits.relay.message_bytes.saturating_add(4 << 10);
    let socket = match forge.gate().websocket(&url, SocketLimits { message, frame: message }).await {
        Ok((socket, _)) => socket,
        Err(GateError::Crowded) => return Ok(Ended::Idle(now.plus(CROWDED))),
        Err(error) => return Ok(failed(relay, forge.clock().now(), error.public_message())),
    };
    let connected: Result<bool, StoreError> =
        forge.store().write(relay.clone(), |tx, relay| Box::pin(relays::connected(tx, relay))).await;
    if !connected.map_err(Fault::from)? {
        return Err(Stop::Lost);
    }
    let known = capability(relay, now);
    let kept = shared.take(&relay.url).filter(|session| session.capability() == known);
    let session = kept.unwrap_or_else(|| ClientSession::new(limits, known));
    let mut conversation = Conversation::new(forge, relay, socket, session, shared.lane());
    let ended = conversation.hold(interest).await;
    shared.keep(&relay.url, conversation.leave().await);
    ended
}

/// The capability of a relay as it was learned. A relay that does not reconcile is tried again after a day.
fn capability(relay: &Relay, now: Timestamp) -> Capability {
    match relay.capability.as_str() {
        "negentropy" => Capability::Negentropy,
        "paging" if relay.learned_at.is_some_and(|at| now.since(at) < DAY) => Capability::PagingOnly,
        _ => Capability::Unknown,
    }
}

/// The word that is stored for a capability.
pub(super) fn word(capability: Capability) -> &'static str {
    match capability {
        Capability::Unknown => "unknown",
        Capability::Negentropy => "negentropy",
        Capability::PagingOnly => "paging",
    }
}

/// Renews a hold and stores the counts of events and refusals; `false` if it was lost.
pub(super) async fn renew(forge: &Forge, relay: &Relay, counts: (i64, i64)) -> Result<bool, Fault> {
    let renewed: Result<bool, StoreError> = forge
        .store()
        .write((relay.clone(), counts), |tx, (relay, counts)| Box::pin(relays::renew(tx, relay, HOLD, *counts)))
        .await;
    Ok(renewed?)
}
