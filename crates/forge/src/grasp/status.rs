//! Reports why an event or a repository waits.

use super::context::{self, GraspContext, Stage};
use super::push::{objects_of, present_in};
use crate::relay::{LITTLE, bytes_of, readable};
use crate::threads::Governed;
use crate::{Caller, Fault, Forge, GraspSettings, browse};
use abide_core::{RepoId, Timestamp};
use abide_git::Client;
use abide_macros::boxed;
use abide_nostr::git::{ObjectId, PrEvent};
use abide_nostr::grasp::push::KnownEvent;
use abide_nostr::{Event, EventId, PublicKey, nip19};
use abide_store::nostr::{self, purgatory};
use std::collections::BTreeSet;
use std::path::PathBuf;

pub use abide_store::nostr::purgatory::Totals;

/// Missing objects, or states, that are listed one by one.
const SHOWN: usize = 100;

/// States by keys that may not sign for the repository that are listed too: a maintainer may have signed with a wrong
/// key.
const OTHERS: i64 = 20;

/// Bytes of states that are listed, of maintainers and of others.
const STATE_BYTES: i64 = 4 << 20;

/// Bytes of states that a page shows: one of the largest size.
const PAGE_BYTES: i64 = 1 << 20;

/// Status of a key's repository.
#[derive(Debug, Clone)]
pub enum Status {
    /// It waits for git data.
    Waiting(Waiting),
    Served {
        /// Path of the repository, `owner/name`.
        slug: String,
        /// Further states that wait for git data.
        states: Vec<WaitingState>,
        /// The PR events of which the event or the commit is missing.
        pr_events: WaitingPrEvents,
    },
}

/// A repository that waits for git data.
#[derive(Debug, Clone)]
pub struct Waiting {
    pub npub: String,
    pub identifier: String,
    pub announcement: String,
    pub since: Timestamp,
    pub expires_at: Timestamp,
    /// The states that wait for the same identifier; states of maintainers come first.
    pub states: Vec<WaitingState>,
    /// The PR events of which the event or the commit is missing.
    pub pr_events: WaitingPrEvents,
}

impl Waiting {
    /// Whether no state of a maintainer waits. Others may use the same identifier, and their states are listed too.
    pub fn lacks_state(&self) -> bool {
        !self.states.iter().any(|state| state.authorised)
    }
}

/// A waiting state.
#[derive(Debug, Clone)]
pub struct WaitingState {
    pub event: String,
    pub author: String,
    /// Whether its author may sign for the repository.
    pub authorised: bool,
    pub since: Timestamp,
    pub expires_at: Timestamp,
    /// Number of refs that it names.
    pub refs: usize,
    pub missing: Vec<Missing>,
    pub missing_count: usize,
}

/// A missing object.
#[derive(Debug, Clone)]
pub struct Missing {
    /// The ref that needs it.
    pub name: String,
    pub oid: String,
}

/// PR events of which the event or the commit is missing.
#[derive(Debug, Clone, Default)]
pub struct WaitingPrEvents {
    pub shown: Vec<WaitingPrEvent>,
    pub count: i64,
}

impl WaitingPrEvents {
    /// Whether there are more PR events than are listed.
    pub fn is_cut(&self) -> bool {
        usize::try_from(self.count).is_ok_and(|count| count > self.shown.len())
    }
}

/// A PR event of which the event or the commit is missing.
#[derive(Debug, Clone)]
pub struct WaitingPrEvent {
    pub event: String,
    /// Author of the event, which waits for its commit; `None`: the commit waits for its event.
    pub author: Option<String>,
    pub commit: String,
    pub since: Timestamp,
    pub expires_at: Timestamp,
}

impl WaitingPrEvent {
    /// The missing half: `git` or `event`.
    pub fn missing(&self) -> &'static str {
        if self.author.is_some() { "git" } else { "event" }
    }
}

/// Status of a key's repository; `None` if it is neither served nor waiting.
#[boxed]
pub async fn of(forge: &Forge, caller: &Caller, owner: &PublicKey, identifier: &str) -> Result<Option<Status>, Fault> {
    let client = caller.client();
    let mut conn = forge.store().read().await?;
    if let Some(repo) = nostr::repos::by_coordinate(&mut conn, owner.as_bytes(), identifier, None).await? {
        if !repo.is_live() {
            return Ok(None);
        }
        drop(conn);
        let states = states(forge, client, owner, identifier).await?;
        let pr_events = pr_events(forge, owner, identifier, SHOWN).await?;
        return Ok(Some(Status::Served { slug: repo.slug(), states, pr_events }));
    }
    let Some(entry) = purgatory::announcement(&mut conn, owner.as_bytes(), identifier).await? else {
        return Ok(None);
    };
    drop(conn);
    Ok(Some(Status::Waiting(Waiting {
        npub: nip19::npub(owner),
        identifier: identifier.to_owned(),
        announcement: hex::encode(entry.event_id),
        since: entry.created_at,
        expires_at: entry.expires_at,
        states: states(forge, client, owner, identifier).await?,
        pr_events: pr_events(forge, owner, identifier, SHOWN).await?,
    })))
}

