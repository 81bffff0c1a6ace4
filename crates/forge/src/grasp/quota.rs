//! Quotas of strangers. Usage is looked up here; the rules in `abide_nostr::grasp::quota` judge it.

use super::Halt;
use super::signed::Signed;
use crate::blocking::blocking;
use crate::throttle::owns_too_many;
use crate::{Fault, Forge, disk};
use abide_core::admission::Network;
use abide_core::sync::attempts::Origin;
use abide_core::{RepoId, Timestamp};
use abide_git::maintain::disk_usage;
use abide_nostr::grasp::quota::{self, Quotas, Refs, Room, Usage};
use abide_nostr::grasp::signer::Signer;
use abide_nostr::grasp::{Prefix, Refusal};
use abide_nostr::{PublicKey, nip19};
use abide_store::accounts::users;
use abide_store::nostr::quotas::{self, Today};
use abide_store::nostr::reservations::{self, Reservation, Reserved};
use abide_store::nostr::{self, purgatory};
use abide_store::{Conn, StoreError, Tx};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long the sum over all strangers is used before it is computed again. This node adds the bytes that it stores in
/// the meantime.
const FRESH: Duration = Duration::from_secs(60);

/// Lifetime of a reservation whose push never ends; longer than the time limit of git for a push.
const RESERVED_FOR: Duration = Duration::from_secs(3_600);

/// Account keys that one query reads.
const PAGE: i64 = 1_000;

/// Usage of all strangers together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Total {
    bytes: u64,
    repos: u64,
}

/// Usage of all strangers together, as this node knows it.
#[derive(Default)]
pub(crate) struct Strangers {
    summed: Mutex<Option<(Timestamp, Total)>>,
}

impl Strangers {
    /// The one of this forge.
    pub(crate) fn of(forge: &Forge) -> &Self {
        forge.part()
    }

    /// The sums, made anew once a minute.
    async fn total(&self, forge: &Forge) -> Result<Total, Fault> {
        let now = forge.clock().now();
        if let Some(total) = self.fresh(now) {
            return Ok(total);
        }
        let total = sum(&mut *forge.store().read_at_length().await?).await?;
        *self.summed.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, total));
        metrics::gauge!("abide_strangers_bytes").set(total.bytes as f64);
        metrics::gauge!("abide_strangers_repos").set(total.repos as f64);
        Ok(total)
    }

    /// The last sums, if they serve. Whoever finds old ones sums anew; the others go by the old ones meanwhile.
    fn fresh(&self, now: Timestamp) -> Option<Total> {
        let mut summed = self.summed.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, total) = summed.as_mut()?;
        if *at <= now && now < at.plus(FRESH) {
            return Some(*total);
        }
        *at = now;
        None
    }

    /// Adds stored bytes.
    pub(crate) fn add(&self, bytes: u64) {
        if let Some((_, total)) = self.summed.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            total.bytes = total.bytes.saturating_add(bytes);
        }
    }

    /// Adds a repository.
    pub(crate) fn add_repo(&self) {
        if let Some((_, total)) = self.summed.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            total.repos = total.repos.saturating_add(1);
        }
    }
}

