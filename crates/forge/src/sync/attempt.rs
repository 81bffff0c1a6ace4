//! One request of a domain: the repository is probed for missing objects, and what it has is fetched and taken.

use super::remote::{GuardedRemote, HostFailure};
use super::throttle::{self, Postponed, Turn, domain_of};
use crate::disk::Writer;
use crate::git::push::conversation::out_of_room;
use crate::grasp::fetched::{self, Quarantine, Taken};
use crate::grasp::needs::{self, Need};
use crate::{Fault, Forge};
use abide_core::Oid;
use abide_core::sync::sources::SourceOutcome as Word;
use abide_git::fetch::{FetchClass, FetchError, MAX_WANTS, Presence, Source};
use abide_git::incoming::Flaw;
use abide_git::{ReceiveError, ReceiveLimits};
use abide_nostr::EventId;
use abide_outbound::{GateError, OutboundUrl};
use abide_store::StoreError;
use abide_store::sync::domains::Ended;
use abide_store::sync::queue::Entry;
use abide_store::sync::sources;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

/// Missing objects that one request asks about. Others are fetched without a question.
const PROBED: usize = 4_096;

/// Objects that the other server refuses before a fetch is given up.
const REFUSED: usize = 8;

/// Result of an attempt.
#[derive(Debug)]
pub(super) struct Outcome {
    word: Word,
    /// Sentence for people.
    detail: String,
    host: Option<HostFailure>,
    /// Bytes of packs.
    pub bytes: u64,
    /// Digest of objects that came and completed nothing.
    fetched: Option<Vec<u8>>,
}

impl Outcome {
    fn of(word: Word, detail: impl Into<String>) -> Self {
        Self { word, detail: detail.into(), host: None, bytes: 0, fetched: None }
    }

    /// Outcome for the domain. Only failures of the host count: any announcement can name any path of a host, so an
    /// answer about one path says nothing about the others.
    pub(super) fn of_domain(&self, rest: Duration) -> Ended {
        match &self.host {
            None => Ended::Answered,
            Some(HostFailure::Passing(reason)) => Ended::Failed(reason.clone()),
            Some(HostFailure::Lasting(reason)) => Ended::Rests(rest, reason.clone()),
        }
    }
}

/// Whether an event was served.
pub(super) fn changed(outcome: &Outcome) -> bool {
    outcome.word == Word::Served
}

