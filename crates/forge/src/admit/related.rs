//! Admission of profiles and of events that only need a link to a repository: many events are judged and stored in one
//! unit.

use super::{Verified, failed};
use crate::grasp::quota::{self, QuotaLimits, Strangers};
use crate::grasp::{Halt, attached};
use crate::relay::deleted::{refusal, targets};
use crate::relay::{Relay, Signers, named_by, to_record};
use crate::{Fault, Forge, GraspSettings, threads};
use abide_nostr::git::References;
use abide_nostr::grasp::event::{
    Author, RelatedVerdict, Relation, distance, own_steps, profile, related, steps_beyond,
};
use abide_nostr::grasp::{Answer, Parsed, Prefix, Refusal};
use abide_nostr::grasp::{quota as rule, signer};
use abide_nostr::kinds::{Class, class};
use abide_nostr::{Event, EventId, nip19};
use abide_store::nostr::events::{Kept, NewEvent, deleted};
use abide_store::nostr::purgatory::attached::Home;
use abide_store::nostr::relations::{EventCoordinate, Link};
use abide_store::nostr::{self, purgatory, quotas};
use abide_store::{Conn, StoreError, Tx};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

/// An event with the data that the rules need.
struct Candidate {
    event: Arc<Event>,
    profile: bool,
    record: NewEvent,
    references: References,
    from: Option<IpAddr>,
    /// The sender's network, as quotas count it.
    network: Option<String>,
}

impl Candidate {
    fn of(verified: &Verified) -> Self {
        let event = Arc::clone(verified.pending.event());
        let profile = matches!(verified.parsed, Parsed::Profile);
        let references = if profile { References::default() } else { References::of(&event) };
        let from = verified.pending.submission.from;
        let network = quota::network(from);
        Self { profile, record: to_record(&event), references, network, event, from }
    }

    fn addresses(&self) -> impl Iterator<Item = EventCoordinate> {
        let named = self.references.coordinates.iter();
        named.map(|address| (address.kind, address.author.to_bytes(), address.identifier.clone()))
    }
}

/// Facts from the database about a batch.
struct Facts {
    events: HashMap<[u8; 32], Link>,
    addresses: HashMap<EventCoordinate, Link>,
    /// Tag keys of served events, with the steps of the nearest event.
    tagged: HashMap<i64, i64>,
    /// Tagged announcements in purgatory.
    waiting: HashSet<Home>,
    /// Events that are an announcement or a pull request in purgatory, or wait with one.
    waiting_ids: HashMap<[u8; 32], Vec<Home>>,
    /// By author: number of events that are linked to repositories only through other events.
    far: HashMap<[u8; 32], i64>,
    authors: HashSet<[u8; 32]>,
    signers: Signers,
    /// By index of the candidate: when its author deleted the event or its slot.
    deleted: HashMap<usize, Deletion>,
}

#[derive(Default)]
struct Deletion {
    by_id: bool,
    slot_until: Option<i64>,
}

/// Judges and stores a batch, answers each event and passes the new ones on.
pub(super) async fn admit(forge: &Forge, batch: Vec<Verified>) {
    if batch.is_empty() {
        return;
    }
    let candidates: Arc<[Candidate]> = batch.iter().map(Candidate::of).collect();
    match decide_all(forge, candidates.clone()).await {
        Ok(Decided { answers, strangers }) => {
            Strangers::of(forge).add(strangers);
            let new = candidates.iter().zip(&answers).filter(|(_, answer)| **answer == Answer::Stored);
            let new: Vec<Arc<Event>> = new.map(|(candidate, _)| candidate.event.clone()).collect();
            for (verified, answer) in batch.into_iter().zip(answers) {
                verified.pending.answer(answer);
            }
            Relay::of(forge).publish(&new);
        }
        Err(fault) => batch.into_iter().for_each(|verified| verified.pending.answer(failed(&fault))),
    }
}