/// Bytes of all keys except the keys of accounts with a username.
async fn sum(conn: &mut Conn) -> Result<Total, StoreError> {
    let mut all = quotas::sum_all(conn).await?;
    let mut after = 0;
    loop {
        let page = quotas::account_keys(conn, after, PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        let keys: Vec<[u8; 32]> =
            page.iter().filter_map(|(_, npub)| nip19::parse_npub(npub).ok()).map(|key| key.to_bytes()).collect();
        let accounts = quotas::sum(conn, &keys).await?;
        (all.bytes, all.repos) = (all.bytes - accounts.bytes, all.repos - accounts.repos);
    }
    Ok(Total { bytes: count(all.bytes), repos: count(all.repos) })
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The quotas of strangers and the room that is left to all of them, at one moment.
#[derive(Debug, Clone)]
pub(crate) struct QuotaLimits {
    pub quotas: Quotas,
    pub room: Room,
    /// Repositories of all strangers.
    repos: u64,
}

impl QuotaLimits {
    /// Reads the free disk space and the sum over all strangers.
    pub(crate) async fn load(forge: &Forge) -> Result<Self, Fault> {
        let settings = forge.settings();
        let quotas = Quotas {
            strangers_free_percent: disk::reserve(&settings.disk, disk::Writer::Stranger).1,
            ..settings.grasp.quotas
        };
        let disk = disk::measure(forge.layout().data());
        let most = quotas.strangers_bytes.of(disk.map(|disk| disk.bytes));
        let total = Strangers::of(forge).total(forge).await?;
        let strangers = most.map(|most| (total.bytes, most));
        let free = disk.map(|disk| disk.free_percent);
        let reserve = free.filter(|free| *free < quotas.strangers_free_percent);
        Ok(Self { quotas, room: Room { strangers, reserve }, repos: total.repos })
    }
}

/// The sender's network, as quotas count it.
pub(crate) fn network(from: Option<IpAddr>) -> Option<String> {
    from.map(|ip| Network::of(ip).address().to_string())
}

/// Usage of a key and of its network, as the rules take it.
pub(crate) fn usage(key: quotas::Usage, today: Today) -> Usage {
    Usage {
        events: count(key.events),
        bytes: count(key.bytes),
        repos: count(key.repos),
        repo_bytes: count(key.repo_bytes),
        address_today: count(today.bytes),
        address_repos_today: count(today.repos),
    }
}

/// Storage allowance of an author: quotas for strangers, `repos.per_user` for accounts.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    pub signer: Signer,
    pub key: PublicKey,
    /// How the event came here.
    pub origin: Origin,
    network: Option<String>,
    /// `None` for accounts.
    limits: Option<QuotaLimits>,
    repos_per_user: i64,
}

impl Allowance {
    /// The allowance of the signer of an event that came from this address.
    pub(super) async fn load(
        forge: &Forge,
        signer: Signer,
        key: PublicKey,
        (from, origin): (Option<IpAddr>, Origin),
    ) -> Result<Self, Fault> {
        let limits = if signer.is_stranger() { Some(QuotaLimits::load(forge).await?) } else { None };
        let repos_per_user = forge.settings().repos.per_user;
        Ok(Self { signer, key, origin, network: network(from), limits, repos_per_user })
    }

    /// The allowance of an event that was judged before.
    pub(super) fn unlimited(key: PublicKey) -> Self {
        let origin = Origin::Published;
        Self { signer: Signer::Account, key, origin, network: None, limits: None, repos_per_user: i64::MAX }
    }

    /// Usage of a stranger's key and network, locked until the unit ends.
    async fn usage(&self, tx: &mut Tx) -> Result<Usage, StoreError> {
        let key = self.key.to_bytes();
        let used = quotas::lock(tx, &[key]).await?.remove(&key).unwrap_or_default();
        let networks: Vec<String> = self.network.iter().cloned().collect();
        let today = quotas::lock_addresses(tx, &networks).await?.into_values().next().unwrap_or_default();
        Ok(usage(used, today))
    }

    /// Whether an event of this size may be stored; counts it for the network.
    pub(super) async fn event(&self, tx: &mut Tx, bytes: usize) -> Result<(), Halt> {
        self.ensure(tx, bytes).await?;
        Ok(self.count(tx, bytes).await?)
    }

    /// As [`Allowance::event`], but the caller counts the event for the network.
    pub(super) async fn ensure(&self, tx: &mut Tx, bytes: usize) -> Result<(), Halt> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let usage = self.usage(tx).await?;
        Ok(quota::event(&limits.quotas, &usage, &limits.room, bytes as u64)?)
    }

    /// Whether an event may replace another event of its author. The bytes of the replaced event are given back.
    pub(super) async fn replacement(&self, tx: &mut Tx, bytes: usize) -> Result<(), Halt> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let used = self.usage(tx).await?;
        let usage = Usage { address_today: used.address_today, ..Usage::default() };
        quota::event(&limits.quotas, &usage, &limits.room, bytes as u64)?;
        Ok(self.count(tx, bytes).await?)
    }

    /// Adds bytes to the network's usage, if the signer is a stranger and the network is known.
    async fn count(&self, tx: &mut Tx, bytes: usize) -> Result<(), StoreError> {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let added = self.network.iter().map(|network| (network.clone(), bytes)).collect();
        if self.limits.is_some() { quotas::add_addresses(tx, added).await } else { Ok(()) }
    }

    /// Counts an event that an alignment stored, outside of a unit of its own.
    pub(super) async fn count_stored(&self, forge: &Forge, bytes: usize) -> Result<(), Fault> {
        if self.limits.is_none() || self.network.is_none() {
            return Ok(());
        }
        let counted: Result<(), StoreError> = forge
            .store()
            .write((self.clone(), bytes), |tx, (allowance, bytes)| Box::pin(allowance.count(tx, *bytes)))
            .await;
        Ok(counted?)
    }

    /// Whether an event of this size may be stored; asked before the work begins.
    pub(super) async fn ask(&self, forge: &Forge, bytes: usize) -> Result<Result<(), Refusal>, Fault> {
        let Some(limits) = &self.limits else { return Ok(Ok(())) };
        let mut conn = forge.store().read().await?;
        let used = quotas::of_key(&mut conn, &self.key.to_bytes()).await?;
        let today = match &self.network {
            Some(network) => quotas::address_today(&mut conn, network, forge.clock().now()).await?,
            None => Today::default(),
        };
        Ok(quota::event(&limits.quotas, &usage(used, today), &limits.room, bytes as u64))
    }

    /// Whether the author may have another repository; counts it for the network.
    pub(super) async fn repo(&self, tx: &mut Tx) -> Result<(), Halt> {
        let waiting = purgatory::repos_of(tx, &self.key.to_bytes()).await?;
        if let Some(limits) = &self.limits {
            let mut usage = self.usage(tx).await?;
            usage.repos += count(waiting);
            quota::repo(&limits.quotas, &usage, limits.repos)?;
            if let Some(network) = &self.network {
                quotas::count_repo(tx, network).await?;
            }
            return Ok(());
        }
        let Some(owner) = nostr::repos::user_of(tx, &nip19::npub(&self.key)).await? else { return Ok(()) };
        users::lock(tx, owner).await?;
        let limit = self.repos_per_user;
        if owns_too_many(tx, owner, limit - waiting).await? {
            let reason = format!("quota: an account can own at most {limit} repositories; delete one first");
            return Err(Refusal::new(Prefix::RateLimited, reason).into());
        }
        Ok(())
    }

    /// Usage before a deletion request is carried out; `None` for accounts.
    pub(super) async fn before_deletion(&self, tx: &mut Tx) -> Result<Option<Usage>, StoreError> {
        if self.limits.is_some() { self.usage(tx).await.map(Some) } else { Ok(None) }
    }

    /// Whether a deletion request is kept, after it was carried out and stored.
    pub(super) async fn deletion(&self, tx: &mut Tx, before: Option<Usage>, bytes: usize) -> Result<(), Halt> {
        let (Some(limits), Some(before)) = (&self.limits, before) else { return Ok(()) };
        let after = usage(quotas::of_key(tx, &self.key.to_bytes()).await?, Today::default());
        quota::deletion(&limits.quotas, &before, &after, &limits.room)?;
        Ok(self.count(tx, bytes).await?)
    }
}

