//! A push to a repository governed by signed events. Each ref is judged by its own rule: branches and tags by a signed
//! state, an event ref by its event. A refused ref does not affect the others, unless the client asked for an atomic
//! push.

use super::align::{Aligned, Bringer, Home, Objects, align};
use super::arrived;
use super::aside::{self, Kept};
use super::push::{Order, RepoCoordinate, Sorted, View, Waits, raise, sort_push};
use super::quota::{Payer, Paying};
use super::settle::settle_others;
use super::spread::{self, Released, Source};
use crate::context::standing::Standing;
use crate::git::push::authority::{Reader, SignedPush};
use crate::git::push::conversation::{Client, Rest, Stopped, Taking, take_pack};
use crate::git::push::{Verdicts, incoming_key};
use crate::git::snapshots::{self, Refs};
use crate::{Fault, Forge};
use abide_core::{Oid, RefName, RefUpdate, RepoId, failpoint};
use abide_git::report::{RefResult, sideband_message};
use abide_git::{Connected, ReceiveLimits, bare};
use abide_nostr::git::PrEvent;
use abide_nostr::grasp::push::{event_of, ref_of};
use abide_nostr::{Event, EventId, PublicKey};
use abide_store::repos::Repo;
use std::net::IpAddr;

const FULL: &str = "too many commits are waiting for their events; publish the event first, then push";
const NOTHING: &str = "unknown event: no pushed commit is waiting for it";
const WITHDRAWN: &str = "the event of this ref was deleted during the push; push again";

/// Judges, receives, judges again under the lease, and aligns every repository that the same events govern.
pub(super) async fn run(
    forge: &Forge,
    push: SignedPush<'_>,
    reader: &mut Reader<'_>,
) -> Result<(Vec<RefResult>, Rest), Stopped> {
    let SignedPush { coordinate, id, repo, caller, transport, request, limits, client } = push;
    let unread = |fault: Fault| Stopped::fault(&fault, Rest::Unread);
    let target = PushTarget {
        coordinate,
        id,
        repo,
        ip: caller.ip,
        client: caller.client(),
        transport: transport.as_str(),
        standing: &caller.standing,
    };
    let mut verdicts = Verdicts::of(request.updates.clone(), request.capabilities.atomic);
    let (refs, dir) = match repo {
        Some(repo) => (snapshots::read(forge, repo).await.map_err(unread)?, forge.layout().repo(repo.id)),
        None => (Refs::nothing(), bare::init_empty(forge.layout()).await.map_err(|error| unread(error.into()))?),
    };
    let view = View::of(&refs, vec![dir.clone()]);
    let mut sorted = sort_push(forge, coordinate, &request.updates, &view).await.map_err(unread)?;
    let limits = within_budget(forge, &target, limits, &mut sorted).await.map_err(unread)?;
    verdicts.refuse_each(&std::mem::take(&mut sorted.refused).into_iter().collect());
    if verdicts.none_left() || sorted.changes_nothing() {
        verdicts.note_gone(&refs);
        client.warn(&verdicts).await;
        return Ok((verdicts.results(), Rest::Unread));
    }
    let waits = Waits::of(&sorted);
    raise(forge, coordinate, &waits).await.map_err(unread)?;
    let key = incoming_key(forge);
    let objects = match request.needs_pack() {
        true => {
            let taking = Taking { dir, key: &key, caller, transport, limits: &limits, client };
            tokio::select! {
                taken = take_pack(forge, taking, reader, &mut verdicts) => Some(taken?),
                fault = keep_raising(forge, coordinate, &waits) => return Err(unread(fault)),
            }
        }
        false => None,
    };
    failpoint::hit(failpoint::PUSH_CONNECTED);
    let read = |fault: Fault| Stopped::fault(&fault, Rest::Read);
    let received = Received { key, objects };
    // The server releases PR events in several repositories, so check the credential before the first of them.
    if !target.standing.holds(forge).await.map_err(read)? {
        return Err(Stopped::revoked());
    }
    client.waiting_for(apply(forge, &target, client, received, sorted, &mut verdicts)).await.map_err(read)?;
    verdicts.note_gone(&refs);
    client.warn(&verdicts).await;
    Ok((verdicts.results(), Rest::Read))
}

