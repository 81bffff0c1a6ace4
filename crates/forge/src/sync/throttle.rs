//! Requests to domains, and budgets of the keys that name URLs.

use super::attempt::Outcome;
use crate::{Fault, Forge, SyncSettings};
use abide_core::Timestamp;
use abide_core::admission::{Network, Slot, Slots, share_of_one};
use abide_core::settings::value::HOUR;
use abide_nostr::PublicKey;
use abide_outbound::OutboundUrl;
use abide_store::StoreError;
use abide_store::sync::domains::{self, Ended, NewRequest, Requested};
use abide_store::sync::queue::{self, Entry};
use abide_store::throttles::{self, Limit};
use std::net::IpAddr;

/// Domains that one look gives turns to.
const DOMAINS: usize = 100;

/// Fetches of this node that run at once. Domains and keys cost a stranger nothing, network addresses do.
pub(crate) struct Running {
    strangers: Slots<()>,
    addresses: Slots<Network>,
}

impl Running {
    /// The one of this forge.
    pub(crate) fn of(forge: &Forge) -> &Self {
        forge.part()
    }

    pub(crate) fn new(settings: &SyncSettings) -> Self {
        let (all, each) = (settings.at_once, settings.per_address);
        Self { strangers: Slots::new(share_of_one(all, all), all), addresses: Slots::new(all, each.min(all)) }
    }

    /// A slot for a run that fetches for strangers only; `None` if the others are kept for accounts.
    pub(super) fn stranger(&self) -> Option<Slot<()>> {
        self.strangers.take(()).ok()
    }

    /// A slot for a request to a network address.
    fn address(&self, ip: IpAddr) -> Option<Slot<Network>> {
        self.addresses.take(Network::of(ip)).ok()
    }
}

/// A request that may be made.
pub(super) struct Turn {
    request: i64,
    pub domain: String,
    pub url: OutboundUrl,
    since: tokio::time::Instant,
}

/// Why no request may be made now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Postponed {
    /// The URL cannot be fetched from at all.
    Invalid(String),
    /// The domain rests after a failure.
    Resting(Timestamp),
    /// The domain has had its requests; the identifier has a turn.
    Throttled,
    /// The key that names the URL has used up its budget.
    Budget,
}

/// Host and port of a URL.
pub(super) fn domain_of(url: &OutboundUrl) -> String {
    format!("{}:{}", url.host(), url.port())
}

/// Takes a request of the URL's domain and an attempt of the key's budget.
pub(super) async fn take(
    forge: &Forge,
    entry: &Entry,
    url: &str,
    payer: PublicKey,
    named_at: Timestamp,
) -> Result<Result<Turn, Postponed>, Fault> {
    let parsed: OutboundUrl = match url.parse() {
        Ok(parsed) => parsed,
        Err(rule) => return Ok(Err(Postponed::Invalid(format!("the URL {rule}")))),
    };
    if parsed.target().contains('?') {
        return Ok(Err(Postponed::Invalid("a clone URL has no query".into())));
    }
    let domain = domain_of(&parsed);
    let settings = &forge.settings().sync;
    let new = NewRequest {
        domain: domain.clone(),
        queue: entry.id,
        named_at,
        holder: forge.node().holder().to_owned(),
        at_most: settings.run,
    };
    let taken: Result<Option<Requested>, StoreError> = forge
        .store()
        .write((new, settings.clone(), payer.to_hex()), |tx, (new, settings, payer)| {
            Box::pin(async move {
                let spent = async |tx: &mut _, limit| {
                    throttles::spent(tx, limit, std::slice::from_ref(payer)).await.map(|spent| !spent.is_empty())
                };
                for limit in [attempts(settings.key_attempts), mebibytes(settings), seconds(settings)] {
                    if spent(tx, limit).await? {
                        return Ok(None);
                    }
                }
                let requested = domains::request(tx, new, &settings.domains).await?;
                if let Requested::Made(_) = requested {
                    throttles::hit(tx, attempts(settings.key_attempts), payer).await?;
                }
                Ok(Some(requested))
            })
        })
        .await;
    Ok(match taken? {
        None => Err(Postponed::Budget),
        Some(Requested::Resting(until)) => Err(Postponed::Resting(until)),
        Some(Requested::Throttled) => Err(Postponed::Throttled),
        Some(Requested::Made(request)) => Ok(Turn { request, domain, url: parsed, since: tokio::time::Instant::now() }),
    })
}

