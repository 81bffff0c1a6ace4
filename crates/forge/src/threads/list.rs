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

/// No page is farther: older threads are found by a client for nostr.
pub const MAX_PAGES: usize = 40;

/// Bytes of events that are read at once for a page; of each, a line is kept.
const STEP: i64 = 1 << 20;

/// Kind of thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something is broken, missing or worth doing.
    Issue,
    /// A change as text.
    Patch,
    /// A change as a commit.
    PullRequest,
}

impl Kind {
    /// Of a kind of event; `None` if such events begin no thread.
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
    /// Kind of thread.
    pub kind: Kind,
    pub title: String,
    /// Who began it, as people write keys.
    pub author: String,
    /// When, in seconds, as the author says.
    pub at: i64,
    /// How far it is.
    pub status: Status,
}

/// A page of threads.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub lines: Vec<Line>,
    /// Whether there are older ones.
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

/// The beginning of a thread, as far as a list shows it.
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

/// The newest words on the status of several threads, of each key whose word may count.
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