/// The party that is charged for the git data of a push.
#[derive(Debug, Clone)]
pub(crate) struct Payer {
    limits: Option<QuotaLimits>,
    key: Option<PublicKey>,
    network: Option<String>,
}

impl Payer {
    /// The key whose signature brings the data in is charged. Without a key, only the network is charged.
    pub(crate) async fn load(forge: &Forge, key: Option<PublicKey>, from: Option<IpAddr>) -> Result<Self, Fault> {
        let signer = match key {
            Some(key) => crate::relay::signer(&mut *forge.store().read().await?, key).await?,
            None => Signer::Stranger,
        };
        let limits = if signer.is_stranger() { Some(QuotaLimits::load(forge).await?) } else { None };
        Ok(Self { limits, key, network: network(from) })
    }

    /// The network that is charged; none for accounts.
    pub(crate) fn network(&self) -> Option<&str> {
        self.limits.as_ref().and(self.network.as_deref())
    }

    /// Usage at this moment, with the reservations of other pushes.
    async fn usage(&self, forge: &Forge, now: Timestamp) -> Result<(Usage, Reserved), Fault> {
        let mut conn = forge.store().read().await?;
        let used = match &self.key {
            Some(key) => quotas::of_key(&mut conn, &key.to_bytes()).await?,
            None => quotas::Usage::default(),
        };
        let today = match &self.network {
            Some(network) => quotas::address_today(&mut conn, network, now).await?,
            None => Today::default(),
        };
        Ok((usage(used, today), self.reserved(&mut conn, "", now).await?))
    }

