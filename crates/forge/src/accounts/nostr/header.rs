//! API authentication: a proof for one request in its `Authorization` header.

use super::{NostrError, use_event};
use crate::{Caller, Forge};
use abide_core::scope::{Scope, Scopes};
use abide_nostr::http_auth::{self, Request};
use abide_nostr::{Limits, nip19};
use abide_store::user_keys;
use std::net::IpAddr;

/// The caller that signed this request. The caller has every scope except admin.
pub async fn by_header(
    forge: &Forge,
    header: &str,
    request: &Request<'_>,
    ip: Option<IpAddr>,
) -> Result<Caller, NostrError> {
    let proof = http_auth::verify(header, request, forge.clock().now(), &Limits::default())?;
    let npub = nip19::npub(&proof.key);
    let user = user_keys::by_npub(&mut *forge.store().read().await?, &npub).await?.ok_or(NostrError::UnknownKey)?;
    if user.suspended_at.is_some() {
        return Err(NostrError::Suspended);
    }
    // Only proofs of known keys are stored, so strangers cannot fill the table.
    forge.store().write(proof, |tx, proof| Box::pin(use_event(tx, proof))).await?;
    let scopes = Scope::ALL.iter().copied().filter(|scope| *scope != Scope::Admin).collect();
    Ok(Caller { scopes: Some(Scopes::of(scopes)), ..Caller::of(user.actor(), ip) })
}
