//! Issues and PR events, the newest first.

use super::{Governed, seconds, slot, status_event};
use crate::relay::{apart, readable};
use crate::{Caller, Fault, Forge};
use abide_macros::boxed;
use abide_nostr::git::{Status, StatusEvent, standing, title};
use abide_nostr::{Event, EventId, PublicKey, kinds, nip19};
use abide_store::nostr;
use abide_store::nostr::query::Query;
use abide_store::nostr::statuses::Pair;

/// Last page of a list. A nostr client can find older threads.
pub const MAX_PAGES: usize = 40;

/// Bytes of events read for a page; one line of each is kept.
const STEP: i64 = 1 << 20;

/// Kind of thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Issue,
    /// A change as a patch text.
    Patch,
    /// A PR event, which names a commit.
    PullRequest,
}

impl Kind {
    /// Kind of thread that an event kind begins, if any.
    pub(super) fn of(kind: u16) -> Option<Self> {
        match kind {
            kinds::ISSUE => Some(Self::Issue),
            kinds::PATCH => Some(Self::Patch),
            kinds::PULL_REQUEST => Some(Self::PullRequest),
            _ => None,
        }
    }
}

/// A thread in a list.
#[derive(Debug, Clone)]
pub struct Line {
    /// The event, in hexadecimal.
    pub id: String,
    pub kind: Kind,
    pub title: String,
    /// Author, as npub.
    pub author: String,
    /// Time in seconds, from the event.
    pub at: i64,
    pub status: Status,
}

/// A page of threads.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub lines: Vec<Line>,
    /// Whether there is a next page.
    pub more: bool,
}

/// Issues.
#[boxed]
pub async fn issues(
    forge: &Forge,
    caller: &Caller,
    governed: &Governed,
    page: usize,
    per_page: usize,
) -> Result<Page, Fault> {
    of_kinds(forge, caller, governed, vec![kinds::ISSUE], (page, per_page)).await
}

/// Patches and pull requests.
#[boxed]
pub async fn pr_events(
    forge: &Forge,
    caller: &Caller,
    governed: &Governed,
    page: usize,
    per_page: usize,
) -> Result<Page, Fault> {
    of_kinds(forge, caller, governed, vec![kinds::PATCH, kinds::PULL_REQUEST], (page, per_page)).await
}

/// Root event of a thread, with the parts that a list shows.
struct Begun {
    id: EventId,
    author: PublicKey,
    line: Line,
}

async fn of_kinds(
    forge: &Forge,
    caller: &Caller,
    governed: &Governed,
    kinds: Vec<u16>,
    (page, per_page): (usize, usize),
) -> Result<Page, Fault> {
    let (page, now) = (page.clamp(1, MAX_PAGES), seconds(forge));
    let skip = (page - 1) * per_page;
    let query = Query {
        kinds: Some(kinds),
        tags: vec![vec![governed.filed_under()]],
        limit: (skip + per_page + 1) as i64,
        ..Query::default()
    };
    let found = nostr::query::positions(&mut *forge.store().read().await?, &query, now).await?;
    let more = found.len() > skip + per_page && page < MAX_PAGES;
    let mut rest: Vec<_> = found.into_iter().skip(skip).take(per_page).collect();
    let slot = slot(forge, caller, rest.iter().map(|position| position.bytes).sum()).await?;
    let mut begun = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let step: Vec<_> = rest.drain(..nostr::query::within(&rest, STEP).max(1)).collect();
        let texts = nostr::query::json_within(&mut *forge.store().read().await?, &step, i64::MAX).await?;
        let (bytes, governed, slot) =
            (step.iter().map(|position| position.bytes).sum(), governed.clone(), slot.clone());
        let lines = move || {
            let _slot = slot;
            texts.iter().filter_map(|(_, json)| line(&readable(json)?, &governed)).collect::<Vec<_>>()
        };
        begun.extend(apart(bytes, lines).await?);
    }
    drop(slot);
    let said = statuses(&mut *forge.store().read().await?, governed, &begun, now).await?;
    let with_status = |begun: Begun| {
        let holds = standing(&begun.id, &begun.author, &governed.maintainers, &said);
        Line { status: holds.map_or(Status::Open, |status| status.status), ..begun.line }
    };
    Ok(Page { lines: begun.into_iter().map(with_status).collect(), more })
}

/// The line of a thread; `None` if it is about another repository.
fn line(event: &Event, governed: &Governed) -> Option<Begun> {
    let kind = Kind::of(event.kind.as_u16()).filter(|_| super::show::names(event, governed))?;
    let line = Line {
        id: event.id.to_hex(),
        kind,
        title: title(event),
        author: nip19::npub(&event.pubkey),
        at: i64::try_from(event.created_at.as_secs()).unwrap_or(i64::MAX),
        status: Status::Open,
    };
    Some(Begun { id: event.id, author: event.pubkey, line })
}

/// Newest status events of several threads, for each key that may set a status.
async fn statuses(
    conn: &mut abide_store::Conn,
    governed: &Governed,
    threads: &[Begun],
    now: i64,
) -> Result<Vec<StatusEvent>, Fault> {
    let of_thread = |begun: &Begun| -> Vec<Pair> {
        let deciders = governed.deciders(begun.author).into_iter();
        deciders.map(|key| (begun.id.to_bytes(), key.to_bytes())).collect()
    };
    let pairs: Vec<Pair> = threads.iter().flat_map(of_thread).collect();
    let words = nostr::statuses::newest(conn, &pairs, &[], 1, now).await?;
    Ok(words.iter().filter_map(status_event).collect())
}
