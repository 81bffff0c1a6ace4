//! Telling of what came by nostr: each event that is served for the first time and adds to a thread becomes a domain event
//! in every repository that the thread is about. Call [`served`] in the transaction that stores the events.
//!
//! Payloads name events and hold no text: readers of the log read titles and texts from rows that go with their events.

use super::{Governed, STATUSES, events, governed_in};
use crate::grasp::GraspSettings;
use crate::relay::readable;
use crate::tell::{Who, event_in_repo};
use abide_core::RepoId;
use abide_core::issues::text::excerpt;
use abide_nostr::git::news::{Addition, ThreadKind, addition, mentioned, told};
use abide_nostr::git::{Coordinate, Issue, Proposal, Status, StatusEvent, may_say, standing, title};
use abide_nostr::{Event, EventId, nip19};
use abide_store::nostr_events::tag_key;
use abide_store::nostr_news::{self, New};
use abide_store::nostr_query::Query;
use abide_store::repos::Repo;
use abide_store::throttles::{self, Limit};
use abide_store::user_keys::{self, KeyAccount};
use abide_store::{Conn, StoreError, Tx, nostr_repos};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The source of such domain events: a thread, by the number of the event that begins it.
pub(crate) const SOURCE: &str = "nostr_thread";

/// Repositories in which one event is told.
const REPOS: usize = 20;
/// Characters of a text that feeds show.
const EXCERPT: usize = 300;
/// Words on the status of one thread that are looked at, the newest.
const WORDS: i64 = 200;

const DAY: Duration = Duration::from_secs(86_400);

/// Keys without a named account cost nothing, so the number of times that they are told of is bounded: per key, and per
/// repository for all of them together. Beyond it their events are served and shown, and nobody is told.
const THREADS_OF_KEY: Limit = Limit { scope: "nostr_threads_key", times: 20, window: DAY };
const THREADS_OF_REPO: Limit = Limit { scope: "nostr_threads_repo", times: 100, window: DAY };
const OTHERS_OF_KEY: Limit = Limit { scope: "nostr_said_key", times: 200, window: DAY };
const OTHERS_OF_REPO: Limit = Limit { scope: "nostr_said_repo", times: 1_000, window: DAY };

/// An event with the thread that it adds to.
struct Told<'a> {
    event: &'a Event,
    n: i64,
    root: Event,
    root_n: i64,
    kind: ThreadKind,
    addition: Addition,
}

