//! One thread: its root event, comments, statuses and commits, in order.

use super::list::Kind;
use super::{Governed, seconds, slot, status_event};
use crate::relay::{apart, readable};
use crate::{Caller, Fault, Forge};
use abide_macros::boxed;
use abide_nostr::event::Rank;
use abide_nostr::git::{Comment, Issue, PrEvent, Root, Status, StatusEvent, Tip, standing, tip, title};
use abide_nostr::{Event, EventId, PublicKey, kinds, nip19};
use abide_store::nostr::events::tag_key;
use abide_store::nostr::query::{EventPosition, Query};
use abide_store::nostr::statuses::Pair;
use abide_store::{Conn, StoreError, nostr};

/// Newest entries of a thread that are shown; an index walk finds no more.
const ENTRIES: usize = 500;

/// Newest statuses of one key that are shown.
const STATUSES: i64 = 100;

/// Bytes of a thread that are read, newest comments first. A root event beyond this is read alone.
const TEXT: i64 = 1 << 20;

/// Bytes of updates of a PR event that are read, newest first: a few hundred usual ones, or one of the largest.
const UPDATES: i64 = 256 << 10;

/// A thread.
#[derive(Debug, Clone)]
pub struct Thread {
    /// Row number of the event.
    pub n: i64,
    /// The event, in hexadecimal.
    pub id: String,
    pub kind: Kind,
    pub title: String,
    /// Author, as npub.
    pub author: String,
    /// Time in seconds, from the event.
    pub at: i64,
    /// Markdown, or a patch.
    pub content: String,
    pub labels: Vec<String>,
    pub status: Status,
    /// Latest proposed commit, if it is a PR event.
    pub tip: Option<Tip>,
    /// Comments and status changes, oldest first.
    pub entries: Vec<Entry>,
    /// Whether there are older entries.
    pub more: bool,
}

/// An entry of a thread.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The event, in hexadecimal.
    pub id: String,
    /// Author, as npub.
    pub author: String,
    /// Time in seconds, from the event.
    pub at: i64,
    pub what: What,
}

/// Content of an entry.
#[derive(Debug, Clone)]
pub enum What {
    /// A comment, in Markdown.
    Said(String),
    /// A status by a key that may set it.
    Became(Status),
    /// An update with another commit.
    Updated(Option<String>),
}

/// Whether an event names a repository as its subject.
pub(super) fn names(event: &Event, governed: &Governed) -> bool {
    let repos =
        Issue::parse(event).map(|issue| issue.repos).or_else(|_| PrEvent::parse(event).map(|found| found.repos));
    repos.is_ok_and(|repos| repos.contains(&governed.coordinate()))
}

/// Row numbers of the parts of a thread that are read.
struct Parts {
    n: i64,
    bytes: i64,
    statuses: Vec<StatusEvent>,
    updates: Vec<EventPosition>,
    comments: Vec<EventPosition>,
    /// Whether there are older entries.
    more: bool,
}

impl Parts {
    /// Finds them. Statuses and updates are looked up by their authorised keys, apart from comments, so that strangers cannot
    /// push them out of the limit.
    async fn find(
        conn: &mut Conn,
        governed: &Governed,
        id: &EventId,
        head: &nostr::news::Head,
        now: i64,
    ) -> Result<Self, StoreError> {
        let author = PublicKey::from_byte_array(head.pubkey);
        let deciders = governed.deciders(author).into_iter();
        let pairs: Vec<Pair> = deciders.map(|key| (id.to_bytes(), key.to_bytes())).collect();
        let words = nostr::statuses::newest(conn, &pairs, &[], STATUSES, now).await?;
        let named = |kind, authors| Query {
            kinds: Some(vec![kind]),
            authors,
            tags: vec![vec![tag_key('E', &id.to_hex())]],
            limit: ENTRIES as i64,
            ..Query::default()
        };
        let by_author = named(kinds::PULL_REQUEST_UPDATE, Some(vec![head.pubkey]));
        let mut updates = nostr::query::positions(conn, &by_author, now).await?;
        let mut comments = nostr::query::positions(conn, &named(kinds::COMMENT, None), now).await?;
        let more = |positions: &[EventPosition], kept| kept < positions.len() || positions.len() >= ENTRIES;
        // The newest update is the proposed commit, so it is read at any size.
        let (kept, of_text) = (
            nostr::query::within(&updates, UPDATES).max(1).min(updates.len()),
            nostr::query::within(&comments, TEXT.saturating_sub(head.bytes)),
        );
        let more = more(&updates, kept) || more(&comments, of_text);
        updates.truncate(kept);
        comments.truncate(of_text);
        let bytes = updates.iter().chain(&comments).map(|position| position.bytes).sum::<i64>() + head.bytes;
        let statuses = words.iter().filter_map(status_event).collect();
        Ok(Self { n: head.n, bytes, statuses, updates, comments, more })
    }
}

