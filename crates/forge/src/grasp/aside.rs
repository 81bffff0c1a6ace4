//! Commits whose PR event has not arrived yet. Their objects stay in a separate area without a ref: git would serve any
//! object in a repository, and nobody has signed for these.

use super::push::RepoCoordinate;
use super::quota::{Payer, Strangers, measure, network};
use super::{Halt, address, left, waiting};
use crate::{Fault, Forge, GraspSettings};
use abide_core::{Oid, RepoId};
use abide_git::{Connected, incoming};
use abide_nostr::EventId;
use abide_nostr::grasp::{Refusal, caps};
use abide_store::nostr::purgatory::prs as pr_events;
use abide_store::nostr::purgatory::prs::Half;
use abide_store::{Conn, StoreError, Tx};
use std::net::IpAddr;

/// Prefix of the names of such areas. The reconciler of pushes skips areas with this prefix.
const MARK: &str = "aside-";

/// Remaining bytes that an address may keep aside; `None` if none are left or purgatory is full.
pub(crate) async fn budget(forge: &Forge, from: Option<IpAddr>) -> Result<Option<u64>, Fault> {
    let settings = &forge.settings().grasp;
    let address = address(from);
    let mut conn = forge.store().read().await?;
    if caps::judge(&settings.caps, &waiting(&mut conn, None, address.as_deref()).await?).is_err() {
        return Ok(None);
    }
    let left = left_for(&mut conn, settings, address.as_deref(), &[0; 32]).await?;
    Ok(Some(left).filter(|left| *left > 0))
}

/// Remaining bytes of an address, without the commit that is being replaced.
async fn left_for(
    conn: &mut Conn,
    settings: &GraspSettings,
    address: Option<&str>,
    replaced: &[u8; 32],
) -> Result<u64, StoreError> {
    let used = pr_events::unsigned(conn, address, replaced).await?;
    let left = |limit: u64, used: i64| limit.saturating_sub(u64::try_from(used).unwrap_or(0));
    Ok(left(settings.unsigned_total, used.total).min(left(settings.unsigned_per_address, used.of_address)))
}

/// Result of keeping a commit aside.
pub(crate) enum Kept {
    /// The commit waits for its event.
    Waiting,
    /// The event arrived in the meantime. The objects are kept under this key, and the caller owns them.
    Known(String),
    /// Purgatory has no room for the commit.
    Full,
    /// The address, or all strangers together, have used up their quota.
    OverQuota(Refusal),
    /// The push has no objects to keep.
    Nothing,
}

/// Reason why a commit cannot be kept, given further bytes of the same push; `None` if it can. Writes nothing.
pub(crate) async fn refusal(
    forge: &Forge,
    id: EventId,
    objects: &Connected,
    from: Option<IpAddr>,
    beside: &mut u64,
) -> Result<Option<Kept>, Fault> {
    let Some(dir) = objects.area().map(|area| area.join("objects")) else { return Ok(Some(Kept::Nothing)) };
    *beside = beside.saturating_add(measure(dir).await?);
    let asked = Asked::of(forge, id, *beside, from).await?;
    match forge.store().write(asked, |tx, asked| Box::pin(room(tx, asked))).await {
        Ok(Room::Free { .. } | Room::Known) => Ok(None),
        Ok(Room::Full) => Ok(Some(Kept::Full)),
        Err(Halt::Refused(refusal)) => Ok(Some(Kept::OverQuota(refusal))),
        Err(Halt::Store(error)) => Err(error.into()),
    }
}

