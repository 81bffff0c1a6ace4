//! Events of a relay on their way through the admission, and its answers.

use super::conversation::{Conversation, Stop, UnderWay};
use crate::Fault;
use crate::admit::{Admissions, Submission};
use abide_core::sync::attempts::Origin;
use abide_nostr::event::slot;
use abide_nostr::grasp::{Answer, Prefix};
use abide_nostr::{Event, EventId, kinds, verify_signature};
use abide_store::StoreError;
use abide_store::nostr;
use abide_store::sync::relays::{self, Refused};
use std::sync::Arc;
use tokio::time::Instant;

impl Conversation<'_> {
    /// Hands an event to the admission. Waits while its queue is full.
    pub(super) async fn submit(&mut self, event: Event) {
        self.counts.0 += 1;
        if self.under_way.contains_key(&event.id) {
            return;
        }
        let bytes =
            event.content.len() + event.tags.iter().flat_map(|tag| tag.as_slice()).map(String::len).sum::<usize>();
        let event = Arc::new(event);
        self.bytes += bytes;
        self.under_way.insert(event.id, UnderWay { event: event.clone(), bytes, since: Instant::now() });
        let (lane, answer) = (self.lane, self.answer_to.clone());
        let submission = Submission { event, from: None, origin: Origin::Synced, lane, answer };
        Admissions::of(self.forge).submit(submission).await;
    }

    /// Records the answer to an event.
    pub(super) async fn on_answer(&mut self, id: &EventId, answer: &Answer) -> Result<(), Stop> {
        let Some(UnderWay { event, bytes, .. }) = self.under_way.remove(id) else { return Ok(()) };
        self.bytes = self.bytes.saturating_sub(bytes);
        let kind = event.kind.as_u16();
        let outcome = match answer {
            Answer::Stored => "stored",
            Answer::Waiting => "waiting",
            Answer::DuplicateStored | Answer::DuplicateWaiting => "duplicate",
            Answer::Refused(refusal) => class(refusal.prefix),
        };
        metrics::counter!("abide_sync_relay_events_total", "outcome" => outcome).increment(1);
        match answer {
            Answer::Refused(refusal) if matches!(refusal.prefix, Prefix::RateLimited | Prefix::Error) => {
                self.lacks_an_event();
            }
            Answer::Refused(refusal) => {
                self.counts.1 += 1;
                let created_at = seconds(&event);
                self.refused.push(Refused { id: id.to_bytes(), created_at, class: outcome });
                // A relay may hold an older version of an event that was replaced here. That is no lie.
                let replaceable = slot(&event).is_some();
                if refusal.prefix == Prefix::Invalid && !(replaceable && verify_signature(&event)) {
                    let wishes = self.session.on_forged(self.now());
                    self.act(wishes).await?;
                } else if kind == kinds::STATE && refusal.prefix == Prefix::Invalid {
                    self.note_older(&event).await?;
                }
            }
            Answer::Stored | Answer::Waiting | Answer::DuplicateStored | Answer::DuplicateWaiting => {
                if *answer == Answer::Stored && [kinds::PATCH, kinds::PULL_REQUEST, kinds::ISSUE].contains(&kind) {
                    self.roots_changed = true;
                }
                if kind == kinds::STATE {
                    self.note_replica(&event);
                }
            }
        }
        Ok(())
    }

    /// Notes the state of an author of whom a newer state is stored here.
    async fn note_older(&mut self, event: &Event) -> Result<(), Fault> {
        let Some(slot) = slot(event) else { return Ok(()) };
        let (mut conn, author) = (self.forge.store().read().await?, event.pubkey.to_bytes());
        let known = nostr::events::in_slot(&mut conn, kinds::STATE, &author, &slot.identifier).await?;
        drop(conn);
        if known.is_some() {
            self.note_replica(event);
        }
        Ok(())
    }

    fn note_replica(&mut self, event: &Event) {
        let Some(slot) = slot(event) else { return };
        let coordinate = (event.pubkey.to_bytes(), slot.identifier);
        let newest = self.replicas.get(&coordinate).is_none_or(|(_, at)| *at <= seconds(event));
        if newest {
            self.replicas.insert(coordinate, (event.id.to_bytes(), seconds(event)));
        }
    }

    /// Stores refusals and states seen.
    pub(super) async fn flush(&mut self) -> Result<(), Fault> {
        let (refused, replicas) = (std::mem::take(&mut self.refused), std::mem::take(&mut self.replicas));
        if refused.is_empty() && replicas.is_empty() {
            return Ok(());
        }
        let stored: Result<(), StoreError> = self
            .forge
            .store()
            .write((self.relay.url.clone(), refused, replicas), |tx, (url, refused, replicas)| {
                Box::pin(async move {
                    relays::refuse(tx, url, refused).await?;
                    for (coordinate, state) in replicas.iter() {
                        relays::seen(tx, url, coordinate, state).await?;
                    }
                    Ok(())
                })
            })
            .await;
        Ok(stored?)
    }
}

/// The class of a refusal.
fn class(prefix: Prefix) -> &'static str {
    match prefix {
        Prefix::Invalid => "invalid",
        Prefix::Restricted => "restricted",
        Prefix::Blocked => "blocked",
        Prefix::RateLimited => "rate-limited",
        Prefix::Error => "error",
    }
}

/// The author's timestamp. Parsing has made sure that it fits.
fn seconds(event: &Event) -> i64 {
    i64::try_from(event.created_at.as_secs()).unwrap_or(i64::MAX)
}
