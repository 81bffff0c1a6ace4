//! Finds the events for a query, one page at a time: no more is in memory than the client takes.

use super::record::to_query;
use crate::{Fault, Forge};
use abide_nostr::message::Count;
use abide_nostr::session::{Ticket, Wire};
use abide_nostr::{Event, EventId, Filter};
use abide_store::nostr_query::{self, Place, Query};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A query of a client.
pub(super) enum Asked {
    Events(Arc<[Filter]>),
    Count(Vec<Filter>),
    Reconcile { filter: Box<Filter>, at_most: usize },
}

/// A part of the result.
pub(super) enum Found {
    Page(Vec<Wire>),
    End,
    Count(Count),
    Items(Vec<(u64, EventId)>),
    Failed,
}

/// Answers a query. Ends early if the client is gone.
pub(super) async fn read(forge: Forge, ticket: Ticket, asked: Asked, to: mpsc::Sender<(Ticket, Found)>) {
    let answered = match asked {
        Asked::Events(filters) => events(&forge, &ticket, &filters, &to).await,
        Asked::Count(filters) => count(&forge, &filters).await.map(Found::Count),
        Asked::Reconcile { filter, at_most } => items(&forge, &filter, at_most).await.map(Found::Items),
    };
    let last = answered.unwrap_or_else(|error| {
        tracing::warn!(%error, "could not read events");
        Found::Failed
    });
    let _ = to.send((ticket, last)).await;
}

async fn events(
    forge: &Forge,
    ticket: &Ticket,
    filters: &[Filter],
    to: &mpsc::Sender<(Ticket, Found)>,
) -> Result<Found, Fault> {
    let mut sent = HashSet::new();
    for filter in filters {
        let mut places = places(forge, &to_query(filter)).await?;
        places.retain(|place| sent.insert(place.n));
        let mut rest = &places[..];
        while !rest.is_empty() {
            let (page, later) = rest.split_at(page(rest, forge.relay().settings.page_bytes));
            rest = later;
            let wires = wires(forge, filter, page).await?;
            if to.send((ticket.clone(), Found::Page(wires))).await.is_err() {
                return Ok(Found::End);
            }
        }
    }
    Ok(Found::End)
}

/// Number of places that make a page: at least one.
fn page(places: &[Place], most: usize) -> usize {
    let mut bytes = 0_usize;
    let fits = |place: &&Place| {
        bytes = bytes.saturating_add(usize::try_from(place.bytes).unwrap_or(usize::MAX));
        bytes <= most
    };
    places.iter().take_while(fits).count().max(1)
}

async fn places(forge: &Forge, query: &Query) -> Result<Vec<Place>, Fault> {
    let _turn = forge.relay().reads.acquire().await;
    Ok(nostr_query::places(&mut *forge.store().read().await?, query, now(forge)).await?)
}

/// The events of a page, in order. Tags are found by their hashes, so each event is compared with the filter.
async fn wires(forge: &Forge, filter: &Filter, page: &[Place]) -> Result<Vec<Wire>, Fault> {
    let rows: Vec<i64> = page.iter().map(|place| place.n).collect();
    let mut texts = {
        let _turn = forge.relay().reads.acquire().await;
        nostr_query::json_of(&mut *forge.store().read().await?, &rows).await?
    };
    let asked_for = |text: &str| {
        filter.tags.is_empty() || serde_json::from_str::<Event>(text).is_ok_and(|event| filter.matches(&event))
    };
    let wire = |place: &Place| {
        let text = texts.remove(&place.n).filter(|text| asked_for(text))?;
        Some(Wire { id: EventId::from_byte_array(place.id), json: text.into() })
    };
    Ok(page.iter().filter_map(wire).collect())
}

async fn count(forge: &Forge, filters: &[Filter]) -> Result<Count, Fault> {
    let queries: Vec<Query> = filters.iter().map(to_query).collect();
    let _turn = forge.relay().reads.acquire().await;
    let mut conn = forge.store().read().await?;
    let counted = nostr_query::count(&mut conn, &queries, forge.relay().settings.counted, now(forge)).await?;
    Ok(if counted.more { Count::AtLeast(counted.found) } else { Count::Exactly(counted.found) })
}

async fn items(forge: &Forge, filter: &Filter, at_most: usize) -> Result<Vec<(u64, EventId)>, Fault> {
    let limit = i64::try_from(at_most).unwrap_or(i64::MAX).saturating_add(1);
    let places = places(forge, &Query { limit, ..to_query(filter) }).await?;
    let item = |place: Place| (place.created_at.unsigned_abs(), EventId::from_byte_array(place.id));
    Ok(places.into_iter().map(item).collect())
}

fn now(forge: &Forge) -> i64 {
    forge.clock().now().micros().div_euclid(1_000_000)
}
