//! Domain events of nostr events: each nostr event that is served for the first time and adds to a thread becomes a domain
//! event in every repository that the thread is about. Call [`served`] in the transaction that stores the nostr events.
//!
//! Payloads name nostr events and hold no text: readers of the log take titles and texts from the live rows.

use super::{Governed, governed_in, status_event};
use crate::GraspSettings;
use crate::emit::{Subject, Who, emit};
use crate::relay::readable;
use abide_core::event::{NostrAddition, Origin, Payload};
use abide_core::issues::text::excerpt;
use abide_core::{RepoId, UserId};
use abide_nostr::git::news::{
    Addition, ThreadEvent, ThreadKind, Weight, addition, mentioned, read_first, thread_event,
};
use abide_nostr::git::{Coordinate, Issue, PrEvent, Status, StatusEvent, may_say, standing, title};
use abide_nostr::{Event, EventId, PublicKey, kinds, nip19};
use abide_store::accounts::user_keys::{self, KeyAccount};
use abide_store::nostr::events::tag_key;
use abide_store::nostr::news::{Head, New};
use abide_store::nostr::query::Query;
use abide_store::nostr::statuses::Pair;
use abide_store::repos::Repo;
use abide_store::throttles::{self, Limit};
use abide_store::{Conn, StoreError, Tx, nostr};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

/// Repositories in which one nostr event becomes a domain event.
const REPOS: usize = 20;
/// Characters of a text in feeds.
const EXCERPT: usize = 300;

/// Bytes of root events read for one batch. This runs in the transaction that stores the batch, and on SQLite every other
/// writer waits for it. Thousands of usual threads fit, or thirty of the largest.
const ROOT_BYTES: u64 = 8 << 20;

/// Events that were served before the root of their thread and are emitted when it arrives: per thread, and in bytes per
/// batch.
const EARLY: i64 = 100;
const EARLY_BYTES: i64 = 1 << 20;

const DAY: Duration = Duration::from_secs(86_400);

/// Anyone can make keys without a named account, so their domain events are limited: per key, and per repository for all
/// of them. Beyond the limit, their nostr events are served and shown, but nobody is notified.
const THREADS_OF_KEY: Limit = Limit { scope: "nostr_threads_key", times: 20, window: DAY };
const THREADS_OF_REPO: Limit = Limit { scope: "nostr_threads_repo", times: 100, window: DAY };
const OTHERS_OF_KEY: Limit = Limit { scope: "nostr_said_key", times: 200, window: DAY };
const OTHERS_OF_REPO: Limit = Limit { scope: "nostr_said_repo", times: 1_000, window: DAY };

/// A nostr event that adds to a thread.
struct Added<'a> {
    event: &'a Event,
    n: i64,
    addition: Addition,
}

/// A thread that a batch adds to.
struct Thread<'a> {
    id: EventId,
    head: Head,
    kind: ThreadKind,
    added: Vec<Added<'a>>,
    /// The root event, if it came in the same batch.
    begun: Option<&'a Event>,
}

impl Thread<'_> {
    fn author(&self) -> PublicKey {
        PublicKey::from_byte_array(self.head.pubkey)
    }
}

/// Facts about a batch, each loaded once.
struct Batch<'a> {
    settings: &'a GraspSettings,
    accounts: HashMap<String, KeyAccount>,
    repos: BTreeMap<Coordinate, Option<Repo>>,
    governed: HashMap<RepoId, Option<Governed>>,
}

