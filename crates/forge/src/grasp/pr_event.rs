//! Admission of patches, pull requests and updates of pull requests.

use super::align::{Bringer, JOB_WAIT, LANE_WAIT, client_of};
use super::push::RepoCoordinate;
use super::quota::{self, Allowance};
use super::spread::{self, Released, Source, Target, targets};
use super::{Halt, aside, attached, ensure_room, entry, left, notice};
use crate::relay::deleted::is_deleted;
use crate::relay::{Relay, readable, to_record};
use crate::{Fault, Forge, GraspSettings, threads};
use abide_core::Oid;
use abide_core::admission::Network;
use abide_git::Client;
use abide_nostr::git::{ObjectId, PrEvent};
use abide_nostr::grasp::event::{Commit, PrVerdict, distance, own_steps, pr_event as judge};
use abide_nostr::grasp::{Answer, Prefix, Refusal};
use abide_nostr::{Event, EventId};
use abide_store::nostr::events::Kept;
use abide_store::nostr::purgatory;
use abide_store::nostr::purgatory::attached::Home;
use abide_store::nostr::purgatory::prs as pr_events;
use abide_store::nostr::purgatory::prs::Half;
use abide_store::{Tx, nostr};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Decides about a PR event.
pub(super) async fn admit(
    forge: &Forge,
    event: &Event,
    proposed: PrEvent,
    from: Option<IpAddr>,
    allowance: &Allowance,
) -> Result<Answer, Fault> {
    decide(forge, event, &Arrival { proposed, from, allowance, by: By::Sender }).await
}

/// Decides again about a PR event that waits, because git was busy when it came: the job. `false`: it does not wait.
pub(super) async fn again(forge: &Forge, id: &EventId) -> Result<bool, Fault> {
    let half = pr_events::get(&mut *forge.store().read().await?, id.as_bytes()).await?;
    let Some(event) = half.and_then(|half| half.json).and_then(|json| readable(&json)) else { return Ok(false) };
    let Ok(proposed) = PrEvent::parse(&event) else { return Ok(false) };
    if is_deleted(&mut *forge.store().read().await?, &event).await? {
        return Ok(true);
    }
    // It was judged when it came, and its bytes are counted where it waits.
    let allowance = Allowance::unlimited(event.pubkey);
    let arrival = Arrival { proposed, from: None, allowance: &allowance, by: By::Job };
    if let Answer::Refused(refusal) = decide(forge, &event, &arrival).await? {
        tracing::info!(event = %id, reason = %refusal, "a waiting PR event cannot be served");
    }
    Ok(true)
}

/// A PR event and how it came.
struct Arrival<'a> {
    proposed: PrEvent,
    from: Option<IpAddr>,
    allowance: &'a Allowance,
    by: By,
}

/// Who asks for a decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The sender of the event, who waits for the answer.
    Sender,
    /// The job of one that waits already.
    Job,
}

async fn decide(forge: &Forge, event: &Event, arrival: &Arrival<'_>) -> Result<Answer, Fault> {
    let mut incomplete = None;
    loop {
        match try_admit(forge, event, arrival, incomplete.as_deref()).await? {
            Tried::Answered(answer) => return Ok(answer),
            Tried::Raced => {}
            Tried::Incomplete(key) => incomplete = Some(key),
        }
    }
}

/// Result of one attempt.
enum Tried {
    Answered(Answer),
    /// The commit arrived at the same moment; try again.
    Raced,
    /// The objects in this area are incomplete for a repository of the PR event. The area is treated like another
    /// commit.
    Incomplete(String),
}

async fn try_admit(
    forge: &Forge,
    event: &Event,
    arrival: &Arrival<'_>,
    incomplete: Option<&str>,
) -> Result<Tried, Fault> {
    let Arrival { proposed, from, allowance, by } = arrival;
    let (targets, home) = targets(forge, &proposed.repos).await?;
    let patience = if *by == By::Job { JOB_WAIT } else { LANE_WAIT };
    let client = client_of(forge, &event.pubkey, *from).await?.waiting_at_most(patience);
    let wanted = proposed.commit.and_then(ObjectId::sha1);
    let half = pr_events::get(&mut *forge.store().read().await?, event.id.as_bytes()).await?;
    // Objects are kept for an event that is not known, or that waits because git was busy.
    let half = half.filter(|half| half.json.is_none() || half.incoming.is_some());
    let postponed = |fault: &Fault| *by == By::Sender && fault.is_busy();
    let mut due = Due::Push;
    let found = match wanted {
        None => Found::Nothing,
        Some(oid) => match find(forge, event, &targets, (oid, client), half.as_ref(), incomplete).await {
            Err(fault) if postponed(&fault) => {
                due = Due::Job;
                Found::Nothing
            }
            found => found?,
        },
    };
    let (relation, steps) = super::relation::of(forge, event).await?;
    match judge(proposed, relation, home, found.commit()) {
        PrVerdict::Refuse(refusal) => Ok(Tried::Answered(Answer::Refused(refusal))),
        // It waits as it is.
        PrVerdict::WaitForRepository | PrVerdict::Wait { .. } if *by == By::Job => Ok(Tried::Answered(Answer::Waiting)),
        PrVerdict::WaitForRepository => attached::wait(forge, event, *from, allowance).await.map(Tried::Answered),
        PrVerdict::Wait { .. } => {
            let Some(oid) = wanted else {
                let reason = "the commit has a SHA-256 id; only SHA-1 repositories are supported";
                return Ok(Tried::Answered(Answer::Refused(Refusal::new(Prefix::Invalid, reason))));
            };
            wait(forge, event, (oid, due), &targets, arrival, incomplete).await
        }
        PrVerdict::Serve | PrVerdict::ServeFromAside => match (wanted, found) {
            (Some(oid), Found::In(source)) => {
                let bringer = Bringer::server_for(client);
                match serve(forge, event, oid, targets.clone(), source, bringer).await {
                    Err(fault) if postponed(&fault) => {
                        wait(forge, event, (oid, Due::Job), &targets, arrival, incomplete).await
                    }
                    served => served,
                }
            }
            _ => store(forge, event, steps, allowance).await.map(Tried::Answered),
        },
    }
}

