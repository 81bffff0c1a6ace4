//! Why something waits, for whoever asks.

use super::GraspSettings;
use super::push::objects_of;
use super::scene::{self, Place, Scene};
use crate::relay::{LITTLE, bytes_of, readable};
use crate::threads::Governed;
use crate::{Caller, Fault, Forge};
use abide_core::{RepoId, Timestamp};
use abide_git::{Client, read};
use abide_nostr::git::{ObjectId, Proposal};
use abide_nostr::grasp::push::KnownEvent;
use abide_nostr::{Event, EventId, PublicKey, nip19};
use abide_store::{nostr_events, nostr_repos, purgatory, purgatory_attached, purgatory_proposals};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

pub use abide_store::purgatory::Totals;

/// Missing objects, or states, that are told one by one.
const TOLD: usize = 100;

/// States of people who may not speak for the repository that are told too: one of its own may be signed with a wrong key.
const OTHERS: i64 = 20;

/// Bytes of states that are told of, of maintainers and of others.
const STATE_BYTES: i64 = 4 << 20;

/// Bytes of states that a page tells of: one of the largest size.
const PAGE_BYTES: i64 = 1 << 20;

/// What is known of a key's repository.
#[derive(Debug, Clone)]
pub enum Status {
    /// It waits for git data.
    Waiting(Waiting),
    /// It is served.
    Served {
        /// Where.
        slug: String,
        /// The states that wait for git data beside it.
        states: Vec<WaitingState>,
        /// The proposals of which a half is missing.
        proposals: WaitingProposals,
    },
}

/// A repository that waits for git data.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The key.
    pub npub: String,
    /// What the key calls it.
    pub identifier: String,
    /// The announcement's id.
    pub announcement: String,
    /// Since when it waits.
    pub since: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// The states that wait for the same identifier, those that may speak for it first.
    pub states: Vec<WaitingState>,
    /// The proposals of which a half is missing.
    pub proposals: WaitingProposals,
}

impl Waiting {
    /// Whether no state waits that may speak for it. Others may use the same identifier, and their states wait beside.
    pub fn lacks_state(&self) -> bool {
        !self.states.iter().any(|state| state.authorised)
    }
}

/// A state that waits.
#[derive(Debug, Clone)]
pub struct WaitingState {
    /// Its id.
    pub event: String,
    /// Whose.
    pub author: String,
    /// Whether its author may speak for the repository.
    pub authorised: bool,
    /// Since when it waits.
    pub since: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// How many refs it names.
    pub refs: usize,
    /// The first of the objects that are not here.
    pub missing: Vec<Missing>,
    /// How many are not here.
    pub missing_count: usize,
}

/// An object that is not here.
#[derive(Debug, Clone)]
pub struct Missing {
    /// The ref that needs it.
    pub name: String,
    /// The object.
    pub oid: String,
}

/// Proposals of which a half is missing.
#[derive(Debug, Clone, Default)]
pub struct WaitingProposals {
    /// The latest.
    pub told: Vec<WaitingProposal>,
    /// How many there are.
    pub count: i64,
}

impl WaitingProposals {
    /// Whether there are more than are told.
    pub fn is_cut(&self) -> bool {
        usize::try_from(self.count).is_ok_and(|count| count > self.told.len())
    }
}

/// A proposal of which a half is missing.
#[derive(Debug, Clone)]
pub struct WaitingProposal {
    /// The event's id.
    pub event: String,
    /// Who signed the event, which waits for its commit; `None`: the commit waits for the event.
    pub author: Option<String>,
    /// The commit.
    pub commit: String,
    /// Since when it waits.
    pub since: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl WaitingProposal {
    /// Which half is missing: `git` or `event`.
    pub fn missing(&self) -> &'static str {
        if self.author.is_some() { "git" } else { "event" }
    }
}

/// What is known of a key's repository; `None` if nothing is.
pub async fn of(forge: &Forge, caller: &Caller, owner: &PublicKey, identifier: &str) -> Result<Option<Status>, Fault> {
    let client = caller.client();
    let mut conn = forge.store().read().await?;
    if let Some(repo) = nostr_repos::by_coordinate(&mut conn, owner.as_bytes(), identifier, None).await? {
        if repo.deleted_at.is_some() {
            return Ok(None);
        }
        drop(conn);
        let states = states(forge, client, owner, identifier).await?;
        let proposals = proposals(forge, owner, identifier, TOLD).await?;
        return Ok(Some(Status::Served { slug: repo.slug(), states, proposals }));
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
        proposals: proposals(forge, owner, identifier, TOLD).await?,
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
    // What is read from here on is bounded, but not small.
    let _place = forge.browse().heavy(client).await?;
    let mut conn = forge.store().read().await?;
    let scene = Scene::load(settings, &mut conn, identifier, *owner).await?;
    let maintainers = scene.maintainers(*owner);
    let authorised = |row: &purgatory::State| maintainers.contains(&PublicKey::from_byte_array(row.pubkey));
    let authors: Vec<_> = maintainers.iter().map(|author| author.to_bytes()).collect();
    let mut rows = purgatory::states_of(&mut conn, identifier, &authors, TOLD as i64, STATE_BYTES).await?;
    drop(conn);
    // Those of strangers do not push the others off the list.
    rows.extend(others.into_iter().filter(|row| !authorised(row)));
    let places = |author| {
        let served = scene.ruled_by(author).filter_map(|known| match &known.place {
            Place::Served(repo) => Some(forge.layout().repo(repo.id)),
            Place::Waiting(..) | Place::Beside => None,
        });
        served.collect()
    };
    told(settings, rows, &maintainers, places).await
}

/// The newest states of a repository's maintainers that wait beside it, for its pages: `most` of them, and no more than one of
/// the largest size. Objects are looked for in this repository alone.
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
    let _place = if bytes > LITTLE { Some(forge.browse().heavy(caller.client()).await?) } else { None };
    let here = forge.layout().repo(repo);
    told(&forge.settings().grasp, rows, &governed.maintainers, |_| vec![here.clone()]).await
}