/// Verdict of the rules on one event.
enum Judged {
    Serve {
        /// Distance from a repository.
        steps: i64,
    },
    /// The event waits with these announcements and pull requests.
    Wait(Vec<Home>),
    Refuse(Refusal),
}

impl Judged {
    /// Distance from a repository, if the event is served and stored.
    fn kept(&self, candidate: &Candidate) -> Option<i64> {
        match self {
            Self::Serve { steps } if class(candidate.record.kind) != Class::Ephemeral => Some(*steps),
            _ => None,
        }
    }
}

/// Result of a batch.
struct Decided {
    answers: Vec<Answer>,
    /// Bytes that were stored for strangers.
    strangers: u64,
}

async fn decide_all(forge: &Forge, candidates: Arc<[Candidate]>) -> Result<Decided, Fault> {
    let input = (candidates, forge.settings().grasp.clone(), QuotaLimits::load(forge).await?);
    forge.store().write(input, |tx, (batch, settings, limits)| Box::pin(decide(tx, batch, settings, limits))).await
}

/// One transaction: load the facts, apply the rules, write the rows.
async fn decide(
    tx: &mut Tx,
    candidates: &[Candidate],
    settings: &GraspSettings,
    limits: &QuotaLimits,
) -> Result<Decided, Fault> {
    let facts = facts(tx, candidates).await?;
    let mut judged = judge(candidates, &facts);
    let takes_room = |index: &usize| {
        let waits = matches!(judged[*index], Judged::Wait(_));
        let is_stranger = facts.signers.of(&candidates[*index].event.pubkey).is_stranger();
        is_stranger && (waits || judged[*index].kept(&candidates[*index]).is_some())
    };
    let strangers: Vec<usize> = (0..candidates.len()).filter(takes_room).collect();
    judge_quotas(tx, candidates, &strangers, limits, &mut judged).await?;
    let kept = candidates.iter().zip(&judged).filter(|(candidate, judged)| judged.kept(candidate).is_some());
    let records: Vec<NewEvent> = kept.map(|(candidate, _)| candidate.record.clone()).collect();
    let mut outcomes = nostr::events::insert_many(tx, &records).await?.into_iter();
    let mut answers = Vec::with_capacity(candidates.len());
    let mut new = Vec::new();
    for (candidate, judged) in candidates.iter().zip(judged) {
        let steps = judged.kept(candidate);
        answers.push(match judged {
            Judged::Refuse(refusal) => Answer::Refused(refusal),
            Judged::Wait(homes) => wait(tx, settings, candidate, &homes).await?,
            Judged::Serve { .. } => match steps.and_then(|_| outcomes.next()) {
                Some(Kept::Duplicate) => Answer::DuplicateStored,
                Some(Kept::Older) => {
                    Answer::Refused(Refusal::new(Prefix::Invalid, "a newer version of this event is stored"))
                }
                Some(Kept::New) => {
                    note_steps(tx, candidate, steps.unwrap_or_default()).await?;
                    new.push(&*candidate.event);
                    Answer::Stored
                }
                None => Answer::Stored,
            },
        });
    }
    threads::emit::served(tx, settings, new).await?;
    let stored = strangers.into_iter().filter(|index| matches!(answers[*index], Answer::Stored | Answer::Waiting));
    let strangers = count(tx, candidates, stored).await?;
    Ok(Decided { answers, strangers })
}

