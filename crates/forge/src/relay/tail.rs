//! Follows the events that other nodes store, for subscribers of this node.
//!
//! A row gets its number when it is written and becomes visible when it is committed, so a lower number may appear
//! later. Skipped numbers are looked up again for a while; most of them were never used.

use super::Relay;
use super::hub::Hub;
use crate::{Fault, Forge};
use abide_nostr::{Event, EventId};
use abide_store::nostr;
use abide_store::nostr::query::EventPosition;
use abide_store::{Conn, Engine};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a skipped number is looked up; longer than any transaction takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum number of skipped numbers that are looked up; the highest are kept.
const GAPS: usize = 2_000;

/// Rows that one query reads.
const PAGE: i64 = 1_000;

/// Bytes of events that one query reads.
const PAGE_BYTES: i64 = 4 << 20;

/// Passes on the events that other nodes stored, until `stop` is cancelled. With SQLite there are no other nodes.
pub(crate) async fn run(forge: &Forge, stop: &CancellationToken) {
    if forge.store().engine() == Engine::Sqlite {
        return;
    }
    let mut tail: Option<Tail> = None;
    while !stop.is_cancelled() {
        let looked = match &mut tail {
            Some(tail) => tail.look(forge).await,
            None => Tail::start(forge).await.map(|started| tail = Some(started)),
        };
        if let Err(error) = looked {
            tracing::warn!(%error, "cannot read events of other nodes; retrying");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(forge.settings().jobs.poll) => {}
        }
    }
}

/// Position in the table.
struct Tail {
    high: i64,
    /// Skipped numbers below `high`, and since when they are missing.
    gaps: BTreeMap<i64, Instant>,
}

impl Tail {
    /// Starts at the newest row.
    async fn start(forge: &Forge) -> Result<Self, Fault> {
        let high = nostr::query::last(&mut *forge.store().read().await?).await?;
        // Transactions that are open at this moment have numbers just below.
        let now = Instant::now();
        let gaps = (high.saturating_sub(GAPS as i64).max(0) + 1..=high).map(|n| (n, now)).collect();
        Self { high, gaps }.without_present(forge).await
    }

    /// Drops the gaps whose rows are present.
    async fn without_present(mut self, forge: &Forge) -> Result<Self, Fault> {
        let numbers: Vec<i64> = self.gaps.keys().copied().collect();
        for position in nostr::query::among(&mut *forge.store().read().await?, &numbers).await? {
            self.gaps.remove(&position.n);
        }
        Ok(self)
    }

    async fn look(&mut self, forge: &Forge) -> Result<(), Fault> {
        let mut conn = forge.store().read().await?;
        let now = Instant::now();
        self.gaps.retain(|_, since| now.duration_since(*since) < PATIENCE);
        if !self.gaps.is_empty() {
            let numbers: Vec<i64> = self.gaps.keys().copied().collect();
            let late = nostr::query::among(&mut conn, &numbers).await?;
            for position in &late {
                self.gaps.remove(&position.n);
            }
            pass_on(&mut conn, &Relay::of(forge).hub, &late).await?;
        }
        loop {
            let page = nostr::query::after(&mut conn, self.high, PAGE).await?;
            for position in &page {
                self.gaps.extend((self.high + 1..position.n).rev().take(GAPS).map(|gap| (gap, now)));
                self.high = position.n;
            }
            while self.gaps.len() > GAPS {
                self.gaps.pop_first();
            }
            pass_on(&mut conn, &Relay::of(forge).hub, &page).await?;
            if (page.len() as i64) < PAGE {
                return Ok(());
            }
        }
    }
}

/// Reads the events that were not delivered here yet, and passes them on.
async fn pass_on(conn: &mut Conn, hub: &Hub, positions: &[EventPosition]) -> Result<(), Fault> {
    let ids: Vec<EventId> = positions.iter().map(|position| EventId::from_byte_array(position.id)).collect();
    let undelivered = hub.undelivered(&ids);
    let mut waiting: VecDeque<EventPosition> = positions
        .iter()
        .copied()
        .filter(|position| undelivered.contains(&EventId::from_byte_array(position.id)))
        .collect();
    while !waiting.is_empty() {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while bytes < PAGE_BYTES
            && let Some(position) = waiting.pop_front()
        {
            rows.push(position.n);
            bytes += position.bytes;
        }
        let texts = nostr::query::json_of(conn, &rows).await?;
        let read = |n: &i64| texts.get(n).and_then(|text| serde_json::from_str::<Event>(text).ok());
        let events: Vec<Arc<Event>> = rows.iter().filter_map(read).map(Arc::new).collect();
        hub.publish(&events);
    }
    Ok(())
}