/// States that wait, as they are told. `places` says in which repositories the objects of an author's state may be.
async fn told(
    settings: &GraspSettings,
    rows: Vec<purgatory::State>,
    maintainers: &BTreeSet<PublicKey>,
    places: impl Fn(PublicKey) -> Vec<PathBuf>,
) -> Result<Vec<WaitingState>, Fault> {
    let texts = rows.iter().map(|row| row.json.clone()).collect();
    let mut states = Vec::new();
    for (row, said) in rows.iter().zip(scene::read(settings, texts, scene::said).await?) {
        let Some(said) = said else { continue };
        let here = here(places(said.state.author), objects_of(&said.state).collect()).await?;
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
                .take(TOLD)
                .map(|(name, id)| Missing { name: name.to_string(), oid: id.to_string() })
                .collect(),
        });
    }
    Ok(states)
}

/// The proposals for a key's repository of which a half is missing, so many of them told.
pub async fn proposals(
    forge: &Forge,
    owner: &PublicKey,
    identifier: &str,
    most: usize,
) -> Result<WaitingProposals, Fault> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut conn = forge.store().read().await?;
    let (rows, count) = purgatory_proposals::of_repo(&mut conn, owner.as_bytes(), identifier, most).await?;
    let told = rows.into_iter().map(|row| WaitingProposal {
        event: hex::encode(row.event_id),
        author: row.pubkey.map(npub),
        commit: row.commit.to_string(),
        since: row.created_at,
        expires_at: row.expires_at,
    });
    Ok(WaitingProposals { told: told.collect(), count })
}

fn npub(key: [u8; 32]) -> String {
    nip19::npub(&PublicKey::from_byte_array(key))
}

/// Which of these objects are in one of these repositories.
async fn here(places: Vec<PathBuf>, oids: Vec<abide_core::Oid>) -> Result<HashSet<abide_core::Oid>, Fault> {
    let looked = tokio::task::spawn_blocking(move || {
        let mut found = HashSet::new();
        for place in &places {
            found.extend(read::present(place, oids.iter().copied())?);
        }
        Ok::<_, abide_git::GitError>(found)
    });
    Ok(looked.await.map_err(|error| Fault::Internal(format!("looking for objects was interrupted: {error}")))??)
}

/// Everything that waits, for the operator.
#[derive(Debug, Clone)]
pub struct Contents {
    /// How much.
    pub totals: Totals,
    /// What ends first.
    pub entries: Vec<ContentsEntry>,
}

/// Something that waits.
#[derive(Debug, Clone)]
pub struct ContentsEntry {
    /// `announcement`, `state`, `proposal` or `placeholder`.
    pub kind: &'static str,
    /// The event's id.
    pub event: String,
    /// Whose, if that is known.
    pub author: Option<String>,
    /// The key and identifier of a repository that it is for. A state names no owner: its author may be one.
    pub repo: Option<(String, String)>,
    /// Bytes that are kept for it.
    pub bytes: i64,
    /// Since when it waits.
    pub since: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// What waits, the entries that end first at the front.
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
    for half in purgatory_proposals::page(&mut conn, limit).await? {
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

/// What is known of the event that a pushed ref is named after.
pub(super) struct KnownProposal {
    pub known: KnownEvent,
    pub event: Option<Event>,
}

/// Looks an event up that a pushed ref is named after.
pub(super) async fn known_proposal(forge: &Forge, id: &EventId) -> Result<KnownProposal, Fault> {
    let mut conn = forge.store().read().await?;
    let commit = |event: &Event| Proposal::parse(event).ok().and_then(|proposal| proposal.commit);
    if let Some(found) = nostr_events::by_id(&mut conn, id.as_bytes()).await? {
        let event = readable(&found.json);
        let known = match event.as_ref().and_then(commit) {
            Some(oid) => KnownEvent::Served(oid.sha1()),
            None => KnownEvent::OtherKind,
        };
        return Ok(KnownProposal { known, event });
    }
    let attached = purgatory_attached::get(&mut conn, id.as_bytes()).await?;
    if let Some(event) = attached.and_then(|row| readable(&row.json)) {
        let known = match commit(&event) {
            Some(oid) => KnownEvent::WaitingForRepository(oid.sha1()),
            None => KnownEvent::OtherKind,
        };
        return Ok(KnownProposal { known, event: Some(event) });
    }
    let Some(half) = purgatory_proposals::get(&mut conn, id.as_bytes()).await? else {
        return Ok(KnownProposal { known: KnownEvent::Unknown, event: None });
    };
    let event = half.json.as_deref().and_then(readable);
    let known = match &event {
        Some(_) => KnownEvent::Waiting(Some(half.commit)),
        None => KnownEvent::Placeholder(half.commit),
    };
    Ok(KnownProposal { known, event })
}