/// Judges events of strangers by their quotas. Usage is looked up once for all of them, and each accepted event reduces
/// the room of the next.
async fn judge_quotas(
    tx: &mut Tx,
    candidates: &[Candidate],
    strangers: &[usize],
    limits: &QuotaLimits,
    judged: &mut [Judged],
) -> Result<(), StoreError> {
    let keys: BTreeSet<[u8; 32]> = strangers.iter().map(|index| candidates[*index].record.pubkey).collect();
    let networks: BTreeSet<&String> =
        strangers.iter().filter_map(|index| candidates[*index].network.as_ref()).collect();
    let mut used = quotas::lock(tx, &keys.into_iter().collect::<Vec<_>>()).await?;
    let mut today = quotas::lock_addresses(tx, &networks.into_iter().cloned().collect::<Vec<_>>()).await?;
    let mut room = limits.room;
    for index in strangers {
        let Candidate { record, network, .. } = &candidates[*index];
        let of_key = used.entry(record.pubkey).or_default();
        let of_network = network.as_ref().map(|network| today.entry(network.clone()).or_default());
        let bytes = record.json.len();
        let usage = quota::usage(*of_key, of_network.as_deref().copied().unwrap_or_default());
        if let Err(refusal) = rule::event(&limits.quotas, &usage, &room, bytes as u64) {
            judged[*index] = Judged::Refuse(refusal);
            continue;
        }
        let more = i64::try_from(bytes).unwrap_or(i64::MAX);
        of_key.events += 1;
        of_key.bytes = of_key.bytes.saturating_add(more);
        if let Some(today) = of_network {
            today.bytes = today.bytes.saturating_add(more);
        }
        room.strangers = room.strangers.map(|(used, most)| (used.saturating_add(bytes as u64), most));
    }
    Ok(())
}

/// Counts the bytes that strangers stored, for their networks. Returns the sum.
async fn count(tx: &mut Tx, candidates: &[Candidate], stored: impl Iterator<Item = usize>) -> Result<u64, StoreError> {
    let mut added: HashMap<String, i64> = HashMap::new();
    let mut bytes = 0;
    for index in stored {
        let Candidate { record, network, .. } = &candidates[index];
        bytes += record.json.len() as u64;
        if let Some(network) = network {
            *added.entry(network.clone()).or_default() += i64::try_from(record.json.len()).unwrap_or(i64::MAX);
        }
    }
    quotas::add_addresses(tx, added.into_iter().collect()).await?;
    Ok(bytes)
}

/// Stores an event's distance from a repository, if its kind does not imply it.
async fn note_steps(tx: &mut Tx, candidate: &Candidate, steps: i64) -> Result<(), StoreError> {
    if candidate.profile || steps == own_steps(candidate.record.kind) {
        return Ok(());
    }
    nostr::relations::note_steps(tx, &candidate.record.id, steps).await
}

async fn wait(
    tx: &mut Tx,
    settings: &GraspSettings,
    candidate: &Candidate,
    homes: &[Home],
) -> Result<Answer, StoreError> {
    match attached::put(tx, settings, &candidate.event, homes, candidate.from).await {
        Ok(answer) => Ok(answer),
        Err(Halt::Refused(refusal)) => Ok(Answer::Refused(refusal)),
        Err(Halt::Store(error)) => Err(error),
    }
}

async fn facts(conn: &mut Conn, candidates: &[Candidate]) -> Result<Facts, StoreError> {
    let ids: HashSet<[u8; 32]> =
        candidates.iter().flat_map(|candidate| &candidate.references.ids).map(|id| id.to_bytes()).collect();
    let named: HashSet<EventCoordinate> = candidates.iter().flat_map(Candidate::addresses).collect();
    let mut facts = Facts {
        events: nostr::relations::events(conn, &ids.into_iter().collect::<Vec<_>>()).await?,
        addresses: nostr::relations::addresses(conn, &named.into_iter().collect::<Vec<_>>()).await?,
        tagged: HashMap::new(),
        waiting: HashSet::new(),
        waiting_ids: HashMap::new(),
        far: HashMap::new(),
        authors: HashSet::new(),
        signers: Signers::load(conn, candidates.iter().map(|candidate| candidate.event.pubkey)).await?,
        deleted: deleted(conn, candidates).await?,
    };
    let unlinked: Vec<&Candidate> = candidates
        .iter()
        .filter(|candidate| !candidate.profile && facts.links(candidate, &HashMap::new()).is_none())
        .collect();
    let keys: HashSet<i64> = unlinked.iter().flat_map(|candidate| named_by(&candidate.event)).collect();
    facts.tagged = nostr::relations::tagged(conn, &keys.into_iter().collect::<Vec<_>>()).await?;
    facts.look_for_waiting(conn, &unlinked).await?;
    let far = candidates.iter().filter(|candidate| !candidate.profile && facts.may_be_far(candidate));
    for author in far.map(|candidate| candidate.record.pubkey).collect::<HashSet<_>>() {
        facts.far.insert(author, nostr::relations::far(conn, &author).await?);
    }
    let profiles = candidates.iter().filter(|candidate| candidate.profile);
    let authors: HashSet<([u8; 32], String)> =
        profiles.map(|candidate| (candidate.record.pubkey, nip19::npub(&candidate.event.pubkey))).collect();
    facts.authors = nostr::relations::authors(conn, &authors.into_iter().collect::<Vec<_>>()).await?;
    Ok(facts)
}

