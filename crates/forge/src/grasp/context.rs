//! All announcements and states of one identifier, and who may sign for which repository.

use super::align::Home;
use crate::circle::{Circle, Counting, announcement};
use crate::relay::{Signers, apart, bytes_of, readable};
use crate::{Fault, GraspSettings};
use abide_core::RepoId;
use abide_nostr::git::{Announcement, RepoState};
use abide_nostr::grasp::fit::Candidates;
use abide_nostr::grasp::maintainers::maintainers;
use abide_nostr::{Event, PublicKey, kinds};
use abide_store::Conn;
use abide_store::nostr::{self, purgatory};
use abide_store::repos::Repo;
use std::collections::{BTreeMap, BTreeSet};

/// Announcements of one identifier by other keys that are read. Announcements of the key in question and its
/// maintainers do not count. Strangers may use the same identifier.
const AT_MOST: i64 = 2_000;

/// Bytes of these announcements, for stored and for waiting ones: 2 KiB each, which most do not reach. The shortest are
/// read first, so long ones cannot displace others.
pub(super) const OTHER_BYTES: i64 = 4 << 20;

/// States that are read for each group of authors.
const STATES: i64 = 10_000;

/// Bytes of states that are read, for stored and for waiting states, for each group of authors.
pub(super) const STATE_BYTES: i64 = 16 << 20;

/// Authors whose states are examined although they are not maintainers in question: maintainers of repositories that
/// share one.
const OTHER_AUTHORS: usize = 1_000;

/// Where an announced repository is.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// It has git data and is served.
    Served(Box<Repo>),
    /// It waits for git data under this id.
    Waiting(RepoId, Box<purgatory::Announcement>),
    /// It has no directory here: the announcement is kept beside another maintainer's announcement.
    Beside,
}

/// An announcement that counts, served or waiting.
#[derive(Debug, Clone)]
pub(super) struct Announced {
    pub announcement: Announcement,
    pub stage: Stage,
}

impl Announced {
    pub(super) fn owner(&self) -> PublicKey {
        self.announcement.owner
    }

    /// The id under which its git data is kept, or will be kept.
    pub(super) fn repo_id(&self) -> Option<RepoId> {
        match &self.stage {
            Stage::Served(repo) => Some(repo.id),
            Stage::Waiting(id, _) => Some(*id),
            Stage::Beside => None,
        }
    }

    /// The repository as an alignment takes it; `None` for one that has no directory here.
    pub(super) fn home(&self) -> Option<Home> {
        match &self.stage {
            Stage::Served(repo) => Some(Home::Served(repo.clone())),
            Stage::Waiting(id, _) => Some(Home::Waiting(*id)),
            Stage::Beside => None,
        }
    }

    pub(super) fn is_archived(&self) -> bool {
        matches!(&self.stage, Stage::Served(repo) if repo.is_archived())
    }
}

/// A state with the event that it was parsed from.
#[derive(Debug, Clone)]
pub(super) struct SignedState {
    pub state: RepoState,
    pub event: Event,
}

/// All announcements and states of one identifier.
#[derive(Debug, Default)]
pub(super) struct GraspContext {
    /// Sorted by repository id, so that callers that need several leases take them in this order. Announcements without
    /// a repository come last.
    pub announced: Vec<Announced>,
    pub stored: Vec<SignedState>,
    pub waiting: Vec<SignedState>,
    signers: Signers,
    maintainers: BTreeMap<PublicKey, BTreeSet<PublicKey>>,
}