    async fn reserved(&self, conn: &mut Conn, except: &str, now: Timestamp) -> Result<Reserved, StoreError> {
        let key = self.key.map(|key| key.to_bytes());
        reservations::sums(conn, key.as_ref(), self.network.as_deref(), except, now).await
    }

    /// Bytes that may still be pushed; `None` if quotas do not apply.
    pub(crate) async fn room(&self, forge: &Forge) -> Result<Result<Option<u64>, Refusal>, Fault> {
        let Some(limits) = &self.limits else { return Ok(Ok(None)) };
        let (usage, reserved) = self.usage(forge, forge.clock().now()).await?;
        let (usage, room) = beside(usage, limits.room, reserved);
        Ok(quota::pack_room(&limits.quotas, &usage, &room).map(Some))
    }

    /// Judges git data of this size, with all reservations of others counted. Locks out other judgements until the unit
    /// ends.
    pub(super) async fn judge(&self, tx: &mut Tx, bytes: u64, reservation: &str) -> Result<(), Halt> {
        let Some(limits) = &self.limits else { return Ok(()) };
        // Lock order of all callers that take more than one lock: the global lock, then keys, then networks.
        reservations::lock(tx).await?;
        let used = match self.key.map(|key| key.to_bytes()) {
            Some(key) => quotas::lock(tx, &[key]).await?.remove(&key).unwrap_or_default(),
            None => quotas::Usage::default(),
        };
        let networks: Vec<String> = self.network.iter().cloned().collect();
        let today = quotas::lock_addresses(tx, &networks).await?.into_values().next().unwrap_or_default();
        let now = tx.now();
        let reserved = self.reserved(tx, reservation, now).await?;
        let (usage, room) = beside(usage(used, today), limits.room, reserved);
        Ok(quota::pack(&limits.quotas, &usage, &room, bytes)?)
    }

    /// Reserves bytes of the quotas before they are stored. `false`: quotas do not apply. The reservation ends when the
    /// bytes are charged, with [`give_back`], or by expiry.
    pub(crate) async fn reserve(&self, forge: &Forge, id: &str, bytes: u64) -> Result<Result<bool, Refusal>, Fault> {
        if self.limits.is_none() {
            return Ok(Ok(false));
        }
        let reservation = Reservation {
            id: id.to_owned(),
            pubkey: self.key.map(|key| key.to_bytes()),
            address: self.network.clone(),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            holder: forge.node().holder().to_owned(),
            expires_at: forge.clock().now().plus(RESERVED_FOR),
        };
        let written = forge
            .store()
            .write((self.clone(), reservation, bytes), |tx, (payer, reservation, bytes)| {
                Box::pin(async move {
                    payer.judge(tx, *bytes, &reservation.id).await?;
                    Ok::<_, Halt>(reservations::put(tx, reservation).await?)
                })
            })
            .await;
        match written {
            Ok(()) => Ok(Ok(true)),
            Err(Halt::Refused(refusal)) => Ok(Err(refusal)),
            Err(Halt::Store(error)) => Err(error.into()),
        }
    }
}

/// Usage and room as if all reservations of others were stored.
fn beside(usage: Usage, room: Room, reserved: Reserved) -> (Usage, Room) {
    let usage = Usage {
        repo_bytes: usage.repo_bytes.saturating_add(count(reserved.of_key)),
        address_today: usage.address_today.saturating_add(count(reserved.of_address)),
        ..usage
    };
    (usage, room.after(count(reserved.total)))
}