/// The states that wait for git data of a key's repository.
async fn states(
    forge: &Forge,
    client: Client,
    owner: &PublicKey,
    identifier: &str,
) -> Result<Vec<WaitingState>, Fault> {
    let settings = &forge.settings().grasp;
    let mut conn = forge.store().read().await?;
    let others = purgatory::states(&mut conn, identifier, OTHERS, STATE_BYTES).await?;
    drop(conn);
    if others.is_empty() {
        return Ok(Vec::new());
    }
    // The following reads are bounded, but not small.
    let _slot = browse::Shared::of(forge).heavy(client).await?;
    let mut conn = forge.store().read().await?;
    let context = GraspContext::load(settings, &mut conn, identifier, *owner).await?;
    let maintainers = context.maintainers(*owner);
    let authorised = |row: &purgatory::State| maintainers.contains(&PublicKey::from_byte_array(row.pubkey));
    let authors: Vec<_> = maintainers.iter().map(|author| author.to_bytes()).collect();
    let mut rows = purgatory::states_of(&mut conn, identifier, &authors, SHOWN as i64, STATE_BYTES).await?;
    drop(conn);
    // States of strangers come last, so that they cannot push the others off the list.
    rows.extend(others.into_iter().filter(|row| !authorised(row)));
    let object_dirs = |author| {
        let served = context.ruled_by(author).filter_map(|known| match &known.stage {
            Stage::Served(repo) => Some(forge.layout().repo(repo.id)),
            Stage::Waiting(..) | Stage::Beside => None,
        });
        served.collect()
    };
    waiting_states(settings, rows, &maintainers, object_dirs).await
}

/// The newest states of a repository's maintainers that wait beside it, for its pages: `most` of them, and no more than one of
/// the largest size. Objects are looked for in this repository alone.
#[boxed]
pub async fn newest_states(
    forge: &Forge,
    caller: &Caller,
    repo: RepoId,
    governed: &Governed,
    most: usize,
) -> Result<Vec<WaitingState>, Fault> {
    let authors: Vec<_> = governed.maintainers.iter().map(|author| author.to_bytes()).collect();
    let mut conn = forge.store().read().await?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = purgatory::states_of(&mut conn, &governed.identifier, &authors, most, PAGE_BYTES).await?;
    drop(conn);
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = bytes_of(rows.iter().map(|row| row.json.as_str()));
    let _slot = if bytes > LITTLE { Some(browse::Shared::of(forge).heavy(caller.client()).await?) } else { None };
    let here = forge.layout().repo(repo);
    waiting_states(&forge.settings().grasp, rows, &governed.maintainers, |_| vec![here.clone()]).await
}

/// States in purgatory, for display. `object_dirs` returns the repositories that may have the objects of an author's state.
async fn waiting_states(
    settings: &GraspSettings,
    rows: Vec<purgatory::State>,
    maintainers: &BTreeSet<PublicKey>,
    object_dirs: impl Fn(PublicKey) -> Vec<PathBuf>,
) -> Result<Vec<WaitingState>, Fault> {
    let texts = rows.iter().map(|row| row.json.clone()).collect();
    let mut states = Vec::new();
    for (row, said) in rows.iter().zip(context::read(settings, texts, context::said).await?) {
        let Some(said) = said else { continue };
        let here = present_in(object_dirs(said.state.author), objects_of(&said.state).collect()).await?;
        let lacking = |id: &ObjectId| id.sha1().is_none_or(|oid| !here.contains(&oid));
        let missing: Vec<_> = said.state.refs.iter().filter(|(_, id)| lacking(id)).collect();
        states.push(WaitingState {
            event: said.event.id.to_hex(),
            author: nip19::npub(&said.event.pubkey),
            authorised: maintainers.contains(&said.event.pubkey),
            since: row.created_at,
            expires_at: row.expires_at,
            refs: said.state.refs.len(),
            missing_count: missing.len(),
            missing: missing
                .into_iter()
                .take(SHOWN)
                .map(|(name, id)| Missing { name: name.to_string(), oid: id.to_string() })
                .collect(),
        });
    }
    Ok(states)
}

