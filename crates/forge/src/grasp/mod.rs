//! GRASP: repositories governed by signed events. Covers acceptance, waiting in purgatory, and leaving it.
//!
//! * [`admit`]: an event arrives; one file each for announcements, states, PR events and deletions.
//! * [`push`]: which signed state allows a push. [`align`]: aligns a repository with a state. [`settle`]: examines
//!   again everything that waits for one identifier. [`aside`]: commits whose PR event has not arrived yet. [`spread`]:
//!   gives a PR event's commit to every repository that the PR event names.
//! * [`needs`]: git data that waiting events lack, for the fetcher. [`fetched`]: takes that git data in.
//! * [`authority`]: signed events as the authority of a push, for git. [`receive`]: a push of a client.
//! * [`quota`]: how much strangers have stored, for the quota rules.
//! * [`context`]: all announcements and states of one identifier. [`signed`]: the events that a push takes out of
//!   purgatory.
//! * [`attached`]: events that wait with an announcement. [`life`]: effects of deletion and restore on the relay.
//!   [`sweep`]: expiry of waiting entries. [`erase`]: removal of the events of a deleted account. [`expire`]: NIP-40. [`status`]: reasons
//!   why something waits.
//!
//! The rules themselves are in `abide_nostr::grasp`.

mod admit;
pub(crate) mod align;
mod announce;
pub(crate) mod arrived;
pub(crate) mod aside;
pub(crate) mod attached;
pub(crate) mod authority;
mod context;
mod deletion;
pub(crate) mod erase;
pub(crate) mod expire;
pub(crate) mod fetched;
pub(crate) mod life;
pub(crate) mod needs;
mod pr_event;
pub(crate) mod promote;
pub(crate) mod push;
pub(crate) mod quota;
mod receive;
mod relation;
pub(crate) mod settle;
pub(crate) mod signed;
pub(crate) mod spread;
mod state;
pub mod status;
pub mod sweep;

pub(crate) use admit::{admit, kept, waits};

use crate::Forge;
use crate::throttle;
use abide_core::Timestamp;
use abide_macros::boxed;
use abide_nostr::grasp::caps::{self, Caps};
use abide_nostr::grasp::{Prefix, Refusal};
use abide_nostr::{Event, EventId};
use abide_store::nostr::purgatory::{self, Entry};
use abide_store::sync::queue;
use abide_store::{Conn, StoreError, Tx};
use std::net::IpAddr;
use std::time::Duration;

/// Reason why a change was not made: a rule refused it, or the store failed.
#[derive(Debug)]
pub(crate) enum Halt {
    Refused(Refusal),
    Store(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Turns a fault into a `Halt`, which ends the unit.
fn stop(fault: crate::Fault) -> Halt {
    match fault {
        crate::Fault::Store(error) => Halt::Store(error),
        other => {
            tracing::error!(error = %other, "cannot write the effects of an event");
            Halt::Store(StoreError::Missing)
        }
    }
}

/// A refusal worded here rather than in a rule.
fn refusal(prefix: Prefix, reason: &'static str) -> Refusal {
    Refusal::new(prefix, reason)
}

/// An event as a purgatory entry.
fn entry(event: &Event, identifier: &str, from: Option<IpAddr>, expires_at: Timestamp) -> Entry {
    Entry {
        event_id: id(&event.id),
        pubkey: event.pubkey.to_bytes(),
        identifier: identifier.to_owned(),
        event_at: seconds(event),
        json: abide_nostr::event::to_json(event),
        address: address(from),
        expires_at,
    }
}

/// The sender's network, which the caps count: a /64 network for IPv6.
fn address(from: Option<IpAddr>) -> Option<String> {
    from.map(|ip| throttle::network(Some(ip)))
}

fn id(id: &EventId) -> [u8; 32] {
    *id.as_bytes()
}

/// The author's timestamp. Parsing has made sure that it fits.
fn seconds(event: &Event) -> i64 {
    i64::try_from(event.created_at.as_secs()).unwrap_or(i64::MAX)
}

/// Checks that purgatory has room for one more entry.
async fn ensure_room(tx: &mut Tx, caps: &Caps, entry: &Entry) -> Result<(), Halt> {
    let counts = waiting(tx, Some(&entry.pubkey), entry.address.as_deref()).await?;
    Ok(caps::judge(caps, &counts)?)
}

/// Queues an identifier for the fetcher, in the transaction that lets an event wait; `None` if nothing is fetched.
async fn notice(tx: &mut Tx, identifier: &str, delay: Option<Duration>) -> Result<(), StoreError> {
    if let Some(delay) = delay {
        queue::notice(tx, identifier, delay).await?;
    }
    Ok(())
}

/// Number of waiting entries: of a key, from an address, and in total.
async fn waiting(conn: &mut Conn, key: Option<&[u8; 32]>, address: Option<&str>) -> Result<caps::Counts, StoreError> {
    let counts = purgatory::counts(conn, key.unwrap_or(&[0; 32]), address).await?;
    let count = |n: i64, known: bool| if known { u64::try_from(n).unwrap_or(0) } else { 0 };
    Ok(caps::Counts {
        of_key: count(counts.of_key, key.is_some()),
        of_address: count(counts.of_address, address.is_some()),
        total: count(counts.total, true),
        bytes: count(counts.bytes, true),
    })
}

/// Counts an entry that left purgatory.
fn left(kind: &'static str, reason: &'static str) {
    metrics::counter!("abide_purgatory_exits_total", "kind" => kind, "reason" => reason).increment(1);
}

/// Sets the purgatory metrics.
#[boxed]
pub async fn measure(forge: &Forge) -> Result<(), crate::Fault> {
    let totals = purgatory::totals(&mut *forge.store().read().await?).await?;
    for (kind, count) in [
        ("announcement", totals.announcements),
        ("state", totals.states),
        ("proposal", totals.pr_events),
        ("placeholder", totals.placeholders),
        ("attached", totals.attached),
    ] {
        metrics::gauge!("abide_purgatory_entries", "kind" => kind).set(count as f64);
    }
    metrics::gauge!("abide_purgatory_bytes").set(totals.bytes as f64);
    Ok(())
}
