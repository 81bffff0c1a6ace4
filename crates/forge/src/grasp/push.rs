//! Decides which signed events allow a push, and the resulting ref updates.

use super::context::{GraspContext, Stage};
use super::signed::Signed;
use super::spread::targets;
use super::status::known_pr_event;
use crate::blocking::blocking;
use crate::git::snapshots;
use crate::relay::is_suspended;
use crate::{Fault, Forge};
use abide_core::{Oid, RefName, RefUpdate, UserId};
use abide_git::{Client, Connected, Head, Snapshot, read};
use abide_nostr::git::{ObjectId, PrEvent, RepoState};
use abide_nostr::grasp::align;
use abide_nostr::grasp::fit::{Fit, Repository, fit, missing};
use abide_nostr::grasp::push::{EventRef, KnownEvent, Named, PushRefusal, event_of, event_ref, ref_of, sort};
use abide_nostr::{Event, EventId, PublicKey, nip19};
use abide_store::nostr::{self, purgatory};
use abide_store::repos::Repo;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

pub(crate) use crate::open::RepoCoordinate;

/// Change that is requested for a repository governed by signed events.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    /// A push, if signed events say the same.
    Push(Vec<RefUpdate>),
    State(Box<Event>),
    /// Take the commit of this PR event.
    PrEvent(Box<Event>, Oid),
    /// Remove the ref of a PR event that no longer exists.
    Forget(EventId),
}

/// Resulting ref updates.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub updates: Vec<RefUpdate>,
    pub signed: Signed,
    /// The state that the refs follow.
    pub state: Option<EventId>,
    /// The same state, if it waits in purgatory: it must still be there when the intent is written.
    pub waits: Option<EventId>,
    /// Account of the signer, if there is one.
    pub actor: Option<UserId>,
}

/// Answer to an order.
#[derive(Debug)]
pub(crate) enum Decision {
    Go(Box<Plan>),
    /// The repository is aligned already.
    Nothing,
    Refuse(String),
}

impl Decision {
    fn refuse(refusal: &PushRefusal) -> Self {
        Self::Refuse(refusal.to_string())
    }
}

/// Result for each ref of a push. Every ref is judged by its own rule.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// Refused refs, with the reason.
    pub refused: Vec<(RefName, String)>,
    /// Branches and tags that a state allows, and refs of served events.
    pub allowed: Vec<RefUpdate>,
    /// Plan for the allowed refs; `None`: nothing changes.
    pub plan: Option<Box<Plan>>,
    /// Waiting PR events whose commit the push brings.
    pub released: Vec<(Event, Oid)>,
    /// Commits whose event is unknown, or waits for its repository.
    pub aside: Vec<(EventId, Oid)>,
    /// Whether one of those belongs to an event that waits with the repository's announcement.
    pub with_announcement: bool,
}

impl Sorted {
    fn refuse_all(updates: &[RefUpdate], refusal: &PushRefusal) -> Self {
        let refused = updates.iter().map(|update| (update.name.clone(), refusal.to_string())).collect();
        Self { refused, ..Self::default() }
    }
}

/// The repository as it is now, on disk and in the objects just received.
pub(crate) struct View {
    pub refs: BTreeMap<RefName, Oid>,
    pub head: Option<RefName>,
    /// The repository's directory and the areas beside it.
    pub object_dirs: Vec<PathBuf>,
}

impl View {
    /// A view of a snapshot.
    pub(crate) fn of(refs: &Snapshot, object_dirs: Vec<PathBuf>) -> Self {
        let named = |name: &[u8]| std::str::from_utf8(name).ok()?.parse::<RefName>().ok();
        let head = match &refs.head {
            Head::Symbolic(name) => named(name),
            Head::Detached(_) | Head::Unset => None,
        };
        let refs = refs.refs.iter().filter_map(|found| Some((named(&found.name)?, found.oid))).collect();
        Self { refs, head, object_dirs }
    }

    /// The objects out of `oids` that are present.
    pub(super) async fn present(&self, oids: HashSet<Oid>) -> Result<HashSet<Oid>, Fault> {
        present_in(self.object_dirs.clone(), oids).await
    }
}

/// The objects out of `oids` that are in one of these repositories.
pub(super) async fn present_in(object_dirs: Vec<PathBuf>, oids: HashSet<Oid>) -> Result<HashSet<Oid>, Fault> {
    let search = move || {
        let mut found = HashSet::new();
        for dir in &object_dirs {
            found.extend(read::present(dir, oids.iter().copied())?);
        }
        Ok::<_, abide_git::GitError>(found)
    };
    Ok(blocking("the search for objects", search).await??)
}

/// A view with the answers to all questions that a decision may ask.
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

