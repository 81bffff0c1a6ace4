//! One consumer's progress through the log, in batches.

use super::Shared;
use crate::{Fault, Forge, lease};
use abide_core::failpoint;
use abide_store::Tx;
use abide_store::consumers::{self, Failure, Progress};
use abide_store::events::{self, Numbered};
use abide_store::leases::{self, Lease};
use std::time::Duration;

/// Events per transaction. On SQLite nobody else writes meanwhile.
const BATCH: i64 = 50;
/// Pause after the first failure; doubles with each.
const BACKOFF: Duration = Duration::from_secs(1);
/// Most bytes of a stored error.
const ERROR_BYTES: usize = 1000;

/// A consumer with its lease.
pub(super) struct Reader {
    consumer: Shared,
    lease: Option<Lease>,
    /// After a failed batch: up to here, events are processed one by one to find the failing one.
    singly_until: i64,
}

/// Input of a unit.
struct Work {
    consumer: Shared,
    forge: Forge,
    lease: Option<Lease>,
    /// Cursor when the events were read.
    from: i64,
    events: Vec<Numbered>,
    /// Cursor afterwards.
    to: i64,
}

/// Result of a unit that did not fail.
enum Done {
    /// All events were processed.
    Moved(Lease),
    /// Another holder has the lease.
    Elsewhere,
    /// Another node moved the cursor meanwhile.
    Overtaken(Lease),
}

impl Reader {
    pub(super) fn new(consumer: Shared) -> Self {
        Self { consumer, lease: None, singly_until: 0 }
    }

    pub(super) fn name(&self) -> &'static str {
        self.consumer.name()
    }

    /// Processes the next batch. `false` if there is nothing to do now.
    pub(super) async fn turn(&mut self, forge: &Forge) -> Result<bool, Fault> {
        let Some((progress, read)) = self.look(forge).await? else { return Ok(false) };
        let alone = progress.tries > 0 || progress.cursor < self.singly_until;
        let (events, to) = self.choose(read, alone);
        let (many, first) = (events.len() > 1, events.first().cloned());
        let work = Work {
            consumer: self.consumer.clone(),
            forge: forge.clone(),
            lease: self.lease.clone(),
            from: progress.cursor,
            events,
            to,
        };
        match forge.store().write(work, |tx, work| Box::pin(take_in(tx, work))).await {
            Ok(Done::Moved(lease)) => {
                failpoint::hit(failpoint::CONSUMER_COMMITTED);
                self.lease = Some(lease);
                metrics::gauge!("abide_consumer_lag", "consumer" => self.name()).set((progress.head - to) as f64);
                Ok(true)
            }
            Ok(Done::Overtaken(lease)) => {
                self.lease = Some(lease);
                Ok(true)
            }
            Ok(Done::Elsewhere) => {
                self.lease = None;
                Ok(false)
            }
            Err(error) => {
                let Some(event) = first else { return Err(error) };
                tracing::warn!(%error, consumer = self.name(), seq = event.seq, many, "events could not be processed");
                if many {
                    self.singly_until = to;
                } else {
                    self.failed(forge, &progress, &event, &error).await?;
                }
                Ok(true)
            }
        }
    }

    /// State of the consumer and the next events; `None` if there are none, or a retry is not due yet.
    async fn look(&self, forge: &Forge) -> Result<Option<(Progress, Vec<Numbered>)>, Fault> {
        let mut conn = forge.store().read().await?;
        let progress = consumers::get(&mut conn, self.name()).await?;
        let now = forge.clock().now();
        let ready = |progress: &Progress| progress.lag() > 0 && progress.retry_at.is_none_or(|at| at <= now);
        let Some(progress) = progress.filter(ready) else { return Ok(None) };
        let read = events::after(&mut conn, progress.cursor, BATCH).await?;
        Ok((!read.is_empty()).then_some((progress, read)))
    }

    /// The events that concern this consumer, and the cursor after them.
    fn choose(&self, read: Vec<Numbered>, alone: bool) -> (Vec<Numbered>, i64) {
        let last = read.last().map_or(0, |event| event.seq);
        let mut wanted: Vec<_> = read.into_iter().filter(|event| self.wants(event)).collect();
        if alone && wanted.len() > 1 {
            wanted.truncate(1);
            let to = wanted[0].seq;
            return (wanted, to);
        }
        (wanted, last)
    }

    fn wants(&self, event: &Numbered) -> bool {
        match event.known_kind() {
            Some(kind) => self.consumer.wants(kind),
            None => {
                let (seq, kind) = (event.seq, event.kind.as_str());
                tracing::warn!(consumer = self.name(), seq, kind, "skipped an event of an unknown kind");
                false
            }
        }
    }

    /// Counts a failure, or sets the event aside after too many.
    async fn failed(&mut self, forge: &Forge, at: &Progress, event: &Numbered, error: &Fault) -> Result<(), Fault> {
        let mut text = error.to_string();
        text.truncate(text.floor_char_boundary(ERROR_BYTES));
        let failure = Failure {
            consumer: self.name().to_owned(),
            seq: event.seq,
            kind: event.kind.clone(),
            error: text,
            tries: at.tries + 1,
            failed_at: forge.clock().now(),
        };
        let wait = BACKOFF.saturating_mul(1 << u32::try_from(at.tries.clamp(0, 16)).unwrap_or(0));
        let given_up = failure.tries >= forge.settings().attention.event_tries;
        if given_up {
            tracing::error!(consumer = self.name(), seq = event.seq, "an event failed; see `abide events failures`");
            metrics::counter!("abide_events_set_aside_total", "consumer" => self.name()).increment(1);
        }
        forge
            .store()
            .write((failure, at.cursor, wait, given_up), |tx, (failure, cursor, wait, given_up)| {
                Box::pin(async move {
                    // Another node may have advanced meanwhile: then this failure does not matter.
                    if consumers::lock(tx, &failure.consumer).await? != Some(*cursor) {
                        return Ok::<_, Fault>(());
                    }
                    if *given_up {
                        consumers::set_aside(tx, failure).await?;
                        consumers::advance(tx, &failure.consumer, failure.seq).await?;
                    } else {
                        let retry_at = tx.now().plus(*wait);
                        consumers::failed(tx, &failure.consumer, &failure.error, retry_at).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Releases the lease.
    pub(super) async fn rest(self, forge: &Forge) {
        if let Some(lease) = self.lease
            && let Err(error) = lease::release(forge, lease).await
        {
            tracing::debug!(%error, "cannot release a consumer's lease; it expires");
        }
    }
}

/// The unit: lease, effects and cursor together.
async fn take_in(tx: &mut Tx, work: &Work) -> Result<Done, Fault> {
    let name = work.consumer.name();
    let (holder, ttl) = (work.forge.node().holder(), work.forge.settings().git.lease_ttl);
    let held = leases::hold(tx, work.lease.as_ref(), &format!("consumer:{name}"), holder, ttl).await?;
    let Some(lease) = held else { return Ok(Done::Elsewhere) };
    if consumers::lock(tx, name).await? != Some(work.from) {
        return Ok(Done::Overtaken(lease));
    }
    for event in &work.events {
        work.consumer.apply(tx, &work.forge, event).await?;
    }
    consumers::advance(tx, name, work.to).await?;
    if !work.events.is_empty() {
        failpoint::hit(failpoint::CONSUMER_BEFORE_COMMIT);
    }
    Ok(Done::Moved(lease))
}
