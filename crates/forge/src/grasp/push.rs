//! Which signed events allow a push, and what the refs become.

use super::scene::Scene;
use super::signed::Signed;
use super::status::known_proposal;
use crate::{Fault, Forge};
use abide_core::{Oid, RefName, RefUpdate, UserId};
use abide_git::{Head, Snapshot, read};
use abide_nostr::git::{Coordinate as Address, ObjectId, RepoState};
use abide_nostr::grasp::align;
use abide_nostr::grasp::fit::{Fit, Repository, fit, missing};
use abide_nostr::grasp::push::{Commands, EventRef, PushRefusal, event_of, event_ref, ref_of, sort};
use abide_nostr::{Event, EventId, PublicKey, nip19};
use abide_store::{nostr_events, nostr_repos, purgatory};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// A key's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Coordinate {
    pub owner: PublicKey,
    pub identifier: String,
}

impl From<&Address> for Coordinate {
    fn from(address: &Address) -> Self {
        Self { owner: address.author, identifier: address.identifier.clone() }
    }
}

impl Coordinate {
    /// As the store has it.
    pub(crate) fn stored(&self) -> ([u8; 32], String) {
        (self.owner.to_bytes(), self.identifier.clone())
    }
}

/// What is to be done to a repository that signed events rule.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    /// What somebody pushes, if signed events say the same.
    Push(Vec<RefUpdate>),
    /// Follow this state.
    State(Box<Event>),
    /// Take in the commit of this proposal.
    Proposal(Box<Event>, Oid),
    /// Let go of the commit of a proposal that is no more.
    Forget(EventId),
}

impl Order {
    /// The events that pushed refs are named after.
    pub(crate) fn proposals(&self) -> Vec<EventId> {
        match self {
            Self::Push(updates) => updates.iter().filter_map(|update| event_of(&update.name)).collect(),
            Self::State(_) | Self::Proposal(..) | Self::Forget(_) => Vec::new(),
        }
    }
}

/// What becomes of the refs.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub updates: Vec<RefUpdate>,
    pub signed: Signed,
    /// The state that the refs follow.
    pub state: Option<EventId>,
    /// The same, if it waits: it has to be there still when the intent is written.
    pub waits: Option<EventId>,
    /// Whose account did it, if there is one.
    pub actor: Option<UserId>,
}

/// The answer to an order.
#[derive(Debug)]
pub(crate) enum Decision {
    Go(Box<Plan>),
    /// It is so already.
    Nothing,
    /// A commit whose proposal nobody knows yet.
    Aside(EventId, Oid),
    Refuse(String),
}

impl Decision {
    fn refuse(refusal: &PushRefusal) -> Self {
        Self::Refuse(refusal.to_string())
    }
}

/// The repository as it is, on disk and in the objects that have just come.
pub(crate) struct View {
    pub refs: BTreeMap<RefName, Oid>,
    pub head: Option<RefName>,
    /// The repository's directory and the areas beside it.
    pub places: Vec<PathBuf>,
}

impl View {
    /// What there is at a moment.
    pub(crate) fn of(refs: &Snapshot, places: Vec<PathBuf>) -> Self {
        let named = |name: &[u8]| std::str::from_utf8(name).ok()?.parse::<RefName>().ok();
        let head = match &refs.head {
            Head::Symbolic(name) => named(name),
            Head::Detached(_) | Head::Unset => None,
        };
        let refs = refs.refs.iter().filter_map(|found| Some((named(&found.name)?, found.oid))).collect();
        Self { refs, head, places }
    }

    /// Which of these objects are here.
    async fn present(&self, oids: HashSet<Oid>) -> Result<HashSet<Oid>, Fault> {
        let places = self.places.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let mut found = HashSet::new();
            for place in &places {
                found.extend(read::present(place, oids.iter().copied())?);
            }
            Ok::<_, abide_git::GitError>(found)
        });
        looked
            .await
            .map_err(|error| Fault::Internal(format!("looking for objects was interrupted: {error}")))?
            .map_err(Fault::from)
    }
}

/// A view with the answer to every question that a decision may ask.
struct Known<'a> {
    view: &'a View,
    here: HashSet<Oid>,
}

impl Repository for Known<'_> {
    fn points_to(&self, name: &RefName) -> Option<Oid> {
        self.view.refs.get(name).copied()
    }

    fn has(&self, oid: Oid) -> bool {
        self.here.contains(&oid)
    }
}