/// The attempts of one run.
pub(super) struct Attempt<'a> {
    forge: &'a Forge,
    entry: &'a Entry,
    /// Earlier outcomes by URL.
    known: HashMap<String, sources::Source>,
    /// Objects that came from one URL and need more from another.
    quarantines: HashMap<EventId, Quarantine>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(forge: &'a Forge, entry: &'a Entry, known: Vec<sources::Source>) -> Self {
        let known = known.into_iter().map(|source| (source.url.clone(), source)).collect();
        Self { forge, entry, known, quarantines: HashMap::new() }
    }

    /// Whether a URL broke the protocol less than this time ago.
    pub(super) fn rests(&self, url: &str, time: Duration) -> bool {
        let now = self.forge.clock().now();
        let broke = |source: &&sources::Source| source.outcome == Word::Protocol.as_str();
        self.known.get(url).filter(broke).is_some_and(|source| source.tried_at.plus(time) > now)
    }

    /// Stores that a URL was not asked.
    pub(super) async fn postponed(&self, url: &str, reason: &Postponed) -> Result<(), Fault> {
        let (word, detail) = match reason {
            Postponed::Invalid(reason) => (Word::Protocol, reason.clone()),
            Postponed::Resting(until) => (Word::Postponed, format!("the host rests until {until} after a failure")),
            Postponed::Throttled => (Word::Postponed, "the host has had its requests; waiting for a turn".to_owned()),
            Postponed::Budget => {
                (Word::Postponed, "the key that names this URL has used up its attempts of this hour".to_owned())
            }
        };
        self.store(url, &Outcome::of(word, detail)).await
    }

    /// Makes a request, and stores its outcome.
    pub(super) async fn at(&mut self, url: &str, turn: &Turn, wanted: Vec<Need>) -> Result<Outcome, Fault> {
        let outcome = self.fetch(url, turn, wanted).await?;
        metrics::counter!("abide_sync_attempts_total", "outcome" => outcome.word.as_str()).increment(1);
        metrics::counter!("abide_sync_bytes_total").increment(outcome.bytes);
        self.store(url, &outcome).await?;
        Ok(outcome)
    }

    async fn store(&self, url: &str, outcome: &Outcome) -> Result<(), Fault> {
        let domain = url.parse::<OutboundUrl>().map(|url| domain_of(&url)).unwrap_or_default();
        let source = sources::Source {
            url: url.to_owned(),
            domain,
            tried_at: self.forge.clock().now(),
            outcome: outcome.word.as_str().to_owned(),
            detail: outcome.detail.clone(),
            fetched: outcome.fetched.clone(),
        };
        let written: Result<(), StoreError> = self
            .forge
            .store()
            .write((self.entry.id, source), |tx, (entry, source)| Box::pin(sources::put(tx, *entry, source)))
            .await;
        Ok(written?)
    }

    async fn fetch(&mut self, url: &str, turn: &Turn, mut wanted: Vec<Need>) -> Result<Outcome, Fault> {
        let ip = match self.forge.gate().vet(turn.url.endpoint()).await {
            Ok(vetted) => vetted.addrs().first().map(SocketAddr::ip),
            Err(error) => return Ok(unreachable_host(&error)),
        };
        let slot = match ip {
            Some(ip) => throttle::address(self.forge, ip).await?,
            None => None,
        };
        let Some(_slot) = slot else {
            let detail = "the network address of the host has had its requests; trying again later";
            return Ok(Outcome::of(Word::Postponed, detail));
        };
        let remote = GuardedRemote::new(self.forge.gate().clone(), &turn.url, self.forge.settings().sync.idle_timeout);
        let source = match Source::discover(&remote).await {
            Ok(source) => source,
            Err(error) => return Ok(failed(&error, &remote)),
        };
        let mut oids = BTreeSet::new();
        for need in &wanted {
            oids.extend(self.missing(need).await?);
        }
        let oids: Vec<Oid> = oids.into_iter().take(PROBED).collect();
        let lacking: HashSet<Oid> = match source.probe(&oids).await {
            Ok(probe) => {
                probe.0.into_iter().filter(|(_, presence)| *presence == Presence::Lacks).map(|(oid, _)| oid).collect()
            }
            Err(error) => return Ok(failed(&error, &remote)),
        };
        let mut total = Outcome::of(Word::Absent, "it has none of the missing objects");
        let mut tried = HashSet::new();
        while let Some(need) = wanted.iter().find(|need| !tried.contains(&need.wanted.event().id)).cloned() {
            tried.insert(need.wanted.event().id);
            let missing = self.missing(&need).await?;
            let available: Vec<Oid> = missing.iter().copied().filter(|oid| !lacking.contains(oid)).collect();
            if available.is_empty() && !missing.is_empty() {
                continue;
            }
            let digest = digest_of(&available);
            if !missing.is_empty() && self.known.get(url).and_then(|known| known.fetched.as_ref()) == Some(&digest) {
                total.fetched = Some(digest);
                total.detail = "its objects came before and completed nothing".into();
                continue;
            }
            let one = self.fetch_one(&source, &remote, need, available).await?;
            let went_wrong = matches!(one.word, Word::Unreachable | Word::Protocol);
            total = total.and(one, digest);
            if went_wrong {
                break;
            }
            wanted = needs::of(self.forge, &self.entry.identifier).await?;
            wanted.retain(|need| need.urls.iter().any(|listed| listed == url));
        }
        Ok(total)
    }

    /// Objects that an event lacks in its repository and in what was fetched for it in this run.
    async fn missing(&self, need: &Need) -> Result<Vec<Oid>, Fault> {
        match self.quarantines.get(&need.wanted.event().id) {
            Some(quarantine) => quarantine.missing(need).await,
            None => Ok(need.missing.clone()),
        }
    }

    /// Fetches what one event lacks, and serves the event if nothing is missing then.
    async fn fetch_one(
        &mut self,
        source: &Source<'_>,
        remote: &GuardedRemote,
        need: Need,
        available: Vec<Oid>,
    ) -> Result<Outcome, Fault> {
        let id = need.wanted.event().id;
        let limits = match fetched::limits(self.forge, &need).await? {
            Ok(limits) => limits,
            Err(reason) => return Ok(Outcome::of(Word::Refused, reason)),
        };
        let quarantine = match self.quarantines.remove(&id) {
            Some(quarantine) => quarantine,
            None => Quarantine::new(self.forge, &need).await?,
        };
        let haves = fetched::haves(self.forge, &need).await?;
        let writer = if need.account { Writer::Account } else { Writer::Stranger };
        let mut outcome = tokio::select! {
            outcome = receive(source, remote, &quarantine, (available, haves), &limits) => outcome?,
            full = out_of_room(self.forge, writer) => return Err(full),
            fault = fetched::keep_waiting(self.forge, &need) => return Err(fault),
        };
        // The event may have been served, deleted or superseded during the download.
        let fresh = needs::of(self.forge, &self.entry.identifier).await?;
        let Some(need) = fresh.into_iter().find(|fresh| fresh.wanted.event().id == id) else {
            outcome.word = Word::Served;
            outcome.detail = "the event no longer waits".into();
            return Ok(outcome);
        };
        if matches!(outcome.word, Word::Unreachable | Word::Protocol | Word::Refused) {
            return Ok(outcome);
        }
        if !quarantine.missing(&need).await?.is_empty() {
            self.quarantines.insert(id, quarantine);
            return Ok(outcome);
        }
        match quarantine.take(self.forge, &need).await? {
            Taken::Done => {
                outcome.word = Word::Served;
                outcome.detail = "it had the missing objects".into();
            }
            Taken::Incomplete => outcome.detail = "its objects are incomplete".into(),
            Taken::Refused(reason) => {
                outcome.word = Word::Refused;
                outcome.detail = reason;
            }
        }
        Ok(outcome)
    }
}