/// Emits the domain events of nostr events that were just stored, and of earlier events whose root comes with this batch.
///
/// A stranger can publish many large events, so the bytes read here are bounded: keys that reached their limit today are
/// skipped before anything is read, the status of a thread comes from columns, and root events are read one at a time within
/// [`ROOT_BYTES`].
pub(crate) async fn served<'a>(
    tx: &mut Tx,
    settings: &GraspSettings,
    stored: impl IntoIterator<Item = &'a Event>,
) -> Result<(), StoreError> {
    let stored: Vec<&Event> = stored.into_iter().collect();
    let early = early(tx, &stored).await?;
    let all = stored.into_iter().chain(&early);
    let added: Vec<(&Event, EventId, Addition)> =
        all.filter_map(|event| addition(event).map(|(root, what)| (event, root, what))).collect();
    if added.is_empty() {
        return Ok(());
    }
    let mut accounts = accounts(tx, added.iter().map(|(event, ..)| *event)).await?;
    let added = within_day(tx, added, &accounts).await?;
    let threads = threads(tx, added).await?;
    let authors: BTreeSet<String> = threads.iter().map(|thread| nip19::npub(&thread.author())).collect();
    accounts.extend(user_keys::accounts(tx, &authors.into_iter().collect::<Vec<_>>()).await?);
    let mut batch = Batch { settings, accounts, repos: BTreeMap::new(), governed: HashMap::new() };
    let weights: Vec<Weight> = threads.iter().map(|thread| batch.weight(thread)).collect();
    let read = read_first(&weights, ROOT_BYTES);
    for thread in read.into_iter().filter_map(|index| threads.get(index)) {
        let root = match thread.begun {
            Some(event) => Some(Cow::Borrowed(event)),
            None => nostr::news::json(tx, thread.head.n).await?.and_then(|json| readable(&json)).map(Cow::Owned),
        };
        if let Some(root) = root {
            batch.emit_thread(tx, thread, &root).await?;
        }
    }
    Ok(())
}

/// Stored events of threads whose root comes with this batch. They were not emitted yet, because the root was missing.
async fn early(tx: &mut Tx, stored: &[&Event]) -> Result<Vec<Event>, StoreError> {
    let begins = |event: &&&Event| addition(event).is_some_and(|(_, what)| what == Addition::Opened);
    let keys = |event: &Event| ['e', 'E'].map(|letter| tag_key(letter, &event.id.to_hex()));
    let begun: Vec<&Event> = stored.iter().filter(begins).copied().collect();
    let named: Vec<i64> = begun.iter().flat_map(|event| keys(event)).collect();
    let named = nostr::relations::tagged(tx, &named).await?;
    let own: HashSet<[u8; 32]> = stored.iter().map(|event| event.id.to_bytes()).collect();
    let (mut found, mut left) = (Vec::new(), EARLY_BYTES);
    for event in begun {
        let keys: Vec<i64> = keys(event).into_iter().filter(|key| named.contains_key(key)).collect();
        if keys.is_empty() {
            continue;
        }
        let mut kinds = vec![kinds::COMMENT, kinds::PULL_REQUEST_UPDATE, kinds::PATCH];
        kinds.extend([kinds::STATUS_OPEN, kinds::STATUS_APPLIED, kinds::STATUS_CLOSED, kinds::STATUS_DRAFT]);
        let query = Query { kinds: Some(kinds), tags: vec![keys], limit: EARLY, ..Query::default() };
        let mut positions = nostr::query::positions(tx, &query, 0).await?;
        positions.retain(|position| !own.contains(&position.id));
        let mut texts = nostr::query::json_within(tx, &positions, left).await?;
        left -= texts.iter().map(|(position, _)| position.bytes).sum::<i64>();
        // In the order of their publication.
        texts.reverse();
        let adds = |said: &Event| addition(said).is_some_and(|(root, _)| root == event.id);
        found.extend(texts.iter().filter_map(|(_, json)| readable(json)).filter(adds));
    }
    // One event may name several roots, and adds to one of them.
    let mut once = HashSet::new();
    found.retain(|event: &Event| once.insert(event.id));
    Ok(found)
}

/// Accounts of the authors and of mentioned keys, by key.
async fn accounts<'a>(
    conn: &mut Conn,
    events: impl Iterator<Item = &'a Event>,
) -> Result<HashMap<String, KeyAccount>, StoreError> {
    let mut npubs = BTreeSet::new();
    for event in events {
        npubs.insert(nip19::npub(&event.pubkey));
        npubs.extend(mentioned(&event.content).iter().map(nip19::npub));
    }
    user_keys::accounts(conn, &npubs.into_iter().collect::<Vec<_>>()).await
}