/// The objects that a state names.
pub(super) fn objects_of(state: &RepoState) -> impl Iterator<Item = Oid> {
    state.refs.values().filter_map(|id: &ObjectId| id.sha1())
}

/// Whether a place has every object that a state names.
pub(super) async fn is_complete(state: &RepoState, place: PathBuf) -> Result<bool, Fault> {
    let view = View { refs: BTreeMap::new(), head: None, places: vec![place] };
    let here = view.present(objects_of(state).collect()).await?;
    Ok(missing(state, &Known { view: &view, here }).next().is_none())
}

/// Decides what an order does to a repository as it is now.
pub(crate) async fn decide(forge: &Forge, place: &Coordinate, order: &Order, view: &View) -> Result<Decision, Fault> {
    let mut conn = forge.store().read().await?;
    let scene = Scene::load(&forge.settings().grasp, &mut conn, &place.identifier, place.owner).await?;
    drop(conn);
    let Some(known) = scene.of(place.owner).filter(|known| known.repo_id().is_some()) else {
        return Ok(Decision::refuse(&PushRefusal::NoAnnouncement));
    };
    if known.is_archived() {
        return Ok(Decision::refuse(&PushRefusal::Archived));
    }
    let mut plan = Plan { updates: Vec::new(), signed: Signed::default(), state: None, waits: None, actor: None };
    match order {
        Order::Push(updates) => match sort(updates) {
            Ok(commands) => decide_push(forge, place, &scene, &commands, view, plan).await,
            Err(refusal) => Ok(Decision::refuse(&refusal)),
        },
        Order::State(event) => {
            let parsed = RepoState::parse(event, &forge.settings().grasp.limits);
            let Ok(state) = parsed else { return Ok(Decision::Refuse("the state cannot be read".into())) };
            let rules = scene.candidates(place.owner, None, |candidates| {
                let allowed = candidates.maintainers.contains(&state.author);
                allowed && candidates.authoritative().is_none_or(|rules| state.rank >= rules.rank)
            });
            if !rules {
                return Ok(Decision::Refuse("another state rules this repository".into()));
            }
            let here = view.present(objects_of(&state).collect()).await?;
            if let Some((name, _)) = missing(&state, &Known { view, here }).next() {
                return Ok(Decision::refuse(&PushRefusal::Incomplete(name.clone())));
            }
            plan.waits = scene.waiting.iter().any(|said| said.event.id == event.id).then_some(event.id);
            follow(forge, &mut plan, view, &state, event).await
        }
        Order::Proposal(event, commit) => {
            if view.present(HashSet::from([*commit])).await?.is_empty() {
                return Ok(Decision::Refuse("the commit is not here".into()));
            }
            plan.updates.extend(moved(view, ref_of(&event.id), *commit));
            if plan.updates.is_empty() && is_kept(forge, &event.id).await? {
                return Ok(Decision::Nothing);
            }
            plan.signed.release(event);
            plan.actor = account(forge, &event.pubkey).await?;
            Ok(Decision::Go(Box::new(plan)))
        }
        Order::Forget(id) => {
            let name = ref_of(id);
            match view.refs.get(&name) {
                Some(&old) => {
                    plan.updates.push(RefUpdate { name, old, new: Oid::ZERO });
                    Ok(Decision::Go(Box::new(plan)))
                }
                None => Ok(Decision::Nothing),
            }
        }
    }
}