/// Tells of events that were just stored. Without `settings`, statuses are passed over: who may say them is not known.
pub(crate) async fn served<'a>(
    tx: &mut Tx,
    settings: Option<&GraspSettings>,
    stored: impl IntoIterator<Item = &'a Event>,
) -> Result<(), StoreError> {
    let mut added: Vec<(&'a Event, EventId, Addition)> =
        stored.into_iter().filter_map(|event| addition(event).map(|(root, what)| (event, root, what))).collect();
    if added.is_empty() {
        return Ok(());
    }
    // A thread before what is said on it.
    added.sort_by_key(|(_, _, what)| *what != Addition::Opened);
    let ids: BTreeSet<[u8; 32]> =
        added.iter().flat_map(|(event, root, _)| [event.id.to_bytes(), root.to_bytes()]).collect();
    let found = nostr_news::events(tx, &ids.into_iter().collect::<Vec<_>>()).await?;
    let found: HashMap<[u8; 32], (i64, String)> = found.into_iter().map(|(id, n, json)| (id, (n, json))).collect();
    let news = |(event, root, addition): (&'a Event, EventId, Addition)| {
        let (n, _) = found.get(event.id.as_bytes())?;
        let (root_n, json) = found.get(root.as_bytes())?;
        let root = readable(json)?;
        let kind = ThreadKind::of(root.kind.as_u16())?;
        Some(Told { event, n: *n, root, root_n: *root_n, kind, addition })
    };
    let all: Vec<Told<'_>> = added.into_iter().filter_map(news).collect();
    let accounts = accounts(tx, &all).await?;
    for news in &all {
        tell(tx, settings, news, &accounts).await?;
    }
    Ok(())
}

/// The accounts of the authors and of those whom the texts mention, by key.
async fn accounts(conn: &mut Conn, all: &[Told<'_>]) -> Result<HashMap<String, KeyAccount>, StoreError> {
    let mut npubs = BTreeSet::new();
    for news in all {
        npubs.extend([&news.event.pubkey, &news.root.pubkey].map(nip19::npub));
        npubs.extend(mentioned(&news.event.content).iter().map(nip19::npub));
    }
    user_keys::accounts(conn, &npubs.into_iter().collect::<Vec<_>>()).await
}

async fn tell(
    tx: &mut Tx,
    settings: Option<&GraspSettings>,
    news: &Told<'_>,
    accounts: &HashMap<String, KeyAccount>,
) -> Result<(), StoreError> {
    let author = nip19::npub(&news.event.pubkey);
    let account = accounts.get(&author);
    if !counts(news) {
        return Ok(());
    }
    let mut noted = false;
    for repo in repos(tx, &news.root).await? {
        let Some(kind) = kind_in(tx, settings, news, &repo).await? else { continue };
        if !account.is_some_and(|account| account.named) && !within_limits(tx, news, repo.id).await? {
            continue;
        }
        if !noted {
            note(tx, news, accounts).await?;
            noted = true;
        }
        let user = account.map(|account| account.id);
        let payload = json!({
            "thread": news.root.id.to_hex(),
            "event": news.event.id.to_hex(),
            "said": news.n,
            "author": author,
            "mentions": mentions(news, accounts),
        });
        let who = Who { user, ip: None };
        event_in_repo(tx, &who, kind, &repo, (SOURCE, news.root_n), payload).await?;
    }
    Ok(())
}

/// Whether the author of an event may add it: only the author of a proposal brings other versions of it.
fn counts(news: &Told<'_>) -> bool {
    news.addition != Addition::Version || news.event.pubkey == news.root.pubkey
}

fn mentions(news: &Told<'_>, accounts: &HashMap<String, KeyAccount>) -> Vec<i64> {
    if !matches!(news.addition, Addition::Opened | Addition::Comment) {
        return Vec::new();
    }
    let keys = mentioned(&news.event.content);
    keys.iter().filter_map(|key| accounts.get(&nip19::npub(key))).map(|found| found.id.get()).collect()
}

/// The live repositories that a thread is about.
async fn repos(conn: &mut Conn, root: &Event) -> Result<Vec<Repo>, StoreError> {
    let named = Issue::parse(root).map(|issue| issue.repos).or_else(|_| Proposal::parse(root).map(|found| found.repos));
    let named: BTreeSet<Coordinate> = named.unwrap_or_default().into_iter().filter(Coordinate::is_repo).collect();
    let mut repos = Vec::new();
    for address in named.into_iter().take(REPOS) {
        let found = nostr_repos::by_coordinate(conn, &address.author.to_bytes(), &address.identifier, None).await?;
        repos.extend(found.filter(|repo| repo.deleted_at.is_none()));
    }
    Ok(repos)
}

/// The domain event that an addition is in a repository; `None` if it changes nothing there.
async fn kind_in(
    conn: &mut Conn,
    settings: Option<&GraspSettings>,
    news: &Told<'_>,
    repo: &Repo,
) -> Result<Option<&'static str>, StoreError> {
    let Addition::Status(_) = news.addition else {
        return Ok(told(news.kind, news.addition, Status::Open, Status::Open));
    };
    let Some(settings) = settings else { return Ok(None) };
    let Some(governed) = governed_in(conn, settings, repo).await? else { return Ok(None) };
    if !may_say(&news.event.pubkey, &news.root.pubkey, &governed.maintainers) {
        return Ok(None);
    }
    let words = words(conn, &governed, &news.root).await?;
    let holds = |words: &[StatusEvent]| {
        let found = standing(&news.root.id, &news.root.pubkey, &governed.maintainers, words);
        found.map_or(Status::Open, |status| status.status)
    };
    let after = holds(&words);
    let earlier: Vec<StatusEvent> = words.into_iter().filter(|word| word.id != news.event.id).collect();
    Ok(told(news.kind, news.addition, holds(&earlier), after))
}

/// The newest words on how far a thread is, of those whose word counts.
async fn words(conn: &mut Conn, governed: &Governed, root: &Event) -> Result<Vec<StatusEvent>, StoreError> {
    let mut authors: BTreeSet<[u8; 32]> = governed.maintainers.iter().map(|key| key.to_bytes()).collect();
    authors.insert(root.pubkey.to_bytes());
    let query = Query {
        kinds: Some(STATUSES.into()),
        authors: Some(authors.into_iter().collect()),
        tags: vec![vec![tag_key('e', &root.id.to_hex())]],
        limit: WORDS,
        ..Query::default()
    };
    // An event that is to be forgotten later counts until then, and one of the past does not come here.
    let found = events(conn, &query, 0, 0).await?;
    Ok(found.iter().filter_map(|event| StatusEvent::parse(event).ok()).collect())
}

/// The status of a thread now.
pub(crate) async fn status(
    conn: &mut Conn,
    settings: &GraspSettings,
    repo: &Repo,
    root: &Event,
) -> Result<Status, StoreError> {
    let Some(governed) = governed_in(conn, settings, repo).await? else { return Ok(Status::Open) };
    let words = words(conn, &governed, root).await?;
    let holds = standing(&root.id, &root.pubkey, &governed.maintainers, &words);
    Ok(holds.map_or(Status::Open, |status| status.status))
}

/// Whether an event of a key without a named account may be told of.
async fn within_limits(tx: &mut Tx, news: &Told<'_>, repo: RepoId) -> Result<bool, StoreError> {
    let (of_key, of_repo) = match news.addition {
        Addition::Opened => (THREADS_OF_KEY, THREADS_OF_REPO),
        _ => (OTHERS_OF_KEY, OTHERS_OF_REPO),
    };
    let of_key = throttles::hit(tx, of_key, &news.event.pubkey.to_hex()).await?;
    Ok(of_key.is_none() && throttles::hit(tx, of_repo, &repo.to_string()).await?.is_none())
}

/// Keeps titles and the beginnings of texts beside their events, for those who are told. The thread comes first: it may be
/// older than this table, or one that nobody was told of.
async fn note(tx: &mut Tx, news: &Told<'_>, accounts: &HashMap<String, KeyAccount>) -> Result<(), StoreError> {
    let row = |n: i64, event: &Event, title: String| New {
        n,
        root: news.root_n,
        user: accounts.get(&nip19::npub(&event.pubkey)).map(|account| account.id),
        title,
        excerpt: excerpt(&event.content, EXCERPT).replace('\0', ""),
    };
    nostr_news::put(tx, &row(news.root_n, &news.root, title(&news.root))).await?;
    if news.addition == Addition::Comment {
        nostr_news::put(tx, &row(news.n, news.event, String::new())).await?;
    }
    Ok(())
}
