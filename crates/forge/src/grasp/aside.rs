//! Commits whose proposal has not come yet. Their objects stay in an area of their own, without a ref: git would serve
//! any object that a repository holds, and nobody has signed for these.

use super::push::Coordinate;
use super::{address, left, waiting};
use crate::{Fault, Forge};
use abide_core::{Oid, RepoId};
use abide_git::{Connected, incoming, maintain::disk_usage};
use abide_nostr::EventId;
use abide_nostr::grasp::caps;
use abide_store::purgatory_proposals::{self as proposals, Half};
use std::net::IpAddr;

/// What the names of such areas begin with. No process takes them for its own.
const MARK: &str = "aside-";

/// How many bytes may still come from an address; `None` if none, or if as much waits already as may.
pub(crate) async fn budget(forge: &Forge, from: Option<IpAddr>) -> Result<Option<u64>, Fault> {
    let settings = &forge.settings().grasp;
    let address = address(from);
    let mut conn = forge.store().read().await?;
    if caps::judge(&settings.caps, &waiting(&mut conn, None, address.as_deref()).await?).is_err() {
        return Ok(None);
    }
    let used = proposals::unsigned(&mut conn, address.as_deref()).await?;
    let left = |limit: u64, used: i64| limit.saturating_sub(u64::try_from(used).unwrap_or(0));
    let left = left(settings.unsigned_total, used.total).min(left(settings.unsigned_per_address, used.of_address));
    Ok(Some(left).filter(|left| *left > 0))
}

/// What came of keeping a commit aside.
pub(crate) enum Kept {
    /// It waits for its event.
    Waiting,
    /// The event came meanwhile. The objects are kept under this key and are the caller's.
    Known(String),
    /// There is no room for it.
    Full,
    /// Nothing was pushed that could wait.
    Nothing,
}

/// Keeps a commit until its event comes, in place of one that was kept under that id before.
pub(crate) async fn keep(
    forge: &Forge,
    id: EventId,
    commit: Oid,
    (repo, coordinate): (RepoId, &Coordinate),
    objects: Connected,
    from: Option<IpAddr>,
) -> Result<Kept, Fault> {
    let Some(dir) = objects.area().map(|area| area.join("objects")) else { return Ok(Kept::Nothing) };
    let bytes = tokio::task::spawn_blocking(move || disk_usage(&dir))
        .await
        .map_err(|error| Fault::Internal(format!("measuring a push was interrupted: {error}")))??;
    if budget(forge, from).await?.is_none_or(|left| bytes > left) {
        return Ok(Kept::Full);
    }
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
    let input = (half, [coordinate.stored()], address(from), super::quota::network(from));
    let kept: Result<Option<Option<String>>, Fault> = forge
        .store()
        .write(input, |tx, (half, repos, address, network)| {
            Box::pin(async move {
                let before = proposals::lock(tx, &half.event_id).await?;
                let known = before.as_ref().is_some_and(|before| before.json.is_some())
                    || abide_store::nostr_events::by_id(tx, &half.event_id).await?.is_some();
                if known {
                    return Ok(None);
                }
                proposals::put(tx, half, repos, address.as_deref()).await?;
                let added = network.iter().map(|network| (network.clone(), half.bytes)).collect();
                abide_store::quotas::add_addresses(tx, added).await?;
                Ok(Some(before.and_then(|before| before.incoming)))
            })
        })
        .await;
    match kept? {
        Some(replaced) => {
            if let Some(old) = replaced {
                left("placeholder", "replacement");
                incoming::remove_incoming(forge.layout(), &old).await?;
            }
            Ok(Kept::Waiting)
        }
        None => Ok(Kept::Known(key)),
    }
}

/// Whether an area is one of those that wait for an event.
pub(crate) fn is_aside(key: &str) -> bool {
    key.starts_with(MARK)
}