impl GraspContext {
    /// Loads the context as seen from `key`, so that many other announcements cannot hide its announcement and
    /// maintainers. Loads the states of authors who can govern the same repositories as `key`.
    pub(super) async fn load(
        settings: &GraspSettings,
        conn: &mut Conn,
        identifier: &str,
        key: PublicKey,
    ) -> Result<Self, Fault> {
        let mut context = Self::default();
        context.load_announcements(settings, conn, identifier, key).await?;
        let listed = context.listed();
        let of = |owner| (owner, maintainers(owner, &listed, settings.maintainers, settings.maintainer_bounds));
        context.maintainers = listed.keys().copied().map(of).collect();
        // The key's own maintainers first, so that strangers who use the identifier or list these keys cannot displace
        // them.
        let near = context.maintainers(key);
        let others: BTreeSet<_> = context
            .maintainers
            .values()
            .filter(|circle| !circle.is_disjoint(&near))
            .flatten()
            .filter(|author| !near.contains(*author))
            .take(OTHER_AUTHORS)
            .copied()
            .collect();
        let owners = context.announced.iter().filter(|known| known.repo_id().is_some()).map(Announced::owner);
        context.signers = Signers::load(conn, owners.chain(near.iter().copied()).chain(others.iter().copied())).await?;
        for authors in [near, others] {
            context.load_states(settings, conn, identifier, &authors).await?;
        }
        // A waiting state of a suspended account allows nothing. A stored state of a suspended account still holds the
        // refs as they are: without it, an older state of somebody else would become authoritative and move them back.
        context.waiting.retain(|said| !context.signers.is_suspended(&said.state.author));
        Ok(context)
    }

    async fn load_states(
        &mut self,
        settings: &GraspSettings,
        conn: &mut Conn,
        identifier: &str,
        authors: &BTreeSet<PublicKey>,
    ) -> Result<(), Fault> {
        if authors.is_empty() {
            return Ok(());
        }
        let authors: Vec<_> = authors.iter().map(|author| author.to_bytes()).collect();
        let stored = nostr::events::of_slot_by(conn, kinds::STATE, identifier, &authors, STATE_BYTES).await?;
        let stored: Vec<String> = stored.into_iter().filter(|found| !found.hidden).map(|found| found.json).collect();
        self.stored.extend(read(settings, stored, said).await?.into_iter().flatten());
        let waiting = purgatory::states_of(conn, identifier, &authors, STATES, STATE_BYTES).await?;
        let waiting = waiting.into_iter().map(|found| found.json).collect();
        self.waiting.extend(read(settings, waiting, said).await?.into_iter().flatten());
        Ok(())
    }

    async fn load_announcements(
        &mut self,
        settings: &GraspSettings,
        conn: &mut Conn,
        identifier: &str,
        key: PublicKey,
    ) -> Result<(), Fault> {
        let circle = Circle::load(conn, settings, identifier, key, Counting::ServedAndWaiting).await?;
        let near: Vec<_> = circle.members.iter().map(|member| member.to_bytes()).collect();
        let mut kept = nostr::events::of_slot(conn, kinds::ANNOUNCEMENT, identifier, AT_MOST, OTHER_BYTES).await?;
        kept.extend(circle.kept);
        let mut repos: BTreeMap<[u8; 32], Repo> =
            nostr::repos::of_identifier(conn, identifier, AT_MOST).await?.into_iter().collect();
        if repos.len() as i64 >= AT_MOST {
            for author in near {
                let repo = nostr::repos::by_coordinate(conn, &author, identifier, None).await?;
                repos.extend(repo.map(|repo| (author, repo)));
            }
        }
        let mut waiting = purgatory::announcements(conn, identifier, AT_MOST, OTHER_BYTES).await?;
        waiting.extend(circle.waiting);

        let mut found: BTreeMap<PublicKey, Announced> = BTreeMap::new();
        kept.retain(|found| !found.hidden);
        let (authors, texts): (Vec<_>, Vec<_>) = kept.into_iter().map(|found| (found.pubkey, found.json)).unzip();
        for (author, known) in authors.into_iter().zip(read(settings, texts, announcement).await?) {
            let Some(announcement) = known else { continue };
            let stage = match repos.get(&author).filter(|repo| repo.is_live()) {
                Some(repo) => Stage::Served(Box::new(repo.clone())),
                None => Stage::Beside,
            };
            found.insert(announcement.owner, Announced { announcement, stage });
        }
        let texts = waiting.iter().map(|entry| entry.json.clone()).collect();
        for (entry, known) in waiting.into_iter().zip(read(settings, texts, announcement).await?) {
            let Some(announcement) = known else { continue };
            let stage = match entry.repo_id {
                Some(id) => Stage::Waiting(id, Box::new(entry)),
                None => Stage::Beside,
            };
            // A waiting announcement is newer than the version kept beside another one, and never exists together with
            // a served one.
            found.insert(announcement.owner, Announced { announcement, stage });
        }
        self.announced = found.into_values().collect();
        self.announced.sort_by_key(|known| known.repo_id().map_or(i64::MAX, RepoId::get));
        Ok(())
    }

