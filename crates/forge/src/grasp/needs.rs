//! Git data that the waiting events of one identifier lack, and the clone URLs that may have it.

use super::align::Home;
use super::announce::service;
use super::context::{Announced, GraspContext, SignedState, Stage};
use super::push::{RepoCoordinate, objects_of, present_in};
use super::spread::targets;
use crate::relay::{Signers, is_suspended, readable};
use crate::{Fault, Forge};
use abide_core::{Oid, RefName, RefUpdate, RepoId, Timestamp};
use abide_git::bare;
use abide_nostr::git::{PrEvent, RepoState, Service};
use abide_nostr::grasp::push::ref_of;
use abide_nostr::{Event, PublicKey};
use abide_store::nostr::purgatory::{self, prs as pr_events};
use abide_store::nostr::{self};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

/// Waiting states of one identifier that one run looks at, the newest, and their bytes.
const STATES: i64 = 100;
const STATE_BYTES: i64 = 4 << 20;

/// Authors of states, and repositories with pull requests, that one run looks at: each is a set of announcements to load.
const AUTHORS: usize = 20;
const REPOS: i64 = 50;

/// Waiting pull requests of one repository that one run looks at.
const PR_EVENTS: i64 = 50;

/// Waiting event that lacks git data.
#[derive(Debug, Clone)]
pub(crate) enum Wanted {
    State(Box<Event>, Box<RepoState>),
    PrEvent(Box<Event>, Oid),
}

impl Wanted {
    pub(crate) fn event(&self) -> &Event {
        match self {
            Self::State(event, _) | Self::PrEvent(event, _) => event,
        }
    }

    /// The refs that its objects are for.
    pub(crate) fn tips(&self) -> Vec<RefUpdate> {
        let update = |name: RefName, new: Oid| RefUpdate { name, old: Oid::ZERO, new };
        match self {
            Self::State(_, state) => {
                let tips = state.refs.iter().filter_map(|(name, id)| Some((name.clone(), id.sha1()?)));
                tips.map(|(name, oid)| update(name, oid)).collect()
            }
            Self::PrEvent(event, commit) => vec![update(ref_of(&event.id), *commit)],
        }
    }
}

/// Git data that one waiting event lacks in the repository that receives it first.
#[derive(Debug, Clone)]
pub(crate) struct Need {
    pub wanted: Wanted,
    pub coordinate: RepoCoordinate,
    pub home: Home,
    pub repo: RepoId,
    /// Directory of the repository, or of the shared empty one.
    pub dir: PathBuf,
    /// Objects that are missing there.
    pub missing: Vec<Oid>,
    /// Clone URLs of other servers, the author's first.
    pub urls: Vec<String>,
    /// Key that names the URLs, and pays for the attempts.
    pub payer: PublicKey,
    /// Whether that key belongs to an account.
    pub account: bool,
    /// Newest announcement that names the URLs.
    pub named_at: Timestamp,
}

/// Needs of the waiting events of an identifier: newest states first, then pull requests. Entries that have expired, and
/// events that no repository could follow, need nothing.
pub(crate) async fn of(forge: &Forge, identifier: &str) -> Result<Vec<Need>, Fault> {
    let now = forge.clock().now();
    let mut conn = forge.store().read().await?;
    let rows = purgatory::states(&mut conn, identifier, STATES, STATE_BYTES).await?;
    let authors: BTreeSet<[u8; 32]> =
        rows.iter().filter(|row| row.expires_at > now).map(|row| row.pubkey).take(AUTHORS).collect();
    let waiting: HashSet<[u8; 32]> = rows.iter().filter(|row| row.expires_at > now).map(|row| row.event_id).collect();
    drop(conn);
    let mut needs = Vec::new();
    for author in authors {
        let author = PublicKey::from_byte_array(author);
        let context = load(forge, identifier, author).await?;
        for said in &context.waiting {
            if said.state.author == author
                && waiting.contains(said.event.id.as_bytes())
                && let Some(need) = of_state(forge, &context, said).await?
            {
                needs.push(need);
            }
        }
    }
    needs.sort_by_key(|need| std::cmp::Reverse(need.wanted.event().created_at));
    needs.extend(of_pull_requests(forge, identifier).await?);
    Ok(needs)
}

async fn load(forge: &Forge, identifier: &str, key: PublicKey) -> Result<GraspContext, Fault> {
    let mut conn = forge.store().read().await?;
    GraspContext::load(&forge.settings().grasp, &mut conn, identifier, key).await
}