/// The step that a waiting PR event is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// A push of its commit.
    Push,
    /// The job that decides about it when git is less busy.
    Job,
}

/// Whether and where the commit is present.
enum Found {
    Nothing,
    In(Source),
    /// Another commit is kept aside, or this commit without all objects that it needs.
    Other,
}

impl Found {
    fn commit(&self) -> Commit {
        match self {
            Self::Nothing => Commit::Absent,
            Self::In(Source::Repo(_)) => Commit::Here,
            Self::In(Source::Area(..)) => Commit::Aside,
            Self::Other => Commit::OtherAside,
        }
    }
}

async fn find(
    forge: &Forge,
    event: &Event,
    targets: &[Target],
    (oid, client): (Oid, Client),
    kept: Option<&Half>,
    incomplete: Option<&str>,
) -> Result<Found, Fault> {
    if let Some(repo) = spread::holder(forge, &event.id, oid, targets, client).await? {
        return Ok(Found::In(Source::Repo(repo)));
    }
    Ok(match kept.map(|half| (half, half.incoming.as_ref())) {
        None => Found::Nothing,
        Some((half, Some(key))) if half.commit == oid && Some(key.as_str()) != incomplete => {
            Found::In(Source::Area(key.clone(), half.repo_id))
        }
        Some(_) => Found::Other,
    })
}

/// Serves a PR event: every repository that it names takes the commit, and the event is stored.
async fn serve(
    forge: &Forge,
    event: &Event,
    oid: Oid,
    targets: Vec<Target>,
    source: Source,
    bringer: Bringer,
) -> Result<Tried, Fault> {
    match (spread::release(forge, event, oid, &source, targets, &bringer).await?, source) {
        (Released::Done, Source::Area(key, _)) => {
            aside::remove(forge, &key).await;
            Ok(Tried::Answered(Answer::Stored))
        }
        (Released::Done, Source::Repo(_)) => Ok(Tried::Answered(Answer::Stored)),
        (Released::Incomplete, Source::Area(key, _)) => Ok(Tried::Incomplete(key)),
        (Released::Incomplete, Source::Repo(_)) => {
            let reason = "a target repository lacks too much of the commit's history; push the commit there";
            Ok(Tried::Answered(Answer::Refused(Refusal::new(Prefix::Error, reason))))
        }
        (Released::Refused(refusal), _) => Ok(Tried::Answered(Answer::Refused(refusal))),
    }
}

/// Stores a PR event without a commit of its own.
async fn store(forge: &Forge, event: &Event, steps: i64, allowance: &Allowance) -> Result<Answer, Fault> {
    let settings = forge.settings().grasp.clone();
    let stored = forge
        .store()
        .write((event.clone(), steps, allowance.clone(), settings), |tx, (event, steps, allowance, settings)| {
            Box::pin(async move {
                allowance.ensure(tx, to_record(event).json.len()).await?;
                distance(*steps, nostr::relations::far(tx, event.pubkey.as_bytes()).await?)?;
                if nostr::events::insert(tx, &to_record(event)).await? == Kept::New {
                    threads::emit::served(tx, settings, [event]).await?;
                }
                if *steps != own_steps(event.kind.as_u16()) {
                    nostr::relations::note_steps(tx, event.id.as_bytes(), *steps).await?;
                }
                Ok::<_, Halt>(())
            })
        })
        .await;
    match stored {
        Ok(()) => {}
        Err(Halt::Refused(refusal)) => return Ok(Answer::Refused(refusal)),
        Err(Halt::Store(error)) => return Err(error.into()),
    }
    Relay::of(forge).publish(&[Arc::new(event.clone())]);
    Ok(Answer::Stored)
}