/// Whether a served repository has all objects of a state: the objects that it names, and everything reachable from
/// them.
pub(super) async fn is_complete(forge: &Forge, state: &RepoState, repo: &Repo, client: Client) -> Result<bool, Fault> {
    let dir = forge.layout().repo(repo.id);
    let view = View { refs: BTreeMap::new(), head: None, object_dirs: vec![dir.clone()] };
    let here = view.present(objects_of(state).collect()).await?;
    if missing(state, &Known { view: &view, here }).next().is_some() {
        return Ok(false);
    }
    // A ref's target is complete; any other object that is present must be walked.
    let refs = snapshots::read(forge, repo).await?;
    let at_refs: HashSet<Oid> = refs.refs.iter().map(|found| found.oid).collect();
    let tip = |(name, id): (&RefName, &ObjectId)| {
        let new = id.sha1().filter(|oid| !at_refs.contains(oid))?;
        Some(RefUpdate { name: name.clone(), old: Oid::ZERO, new })
    };
    let tips: Vec<RefUpdate> = state.refs.iter().filter_map(tip).collect();
    Ok(Connected::in_place(forge.git(), dir).of(client).extend(&tips).await?.is_empty())
}

/// Decides what an order does to a repository as it is now.
pub(crate) async fn decide(
    forge: &Forge,
    coordinate: &RepoCoordinate,
    order: &Order,
    view: &View,
) -> Result<Decision, Fault> {
    let context = context_of(forge, coordinate).await?;
    decide_in(forge, &context, coordinate, order, view).await
}

/// All announcements and states of a repository's identifier, as its owner sees them.
async fn context_of(forge: &Forge, coordinate: &RepoCoordinate) -> Result<GraspContext, Fault> {
    let mut conn = forge.store().read().await?;
    GraspContext::load(&forge.settings().grasp, &mut conn, &coordinate.identifier, coordinate.owner).await
}