/// Releases the rest of a reservation. If that fails, the reservation expires.
pub(crate) async fn give_back(forge: &Forge, id: &str) {
    let released: Result<(), StoreError> =
        forge.store().write(id.to_owned(), |tx, id| Box::pin(reservations::release(tx, id))).await;
    if let Err(error) = released {
        tracing::warn!(%error, id, "cannot release a quota reservation; it expires");
    }
}

/// When the git data of a push is reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Paying {
    /// When it is weighed.
    WhenWeighed,
    /// Earlier, under this reservation id.
    Reserved(String),
}

/// Git data that was received into a directory, and the party that brings it.
pub(crate) struct Weighing<'a> {
    pub objects: PathBuf,
    pub owner: PublicKey,
    pub from: Option<IpAddr>,
    pub paying: &'a Paying,
    /// Id of the new reservation, unless one exists.
    pub key: &'a str,
    /// Bytes that count beside those of the objects.
    pub more: u64,
}

/// Weighs git data: the payer must have room for it, and is charged when the push ends. Returns the bytes that were
/// reserved under `key`; `None`: no bytes.
pub(crate) async fn weigh(
    forge: &Forge,
    signed: &mut Signed,
    Weighing { objects, owner, from, paying, key, more }: Weighing<'_>,
) -> Result<Result<Option<u64>, Refusal>, Fault> {
    let bytes = measure(objects).await?.saturating_add(more);
    let payer = Payer::load(forge, signed.payer(owner), from).await?;
    let network = payer.network().map(str::to_owned);
    if let Paying::Reserved(id) = paying {
        signed.weigh(bytes, network, Some(id.clone()));
        return Ok(Ok(None));
    }
    let reserved = match payer.reserve(forge, key, bytes).await? {
        Ok(reserved) => reserved,
        Err(refusal) => return Ok(Err(refusal)),
    };
    signed.weigh(bytes, network, reserved.then(|| key.to_owned()));
    Ok(Ok(reserved.then_some(bytes)))
}

/// Whether a stranger may make a ref in each of these repositories. PR events that are released in the same moment may
/// pass together, as many as there are lanes and pushes.
pub(crate) async fn refs(
    forge: &Forge,
    author: PublicKey,
    from: Option<Network>,
    repos: &[RepoId],
) -> Result<Result<(), Refusal>, Fault> {
    let mut conn = forge.store().read().await?;
    if !crate::relay::signer(&mut conn, author).await?.is_stranger() {
        return Ok(Ok(()));
    }
    let of_key = count(nostr::pr_refs::of_key(&mut conn, &author.to_bytes()).await?);
    let address_today = match from.map(|network| network.address().to_string()) {
        Some(network) => count(quotas::address_today(&mut conn, &network, forge.clock().now()).await?.refs),
        None => 0,
    };
    for repo in repos {
        let of_repo = count(nostr::pr_refs::of_repo(&mut conn, *repo).await?);
        if let Err(refusal) = quota::pr_refs(&Refs { of_repo, of_key, address_today }, repos.len() as u64) {
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(()))
}

/// Counts refs that were made for the network that the PR event of a stranger came from.
pub(crate) async fn count_refs(forge: &Forge, author: PublicKey, from: Option<Network>, refs: usize) {
    let counted = async {
        let is_stranger = crate::relay::signer(&mut *forge.store().read().await?, author).await?.is_stranger();
        let Some(network) = from.filter(|_| is_stranger) else { return Ok(()) };
        let input = (network.address().to_string(), i64::try_from(refs).unwrap_or(i64::MAX));
        forge.store().write(input, |tx, (network, refs)| Box::pin(quotas::count_refs(tx, network, *refs))).await
    };
    let counted: Result<(), StoreError> = counted.await;
    if let Err(error) = counted {
        // The PR event is served, and its sender gets OK.
        tracing::warn!(%error, "refs of a PR event are not counted for its network");
    }
}

/// Size of the objects in a directory, in bytes.
pub(crate) async fn measure(objects: PathBuf) -> Result<u64, Fault> {
    Ok(blocking("measuring a push", move || disk_usage(&objects)).await??)
}