fn is_named(accounts: &HashMap<String, KeyAccount>, key: &PublicKey) -> bool {
    accounts.get(&nip19::npub(key)).is_some_and(|account| account.named)
}

/// Additions of keys within their limits today. One lookup for all keys, before any text is read.
async fn within_day<'a>(
    tx: &mut Tx,
    mut added: Vec<(&'a Event, EventId, Addition)>,
    accounts: &HashMap<String, KeyAccount>,
) -> Result<Vec<(&'a Event, EventId, Addition)>, StoreError> {
    let keys: BTreeSet<String> = added
        .iter()
        .filter(|(event, ..)| !is_named(accounts, &event.pubkey))
        .map(|(event, ..)| event.pubkey.to_hex())
        .collect();
    let keys: Vec<String> = keys.into_iter().collect();
    for (limit, opens) in [(THREADS_OF_KEY, true), (OTHERS_OF_KEY, false)] {
        let spent = throttles::spent(tx, limit, &keys).await?;
        added
            .retain(|(event, _, what)| (*what == Addition::Opened) != opens || !spent.contains(&event.pubkey.to_hex()));
    }
    Ok(added)
}

/// Threads of the additions, in the order of the additions.
async fn threads<'a>(
    conn: &mut Conn,
    added: Vec<(&'a Event, EventId, Addition)>,
) -> Result<Vec<Thread<'a>>, StoreError> {
    let ids: BTreeSet<[u8; 32]> =
        added.iter().flat_map(|(event, root, _)| [event.id.to_bytes(), root.to_bytes()]).collect();
    let heads = nostr::news::heads(conn, &ids.into_iter().collect::<Vec<_>>()).await?;
    let mut threads: Vec<Thread<'a>> = Vec::new();
    let mut indices: HashMap<EventId, usize> = HashMap::new();
    for (event, root, addition) in added {
        let (Some(own), Some(head)) = (heads.get(event.id.as_bytes()), heads.get(root.as_bytes())) else { continue };
        let Some(kind) = ThreadKind::of(head.kind) else { continue };
        // Only the author of a PR event can publish updates of it.
        if addition == Addition::Version && event.pubkey.as_bytes() != &head.pubkey {
            continue;
        }
        let index = *indices.entry(root).or_insert_with(|| {
            threads.push(Thread { id: root, head: *head, kind, added: Vec::new(), begun: None });
            threads.len() - 1
        });
        let Some(thread) = threads.get_mut(index) else { continue };
        let news = Added { event, n: own.n, addition };
        if addition == Addition::Opened {
            // A root before its comments.
            thread.begun = Some(event);
            thread.added.insert(0, news);
        } else {
            thread.added.push(news);
        }
    }
    Ok(threads)
}

