//! Cost of each step of accepting an event, one after another in this process, for a thousand events.

use super::events::{Batch, filling};
use super::{Site, failed};
use crate::Failure;
use crate::report::{Line, Report, Unit};
use crate::samples::Samples;
use abide_core::time::SystemClock;
use abide_nostr::message::ClientMessage;
use abide_nostr::{Event, RelayLimits, verify_signature};
use abide_store::{Options, Store, StoreError, nostr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Events per unit.
const TOGETHER: usize = 256;

pub(crate) async fn measure(engine: &str, site: &Site, batch: &Batch, report: &mut Report) -> Result<(), Failure> {
    let sample = &batch.events[..batch.events.len().min(2_560)];
    let frames: Vec<String> =
        sample.iter().map(|event| format!("[\"EVENT\",{}]", abide_nostr::event::to_json(event))).collect();
    let limits = RelayLimits::default();
    let mut add = |step: &str, took: Duration, events: usize| {
        let each = took.as_secs_f64() * 1e3 / events as f64 * 1e3;
        report.add(Line::new(format!("{engine}, 1,000 events, {step}"), Unit::Milliseconds, Samples::of(each)));
    };
    let (read, took) = timed(|| frames.iter().filter(|text| ClientMessage::parse(text, &limits).is_ok()).count());
    add("read and hash", took, read);
    let (right, took) = timed(|| sample.iter().filter(|event| verify_signature(event)).count());
    add("check signatures", took, right);
    // Different events than the published ones, so that each is new.
    let fresh = filling(10 * TOGETHER);
    let (records, took) = timed(|| fresh.iter().map(abide_forge::relay::to_record).collect::<Vec<_>>());
    add("make rows", took, records.len());

    let options = Options { connections: 2, ..site.options.clone() };
    let store = Store::open(&options, Arc::new(SystemClock)).await.map_err(failed)?;
    let start = Instant::now();
    for part in fresh.chunks(TOGETHER) {
        facts(&store, part).await.map_err(failed)?;
    }
    add("look up what the rules ask", start.elapsed(), fresh.len());
    let start = Instant::now();
    for part in records.chunks(TOGETHER) {
        let written: Result<_, StoreError> =
            store.write(part.to_vec(), |tx, part| Box::pin(nostr::events::insert_many(tx, part))).await;
        written.map_err(failed)?;
    }
    add("store, 256 in a commit", start.elapsed(), records.len());
    store.close().await;
    Ok(())
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = run();
    (value, start.elapsed())
}

/// The queries that the rules need for one batch.
async fn facts(store: &Store, events: &[Event]) -> Result<(), StoreError> {
    let mut conn = store.read().await?;
    let ids: Vec<[u8; 32]> = events.iter().map(|event| event.id.to_bytes()).collect();
    nostr::events::known(&mut conn, &ids).await?;
    nostr::relations::events(&mut conn, &ids).await?;
    let repos: Vec<nostr::relations::EventCoordinate> =
        events.iter().map(|event| (30_617, event.pubkey.to_bytes(), "bench".to_owned())).collect();
    nostr::relations::addresses(&mut conn, &repos).await?;
    let targets: Vec<([u8; 32], String)> =
        events.iter().map(|event| (event.pubkey.to_bytes(), format!("e:{}", event.id))).collect();
    nostr::events::deleted::at_many(&mut conn, &targets).await.map(drop)
}