fn attempts(times: i64) -> Limit {
    Limit { scope: "sync_attempts", times, window: HOUR }
}

fn mebibytes(settings: &SyncSettings) -> Limit {
    Limit { scope: "sync_mebibytes", times: settings.key_mebibytes, window: HOUR }
}

fn seconds(settings: &SyncSettings) -> Limit {
    Limit { scope: "sync_seconds", times: settings.key_seconds, window: HOUR }
}

/// Takes a slot of the network address that a domain leads to, and counts a request for it; `None` if the address has had its
/// requests, or as many as may run at once.
pub(super) async fn address(forge: &Forge, ip: IpAddr) -> Result<Option<Slot<Network>>, Fault> {
    let Some(slot) = Running::of(forge).address(ip) else { return Ok(None) };
    let limits = forge.settings().sync.domains;
    let times = i64::try_from(limits.address_requests).unwrap_or(i64::MAX);
    let limit = Limit { scope: "sync_address", times, window: limits.window };
    let input = (limit, Network::of(ip).address().to_string());
    let over: Result<_, StoreError> =
        forge.store().write(input, |tx, (limit, network)| Box::pin(throttles::hit(tx, *limit, network))).await;
    Ok(over?.is_none().then_some(slot))
}

/// Ends a request: stores its outcome for the domain, and charges the key for time and bytes.
pub(super) async fn end(forge: &Forge, turn: &Turn, payer: PublicKey, outcome: Option<&Outcome>) -> Result<(), Fault> {
    let settings = forge.settings().sync.clone();
    let ended = outcome.map_or(Ended::Answered, |outcome| outcome.of_domain(settings.domains.rest));
    let took = i64::try_from(turn.since.elapsed().as_secs()).unwrap_or(i64::MAX);
    let fetched = outcome.map_or(0, |outcome| i64::try_from(outcome.bytes >> 20).unwrap_or(i64::MAX));
    let input = (turn.request, turn.domain.clone(), ended, (took, fetched), settings, payer.to_hex());
    let written: Result<(), StoreError> = forge
        .store()
        .write(input, |tx, (request, domain, ended, (took, fetched), settings, payer)| {
            Box::pin(async move {
                domains::end(tx, *request, domain, ended).await?;
                if *took > 0 {
                    throttles::spend(tx, seconds(settings), payer, *took).await?;
                }
                if *fetched > 0 {
                    throttles::spend(tx, mebibytes(settings), payer, *fetched).await?;
                }
                Ok(())
            })
        })
        .await;
    Ok(written?)
}

/// Makes the identifiers due whose turn at a domain has come.
pub(super) async fn give_turns(forge: &Forge) -> Result<(), Fault> {
    let mut domain = String::new();
    for _ in 0..DOMAINS {
        let next = domains::next_with_turns(&mut *forge.store().read().await?, &domain).await?;
        let Some(next) = next else { return Ok(()) };
        domain = next;
        let input = (domain.clone(), forge.settings().sync.domains);
        let given: Result<(), StoreError> = forge
            .store()
            .write(input, |tx, (domain, limits)| {
                Box::pin(async move {
                    for id in domains::turns(tx, domain, limits).await? {
                        queue::hurry(tx, id).await?;
                    }
                    Ok(())
                })
            })
            .await;
        given?;
    }
    Ok(())
}