/// Need of a state in a repository that it governs; the settling copies the objects to the others.
async fn of_state(forge: &Forge, context: &GraspContext, said: &SignedState) -> Result<Option<Need>, Fault> {
    let state = &said.state;
    // An unreadable or SHA-256 id never arrives.
    if !state.tracks() || state.refs.values().any(|id| id.sha1().is_none()) {
        return Ok(None);
    }
    let follows = |known: &&Announced| {
        let owner = known.owner();
        let superseded = context.candidates(owner, None, |candidates| candidates.supersede(state));
        !known.is_archived() && !superseded && !context.is_suspended(&owner)
    };
    let mut governed: Vec<&Announced> = context.ruled_by(state.author).filter(follows).collect();
    // The author's own repository first, then served ones.
    governed.sort_by_key(|known| (known.owner() != state.author, !matches!(known.stage, Stage::Served(_))));
    let Some(known) = governed.first() else { return Ok(None) };
    let (Some(repo), Some(home)) = (known.repo_id(), known.home()) else { return Ok(None) };
    let dir = match &known.stage {
        Stage::Served(_) => forge.layout().repo(repo),
        _ => bare::init_empty(forge.layout()).await?,
    };
    let wanted: HashSet<Oid> = objects_of(state).collect();
    let here = present_in(vec![dir.clone()], wanted.clone()).await?;
    let missing = wanted.into_iter().filter(|oid| !here.contains(oid)).collect();
    let coordinate = RepoCoordinate { owner: known.owner(), identifier: state.identifier.as_str().to_owned() };
    let wanted = Wanted::State(Box::new(said.event.clone()), Box::new(state.clone()));
    let (urls, named_at) = urls_of(forge, context, known.owner(), state.author);
    let need =
        Need { wanted, coordinate, home, repo, dir, missing, urls, payer: known.owner(), account: false, named_at };
    with_account(forge, need).await.map(Some)
}

async fn with_account(forge: &Forge, need: Need) -> Result<Need, Fault> {
    let signers = Signers::load(&mut *forge.store().read().await?, [need.payer]).await?;
    Ok(Need { account: !signers.of(&need.payer).is_stranger(), ..need })
}

/// Clone URLs in the announcements of a repository's maintainers, without this server: of one key first, then of the owner,
/// then of the others. Returns also the time of the newest of these announcements.
fn urls_of(forge: &Forge, context: &GraspContext, owner: PublicKey, first: PublicKey) -> (Vec<String>, Timestamp) {
    let maintainers = context.maintainers(owner);
    let mut listed: Vec<&Announced> =
        context.announced.iter().filter(|known| maintainers.contains(&known.owner())).collect();
    listed.sort_by_key(|known| (known.owner() != first, known.owner() != owner));
    let newest = listed.iter().map(|known| known.announcement.rank.created_at).max().unwrap_or(0);
    let urls = elsewhere(forge, listed.iter().flat_map(|known| &known.announcement.clone));
    (urls, Timestamp::from_micros(i64::try_from(newest).unwrap_or(0).saturating_mul(1_000_000)))
}

/// The URLs that lead to other servers over HTTP, each once.
fn elsewhere<'a>(forge: &Forge, urls: impl Iterator<Item = &'a String>) -> Vec<String> {
    let ours = service(forge);
    let mut seen = HashSet::new();
    let is_other = |url: &&String| Service::of_clone(url).is_some_and(|service| Some(service) != ours);
    urls.filter(is_other).filter(|url| seen.insert(url.as_str())).cloned().collect()
}

/// The commits that pull requests for the served repositories of an identifier wait for.
async fn of_pull_requests(forge: &Forge, identifier: &str) -> Result<Vec<Need>, Fault> {
    let now = forge.clock().now();
    let mut conn = forge.store().read().await?;
    let repos = nostr::repos::of_identifier(&mut conn, identifier, REPOS).await?;
    drop(conn);
    let (mut needs, mut seen) = (Vec::new(), HashSet::new());
    for (owner, _) in repos {
        let mut conn = forge.store().read().await?;
        let (rows, _) = pr_events::of_repo(&mut conn, &owner, identifier, PR_EVENTS).await?;
        drop(conn);
        for row in rows.iter().filter(|row| row.pubkey.is_some() && row.expires_at > now) {
            if seen.insert(row.event_id)
                && let Some(need) = of_pull_request(forge, identifier, &row.event_id).await?
            {
                needs.push(need);
            }
        }
    }
    Ok(needs)
}

async fn of_pull_request(forge: &Forge, identifier: &str, id: &[u8; 32]) -> Result<Option<Need>, Fault> {
    let half = pr_events::get(&mut *forge.store().read().await?, id).await?;
    // Objects of one that waits because git was busy are here already; its job goes on.
    let half = half.filter(|half| half.incoming.is_none());
    let Some((commit, event)) = half.and_then(|half| Some((half.commit, readable(half.json.as_deref()?)?))) else {
        return Ok(None);
    };
    let Ok(pr_event) = PrEvent::parse(&event) else { return Ok(None) };
    if is_suspended(forge, &event.pubkey).await? {
        return Ok(None);
    }
    let (open, _) = targets(forge, &pr_event.repos).await?;
    let of_identifier = open.into_iter().find(|target| target.coordinate.identifier == identifier);
    let Some(target) = of_identifier else { return Ok(None) };
    let dir = forge.layout().repo(target.repo.id);
    let here = present_in(vec![dir.clone()], HashSet::from([commit])).await?;
    let missing = if here.is_empty() { vec![commit] } else { Vec::new() };
    let owner = target.coordinate.owner;
    let context = load(forge, identifier, owner).await?;
    let (announced, named_at) = urls_of(forge, &context, owner, owner);
    let urls = elsewhere(forge, pr_event.clone.iter().chain(&announced));
    let need = Need {
        wanted: Wanted::PrEvent(Box::new(event.clone()), commit),
        coordinate: target.coordinate,
        repo: target.repo.id,
        home: Home::Served(Box::new(target.repo)),
        dir,
        missing,
        urls,
        payer: event.pubkey,
        account: false,
        named_at,
    };
    with_account(forge, need).await.map(Some)
}