/// Target and origin of the push.
struct PushTarget<'a> {
    coordinate: &'a RepoCoordinate,
    id: RepoId,
    /// `None` while it waits in purgatory.
    repo: Option<&'a Repo>,
    ip: Option<IpAddr>,
    client: abide_git::Client,
    transport: &'static str,
    standing: &'a Standing,
}

impl PushTarget<'_> {
    fn home(&self) -> Home {
        self.repo.map_or(Home::Waiting(self.id), |repo| Home::Served(Box::new(repo.clone())))
    }

    fn bringer(&self) -> Bringer {
        Bringer {
            transport: self.transport,
            ip: self.ip,
            client: self.client,
            paying: Paying::WhenWeighed,
            standing: self.standing.clone(),
        }
    }
}

impl Sorted {
    /// Whether every accepted ref already has its value.
    fn changes_nothing(&self) -> bool {
        self.plan.is_none() && self.released.is_empty() && self.aside.is_empty()
    }

    /// Number of parts with separate objects: state refs and served events count as one.
    fn parts(&self) -> usize {
        usize::from(!self.allowed.is_empty()) + self.released.len() + self.aside.len()
    }

    /// Drops refs refused since. Branches and tags follow a state together or not at all.
    fn leave_out(&mut self, verdicts: &mut Verdicts) {
        let is_state = |update: &&RefUpdate| event_of(&update.name).is_none();
        let refused = verdicts.refused_names();
        if self.allowed.iter().filter(is_state).any(|update| refused.contains(&update.name)) {
            let reason = "another ref of the same state was refused";
            let together = self.allowed.iter().filter(is_state).map(|update| (update.name.clone(), reason.to_owned()));
            verdicts.refuse_each(&together.collect());
        }
        let refused = verdicts.refused_names();
        self.allowed.retain(|update| !refused.contains(&update.name));
        self.released.retain(|(event, _)| !refused.contains(&ref_of(&event.id)));
        self.aside.retain(|(id, _)| !refused.contains(&ref_of(id)));
    }
}

/// Size limit of the push: the remaining quota of the payers of its parts, plus the rest of the budget for unsigned
/// commits. Each part is weighed again after it arrived.
async fn within_budget(
    forge: &Forge,
    target: &PushTarget<'_>,
    limits: &ReceiveLimits,
    sorted: &mut Sorted,
) -> Result<ReceiveLimits, Fault> {
    let mut most = Some(0);
    if sorted.allowed.iter().any(|update| !update.is_delete())
        && let Some(payer) = sorted.plan.as_ref().map(|plan| plan.signed.payer(target.coordinate.owner))
    {
        match room(forge, target, payer).await? {
            Ok(left) => most = sum(most, left),
            Err(reason) => {
                sorted.plan = None;
                let over = sorted.allowed.drain(..).map(|update| (update.name, reason.clone()));
                sorted.refused.extend(over);
            }
        }
    }
    for (event, commit) in std::mem::take(&mut sorted.released) {
        match room(forge, target, Some(event.pubkey)).await? {
            Ok(left) => {
                most = sum(most, left);
                sorted.released.push((event, commit));
            }
            Err(reason) => sorted.refused.push((ref_of(&event.id), reason)),
        }
    }
    if !sorted.aside.is_empty() {
        let budget = match aside::budget(forge, target.ip).await? {
            Some(left) => room(forge, target, None).await?.map(|room| left.min(room.unwrap_or(u64::MAX))),
            None => Err(FULL.to_owned()),
        };
        match budget {
            Ok(left) => most = sum(most, Some(left)),
            Err(reason) => {
                let full = sorted.aside.drain(..).map(|(id, _)| (ref_of(&id), reason.clone()));
                sorted.refused.extend(full);
            }
        }
    }
    let pack_bytes = most.map_or(limits.pack_bytes, |most| limits.pack_bytes.min(most));
    Ok(ReceiveLimits { pack_bytes, ..limits.clone() })
}