/// Keeps a commit until its event arrives. Replaces a commit that was kept under the same event id.
pub(crate) async fn keep(
    forge: &Forge,
    id: EventId,
    commit: Oid,
    (repo, coordinate): (RepoId, &RepoCoordinate),
    objects: Connected,
    from: Option<IpAddr>,
) -> Result<Kept, Fault> {
    let Some(dir) = objects.area().map(|area| area.join("objects")) else { return Ok(Kept::Nothing) };
    let bytes = measure(dir).await?;
    let key = format!("{MARK}{}", forge.random_token());
    objects.keep(forge.layout(), &key).await?;
    let half = Half {
        event_id: id.to_bytes(),
        pubkey: None,
        json: None,
        commit,
        repo_id: Some(repo),
        incoming: Some(key.clone()),
        bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        created_at: forge.clock().now(),
        expires_at: forge.settings().grasp.expiry.of_arrival(forge.clock().now()),
    };
    let asked = Asked::of(forge, id, bytes, from).await?;
    let unit = Unit { half, repos: [coordinate.stored()], network: network(from), asked };
    let kept = match forge.store().write(unit, |tx, unit| Box::pin(put(tx, unit))).await {
        Ok(Put::Kept { replaced }) => {
            Strangers::of(forge).add(bytes);
            if let Some(old) = replaced {
                left("placeholder", "replacement");
                remove(forge, &old).await;
            }
            return Ok(Kept::Waiting);
        }
        Ok(Put::Known) => return Ok(Kept::Known(key)),
        Ok(Put::Full) => Ok(Kept::Full),
        Err(Halt::Refused(refusal)) => Ok(Kept::OverQuota(refusal)),
        Err(Halt::Store(error)) => Err(error.into()),
    };
    remove(forge, &key).await;
    kept
}

/// Removes an area; the sweep removes the rest if this fails.
pub(crate) async fn remove(forge: &Forge, key: &str) {
    if let Err(error) = incoming::remove_incoming(forge.layout(), key).await {
        tracing::warn!(%error, key, "cannot remove an incoming area; the sweep removes it");
    }
}

/// A commit that is to wait for its event, with its size.
struct Asked {
    event_id: [u8; 32],
    bytes: u64,
    address: Option<String>,
    payer: Payer,
    settings: GraspSettings,
}

impl Asked {
    async fn of(forge: &Forge, id: EventId, bytes: u64, from: Option<IpAddr>) -> Result<Self, Fault> {
        let payer = Payer::load(forge, None, from).await?;
        let settings = forge.settings().grasp.clone();
        Ok(Self { event_id: id.to_bytes(), bytes, address: address(from), payer, settings })
    }
}

/// Result of the check for room.
enum Room {
    /// There is room, counting the commit that is being replaced as free.
    Free {
        before: Option<Half>,
    },
    /// The event arrived in the meantime.
    Known,
    Full,
}

struct Unit {
    half: Half,
    repos: [([u8; 32], String); 1],
    network: Option<String>,
    asked: Asked,
}

enum Put {
    Kept { replaced: Option<String> },
    Known,
    Full,
}

/// Judges and writes in one unit under a lock, so that parallel pushes cannot use the same room twice.
async fn put(tx: &mut Tx, unit: &Unit) -> Result<Put, Halt> {
    let Unit { half, repos, network, asked } = unit;
    let before = match room(tx, asked).await? {
        Room::Free { before } => before,
        Room::Known => return Ok(Put::Known),
        Room::Full => return Ok(Put::Full),
    };
    pr_events::put(tx, half, repos, asked.address.as_deref()).await?;
    let added = network.iter().map(|network| (network.clone(), half.bytes)).collect();
    abide_store::nostr::quotas::add_addresses(tx, added).await?;
    Ok(Put::Kept { replaced: before.and_then(|before| before.incoming) })
}

async fn room(tx: &mut Tx, asked: &Asked) -> Result<Room, Halt> {
    let Asked { event_id, bytes, address, payer, settings } = asked;
    let before = pr_events::lock(tx, event_id).await?;
    let known = before.as_ref().is_some_and(|before| before.json.is_some())
        || abide_store::nostr::events::by_id(tx, event_id).await?.is_some();
    if known {
        return Ok(Room::Known);
    }
    payer.judge(tx, *bytes, "").await?;
    let counts = waiting(tx, None, address.as_deref()).await?;
    let is_crowded = before.is_none() && caps::judge(&settings.caps, &counts).is_err();
    if is_crowded || *bytes > left_for(tx, settings, address.as_deref(), event_id).await? {
        return Ok(Room::Full);
    }
    Ok(Room::Free { before })
}

/// Whether an area holds a commit that waits for its event.
pub(crate) fn is_aside(key: &str) -> bool {
    key.starts_with(MARK)
}