/// It waits for its commit, or for the job. What was pushed under its id and is another commit goes: the event says what
/// belongs there.
async fn wait(
    forge: &Forge,
    event: &Event,
    (commit, due): (Oid, Due),
    targets: &[Target],
    arrival: &Arrival<'_>,
    incomplete: Option<&str>,
) -> Result<Tried, Fault> {
    let network = arrival.from.map(Network::of);
    if due == Due::Job {
        let repos: Vec<_> = targets.iter().map(|target| target.repo.id).collect();
        if let Err(refusal) = quota::refs(forge, event.pubkey, network, &repos).await? {
            return Ok(Tried::Answered(Answer::Refused(refusal)));
        }
    }
    let unit = Wait {
        event: event.clone(),
        proposed: arrival.proposed.clone(),
        commit,
        due,
        repos: targets.iter().map(|target| target.coordinate.stored()).collect(),
        named: arrival.proposed.repos.iter().map(|repo| RepoCoordinate::from(repo).stored()).collect(),
        from: arrival.from,
        settings: forge.settings().grasp.clone(),
        allowance: arrival.allowance.clone(),
        incomplete: incomplete.map(str::to_owned),
        delay: forge.settings().sync.delay(arrival.allowance.origin),
    };
    match forge.store().write(unit, |tx, unit| Box::pin(write_wait(tx, unit))).await {
        Ok(Wrote::Raced) => Ok(Tried::Raced),
        Ok(Wrote::Waits { dropped }) => {
            if let Some(key) = dropped {
                left("placeholder", "replacement");
                aside::remove(forge, &key).await;
            }
            if due == Due::Job {
                // The job does not know where it came from.
                quota::count_refs(forge, event.pubkey, network, targets.len()).await;
            }
            Ok(Tried::Answered(Answer::Waiting))
        }
        Err(Halt::Refused(refusal)) => Ok(Tried::Answered(Answer::Refused(refusal))),
        Err(Halt::Store(error)) => Err(error.into()),
    }
}

/// A PR event that is to wait.
struct Wait {
    event: Event,
    proposed: PrEvent,
    commit: Oid,
    due: Due,
    /// Repositories that take the commit, and all that the PR event names.
    repos: Vec<([u8; 32], String)>,
    named: Vec<([u8; 32], String)>,
    from: Option<IpAddr>,
    settings: GraspSettings,
    allowance: Allowance,
    incomplete: Option<String>,
    /// Delay before its commit is fetched; `None` if nothing is fetched.
    delay: Option<Duration>,
}

async fn write_wait(tx: &mut Tx, unit: &Wait) -> Result<Wrote, Halt> {
    let Wait { event, commit, settings, .. } = unit;
    let before = pr_events::lock(tx, event.id.as_bytes()).await?;
    let is_here = |half: &Half| half.commit == *commit && half.incoming.is_some() && half.incoming != unit.incomplete;
    let kept = before.clone().filter(is_here);
    if unit.due == Due::Push && kept.as_ref().is_some_and(|half| half.json.is_none()) {
        return Ok(Wrote::Raced);
    }
    let until = settings.expiry.of_arrival(tx.now());
    let entry = entry(event, "", unit.from, until);
    ensure_room(tx, &settings.caps, &entry).await?;
    unit.allowance.event(tx, entry.json.len()).await?;
    // The objects that the job is to take in stay where they are.
    let kept = kept.filter(|_| unit.due == Due::Job);
    let half = Half {
        event_id: entry.event_id,
        pubkey: Some(entry.pubkey),
        json: Some(entry.json),
        commit: *commit,
        repo_id: kept.as_ref().and_then(|half| half.repo_id),
        incoming: kept.as_ref().and_then(|half| half.incoming.clone()),
        bytes: kept.as_ref().map_or(0, |half| half.bytes),
        created_at: tx.now(),
        expires_at: until,
    };
    // Also for repositories that wait: their first push may bring the commit.
    let waiting = purgatory::attached::waiting_repos(tx, &unit.named).await?.into_iter();
    let waiting = waiting.filter_map(|home| match home {
        Home::Repo(owner, identifier) => Some((owner, identifier)),
        Home::PrEvent(_) => None,
    });
    let waiting: BTreeSet<_> = waiting.collect();
    let repos: Vec<_> = unit.repos.iter().cloned().chain(waiting).collect();
    pr_events::put(tx, &half, &repos, entry.address.as_deref()).await?;
    if unit.due == Due::Push {
        let identifiers: BTreeSet<&String> = unit.repos.iter().map(|(_, identifier)| identifier).collect();
        for identifier in identifiers {
            notice(tx, identifier, unit.delay).await?;
        }
    }
    if unit.due == Due::Job {
        spread::enqueue(tx, event, &unit.proposed).await?;
    }
    let dropped = before.and_then(|half| half.incoming).filter(|_| kept.is_none());
    Ok(Wrote::Waits { dropped })
}

/// Result of one attempt to put a PR event into purgatory.
enum Wrote {
    /// The commit arrived at the same moment.
    Raced,
    /// The PR event waits; `dropped` is the area of another commit that was kept under its id.
    Waits { dropped: Option<String> },
}