/// Sum of two amounts; `None` means unlimited.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.saturating_add(other))
}

/// Bytes that the payer may still push; `None` if unlimited. Or the reason for a refusal.
async fn room(
    forge: &Forge,
    target: &PushTarget<'_>,
    payer: Option<PublicKey>,
) -> Result<Result<Option<u64>, String>, Fault> {
    let left = Payer::load(forge, payer, target.ip).await?.room(forge).await?;
    Ok(left.map_err(|refusal| refusal.reason.into_owned()))
}

/// Keeps the authorising entries from expiring while this is polled. Returns only on an internal failure.
async fn keep_raising(forge: &Forge, coordinate: &RepoCoordinate, waits: &Waits) -> Fault {
    if waits.is_empty() {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(forge.settings().grasp.expiry.raise_every()).await;
        if let Err(fault) = raise(forge, coordinate, waits).await {
            return fault;
        }
    }
}

/// Received objects of all refs of the push.
struct Received {
    key: String,
    objects: Option<Connected>,
}

/// Objects of one part of a push.
struct Part {
    key: String,
    objects: Option<Connected>,
}

impl Received {
    /// Objects that these tips need. A push with one part is that part. Otherwise objects of refused or waiting refs
    /// are left out.
    async fn part(&mut self, forge: &Forge, whole: bool, tips: &[Oid]) -> Result<Part, Fault> {
        if whole {
            return Ok(Part { key: std::mem::take(&mut self.key), objects: self.objects.take() });
        }
        let key = incoming_key(forge);
        let objects = match &self.objects {
            Some(objects) => Some(objects.select(forge.layout(), &key, tips).await?),
            None => None,
        };
        Ok(Part { key, objects })
    }
}

/// A PR event whose repositories take its commit. The part holds the objects until then.
struct ReadyPart {
    id: EventId,
    ready: spread::Ready,
    _part: Part,
}

/// A commit that waits for its event.
struct AsidePart {
    id: EventId,
    commit: Oid,
    part: Part,
}

/// Applies the parts of a push: branches and tags, then PR events, then commits that wait. Before the first ref moves,
/// the objects of all parts are proved complete and all parts are judged, so an atomic push that is refused moves
/// nothing. A part that fails later is refused alone.
async fn apply(
    forge: &Forge,
    target: &PushTarget<'_>,
    client: &Client,
    mut received: Received,
    mut sorted: Sorted,
    verdicts: &mut Verdicts,
) -> Result<(), Fault> {
    sorted.leave_out(verdicts);
    if verdicts.none_left() {
        return Ok(());
    }
    let whole = sorted.parts() == 1 && !verdicts.refuses_objects();
    let tips: Vec<Oid> = sorted.allowed.iter().map(|update| update.new).filter(|new| !new.is_zero()).collect();
    let allowed = match sorted.allowed.is_empty() {
        true => None,
        false => Some(received.part(forge, whole, &tips).await?),
    };
    let mut ready = Vec::with_capacity(sorted.released.len());
    for (event, commit) in std::mem::take(&mut sorted.released) {
        let prepared = match received.part(forge, whole, &[commit]).await {
            Ok(part) => prepare(forge, target, part, &event, commit).await,
            Err(fault) => Err(fault),
        };
        match prepared {
            Ok(Ok(one)) => ready.push(one),
            Ok(Err(reason)) => verdicts.refuse(&ref_of(&event.id), &reason),
            Err(fault) => verdicts.refuse(&ref_of(&event.id), &untouched(&fault)),
        }
    }
    let (mut waiting, mut bytes) = (Vec::with_capacity(sorted.aside.len()), 0);
    for (id, commit) in std::mem::take(&mut sorted.aside) {
        let looked = match received.part(forge, whole, &[commit]).await {
            Ok(part) => look_aside(forge, target, AsidePart { id, commit, part }, &mut bytes).await,
            Err(fault) => Err(fault),
        };
        match looked {
            Ok(Ok(one)) => waiting.push(one),
            Ok(Err(reason)) => verdicts.refuse(&ref_of(&id), &reason),
            Err(fault) => verdicts.refuse(&ref_of(&id), &untouched(&fault)),
        }
    }

    let mut moved = false;
    if let Some(part) = allowed.filter(|_| !verdicts.none_left()) {
        let refused = match follow(forge, target, sorted.allowed.clone(), part).await {
            Ok(Aligned::Refused(reason)) => Some(reason),
            Ok(aligned) => {
                moved = aligned == Aligned::Done;
                None
            }
            Err(fault) => Some(uncertain(&fault)),
        };
        if let Some(reason) = refused {
            let all = sorted.allowed.iter().map(|update| (update.name.clone(), reason.clone()));
            verdicts.refuse_each(&all.collect());
        }
    }
    let mut released = false;
    for one in ready {
        if verdicts.none_left() {
            one.ready.abandon(forge).await;
            continue;
        }
        let outcome = match one.ready.release(forge).await {
            Ok(outcome) => release_result(outcome),
            Err(fault) => Err(uncertain(&fault)),
        };
        released |= outcome.is_ok();
        refuse(verdicts, &ref_of(&one.id), outcome, &mut moved);
    }
    for AsidePart { id, commit, part } in waiting {
        if verdicts.none_left() {
            break;
        }
        let outcome = keep_aside(forge, target, client, part, id, commit).await;
        let outcome = outcome.unwrap_or_else(|fault| Err(untouched(&fault)));
        refuse(verdicts, &ref_of(&id), outcome, &mut moved);
    }
    if released {
        arrived::release_after(forge, target.coordinate).await;
    }
    Ok(())
}