async fn deleted(conn: &mut Conn, candidates: &[Candidate]) -> Result<HashMap<usize, Deletion>, StoreError> {
    let mut asked = Vec::with_capacity(candidates.len());
    let mut owners = Vec::with_capacity(candidates.len());
    for (index, candidate) in candidates.iter().enumerate() {
        let (id, slot) = targets(&candidate.event);
        for (target, is_slot) in [(Some(id), false), (slot, true)] {
            if let Some(target) = target {
                asked.push((candidate.record.pubkey, target));
                owners.push((index, is_slot));
            }
        }
    }
    let mut found: HashMap<usize, Deletion> = HashMap::new();
    for (index, at) in deleted::at_many(conn, &asked).await? {
        let Some(&(index, is_slot)) = owners.get(index) else { continue };
        let deletion = found.entry(index).or_default();
        if is_slot {
            deletion.slot_until = Some(at);
        } else {
            deletion.by_id = true;
        }
    }
    Ok(found)
}

impl Facts {
    /// Steps from a repository through the events that an event tags.
    fn links(&self, candidate: &Candidate, earlier: &HashMap<EventId, i64>) -> Option<i64> {
        let kind = candidate.record.kind;
        let beyond = |link: &Link| steps_beyond(kind, link.steps, link.is_repo);
        let ids = &candidate.references.ids;
        let by_id = ids.iter().filter_map(|id| self.events.get(id.as_bytes())).map(beyond);
        let by_earlier = ids.iter().filter_map(|id| earlier.get(id)).map(|steps| steps_beyond(kind, *steps, false));
        let by_address = candidate.addresses().filter_map(|address| self.addresses.get(&address).map(beyond));
        by_id.chain(by_earlier).chain(by_address).min()
    }

    /// Whether an event is linked to a repository, possibly only through other events.
    fn may_be_far(&self, candidate: &Candidate) -> bool {
        let tagged = || named_by(&candidate.event).iter().any(|key| self.tagged.contains_key(key));
        match self.links(candidate, &HashMap::new()) {
            Some(steps) => steps > 1,
            None => !self.tagged.is_empty() && tagged(),
        }
    }

    async fn look_for_waiting(&mut self, conn: &mut Conn, unlinked: &[&Candidate]) -> Result<(), StoreError> {
        let repos = unlinked.iter().flat_map(|candidate| candidate.references.repos());
        let repos: HashSet<_> = repos.map(|repo| (repo.author.to_bytes(), repo.identifier.clone())).collect();
        let ids = unlinked.iter().flat_map(|candidate| &candidate.references.ids);
        let ids: HashSet<[u8; 32]> = ids.map(|id| id.to_bytes()).collect();
        let repos: Vec<_> = repos.into_iter().collect();
        self.waiting.extend(purgatory::attached::waiting_repos(conn, &repos).await?);
        let ids: Vec<[u8; 32]> = ids.into_iter().collect();
        for (id, home) in purgatory::attached::waiting_ids(conn, &ids).await? {
            self.waiting_ids.entry(id).or_default().push(home);
        }
        Ok(())
    }