impl Outcome {
    /// The outcome of a request that fetched for another event too.
    fn and(self, other: Self, digest: Vec<u8>) -> Self {
        let bytes = self.bytes.saturating_add(other.bytes);
        let completed = other.word == Word::Served;
        let fetched = if completed { self.fetched.clone() } else { Some(digest) };
        if self.word == Word::Served { Self { bytes, fetched, ..self } } else { Self { bytes, fetched, ..other } }
    }
}

/// Fetches objects into a quarantine. Objects that the server refuses are left out one by one, the others are kept.
async fn receive(
    source: &Source<'_>,
    remote: &GuardedRemote,
    quarantine: &Quarantine,
    (mut wants, haves): (Vec<Oid>, Vec<Oid>),
    limits: &ReceiveLimits,
) -> Result<Outcome, Fault> {
    let mut outcome = Outcome::of(Word::Incomplete, "other objects are still missing");
    let mut refused = 0;
    while !wants.is_empty() {
        let some: Vec<Oid> = wants.iter().copied().take(MAX_WANTS).collect();
        let mut pack = match source.pack(&some, &haves).await {
            Ok(pack) => pack,
            Err(FetchError::NotOurRef(oid)) if refused < REFUSED => {
                refused += 1;
                wants.retain(|want| *want != oid);
                continue;
            }
            Err(error) => return Ok(Outcome { bytes: outcome.bytes, ..failed(&error, remote) }),
        };
        match quarantine.incoming().receive(&mut pack, limits, None).await {
            Ok(received) => outcome.bytes = outcome.bytes.saturating_add(received.bytes),
            Err(ReceiveError::Git(error)) => return Err(error.into()),
            Err(error) => {
                let failure = match pack.failure() {
                    Some(failure) => failed(failure, remote),
                    None => Outcome::of(Word::Refused, refusal(&error)),
                };
                return Ok(Outcome { bytes: outcome.bytes, ..failure });
            }
        }
        wants.retain(|want| !some.contains(want));
    }
    if refused > 0 && outcome.bytes == 0 {
        outcome = Outcome::of(Word::Absent, "it does not give out the missing objects");
    }
    Ok(outcome)
}

/// Why a pack was not taken, without the advice for people who push.
fn refusal(error: &ReceiveError) -> String {
    match error {
        ReceiveError::Flaw(Flaw::TooLarge(limit)) => {
            format!("its pack exceeds {limit} bytes: the limit is sync.max_pack, or the quota of the owner")
        }
        other => format!("its pack was refused: {other}"),
    }
}

fn unreachable_host(error: &GateError) -> Outcome {
    let host = match error {
        GateError::Crowded => None,
        GateError::Refused { .. } | GateError::Lookup { .. } | GateError::Tls { .. } => {
            Some(HostFailure::Lasting(error.public_message()))
        }
        _ => Some(HostFailure::Passing(error.public_message())),
    };
    Outcome { host, ..Outcome::of(Word::Unreachable, error.public_message()) }
}

fn failed(error: &FetchError, remote: &GuardedRemote) -> Outcome {
    let word = match error.class() {
        FetchClass::Unreachable | FetchClass::Idle | FetchClass::Failing | FetchClass::RateLimited => Word::Unreachable,
        FetchClass::Protocol | FetchClass::TooLarge => Word::Protocol,
        FetchClass::Refused => Word::Refused,
        FetchClass::NotFound | FetchClass::NotOurRef => Word::Absent,
        FetchClass::Local => Word::Postponed,
    };
    let host = if word == Word::Unreachable { remote.host_failure() } else { None };
    Outcome { host, ..Outcome::of(word, error.to_string()) }
}

fn digest_of(oids: &[Oid]) -> Vec<u8> {
    let sorted: BTreeSet<&Oid> = oids.iter().collect();
    let mut digest = Sha256::new();
    for oid in sorted {
        digest.update(oid.as_bytes());
    }
    digest.finalize().to_vec()
}