/// Records a refused part. In an atomic push it refuses the others too, as long as no ref has moved.
fn refuse(verdicts: &mut Verdicts, name: &RefName, outcome: Result<(), String>, moved: &mut bool) {
    match outcome {
        Ok(()) => *moved = true,
        Err(reason) if *moved => verdicts.refuse_late(name, &reason),
        Err(reason) => verdicts.refuse(name, &reason),
    }
}

/// Text for the client about an internal error before any ref changed.
fn untouched(fault: &Fault) -> String {
    Stopped::reason_for(fault, "the server failed; this ref was not changed, try again later")
}

/// Text for the client about an internal error while refs were written.
fn uncertain(fault: &Fault) -> String {
    Stopped::reason_for(fault, Stopped::UNCERTAIN)
}

/// Aligns the repository, and every other that the same state governs.
async fn follow(forge: &Forge, target: &PushTarget<'_>, updates: Vec<RefUpdate>, part: Part) -> Result<Aligned, Fault> {
    let objects = part.objects.map_or(Objects::Here, |objects| Objects::Received(part.key, objects));
    let site = (target.coordinate, target.home());
    let aligned = align(forge, site, Order::Push(updates), objects, target.bringer()).await?;
    if aligned == Aligned::Done {
        let RepoCoordinate { owner, identifier } = target.coordinate;
        if let Err(fault) = settle_others(forge, identifier, *owner, target.client).await {
            // The refs have moved: the job enqueued with that continues.
            tracing::warn!(error = %fault, identifier, "cannot align other repositories of an identifier to a push yet");
        }
    }
    Ok(aligned)
}

/// Prepares serving a PR event whose commit arrived, in every repository that it names; or returns the reason against
/// it.
async fn prepare(
    forge: &Forge,
    target: &PushTarget<'_>,
    part: Part,
    event: &Event,
    commit: Oid,
) -> Result<Result<ReadyPart, String>, Fault> {
    let Ok(pr_event) = PrEvent::parse(event) else { return Ok(Err(WITHDRAWN.to_owned())) };
    let (targets, _) = spread::targets(forge, &pr_event.repos).await?;
    let source = match part.objects {
        Some(_) => Source::Area(part.key.clone(), Some(target.id)),
        None => Source::Repo(target.id),
    };
    let prepared = spread::prepare(forge, event, commit, &source, targets, &target.bringer()).await?;
    Ok(match prepared {
        Ok(ready) => Ok(ReadyPart { id: event.id, ready, _part: part }),
        Err(not) => Err(release_result(not).err().unwrap_or_else(|| WITHDRAWN.to_owned())),
    })
}