    /// The announcements and pull requests in purgatory that an event belongs to.
    fn homes(&self, candidate: &Candidate, earlier: &HashMap<EventId, Vec<Home>>) -> Vec<Home> {
        let named = candidate.references.repos();
        let repos = named.map(|repo| Home::Repo(repo.author.to_bytes(), repo.identifier.clone()));
        let mut homes: BTreeSet<Home> = repos.filter(|home| self.waiting.contains(home)).collect();
        for id in &candidate.references.ids {
            homes.extend(self.waiting_ids.get(id.as_bytes()).into_iter().flatten().cloned());
            homes.extend(earlier.get(id).into_iter().flatten().cloned());
        }
        homes.into_iter().collect()
    }

    fn is_deleted(&self, index: usize, candidate: &Candidate) -> bool {
        self.deleted.get(&index).is_some_and(|deletion| {
            deletion.by_id || deletion.slot_until.is_some_and(|until| candidate.record.created_at <= until)
        })
    }
}

/// Earlier events of a batch, which later events may tag.
#[derive(Default)]
struct Earlier {
    served: HashMap<EventId, i64>,
    waiting: HashMap<EventId, Vec<Home>>,
    far: HashMap<[u8; 32], i64>,
}

/// Applies the rules to the facts.
fn judge(candidates: &[Candidate], facts: &Facts) -> Vec<Judged> {
    let mut earlier = Earlier::default();
    let one = |(index, candidate): (usize, &Candidate)| {
        let judged = judge_one(index, candidate, facts, &earlier);
        match &judged {
            Judged::Serve { steps } if !candidate.profile => {
                earlier.served.insert(candidate.event.id, *steps);
                *earlier.far.entry(candidate.record.pubkey).or_default() += i64::from(*steps > 1);
            }
            Judged::Wait(homes) => _ = earlier.waiting.insert(candidate.event.id, homes.clone()),
            _ => {}
        }
        judged
    };
    candidates.iter().enumerate().map(one).collect()
}

fn judge_one(index: usize, candidate: &Candidate, facts: &Facts, earlier: &Earlier) -> Judged {
    if let Err(suspended) = signer::admit(facts.signers.of(&candidate.event.pubkey)) {
        return Judged::Refuse(suspended);
    }
    if facts.is_deleted(index, candidate) {
        return Judged::Refuse(refusal());
    }
    if candidate.profile {
        let known = facts.authors.contains(&candidate.record.pubkey);
        let judged = profile(if known { Author::Known } else { Author::Unknown });
        return judged.map_or_else(Judged::Refuse, |()| Judged::Serve { steps: 0 });
    }
    let author = &candidate.record.pubkey;
    let far = |counts: &HashMap<[u8; 32], i64>| counts.get(author).copied().unwrap_or_default();
    let tags = facts.links(candidate, &earlier.served);
    let tagged = || {
        let keys = if facts.tagged.is_empty() { Vec::new() } else { named_by(&candidate.event) };
        let steps = keys.iter().filter_map(|key| facts.tagged.get(key)).min();
        steps.map(|steps| steps_beyond(candidate.record.kind, *steps, false))
    };
    let homes = facts.homes(candidate, &earlier.waiting);
    let (relation, steps) = match (tags, tags.or_else(tagged)) {
        (Some(steps), _) => (Relation::Tags, steps),
        (None, Some(steps)) => (Relation::Tagged, steps),
        (None, None) if homes.is_empty() => (Relation::None, 0),
        (None, None) => (Relation::Waiting, 0),
    };
    let counted = far(&facts.far) + far(&earlier.far);
    match related(relation).and_then(|verdict| distance(steps, counted).map(|()| verdict)) {
        Ok(RelatedVerdict::Serve) => Judged::Serve { steps },
        Ok(RelatedVerdict::WaitForRepository) => Judged::Wait(homes),
        Err(refusal) => Judged::Refuse(refusal),
    }
}