impl Batch<'_> {
    fn weight(&self, thread: &Thread<'_>) -> Weight {
        Weight {
            by_account: thread.added.iter().any(|news| is_named(&self.accounts, &news.event.pubkey)),
            bytes: if thread.begun.is_some() { 0 } else { thread.head.bytes.unsigned_abs() },
        }
    }

    async fn emit_thread(&mut self, tx: &mut Tx, thread: &Thread<'_>, root: &Event) -> Result<(), StoreError> {
        let repos = self.repos(tx, root).await?;
        for news in &thread.added {
            // A status event may leave the status unchanged: see [`Batch::change`].
            let Some(change) = thread_event(thread.kind, news.addition, Status::Open, Status::Open) else { continue };
            for repo in &repos {
                self.emit_in(tx, thread, root, news, repo, change).await?;
            }
        }
        for repo in &repos {
            if let Some((news, change)) = self.change(tx, thread, repo).await? {
                self.emit_in(tx, thread, root, news, repo, change).await?;
            }
        }
        Ok(())
    }

    async fn emit_in(
        &self,
        tx: &mut Tx,
        thread: &Thread<'_>,
        root: &Event,
        news: &Added<'_>,
        repo: &Repo,
        change: ThreadEvent,
    ) -> Result<(), StoreError> {
        if !is_named(&self.accounts, &news.event.pubkey) && !within_limits(tx, news, repo.id).await? {
            return Ok(());
        }
        self.note(tx, thread, root, news).await?;
        let author = nip19::npub(&news.event.pubkey);
        let user = self.accounts.get(&author).map(|account| account.id);
        let addition = NostrAddition {
            thread: root.id.to_hex(),
            event: news.event.id.to_hex(),
            said: news.n,
            author,
            mentions: self.mentions(news),
        };
        let who = Who { user, ip: None };
        let subject = Subject::NostrThread(repo, thread.head.n);
        emit(tx, &who, subject, repo.visibility.into(), payload(change, addition)).await
    }

    fn mentions(&self, news: &Added<'_>) -> Vec<UserId> {
        if !matches!(news.addition, Addition::Opened | Addition::Comment) {
            return Vec::new();
        }
        let keys = mentioned(&news.event.content);
        keys.iter().filter_map(|key| self.accounts.get(&nip19::npub(key))).map(|found| found.id).collect()
    }

    /// Live repositories of a thread.
    async fn repos(&mut self, conn: &mut Conn, root: &Event) -> Result<Vec<Repo>, StoreError> {
        let named =
            Issue::parse(root).map(|issue| issue.repos).or_else(|_| PrEvent::parse(root).map(|found| found.repos));
        let named: BTreeSet<Coordinate> = named.unwrap_or_default().into_iter().filter(Coordinate::is_repo).collect();
        let mut repos = Vec::new();
        for address in named.into_iter().take(REPOS) {
            if !self.repos.contains_key(&address) {
                let key = address.author.to_bytes();
                let found = nostr::repos::by_coordinate(conn, &key, &address.identifier, None).await?;
                self.repos.insert(address.clone(), found.filter(Repo::is_live));
            }
            repos.extend(self.repos.get(&address).cloned().flatten());
        }
        Ok(repos)
    }

    /// The status event of a batch that changes the status of its thread in a repository, and the change. Several status
    /// events of one batch make one domain event.
    async fn change<'t>(
        &mut self,
        tx: &mut Tx,
        thread: &'t Thread<'_>,
        repo: &Repo,
    ) -> Result<Option<(&'t Added<'t>, ThreadEvent)>, StoreError> {
        let is_status = |news: &&Added<'_>| matches!(news.addition, Addition::Status(_));
        let mut said: Vec<&Added<'_>> = thread.added.iter().filter(is_status).collect();
        if said.is_empty() {
            return Ok(None);
        }
        if !throttles::spent(tx, OTHERS_OF_REPO, &[repo.id.to_string()]).await?.is_empty() {
            said.retain(|news| is_named(&self.accounts, &news.event.pubkey));
        }
        if !self.governed.contains_key(&repo.id) {
            let governed = governed_in(tx, self.settings, repo).await?;
            self.governed.insert(repo.id, governed);
        }
        let Some(Some(governed)) = self.governed.get(&repo.id) else { return Ok(None) };
        let author = thread.author();
        said.retain(|news| may_say(&news.event.pubkey, &author, &governed.maintainers));
        if said.is_empty() {
            return Ok(None);
        }
        let new: Vec<i64> = thread.added.iter().map(|news| news.n).collect();
        let earlier = words(tx, governed, thread.id, author, &new).await?;
        let before = standing(&thread.id, &author, &governed.maintainers, &earlier).cloned();
        let fresh = said.iter().filter_map(|news| StatusEvent::parse(news.event).ok());
        let all: Vec<StatusEvent> = before.iter().cloned().chain(fresh).collect();
        let Some(after) = standing(&thread.id, &author, &governed.maintainers, &all) else { return Ok(None) };
        let Some(news) = said.into_iter().find(|news| news.event.id == after.id) else { return Ok(None) };
        let before = before.map_or(Status::Open, |status| status.status);
        Ok(thread_event(thread.kind, news.addition, before, after.status).map(|change| (news, change)))
    }

    /// Stores titles and excerpts for feeds and the inbox. The thread comes first: it may be older than this table, or have no
    /// domain event yet.
    async fn note(&self, tx: &mut Tx, thread: &Thread<'_>, root: &Event, news: &Added<'_>) -> Result<(), StoreError> {
        let row = |n: i64, event: &Event, title: String| New {
            n,
            root: thread.head.n,
            user: self.accounts.get(&nip19::npub(&event.pubkey)).map(|account| account.id),
            title,
            excerpt: excerpt(&event.content, EXCERPT).replace('\0', ""),
        };
        nostr::news::put(tx, &row(thread.head.n, root, title(root))).await?;
        if news.addition == Addition::Comment {
            nostr::news::put(tx, &row(news.n, news.event, String::new())).await?;
        }
        Ok(())
    }
}

