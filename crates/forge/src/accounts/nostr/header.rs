//! API authentication: a proof for one request in its `Authorization` header.

use super::{NostrError, use_event};
use crate::{Caller, Forge};
use abide_core::scope::{Scope, Scopes};
use abide_macros::boxed;
use abide_nostr::http_auth::{self, Body, Proof, Request};
use abide_nostr::{RelayLimits, nip19};
use abide_store::accounts::user_keys;
use abide_store::accounts::users::User;
use std::net::IpAddr;

/// The caller that signed this request. The caller has every scope except admin.
#[boxed]
pub async fn by_header(
    forge: &Forge,
    header: &str,
    request: &Request<'_>,
    ip: Option<IpAddr>,
) -> Result<Caller, NostrError> {
    let (proof, user) = signer(forge, header, request).await?;
    // Only proofs of known keys are remembered, so strangers cannot fill the table.
    forge.store().write(proof, |tx, proof| Box::pin(use_event(tx, proof))).await?;
    let scopes = Scope::ALL.iter().copied().filter(|scope| *scope != Scope::Admin).collect();
    Ok(Caller { scopes: Some(Scopes::of(scopes)), ..Caller::of(user.actor(), ip) })
}

/// Judges a proof before the body of its request is read: it must be signed by the key of an account, for this address,
/// method and minute. Strangers would otherwise make the server keep bodies for proofs that prove nothing.
#[boxed]
pub async fn ensure_account(forge: &Forge, header: &str, method: &str, url: &str) -> Result<(), NostrError> {
    let request = Request { method, url, body: Body::Unread };
    signer(forge, header, &request).await.map(|_| ())
}

async fn signer(forge: &Forge, header: &str, request: &Request<'_>) -> Result<(Proof, User), NostrError> {
    let proof = http_auth::verify(header, request, forge.clock().now(), &RelayLimits::default())?;
    let npub = nip19::npub(&proof.key);
    let user = user_keys::by_npub(&mut *forge.store().read().await?, &npub).await?.ok_or(NostrError::UnknownKey)?;
    if user.suspended_at.is_some() {
        return Err(NostrError::Suspended);
    }
    Ok((proof, user))
}
