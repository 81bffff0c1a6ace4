//! Events that only have to be linked to a repository, and profiles: judged and stored in one unit for many.

use super::super::deleted::{refusal, targets};
use super::super::record::{named_by, to_record};
use super::{Verified, failed};
use crate::{Fault, Forge};
use abide_nostr::git::References;
use abide_nostr::grasp::event::{Author, Relation, profile, related};
use abide_nostr::grasp::{Answer, Parsed, Prefix, Refusal};
use abide_nostr::kinds::{self, Class, class};
use abide_nostr::{Event, EventId, nip19};
use abide_store::nostr_events::{self, Kept, NewEvent, deleted};
use abide_store::{Conn, StoreError, Tx, nostr_relations};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// An event with what is asked about it.
struct Candidate {
    event: Arc<Event>,
    profile: bool,
    record: NewEvent,
    references: References,
}

impl Candidate {
    fn of(verified: &Verified) -> Self {
        let event = Arc::clone(verified.pending.event());
        let profile = matches!(verified.parsed, Parsed::Profile);
        let references = if profile { References::default() } else { References::of(&event) };
        Self { profile, record: to_record(&event), references, event }
    }
}

/// What the database says about a batch.
struct Facts {
    roots: HashSet<[u8; 32]>,
    repos: HashSet<([u8; 32], String)>,
    tagged: HashSet<i64>,
    authors: HashSet<[u8; 32]>,
    /// By the place of a candidate: when its author deleted it or its slot.
    deleted: HashMap<usize, Deletion>,
}

#[derive(Default)]
struct Deletion {
    by_id: bool,
    slot_until: Option<i64>,
}

/// Judges and stores a batch, answers each and passes the new ones on.
pub(super) async fn admit(forge: &Forge, batch: Vec<Verified>) {
    if batch.is_empty() {
        return;
    }
    let candidates: Arc<[Candidate]> = batch.iter().map(Candidate::of).collect();
    let decided: Result<Vec<Answer>, Fault> =
        forge.store().write(candidates.clone(), |tx, candidates| Box::pin(decide(tx, candidates))).await;
    match decided {
        Ok(answers) => {
            let new = candidates.iter().zip(&answers).filter(|(_, answer)| **answer == Answer::Stored);
            let new: Vec<Arc<Event>> = new.map(|(candidate, _)| candidate.event.clone()).collect();
            for (verified, answer) in batch.into_iter().zip(answers) {
                verified.pending.answer(answer);
            }
            forge.relay().publish(&new);
        }
        Err(fault) => batch.into_iter().for_each(|verified| verified.pending.answer(failed(&fault))),
    }
}

/// One transaction: the facts, the rules, the rows.
async fn decide(tx: &mut Tx, candidates: &[Candidate]) -> Result<Vec<Answer>, Fault> {
    let facts = facts(tx, candidates).await?;
    let mut answers = judge(candidates, &facts);
    let kept = |(candidate, answer): &(&Candidate, &Answer)| {
        **answer == Answer::Stored && class(candidate.record.kind) != Class::Ephemeral
    };
    let records: Vec<NewEvent> =
        candidates.iter().zip(&answers).filter(kept).map(|(candidate, _)| candidate.record.clone()).collect();
    let mut outcomes = nostr_events::insert_many(tx, &records).await?.into_iter();
    for (candidate, answer) in candidates.iter().zip(&mut answers) {
        if *answer != Answer::Stored || class(candidate.record.kind) == Class::Ephemeral {
            continue;
        }
        match outcomes.next() {
            Some(Kept::Duplicate) => *answer = Answer::DuplicateStored,
            Some(Kept::Older) => {
                *answer = Answer::Refused(Refusal::new(Prefix::Invalid, "a newer version of this event is here"));
            }
            Some(Kept::New) | None => {}
        }
    }
    Ok(answers)
}