/// Report to the client about the release of a PR event.
fn release_result(released: Released) -> Result<(), String> {
    match released {
        Released::Done => Ok(()),
        Released::Incomplete => {
            Err("a repository listed in the event lacks more objects than this push had; push the commit there"
                .to_owned())
        }
        Released::Refused(refusal) => Err(refusal.reason.into_owned()),
    }
}

/// Checks whether a commit may wait for its event, given further bytes of the push; or returns the reason against it.
async fn look_aside(
    forge: &Forge,
    target: &PushTarget<'_>,
    one: AsidePart,
    bytes: &mut u64,
) -> Result<Result<AsidePart, String>, Fault> {
    let refused = match &one.part.objects {
        Some(objects) => aside::refusal(forge, one.id, objects, target.ip, bytes).await?,
        None => Some(Kept::Nothing),
    };
    Ok(match refused {
        None | Some(Kept::Waiting | Kept::Known(_)) => Ok(one),
        Some(Kept::Nothing) => Err(NOTHING.to_owned()),
        Some(Kept::Full) => Err(FULL.to_owned()),
        Some(Kept::OverQuota(refusal)) => Err(refusal.reason.into_owned()),
    })
}

/// Keeps a commit until its event arrives.
async fn keep_aside(
    forge: &Forge,
    target: &PushTarget<'_>,
    client: &Client,
    part: Part,
    event: EventId,
    commit: Oid,
) -> Result<Result<(), String>, Fault> {
    let Some(objects) = part.objects else { return Ok(Err(NOTHING.to_owned())) };
    match aside::keep(forge, event, commit, (target.id, target.coordinate), objects, target.ip).await? {
        Kept::Nothing => Ok(Err(NOTHING.to_owned())),
        Kept::Full => Ok(Err(FULL.to_owned())),
        Kept::OverQuota(refusal) => Ok(Err(refusal.reason.into_owned())),
        Kept::Waiting => {
            if client.capabilities.side_band_64k {
                client
                    .send(sideband_message("awaiting PR event: the commit is served once its event is published"))
                    .await;
            }
            Ok(Ok(()))
        }
        // The event arrived while the objects were received: use the normal path.
        Kept::Known(key) => {
            let outcome = release_known(forge, target, &key, event, commit).await;
            aside::remove(forge, &key).await;
            outcome
        }
    }
}

/// Judges a ref again whose event arrived while its objects were received.
async fn release_known(
    forge: &Forge,
    target: &PushTarget<'_>,
    key: &str,
    id: EventId,
    commit: Oid,
) -> Result<Result<(), String>, Fault> {
    let update = RefUpdate { name: ref_of(&id), old: Oid::ZERO, new: commit };
    let view = View::of(&Refs::nothing(), Vec::new());
    let mut sorted = sort_push(forge, target.coordinate, &[update], &view).await?;
    if let Some((_, reason)) = sorted.refused.pop() {
        return Ok(Err(reason));
    }
    let event = match sorted.released.pop() {
        Some((event, _)) => event,
        // It is already served: another push brought the commit.
        None if !sorted.allowed.is_empty() => return Ok(Ok(())),
        None => return Ok(Err(WITHDRAWN.to_owned())),
    };
    let Ok(pr_event) = PrEvent::parse(&event) else { return Ok(Err(WITHDRAWN.to_owned())) };
    let (targets, _) = spread::targets(forge, &pr_event.repos).await?;
    let source = Source::Area(key.to_owned(), Some(target.id));
    let released = spread::release(forge, &event, commit, &source, targets, &target.bringer()).await?;
    Ok(release_result(released))
}