/// As [`decide`], over a context that was just loaded.
pub(super) async fn decide_in(
    forge: &Forge,
    context: &GraspContext,
    coordinate: &RepoCoordinate,
    order: &Order,
    view: &View,
) -> Result<Decision, Fault> {
    if let Order::Push(updates) = order {
        return decide_again(sort_in(forge, context, coordinate, updates, view).await?);
    }
    if let Err(refusal) = takes_changes(context, coordinate) {
        // The ref of a deleted PR event is removed even if the owner is suspended.
        let goes = matches!(order, Order::Forget(_)) && refusal == PushRefusal::OwnerSuspended;
        if !goes {
            return Ok(Decision::refuse(&refusal));
        }
    }
    let mut plan = Plan::default();
    match order {
        Order::Push(_) => Ok(Decision::Nothing),
        Order::State(event) => {
            let parsed = RepoState::parse(event, &forge.settings().grasp.limits);
            let Ok(state) = parsed else { return Ok(Decision::Refuse("the stored state cannot be read".into())) };
            if is_suspended(forge, &state.author).await? {
                return Ok(Decision::refuse(&PushRefusal::SignerSuspended));
            }
            let rules = context.candidates(coordinate.owner, None, |candidates| {
                let allowed = candidates.maintainers.contains(&state.author) && state.tracks();
                allowed && !candidates.supersede(&state)
            });
            if !rules {
                return Ok(Decision::Refuse("a newer state is authoritative for this repository".into()));
            }
            let here = view.present(objects_of(&state).collect()).await?;
            if let Some((name, _)) = missing(&state, &Known { view, here }).next() {
                return Ok(Decision::refuse(&PushRefusal::Incomplete(name.clone())));
            }
            plan.waits = context.waiting.iter().any(|said| said.event.id == event.id).then_some(event.id);
            follow(forge, &mut plan, view, &state, event).await
        }
        Order::PrEvent(event, commit) => {
            if view.present(HashSet::from([*commit])).await?.is_empty() {
                return Ok(Decision::Refuse("the commit is missing".into()));
            }
            plan.updates.extend(moved(view, ref_of(&event.id), *commit));
            if plan.updates.is_empty() && is_kept(forge, &event.id).await? {
                return Ok(Decision::Nothing);
            }
            if is_suspended(forge, &event.pubkey).await? {
                return Ok(Decision::refuse(&PushRefusal::SignerSuspended));
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

/// Whether a repository is announced and accepts changes.
fn takes_changes(context: &GraspContext, coordinate: &RepoCoordinate) -> Result<(), PushRefusal> {
    match context.of(coordinate.owner).filter(|known| known.repo_id().is_some()) {
        None => Err(PushRefusal::NoAnnouncement),
        Some(_) if context.is_suspended(&coordinate.owner) => Err(PushRefusal::OwnerSuspended),
        Some(known) if known.is_archived() => Err(PushRefusal::Archived),
        Some(_) => Ok(()),
    }
}

/// Second check of the allowed refs, at the moment when they move. If one of them is no longer allowed, none moves.
fn decide_again(sorted: Sorted) -> Result<Decision, Fault> {
    if let Some((_, reason)) = sorted.refused.into_iter().next() {
        return Ok(Decision::Refuse(reason));
    }
    if !sorted.aside.is_empty() || !sorted.released.is_empty() {
        return Ok(Decision::Refuse("the event of this ref was deleted during the push; push again".into()));
    }
    Ok(sorted.plan.map_or(Decision::Nothing, Decision::Go))
}

/// Judges the refs of a push, each by its own rule. Branches and tags follow one state together.
pub(crate) async fn sort_push(
    forge: &Forge,
    coordinate: &RepoCoordinate,
    updates: &[RefUpdate],
    view: &View,
) -> Result<Sorted, Fault> {
    sort_in(forge, &context_of(forge, coordinate).await?, coordinate, updates, view).await
}

async fn sort_in(
    forge: &Forge,
    context: &GraspContext,
    coordinate: &RepoCoordinate,
    updates: &[RefUpdate],
    view: &View,
) -> Result<Sorted, Fault> {
    if let Err(refusal) = takes_changes(context, coordinate) {
        return Ok(Sorted::refuse_all(updates, &refusal));
    }
    let commands = sort(updates);
    let mut sorted = Sorted::default();
    sorted.refused.extend(commands.refused.iter().map(|(name, refusal)| (name.clone(), refusal.to_string())));
    let mut plan = Plan::default();
    let serves = context.of(coordinate.owner).is_some_and(|known| matches!(known.stage, Stage::Served(_)));
    for update in &commands.events {
        judge_event_ref(forge, (coordinate, serves), update, view, &mut plan, &mut sorted).await?;
    }
    match follow_state(forge, coordinate, context, &commands.state, view, &mut plan).await? {
        Ok(()) => sorted.allowed.extend(commands.state),
        Err(reason) => sorted.refused.extend(commands.state.into_iter().map(|update| (update.name, reason.clone()))),
    }
    let nothing = plan.updates.is_empty() && plan.signed == Signed::default();
    sorted.plan = (!nothing).then(|| Box::new(plan));
    Ok(sorted)
}

/// Judges a push to the ref of an event, in a repository that is served or waits.
async fn judge_event_ref(
    forge: &Forge,
    (coordinate, serves): (&RepoCoordinate, bool),
    update: &RefUpdate,
    view: &View,
    plan: &mut Plan,
    sorted: &mut Sorted,
) -> Result<(), Fault> {
    let Some(id) = event_of(&update.name) else { return Ok(()) };
    let known = known_pr_event(forge, &id).await?;
    let named = match &known.event {
        Some(event) => named(forge, event, known.known, (coordinate, serves)).await?,
        None => Named::Here,
    };
    match event_ref(known.known, named, update.new) {
        Err(refusal) => sorted.refused.push((update.name.clone(), refusal.to_string())),
        Ok(EventRef::KeepAside { .. }) => {
            sorted.with_announcement |= matches!(known.known, KnownEvent::WaitingForRepository(_));
            sorted.aside.push((id, update.new));
        }
        Ok(EventRef::Accept) => {
            plan.updates.extend(moved(view, update.name.clone(), update.new));
            sorted.allowed.push(update.clone());
        }
        Ok(EventRef::Release) => match known.event {
            Some(event) if is_suspended(forge, &event.pubkey).await? => {
                sorted.refused.push((update.name.clone(), PushRefusal::SignerSuspended.to_string()));
            }
            event => sorted.released.extend(event.map(|event| (event, update.new))),
        },
    }
    Ok(())
}

/// Whether a PR event names this repository, and whether any that it names takes its commit.
async fn named(
    forge: &Forge,
    event: &Event,
    known: KnownEvent,
    (coordinate, serves): (&RepoCoordinate, bool),
) -> Result<Named, Fault> {
    let repos = PrEvent::parse(event).map(|pr_event| pr_event.repos).unwrap_or_default();
    if !repos.iter().any(|repo| RepoCoordinate::from(repo) == *coordinate) {
        return Ok(Named::Elsewhere);
    }
    // A served repository takes the commit itself.
    if serves || !matches!(known, KnownEvent::Waiting(_)) {
        return Ok(Named::Here);
    }
    let (targets, _) = targets(forge, &repos).await?;
    Ok(if targets.is_empty() { Named::Closed } else { Named::Here })
}

/// Adds the updates of the state that these commands match; returns the reason if no state matches.
async fn follow_state(
    forge: &Forge,
    coordinate: &RepoCoordinate,
    context: &GraspContext,
    commands: &[RefUpdate],
    view: &View,
    plan: &mut Plan,
) -> Result<Result<(), String>, Fault> {
    if commands.is_empty() {
        return Ok(Ok(()));
    }
    let wanted = context.candidates(coordinate.owner, None, |candidates| {
        let states = candidates.stored.iter().chain(candidates.waiting);
        states.filter(|state| candidates.maintainers.contains(&state.author)).flat_map(objects_of).collect()
    });
    let here = view.present(wanted).await?;
    let chosen = context.candidates(coordinate.owner, None, |candidates| {
        match fit(commands, candidates, &Known { view, here }) {
            Ok(Fit::NoChange) => Ok(None),
            Ok(Fit::Stored(state) | Fit::Waiting(state)) => Ok(Some(state.clone())),
            Err(refusal) => Err(refusal),
        }
    });
    let state = match chosen {
        Err(refusal) => return Ok(Err(refusal.to_string())),
        Ok(None) => return Ok(Ok(())),
        Ok(Some(state)) if context.is_suspended(&state.author) => {
            return Ok(Err(PushRefusal::SignerSuspended.to_string()));
        }
        Ok(Some(state)) => state,
    };
    plan.waits = context.waiting.iter().any(|said| said.event.id == state.rank.id).then_some(state.rank.id);
    let Some(event) = context.event_of(&state) else {
        return Err(Fault::Internal("a state came from nowhere".into()));
    };
    match follow(forge, plan, view, &state, event).await? {
        Decision::Refuse(reason) => Ok(Err(reason)),
        Decision::Go(_) | Decision::Nothing => Ok(Ok(())),
    }
}

/// Adds the updates that align the refs with a state.
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
    Ok(nostr::events::by_id(&mut *forge.store().read().await?, id.as_bytes()).await?.is_some())
}

/// The account of a key.
async fn account(forge: &Forge, key: &PublicKey) -> Result<Option<UserId>, Fault> {
    Ok(nostr::repos::user_of(&mut *forge.store().read().await?, &nip19::npub(key)).await?)
}

/// Waiting events that allow a push.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waits {
    pub state: Option<EventId>,
    pub pr_events: Vec<EventId>,
    /// Whether the announcement has to stay: for the state, or for a PR event that waits with it.
    pub announcement: bool,
}

impl Waits {
    pub(crate) fn of(sorted: &Sorted) -> Self {
        let pr_events = sorted.released.iter().map(|(event, _)| event.id).collect();
        let state = sorted.plan.as_ref().and_then(|plan| plan.waits);
        Self { state, pr_events, announcement: state.is_some() || sorted.with_announcement }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.announcement && self.pr_events.is_empty()
    }
}

/// Extends the expiry of the events that allow a push, and of its repository's announcement, so that they cannot expire
/// during the push.
pub(crate) async fn raise(forge: &Forge, coordinate: &RepoCoordinate, waits: &Waits) -> Result<(), Fault> {
    let until = forge.settings().grasp.expiry.after_push;
    let enough = forge.clock().now().plus(until);
    let mut conn = forge.store().read().await?;
    // A push usually follows its event at once, so there is nothing to write.
    let mut short = false;
    if waits.announcement {
        let waiting = purgatory::announcement(&mut conn, coordinate.owner.as_bytes(), &coordinate.identifier).await?;
        short |= waiting.is_some_and(|entry| entry.expires_at < enough);
    }
    if let Some(state) = waits.state {
        let ends = purgatory::end_of_state(&mut conn, state.as_bytes()).await?;
        short |= ends.is_some_and(|ends| ends < enough);
    }
    for pr_event in &waits.pr_events {
        let half = purgatory::prs::get(&mut conn, pr_event.as_bytes()).await?;
        short |= half.is_some_and(|half| half.expires_at < enough);
    }
    drop(conn);
    if !short {
        return Ok(());
    }
    let input = (coordinate.clone(), waits.clone(), until);
    forge
        .store()
        .write(input, |tx, (coordinate, waits, until)| {
            Box::pin(async move {
                let until = tx.now().plus(*until);
                if waits.announcement {
                    purgatory::raise_announcement(tx, &coordinate.owner.to_bytes(), &coordinate.identifier, until)
                        .await?;
                }
                if let Some(state) = waits.state {
                    purgatory::raise_state(tx, state.as_bytes(), until).await?;
                }
                for pr_event in &waits.pr_events {
                    purgatory::prs::raise(tx, pr_event.as_bytes(), until).await?;
                }
                Ok(())
            })
        })
        .await
}