    /// The keys that each announcement lists.
    fn listed(&self) -> BTreeMap<PublicKey, Vec<PublicKey>> {
        self.announced.iter().map(|known| (known.owner(), known.announcement.maintainers.clone())).collect()
    }

    /// As [`GraspContext::ruled_by`] for the author of an arriving announcement, with the keys that it lists: in the
    /// reciprocal model these confirm its author.
    pub(super) fn ruled_with(&self, settings: &GraspSettings, arriving: &Announcement) -> Vec<&Announced> {
        let mut listed = self.listed();
        listed.insert(arriving.owner, arriving.maintainers.clone());
        let counts = |known: &&Announced| {
            let (model, bounds) = (settings.maintainers, settings.maintainer_bounds);
            known.repo_id().is_some() && maintainers(known.owner(), &listed, model, bounds).contains(&arriving.owner)
        };
        self.announced.iter().filter(counts).collect()
    }

    /// The announcement of a key.
    pub(super) fn of(&self, owner: PublicKey) -> Option<&Announced> {
        self.announced.iter().find(|known| known.owner() == owner)
    }

    /// Whether the account of a key is suspended.
    pub(super) fn is_suspended(&self, key: &PublicKey) -> bool {
        self.signers.is_suspended(key)
    }

    /// The keys whose signatures count for a key's repository.
    pub(super) fn maintainers(&self, owner: PublicKey) -> BTreeSet<PublicKey> {
        self.maintainers.get(&owner).cloned().unwrap_or_else(|| BTreeSet::from([owner]))
    }

    /// The repositories, served or waiting, that a key may sign for.
    pub(super) fn ruled_by(&self, author: PublicKey) -> impl Iterator<Item = &Announced> {
        let counts = move |known: &&Announced| self.maintainers(known.owner()).contains(&author);
        self.announced.iter().filter(|known| known.repo_id().is_some()).filter(counts)
    }

    /// Calls `ask` with the signed states that may govern a key's repository, including one that has just arrived.
    pub(super) fn candidates<T>(
        &self,
        owner: PublicKey,
        arriving: Option<&RepoState>,
        ask: impl FnOnce(&Candidates<'_>) -> T,
    ) -> T {
        let states = |said: &[SignedState]| said.iter().map(|said| said.state.clone()).collect::<Vec<_>>();
        let (stored, mut waiting, maintainers) = (states(&self.stored), states(&self.waiting), self.maintainers(owner));
        waiting.extend(arriving.cloned());
        ask(&Candidates { stored: &stored, waiting: &waiting, maintainers: &maintainers })
    }

    /// The event of a stored or waiting state.
    pub(super) fn event_of(&self, state: &RepoState) -> Option<&Event> {
        let same = |said: &&SignedState| said.event.id == state.rank.id;
        self.stored.iter().chain(&self.waiting).find(same).map(|said| &said.event)
    }
}

/// Reads stored events, in their order.
pub(super) async fn read<T: Send + 'static>(
    settings: &GraspSettings,
    texts: Vec<String>,
    parse: fn(&GraspSettings, &str) -> Option<T>,
) -> Result<Vec<Option<T>>, Fault> {
    let (bytes, settings) = (bytes_of(texts.iter().map(String::as_str)), settings.clone());
    apart(bytes, move || texts.iter().map(|text| parse(&settings, text)).collect()).await
}

/// Parses a stored state.
pub(super) fn said(settings: &GraspSettings, json: &str) -> Option<SignedState> {
    let event = readable(json)?;
    let state = RepoState::parse(&event, &settings.limits).ok()?;
    Some(SignedState { state, event })
}