async fn facts(conn: &mut Conn, candidates: &[Candidate]) -> Result<Facts, StoreError> {
    let ids: HashSet<[u8; 32]> =
        candidates.iter().flat_map(|candidate| &candidate.references.ids).map(|id| id.to_bytes()).collect();
    let repos: HashSet<([u8; 32], String)> = candidates
        .iter()
        .flat_map(|candidate| candidate.references.repos())
        .map(|repo| (repo.author.to_bytes(), repo.identifier.clone()))
        .collect();
    let roots = nostr_relations::roots(conn, &ids.into_iter().collect::<Vec<_>>()).await?;
    let repos = nostr_relations::repos(conn, &repos.into_iter().collect::<Vec<_>>()).await?;
    let mut facts = Facts {
        roots,
        repos,
        tagged: HashSet::new(),
        authors: HashSet::new(),
        deleted: deleted(conn, candidates).await?,
    };
    let unlinked = candidates.iter().filter(|candidate| !candidate.profile && !facts.links(candidate));
    let keys: HashSet<i64> = unlinked.flat_map(|candidate| named_by(&candidate.event)).collect();
    facts.tagged = nostr_relations::tagged(conn, &keys.into_iter().collect::<Vec<_>>()).await?;
    let profiles = candidates.iter().filter(|candidate| candidate.profile);
    let authors: HashSet<([u8; 32], String)> =
        profiles.map(|candidate| (candidate.record.pubkey, nip19::npub(&candidate.event.pubkey))).collect();
    facts.authors = nostr_relations::authors(conn, &authors.into_iter().collect::<Vec<_>>()).await?;
    Ok(facts)
}

async fn deleted(conn: &mut Conn, candidates: &[Candidate]) -> Result<HashMap<usize, Deletion>, StoreError> {
    let mut asked = Vec::with_capacity(candidates.len());
    let mut owners = Vec::with_capacity(candidates.len());
    for (place, candidate) in candidates.iter().enumerate() {
        let (id, slot) = targets(&candidate.event);
        for (target, is_slot) in [(Some(id), false), (slot, true)] {
            if let Some(target) = target {
                asked.push((candidate.record.pubkey, target));
                owners.push((place, is_slot));
            }
        }
    }
    let mut found: HashMap<usize, Deletion> = HashMap::new();
    for (index, at) in deleted::at_many(conn, &asked).await? {
        let Some(&(place, is_slot)) = owners.get(index) else { continue };
        let deletion = found.entry(place).or_default();
        if is_slot {
            deletion.slot_until = Some(at);
        } else {
            deletion.by_id = true;
        }
    }
    Ok(found)
}

impl Facts {
    /// Whether it tags a repository, or something that belongs to one.
    fn links(&self, candidate: &Candidate) -> bool {
        candidate.references.ids.iter().any(|id| self.roots.contains(id.as_bytes()))
            || candidate
                .references
                .repos()
                .any(|repo| self.repos.contains(&(repo.author.to_bytes(), repo.identifier.clone())))
    }

    fn relation(&self, candidate: &Candidate, earlier: &HashSet<EventId>) -> Relation {
        if self.links(candidate) || candidate.references.ids.iter().any(|id| earlier.contains(id)) {
            Relation::Tags
        } else if !self.tagged.is_empty() && named_by(&candidate.event).iter().any(|key| self.tagged.contains(key)) {
            Relation::Tagged
        } else {
            Relation::None
        }
    }

    fn is_deleted(&self, place: usize, candidate: &Candidate) -> bool {
        self.deleted.get(&place).is_some_and(|deletion| {
            deletion.by_id || deletion.slot_until.is_some_and(|until| candidate.record.created_at <= until)
        })
    }
}

/// The rules over the facts. An issue that comes earlier in the batch is one that later events may tag.
fn judge(candidates: &[Candidate], facts: &Facts) -> Vec<Answer> {
    let mut earlier = HashSet::new();
    let mut answers = Vec::with_capacity(candidates.len());
    for (place, candidate) in candidates.iter().enumerate() {
        let judged = if facts.is_deleted(place, candidate) {
            Err(refusal())
        } else if candidate.profile {
            let known = facts.authors.contains(&candidate.record.pubkey);
            profile(if known { Author::Known } else { Author::Unknown })
        } else {
            related(facts.relation(candidate, &earlier))
        };
        if judged.is_ok() && candidate.record.kind == kinds::ISSUE {
            earlier.insert(candidate.event.id);
        }
        answers.push(judged.map_or_else(Answer::Refused, |()| Answer::Stored));
    }
    answers
}