/// The PR events for a key's repository of which the event or the commit is missing; lists at most `most` of them.
#[boxed]
pub async fn pr_events(
    forge: &Forge,
    owner: &PublicKey,
    identifier: &str,
    most: usize,
) -> Result<WaitingPrEvents, Fault> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut conn = forge.store().read().await?;
    let (rows, count) = purgatory::prs::of_repo(&mut conn, owner.as_bytes(), identifier, most).await?;
    let shown = rows.into_iter().map(|row| WaitingPrEvent {
        event: hex::encode(row.event_id),
        author: row.pubkey.map(npub),
        commit: row.commit.to_string(),
        since: row.created_at,
        expires_at: row.expires_at,
    });
    Ok(WaitingPrEvents { shown: shown.collect(), count })
}

fn npub(key: [u8; 32]) -> String {
    nip19::npub(&PublicKey::from_byte_array(key))
}

/// Contents of purgatory, for the operator.
#[derive(Debug, Clone)]
pub struct Contents {
    pub totals: Totals,
    /// The entries that expire first.
    pub entries: Vec<ContentsEntry>,
}

/// A waiting entry.
#[derive(Debug, Clone)]
pub struct ContentsEntry {
    /// `announcement`, `state`, `PR event` or `placeholder`.
    pub kind: &'static str,
    pub event: String,
    pub author: Option<String>,
    /// Key and identifier of the repository. A state names no owner: its author may be one.
    pub repo: Option<(String, String)>,
    /// Bytes that are stored for it.
    pub bytes: i64,
    pub since: Timestamp,
    pub expires_at: Timestamp,
}

/// The purgatory entries, the ones that expire first at the front.
#[boxed]
pub async fn contents(forge: &Forge, limit: i64) -> Result<Contents, Fault> {
    let mut conn = forge.store().read().await?;
    let signed = |kind, event: [u8; 32], key, identifier: String, since, expires_at| ContentsEntry {
        kind,
        event: hex::encode(event),
        author: Some(npub(key)),
        repo: Some((npub(key), identifier)),
        bytes: 0,
        since,
        expires_at,
    };
    let mut entries = Vec::new();
    for one in purgatory::announcement_page(&mut conn, limit).await? {
        entries.push(signed("announcement", one.event_id, one.pubkey, one.identifier, one.created_at, one.expires_at));
    }
    for one in purgatory::state_page(&mut conn, limit).await? {
        entries.push(signed("state", one.event_id, one.pubkey, one.identifier, one.created_at, one.expires_at));
    }
    for half in purgatory::prs::page(&mut conn, limit).await? {
        entries.push(ContentsEntry {
            kind: if half.pubkey.is_some() { "proposal" } else { "placeholder" },
            event: hex::encode(half.event_id),
            author: half.pubkey.map(npub),
            repo: half.repo.map(|(owner, identifier)| (npub(owner), identifier)),
            bytes: half.bytes,
            since: half.created_at,
            expires_at: half.expires_at,
        });
    }
    entries.sort_by_key(|entry| entry.expires_at);
    entries.truncate(usize::try_from(limit).unwrap_or(0));
    Ok(Contents { totals: purgatory::totals(&mut conn).await?, entries })
}

/// The event that a pushed ref is named after, as far as it is known.
pub(super) struct KnownPrEvent {
    pub known: KnownEvent,
    pub event: Option<Event>,
}

/// Looks up the event that a pushed ref is named after.
pub(super) async fn known_pr_event(forge: &Forge, id: &EventId) -> Result<KnownPrEvent, Fault> {
    let mut conn = forge.store().read().await?;
    let commit = |event: &Event| PrEvent::parse(event).ok().and_then(|pr_event| pr_event.commit);
    if let Some(found) = nostr::events::by_id(&mut conn, id.as_bytes()).await? {
        let event = readable(&found.json);
        let known = match event.as_ref().and_then(commit) {
            Some(oid) => KnownEvent::Served(oid.sha1()),
            None => KnownEvent::OtherKind,
        };
        return Ok(KnownPrEvent { known, event });
    }
    let attached = purgatory::attached::get(&mut conn, id.as_bytes()).await?;
    if let Some(event) = attached.and_then(|row| readable(&row.json)) {
        let known = match commit(&event) {
            Some(oid) => KnownEvent::WaitingForRepository(oid.sha1()),
            None => KnownEvent::OtherKind,
        };
        return Ok(KnownPrEvent { known, event: Some(event) });
    }
    let Some(half) = purgatory::prs::get(&mut conn, id.as_bytes()).await? else {
        return Ok(KnownPrEvent { known: KnownEvent::Unknown, event: None });
    };
    let event = half.json.as_deref().and_then(readable);
    let known = match &event {
        Some(_) => KnownEvent::Waiting(Some(half.commit)),
        None => KnownEvent::Placeholder(half.commit),
    };
    Ok(KnownPrEvent { known, event })
}
