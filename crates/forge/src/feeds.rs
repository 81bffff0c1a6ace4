//! Readers of the event log: feeds in pages, newest first; the log as it grows; popular repositories.

use crate::open::viewer;
use crate::{Caller, Fault, Forge};
use abide_core::feed::Period;
use abide_macros::boxed;
use abide_store::attention::{feeds, trending};
use abide_store::repos::{Repo, Viewer};
use abide_store::sequencer;
use std::time::Duration;

pub use abide_store::attention::feeds::{Feed, FeedRepo, Item};

/// Maximum runs of the log that one request reads. If most events are hidden, a page may have fewer entries than
/// requested and still a next page.
const RUNS: usize = 6;

/// Popular repositories stored for each period.
const POPULAR: i64 = 100;

/// Part of a feed.
#[derive(Debug, Clone)]
pub struct Page {
    /// Events that the reader may see, newest first.
    pub items: Vec<Item>,
    /// Position of the next page, if there may be one.
    pub next: Option<i64>,
}

/// A page of a feed before a position (or its first), filtered by the caller's access now.
#[boxed]
pub async fn read(
    forge: &Forge,
    caller: &Caller,
    feed: Feed,
    before: Option<i64>,
    limit: usize,
) -> Result<Page, Fault> {
    page(forge, viewer(caller), feed, before, limit).await
}

async fn page(forge: &Forge, viewer: Viewer, feed: Feed, before: Option<i64>, limit: usize) -> Result<Page, Fault> {
    let mut conn = forge.store().read().await?;
    let mut items: Vec<Item> = Vec::new();
    let mut next = Some(before.unwrap_or(i64::MAX));
    for _ in 0..RUNS {
        let Some(from) = next.filter(|_| items.len() <= limit) else { break };
        let run = feeds::before(&mut conn, feed, viewer, from).await?;
        items.extend(run.items);
        next = run.end.and_then(|(seq, more)| more.then_some(seq));
    }
    if items.len() > limit {
        items.truncate(limit);
        next = items.last().map(|item| item.seq);
    }
    Ok(Page { items, next })
}

/// A reader that follows the log as it grows.
pub struct Tail {
    forge: Forge,
    viewer: Viewer,
    position: i64,
}

impl Tail {
    /// Starts after a position; without one, at the newest event.
    pub async fn new(forge: &Forge, caller: &Caller, after: Option<i64>) -> Result<Self, Fault> {
        let position = match after {
            Some(position) => position,
            None => sequencer::head(&mut *forge.store().read().await?, "events").await?.0,
        };
        Ok(Self { forge: forge.clone(), viewer: viewer(caller), position })
    }

    /// New visible events since the last call, oldest first. Empty after a timeout, so that the stream can send a
    /// heartbeat.
    pub async fn next(&mut self, patience: Duration) -> Result<Vec<Item>, Fault> {
        let mut numbered = self.forge.numbered().subscribe();
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            numbered.mark_unchanged();
            // The connection is returned before the wait, because many clients may follow.
            let run = feeds::after(&mut *self.forge.store().read().await?, self.viewer, self.position).await?;
            if let Some((seq, more)) = run.end {
                self.position = seq;
                if !run.items.is_empty() {
                    return Ok(run.items);
                }
                if more {
                    continue;
                }
            }
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => return Ok(Vec::new()),
                _ = numbered.changed() => {}
                () = tokio::time::sleep(self.forge.settings().jobs.poll) => {}
            }
        }
    }
}

/// Popular repositories that the caller may read, the most popular first.
#[boxed]
pub async fn popular(forge: &Forge, caller: &Caller, period: Period, limit: i64) -> Result<Vec<Repo>, Fault> {
    Ok(trending::list(&mut *forge.store().read().await?, period, viewer(caller), limit).await?)
}

/// The job: counts popular repositories for each period.
pub(crate) async fn count_popular(forge: &Forge) -> Result<(), Fault> {
    for &period in Period::ALL {
        forge
            .store()
            .write(period, |tx, period| {
                Box::pin(async move {
                    let since = tx.now().minus(period.length());
                    Ok::<_, Fault>(trending::count(tx, *period, since, POPULAR).await?)
                })
            })
            .await?;
    }
    Ok(())
}
