//! Answers events without the rules: duplicates and invalid signatures.
//!
//! There is no cache of ids in front of the store. A cache would have to follow every deletion, replacement and expiry,
//! and one query for a whole batch costs only a few microseconds per event.

use super::{Admissions, Pending, Verified, failed};
use crate::relay::Relay;
use crate::{Fault, Forge, grasp};
use abide_nostr::grasp::event::{Rule, rule};
use abide_nostr::grasp::{Answer, Parsed, Prefix, Refusal};
use abide_nostr::{RelayLimits, verify_signature};
use abide_store::nostr;
use std::collections::HashSet;
use std::sync::Arc;

/// Answers duplicates and invalid events; returns the others, in their order.
pub(super) async fn screen(forge: &Forge, batch: Vec<Pending>) -> Vec<Verified> {
    let fresh = unknown(forge, batch).await;
    let mut seen = HashSet::new();
    let (once, again): (Vec<_>, Vec<_>) = fresh.into_iter().partition(|pending| seen.insert(pending.event().id));
    let verified = verify(Relay::of(forge).limits(), once).await;
    // The same event twice in one batch: the second is queued again, and answered when the result of the first is
    // known.
    for pending in again {
        let _ = Admissions::of(forge).sender.send(pending);
    }
    verified
}

/// Answers the events that are stored or waiting, and returns the others.
async fn unknown(forge: &Forge, batch: Vec<Pending>) -> Vec<Pending> {
    let ids: Vec<[u8; 32]> = batch.iter().map(|pending| pending.event().id.to_bytes()).collect();
    let known = async { Ok::<_, Fault>(nostr::events::known(&mut *forge.store().read().await?, &ids).await?) };
    let known = match known.await {
        Ok(known) => known,
        Err(fault) => {
            batch.into_iter().for_each(|pending| pending.answer(failed(&fault)));
            return Vec::new();
        }
    };
    let mut fresh = Vec::with_capacity(batch.len());
    for pending in batch {
        let event = Arc::clone(pending.event());
        if known.contains(event.id.as_bytes()) {
            pending.answer(Answer::DuplicateStored);
            continue;
        }
        let may_wait = matches!(rule(event.kind.as_u16()), Rule::Announcement | Rule::State | Rule::PrEvent);
        match if may_wait { grasp::waits(forge, &event.id).await } else { Ok(false) } {
            Ok(false) => fresh.push(pending),
            Ok(true) => pending.answer(Answer::DuplicateWaiting),
            Err(fault) => pending.answer(failed(&fault)),
        }
    }
    fresh
}

/// Verifies signatures and parses events by kind, on as many threads as the machine has.
async fn verify(limits: &Arc<RelayLimits>, batch: Vec<Pending>) -> Vec<Verified> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = batch.len().div_ceil(threads).max(1);
    let mut shares = Vec::with_capacity(threads);
    let mut batch = batch.into_iter().peekable();
    while batch.peek().is_some() {
        let (part, limits) = (batch.by_ref().take(share).collect::<Vec<_>>(), limits.clone());
        shares.push(tokio::task::spawn_blocking(move || {
            let judged = part.into_iter().map(|pending| {
                let judged = judge(&pending, &limits);
                (pending, judged)
            });
            judged.collect::<Vec<_>>()
        }));
    }
    let mut verified = Vec::new();
    for share in shares {
        // If a share panics, its events get no answer.
        for (pending, judged) in share.await.unwrap_or_default() {
            match judged {
                Ok(parsed) => verified.push(Verified { pending, parsed }),
                Err(refusal) => pending.answer(Answer::Refused(refusal)),
            }
        }
    }
    verified
}

fn judge(pending: &Pending, limits: &RelayLimits) -> Result<Parsed, Refusal> {
    if !verify_signature(pending.event()) {
        return Err(Refusal::new(Prefix::Invalid, "the signature is not valid"));
    }
    Parsed::of(pending.event(), limits)
}