async fn decide_push(
    forge: &Forge,
    place: &Coordinate,
    scene: &Scene,
    commands: &Commands,
    view: &View,
    mut plan: Plan,
) -> Result<Decision, Fault> {
    for &(id, pushed) in &commands.events {
        let known = known_proposal(forge, &id).await?;
        match event_ref(known.known, pushed) {
            Err(refusal) => return Ok(Decision::refuse(&refusal)),
            Ok(EventRef::KeepAside { .. }) if commands.state.is_empty() && commands.events.len() == 1 => {
                return Ok(Decision::Aside(id, pushed));
            }
            Ok(EventRef::KeepAside { .. }) => {
                let reason = "unknown event: push the ref of an event that is not published yet by itself";
                return Ok(Decision::Refuse(reason.into()));
            }
            Ok(EventRef::Accept) => plan.updates.extend(moved(view, ref_of(&id), pushed)),
            Ok(EventRef::Release) => {
                plan.updates.extend(moved(view, ref_of(&id), pushed));
                if let Some(event) = &known.event {
                    plan.signed.release(event);
                    plan.actor = account(forge, &event.pubkey).await?;
                }
            }
        }
    }
    if commands.state.is_empty() {
        return Ok(if plan.updates.is_empty() && plan.signed == Signed::default() {
            Decision::Nothing
        } else {
            Decision::Go(Box::new(plan))
        });
    }
    let wanted = scene.candidates(place.owner, None, |candidates| {
        let states = candidates.stored.iter().chain(candidates.waiting);
        states.filter(|state| candidates.maintainers.contains(&state.author)).flat_map(objects_of).collect()
    });
    let here = view.present(wanted).await?;
    let chosen = scene.candidates(place.owner, None, |candidates| {
        match fit(&commands.state, candidates, &Known { view, here }) {
            Ok(Fit::NoChange) => Ok(None),
            Ok(Fit::Stored(state) | Fit::Waiting(state)) => Ok(Some(state.clone())),
            Err(refusal) => Err(refusal),
        }
    });
    let state = match chosen {
        Err(refusal) => return Ok(Decision::refuse(&refusal)),
        Ok(None) if plan.updates.is_empty() => return Ok(Decision::Nothing),
        Ok(None) => return Ok(Decision::Go(Box::new(plan))),
        Ok(Some(state)) => state,
    };
    plan.waits = scene.waiting.iter().any(|said| said.event.id == state.rank.id).then_some(state.rank.id);
    let Some(event) = scene.event_of(&state) else {
        return Err(Fault::Internal("a state came from nowhere".into()));
    };
    follow(forge, &mut plan, view, &state, event).await
}

/// Adds what makes the refs what a state says.
async fn follow(
    forge: &Forge,
    plan: &mut Plan,
    view: &View,
    state: &RepoState,
    event: &Event,
) -> Result<Decision, Fault> {
    let aligned = match align::plan(&view.refs, view.head.as_ref(), state) {
        Ok(aligned) => aligned,
        Err(other_hash) => return Ok(Decision::Refuse(other_hash.to_string())),
    };
    plan.updates.extend(aligned.deletes);
    plan.updates.extend(aligned.sets);
    plan.signed.follow(event, aligned.head.as_ref());
    plan.state = Some(event.id);
    plan.actor = account(forge, &event.pubkey).await?;
    Ok(Decision::Go(Box::new(plan.clone())))
}

fn moved(view: &View, name: RefName, new: Oid) -> Option<RefUpdate> {
    let old = view.refs.get(&name).copied().unwrap_or(Oid::ZERO);
    (old != new).then_some(RefUpdate { name, old, new })
}

/// Whether an event is stored.
async fn is_kept(forge: &Forge, id: &EventId) -> Result<bool, Fault> {
    Ok(nostr_events::by_id(&mut *forge.store().read().await?, id.as_bytes()).await?.is_some())
}

/// The account of a key.
async fn account(forge: &Forge, key: &PublicKey) -> Result<Option<UserId>, Fault> {
    Ok(nostr_repos::user_of(&mut *forge.store().read().await?, &nip19::npub(key)).await?)
}

/// Keeps what allows a push from expiring while the push is under way. `false` if it is gone already.
pub(crate) async fn raise(forge: &Forge, place: &Coordinate, state: EventId) -> Result<bool, Fault> {
    let until = forge.settings().grasp.expiry.after_push;
    let enough = forge.clock().now().plus(until);
    let mut conn = forge.store().read().await?;
    let Some(ends) = purgatory::end_of_state(&mut conn, state.as_bytes()).await? else { return Ok(false) };
    let waiting = purgatory::announcement(&mut conn, place.owner.as_bytes(), &place.identifier).await?;
    drop(conn);
    // Usually a push comes right after its state, and there is nothing to write.
    if ends >= enough && waiting.is_none_or(|entry| entry.expires_at >= enough) {
        return Ok(true);
    }
    let input = (place.clone(), state.to_bytes(), until);
    forge
        .store()
        .write(input, |tx, (place, state, until)| {
            Box::pin(async move {
                let until = tx.now().plus(*until);
                purgatory::raise_announcement(tx, &place.owner.to_bytes(), &place.identifier, until).await?;
                Ok(purgatory::raise_state(tx, state, until).await?)
            })
        })
        .await
}
