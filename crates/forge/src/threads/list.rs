//! Issues and proposals, the newest first.

use super::{Governed, STATUSES, events, seconds};
use crate::{Fault, Forge};
use abide_nostr::git::{Status, StatusEvent, standing, title};
use abide_nostr::{Event, PublicKey, kinds, nip19};
use abide_store::nostr_events::tag_key;
use abide_store::nostr_query::Query;
use std::collections::{BTreeMap, BTreeSet};

/// No page is farther: older threads are found by a client for nostr.
pub const MAX_PAGES: usize = 40;
/// Words on status that are looked at for one page, of the maintainers and of each author.
const WORDS: i64 = 1_000;

/// What kind of thread.
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
    /// Of an event; `None` if it begins no thread.
    pub(super) fn of(event: &Event) -> Option<Self> {
        match event.kind.as_u16() {
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
    /// What kind of thread.
    pub kind: Kind,
    /// What it is called.
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
    /// Those of this page.
    pub lines: Vec<Line>,
    /// Whether there are older ones.
    pub more: bool,
}

/// Issues.
pub async fn issues(forge: &Forge, governed: &Governed, page: usize, per_page: usize) -> Result<Page, Fault> {
    of_kinds(forge, governed, vec![kinds::ISSUE], page, per_page).await
}

/// Patches and pull requests.
pub async fn proposals(forge: &Forge, governed: &Governed, page: usize, per_page: usize) -> Result<Page, Fault> {
    of_kinds(forge, governed, vec![kinds::PATCH, kinds::PULL_REQUEST], page, per_page).await
}

async fn of_kinds(
    forge: &Forge,
    governed: &Governed,
    kinds: Vec<u16>,
    page: usize,
    per_page: usize,
) -> Result<Page, Fault> {
    let (page, now) = (page.clamp(1, MAX_PAGES), seconds(forge));
    let skip = (page - 1) * per_page;
    let query = Query {
        kinds: Some(kinds),
        tags: vec![vec![governed.filed_under()]],
        limit: (skip + per_page + 1) as i64,
        ..Query::default()
    };
    let mut conn = forge.store().read().await?;
    let mut found = events(&mut conn, &query, skip, now).await?;
    let more = found.len() > per_page && page < MAX_PAGES;
    found.truncate(per_page);
    found.retain(|event| super::show::names(event, governed));
    let said = statuses(&mut conn, governed, &found, now).await?;
    let line = |event: &Event| {
        let holds = standing(&event.id, &event.pubkey, &governed.maintainers, &said);
        Some(Line {
            id: event.id.to_hex(),
            kind: Kind::of(event)?,
            title: title(event),
            author: nip19::npub(&event.pubkey),
            at: i64::try_from(event.created_at.as_secs()).unwrap_or(i64::MAX),
            status: holds.map_or(Status::Open, |status| status.status),
        })
    };
    Ok(Page { lines: found.iter().filter_map(line).collect(), more })
}

/// The words on the status of several threads. Only of those whose word may count, and those of each author apart, so that
/// nobody can bury what others said.
async fn statuses(
    conn: &mut abide_store::Conn,
    governed: &Governed,
    threads: &[Event],
    now: i64,
) -> Result<Vec<StatusEvent>, Fault> {
    let mut asked: BTreeMap<PublicKey, Vec<&Event>> = BTreeMap::new();
    for event in threads.iter().filter(|event| !governed.maintainers.contains(&event.pubkey)) {
        asked.entry(event.pubkey).or_default().push(event);
    }
    let mut said = words(conn, &governed.maintainers, threads.iter(), now).await?;
    for (author, own) in asked {
        said.extend(words(conn, &BTreeSet::from([author]), own.into_iter(), now).await?);
    }
    Ok(said)
}

/// What these keys said on the status of these threads.
async fn words<'a>(
    conn: &mut abide_store::Conn,
    authors: &BTreeSet<PublicKey>,
    threads: impl Iterator<Item = &'a Event>,
    now: i64,
) -> Result<Vec<StatusEvent>, Fault> {
    let query = Query {
        kinds: Some(STATUSES.into()),
        authors: Some(authors.iter().map(|key| key.to_bytes()).collect()),
        tags: vec![threads.map(|event| tag_key('e', &event.id.to_hex())).collect()],
        limit: WORDS,
        ..Query::default()
    };
    let found = events(conn, &query, 0, now).await?;
    Ok(found.iter().filter_map(|event| StatusEvent::parse(event).ok()).collect())
}
