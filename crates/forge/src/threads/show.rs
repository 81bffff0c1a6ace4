//! One thread: what it says, and what was said on it, in order.

use super::list::Kind;
use super::{Governed, STATUSES, events, seconds};
use crate::relay::readable;
use crate::{Fault, Forge};
use abide_nostr::event::Rank;
use abide_nostr::git::{Comment, Issue, Proposal, Root, Status, StatusEvent, Tip, may_say, standing, tip, title};
use abide_nostr::{Event, EventId, PublicKey, kinds, nip19};
use abide_store::nostr_events::{self, tag_key};
use abide_store::nostr_query::Query;

/// So much of a thread is shown, the newest.
const ENTRIES: i64 = 500;

/// Bytes of text that one page shows of a thread, the newest; a single longer text is shown alone.
const TEXT: usize = 1 << 20;

/// A thread.
#[derive(Debug, Clone)]
pub struct Thread {
    /// The number of the event here.
    pub n: i64,
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
    /// What it says: Markdown, or a patch.
    pub content: String,
    /// Labels.
    pub labels: Vec<String>,
    /// How far it is.
    pub status: Status,
    /// What it proposes at last, if it is a proposal.
    pub tip: Option<Tip>,
    /// What was said on it, the oldest first.
    pub entries: Vec<Entry>,
    /// Whether more was said, longer ago.
    pub more: bool,
}

/// Something that was said on a thread.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The event, in hexadecimal.
    pub id: String,
    /// Who, as people write keys.
    pub author: String,
    /// When, in seconds, as the author says.
    pub at: i64,
    /// What.
    pub what: What,
}

/// What was said.
#[derive(Debug, Clone)]
pub enum What {
    /// A comment, in Markdown.
    Said(String),
    /// A status that counts, and a word on it.
    Became(Status, String),
    /// Another commit.
    Updated(Option<String>),
}

/// Whether an event names a repository as what it is about.
pub(super) fn names(event: &Event, governed: &Governed) -> bool {
    let repos =
        Issue::parse(event).map(|issue| issue.repos).or_else(|_| Proposal::parse(event).map(|found| found.repos));
    repos.is_ok_and(|repos| repos.contains(&governed.coordinate()))
}

/// A thread of a repository; `None` if there is none, or it is not served, or is about another repository.
pub async fn thread(forge: &Forge, governed: &Governed, id: &EventId) -> Result<Option<Thread>, Fault> {
    let (mut conn, now) = (forge.store().read().await?, seconds(forge));
    let found = nostr_events::by_id(&mut conn, id.as_bytes()).await?.filter(|found| !found.hidden);
    let Some((n, event)) = found.and_then(|found| Some((found.n, readable(&found.json)?))) else { return Ok(None) };
    let Some(kind) = Kind::of(&event).filter(|_| names(&event, governed)) else { return Ok(None) };

    let of_kinds = |kinds: &[u16], letter, authors: Option<Vec<PublicKey>>| Query {
        kinds: Some(kinds.to_vec()),
        authors: authors.map(|keys| keys.iter().map(|key| key.to_bytes()).collect()),
        tags: vec![vec![tag_key(letter, &id.to_hex())]],
        limit: ENTRIES + 1,
        ..Query::default()
    };
    // Each by whose word counts, and apart from comments, so that strangers cannot bury a status or a commit.
    let mut deciders = governed.maintainers.clone();
    deciders.insert(event.pubkey);
    let deciders = Some(deciders.into_iter().collect());
    let mut said = events(&mut conn, &of_kinds(&STATUSES, 'e', deciders), 0, now).await?;
    let by_author = Some(vec![event.pubkey]);
    said.extend(events(&mut conn, &of_kinds(&[kinds::PULL_REQUEST_UPDATE], 'E', by_author), 0, now).await?);
    said.extend(events(&mut conn, &of_kinds(&[kinds::COMMENT], 'E', None), 0, now).await?);
    drop(conn);

    let words: Vec<StatusEvent> = said.iter().filter_map(|event| StatusEvent::parse(event).ok()).collect();
    let holds = standing(&event.id, &event.pubkey, &governed.maintainers, &words);
    let updates: Vec<(Rank, Proposal)> =
        said.iter().filter_map(|event| Some((Rank::of(event), Proposal::parse(event).ok()?))).collect();
    let proposal = Proposal::parse(&event).ok();
    let mut entries: Vec<Entry> = said.iter().filter_map(|said| entry(&event, said, governed)).collect();
    entries.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    let shown = shown(&entries, event.content.len());
    let more = entries.len() > shown;
    entries.drain(..entries.len() - shown);
    let labels = Issue::parse(&event).map(|issue| issue.labels).ok();
    Ok(Some(Thread {
        n,
        id: event.id.to_hex(),
        kind,
        title: title(&event),
        author: nip19::npub(&event.pubkey),
        at: at(&event),
        labels: labels.or_else(|| Some(proposal.as_ref()?.labels.clone())).unwrap_or_default(),
        status: holds.map_or(Status::Open, |status| status.status),
        tip: proposal.map(|proposal| tip(&event, &proposal, &updates)),
        content: event.content,
        entries,
        more,
    }))
}

/// How many of the entries are shown, counted from the newest: as many as there is room for.
fn shown(entries: &[Entry], first: usize) -> usize {
    let length = |entry: &Entry| match &entry.what {
        What::Said(text) | What::Became(_, text) => text.len(),
        What::Updated(_) => 0,
    };
    let mut room = TEXT.saturating_sub(first);
    let fits = |entry: &&Entry| {
        let left = room.checked_sub(length(entry));
        room = left.unwrap_or(0);
        left.is_some()
    };
    entries.iter().rev().take(ENTRIES as usize).take_while(fits).count()
}

fn at(event: &Event) -> i64 {
    i64::try_from(event.created_at.as_secs()).unwrap_or(i64::MAX)
}

/// What an event adds to a thread; `None` if it is not about it, or its author's word does not count.
fn entry(root: &Event, event: &Event, governed: &Governed) -> Option<Entry> {
    let what = match event.kind.as_u16() {
        kinds::COMMENT => {
            let comment = Comment::parse(event).ok().filter(|comment| comment.root == Root::Event(root.id));
            comment.map(|_| What::Said(event.content.clone()))?
        }
        kinds::PULL_REQUEST_UPDATE => {
            let update = Proposal::parse(event).ok().filter(|update| update.author == root.pubkey)?;
            What::Updated(update.commit.map(|commit| commit.to_string()))
        }
        _ => {
            let status = StatusEvent::parse(event).ok().filter(|status| status.root == root.id)?;
            let counts = may_say(&status.author, &root.pubkey, &governed.maintainers);
            counts.then(|| What::Became(status.status, event.content.clone()))?
        }
    };
    Some(Entry { id: event.id.to_hex(), author: nip19::npub(&event.pubkey), at: at(event), what })
}