/// A thread of a repository; `None` if it does not exist, is not served, or is about another repository.
#[boxed]
pub async fn thread(
    forge: &Forge,
    caller: &Caller,
    governed: &Governed,
    id: &EventId,
) -> Result<Option<Thread>, Fault> {
    let (mut conn, now) = (forge.store().read().await?, seconds(forge));
    let head = nostr::news::heads(&mut conn, &[id.to_bytes()]).await?.remove(id.as_bytes());
    let Some(head) = head.filter(|head| Kind::of(head.kind).is_some()) else { return Ok(None) };
    let parts = Parts::find(&mut conn, governed, id, &head, now).await?;
    drop(conn);
    let slot = slot(forge, caller, parts.bytes).await?;
    let mut conn = forge.store().read().await?;
    let Some(root) = nostr::news::json(&mut conn, parts.n).await? else { return Ok(None) };
    let updates = nostr::query::json_within(&mut conn, &parts.updates, i64::MAX).await?;
    let comments = nostr::query::json_within(&mut conn, &parts.comments, i64::MAX).await?;
    drop(conn);
    let (governed, bytes) = (governed.clone(), parts.bytes);
    let made = move || {
        let _slot = slot;
        let events = |texts: Vec<(EventPosition, String)>| -> Vec<Event> {
            texts.into_iter().filter_map(|(_, json)| readable(&json)).collect()
        };
        make(readable(&root)?, &governed, &parts, &events(updates), events(comments))
    };
    apart(bytes, made).await
}

/// A thread from its parts; `None` if it is about another repository.
fn make(event: Event, governed: &Governed, parts: &Parts, updates: &[Event], comments: Vec<Event>) -> Option<Thread> {
    let kind = Kind::of(event.kind.as_u16()).filter(|_| names(&event, governed))?;
    let holds = standing(&event.id, &event.pubkey, &governed.maintainers, &parts.statuses);
    let versions: Vec<(Rank, PrEvent)> =
        updates.iter().filter_map(|event| Some((Rank::of(event), PrEvent::parse(event).ok()?))).collect();
    let pr_event = PrEvent::parse(&event).ok();
    let mut entries: Vec<Entry> = parts.statuses.iter().map(became).collect();
    entries.extend(updates.iter().filter_map(|update| updated(&event, update)));
    entries.extend(comments.into_iter().filter_map(|comment| said(&event, comment)));
    entries.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    let more = parts.more || entries.len() > ENTRIES;
    entries.drain(..entries.len().saturating_sub(ENTRIES));
    let labels = Issue::parse(&event).map(|issue| issue.labels).ok();
    Some(Thread {
        n: parts.n,
        id: event.id.to_hex(),
        kind,
        title: title(&event),
        author: nip19::npub(&event.pubkey),
        at: at(&event),
        labels: labels.or_else(|| Some(pr_event.as_ref()?.labels.clone())).unwrap_or_default(),
        status: holds.map_or(Status::Open, |status| status.status),
        tip: pr_event.map(|pr_event| tip(&event, &pr_event, &versions)),
        content: event.content,
        entries,
        more,
    })
}

fn at(event: &Event) -> i64 {
    i64::try_from(event.created_at.as_secs()).unwrap_or(i64::MAX)
}

/// A comment on a thread; `None` if it belongs to another thread.
fn said(root: &Event, event: Event) -> Option<Entry> {
    Comment::parse(&event).ok().filter(|comment| comment.root == Root::Event(root.id))?;
    let (id, author, at) = (event.id.to_hex(), nip19::npub(&event.pubkey), at(&event));
    Some(Entry { id, author, at, what: What::Said(event.content) })
}

/// An update of a PR event; `None` if its author is not the author of the PR event.
fn updated(root: &Event, event: &Event) -> Option<Entry> {
    let update = PrEvent::parse(event).ok().filter(|update| update.author == root.pubkey)?;
    let what = What::Updated(update.commit.map(|commit| commit.to_string()));
    Some(Entry { id: event.id.to_hex(), author: nip19::npub(&event.pubkey), at: at(event), what })
}

/// A status by a key that may set it.
fn became(status: &StatusEvent) -> Entry {
    Entry {
        id: status.id.to_hex(),
        author: nip19::npub(&status.author),
        at: i64::try_from(status.created_at).unwrap_or(i64::MAX),
        what: What::Became(status.status),
    }
}
