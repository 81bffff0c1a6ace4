//! Finding what a connection asks for, a page at a time: no more is in memory than the client takes, and all of it is taken
//! from the budget of connections first.

use super::Relay;
use super::memory::Held;
use super::record::to_query;
use crate::{Fault, Forge};
use abide_nostr::message::Count;
use abide_nostr::session::{QueryId, Wire};
use abide_nostr::{Event, EventId, Filter};
use abide_store::nostr;
use abide_store::nostr::query::{EventPosition, Query};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A query of a client.
pub(crate) enum Asked {
    Events(Arc<[Filter]>),
    Count(Vec<Filter>),
    Reconcile { filter: Box<Filter>, at_most: usize },
}

/// An answer, and the bytes that it takes.
pub(crate) enum Found {
    Page(Vec<Wire>, Held),
    End,
    Count(Count),
    Items(Vec<(u64, EventId)>, Held),
    /// The connections of this address hold too much.
    Full,
    Failed,
}

/// Bytes of our side of a reconciliation, for each event: its time and its id.
const ITEM: usize = 40;

/// An event of a page is in memory as it was found and as it is sent.
const TWICE: usize = 2;

/// Answers a question from this address. Whoever asked may be gone, which ends it.
pub(crate) async fn read(
    forge: Forge,
    ip: Option<IpAddr>,
    query: QueryId,
    asked: Asked,
    to: mpsc::Sender<(QueryId, Found)>,
) {
    let answered = match asked {
        Asked::Events(filters) => events(&forge, ip, &query, &filters, &to).await,
        Asked::Count(filters) => count(&forge, ip, &filters).await.map(Found::Count),
        Asked::Reconcile { filter, at_most } => items(&forge, ip, &filter, at_most).await,
    };
    let last = answered.unwrap_or_else(|error| {
        tracing::warn!(%error, "could not read events");
        Found::Failed
    });
    let _ = to.send((query, last)).await;
}

async fn events(
    forge: &Forge,
    ip: Option<IpAddr>,
    query: &QueryId,
    filters: &[Filter],
    to: &mpsc::Sender<(QueryId, Found)>,
) -> Result<Found, Fault> {
    let mut sent = HashSet::new();
    for filter in filters {
        let mut positions = positions(forge, ip, to_query(filter)).await?;
        positions.retain(|position| sent.insert(position.n));
        let mut rest = &positions[..];
        while !rest.is_empty() {
            let (page, later) = rest.split_at(page(rest, Relay::of(forge).settings.page_bytes));
            rest = later;
            // The page before is being sent: no more than one is ready beside it.
            let Ok(position) = to.reserve().await else { return Ok(Found::End) };
            let bytes = page.iter().map(|position| usize::try_from(position.bytes).unwrap_or(0)).sum::<usize>();
            let Some(held) = Relay::of(forge).memory.wait(ip, TWICE * bytes).await else { return Ok(Found::Full) };
            let wires = wires(forge, ip, filter, page).await?;
            position.send((query.clone(), Found::Page(wires, held)));
        }
    }
    Ok(Found::End)
}

/// Number of positions that make a page: at least one.
fn page(positions: &[EventPosition], most: usize) -> usize {
    nostr::query::within(positions, i64::try_from(most).unwrap_or(i64::MAX)).max(1)
}

/// Runs a query in its turn. A statement goes on in the database when its client leaves, so it has a task of its own that
/// keeps the turn until the statement has ended: a client that connects again and again starts no more of them.
async fn in_turn<T, F>(forge: &Forge, ip: Option<IpAddr>, query: impl FnOnce(Forge) -> F) -> Result<T, Fault>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Fault>> + Send + 'static,
{
    let turn = Relay::of(forge).turns.take(ip).await;
    let querying = query(forge.clone());
    let task = tokio::spawn(async move {
        let _turn = turn;
        querying.await
    });
    task.await.map_err(|error| Fault::Internal(format!("a query of the relay failed: {error}")))?
}

async fn positions(forge: &Forge, ip: Option<IpAddr>, query: Query) -> Result<Vec<EventPosition>, Fault> {
    in_turn(forge, ip, |forge| async move {
        Ok(nostr::query::positions(&mut *forge.store().read().await?, &query, now(&forge)).await?)
    })
    .await
}

/// The events of a page, in order. Tags are found by their hashes, so each event is compared with the filter.
async fn wires(forge: &Forge, ip: Option<IpAddr>, filter: &Filter, page: &[EventPosition]) -> Result<Vec<Wire>, Fault> {
    let rows: Vec<i64> = page.iter().map(|position| position.n).collect();
    let mut texts = in_turn(forge, ip, |forge| async move {
        Ok(nostr::query::json_of(&mut *forge.store().read().await?, &rows).await?)
    })
    .await?;
    let asked_for = |text: &str| {
        filter.tags.is_empty() || serde_json::from_str::<Event>(text).is_ok_and(|event| filter.matches(&event))
    };
    let wire = |position: &EventPosition| {
        let text = texts.remove(&position.n).filter(|text| asked_for(text))?;
        Some(Wire { id: EventId::from_byte_array(position.id), json: text.into() })
    };
    Ok(page.iter().filter_map(wire).collect())
}

async fn count(forge: &Forge, ip: Option<IpAddr>, filters: &[Filter]) -> Result<Count, Fault> {
    let queries: Vec<Query> = filters.iter().map(to_query).collect();
    let counted = in_turn(forge, ip, |forge| async move {
        let most = Relay::of(&forge).settings.counted;
        Ok(nostr::query::count(&mut *forge.store().read().await?, &queries, most, now(&forge)).await?)
    })
    .await?;
    Ok(if counted.more { Count::AtLeast(counted.found) } else { Count::Exactly(counted.found) })
}

/// Our side of a reconciliation. How large it is shows when it is here, so the most that it may be is taken first.
async fn items(forge: &Forge, ip: Option<IpAddr>, filter: &Filter, at_most: usize) -> Result<Found, Fault> {
    let Some(mut held) = Relay::of(forge).memory.wait(ip, at_most.saturating_mul(ITEM)).await else {
        return Ok(Found::Full);
    };
    let limit = i64::try_from(at_most).unwrap_or(i64::MAX).saturating_add(1);
    let positions = positions(forge, ip, Query { limit, ..to_query(filter) }).await?;
    let item = |position: EventPosition| (position.created_at.unsigned_abs(), EventId::from_byte_array(position.id));
    let items: Vec<_> = positions.into_iter().map(item).collect();
    held.shrink_to(items.len().saturating_mul(ITEM));
    Ok(Found::Items(items, held))
}

/// Times and ids of our newest events that match a filter, as many as its limit.
pub(crate) async fn ours(forge: &Forge, filter: &Filter) -> Result<Vec<(u64, EventId)>, Fault> {
    let item = |position: EventPosition| (position.created_at.unsigned_abs(), EventId::from_byte_array(position.id));
    Ok(positions(forge, None, to_query(filter)).await?.into_iter().map(item).collect())
}

fn now(forge: &Forge) -> i64 {
    forge.clock().now().micros().div_euclid(1_000_000)
}