fn payload(change: ThreadEvent, addition: NostrAddition) -> Payload {
    match change {
        ThreadEvent::IssueOpened => Payload::IssueCreated(Origin::Nostr(addition)),
        ThreadEvent::IssueCommented => Payload::IssueCommentCreated(Origin::Nostr(addition)),
        ThreadEvent::IssueClosed => Payload::IssueClosed(Origin::Nostr(addition)),
        ThreadEvent::IssueReopened => Payload::IssueReopened(Origin::Nostr(addition)),
        ThreadEvent::PrOpened => Payload::PrOpened(addition),
        ThreadEvent::PrCommented => Payload::PrCommentCreated(addition),
        ThreadEvent::PrSynchronized => Payload::PrSynchronized(addition),
        ThreadEvent::PrClosed => Payload::PrClosed(addition),
        ThreadEvent::PrMerged => Payload::PrMerged(addition),
        ThreadEvent::PrReopened => Payload::PrReopened(addition),
    }
}

/// Newest status event of each key that may set the status of a thread, without some rows.
async fn words(
    conn: &mut Conn,
    governed: &Governed,
    root: EventId,
    author: PublicKey,
    but: &[i64],
) -> Result<Vec<StatusEvent>, StoreError> {
    let deciders = governed.deciders(author).into_iter();
    let pairs: Vec<Pair> = deciders.map(|key| (root.to_bytes(), key.to_bytes())).collect();
    // An event with an expiry counts until then; expired events do not get here.
    let found = nostr::statuses::newest(conn, &pairs, but, 1, 0).await?;
    Ok(found.iter().filter_map(status_event).collect())
}

/// Current status of a thread.
pub(crate) async fn status(
    conn: &mut Conn,
    settings: &GraspSettings,
    repo: &Repo,
    root: &Event,
) -> Result<Status, StoreError> {
    let Some(governed) = governed_in(conn, settings, repo).await? else { return Ok(Status::Open) };
    let words = words(conn, &governed, root.id, root.pubkey, &[]).await?;
    let holds = standing(&root.id, &root.pubkey, &governed.maintainers, &words);
    Ok(holds.map_or(Status::Open, |status| status.status))
}

/// Counts an event of a key without a named account; `false` beyond the limits.
async fn within_limits(tx: &mut Tx, news: &Added<'_>, repo: RepoId) -> Result<bool, StoreError> {
    let (of_key, of_repo) = match news.addition {
        Addition::Opened => (THREADS_OF_KEY, THREADS_OF_REPO),
        _ => (OTHERS_OF_KEY, OTHERS_OF_REPO),
    };
    let of_key = throttles::hit(tx, of_key, &news.event.pubkey.to_hex()).await?;
    Ok(of_key.is_none() && throttles::hit(tx, of_repo, &repo.to_string()).await?.is_none())
}
