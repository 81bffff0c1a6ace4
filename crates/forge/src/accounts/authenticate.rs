//! Authentication by token or by SSH key. Passwords work only on the login page.

use super::add_token::PREFIX;
use super::one_time::hash;
use crate::context::standing::Standing;
use crate::{Caller, Fault, Forge};
use abide_macros::boxed;
use abide_store::accounts::{ssh_keys, tokens, users};
use std::net::IpAddr;
use std::time::Duration;

/// Precision of "last used": a write for each request would cost more than it is worth.
const LAST_USED_PRECISION: Duration = Duration::from_secs(600);

/// The caller behind this token; `None` if the token is unknown, revoked or expired, or the account is suspended.
#[boxed]
pub async fn by_token(forge: &Forge, secret: &str, ip: Option<IpAddr>) -> Result<Option<Caller>, Fault> {
    if !secret.starts_with(PREFIX) {
        return Ok(None);
    }
    let now = forge.clock().now();
    let mut conn = forge.store().read().await?;
    let Some(token) = tokens::by_hash(&mut conn, &hash(secret)).await? else { return Ok(None) };
    let Some(user) = users::by_id(&mut conn, token.user_id).await? else { return Ok(None) };
    drop(conn);
    if !token.is_live(now) || user.suspended_at.is_some() {
        return Ok(None);
    }
    if token.last_used_at.is_none_or(|last| now.since(last) > LAST_USED_PRECISION) {
        note_use(forge, token.id, |tx, id| Box::pin(async move { Ok(tokens::touch(tx, *id).await?) }));
    }
    Ok(Some(Caller { actor: user.actor(), scopes: Some(token.scopes), ip, standing: Standing::token(secret) }))
}

/// Whether an active account has this SSH key. This proves nothing about the client: a public key is not secret.
#[boxed]
pub async fn knows_ssh_key(forge: &Forge, fingerprint: &str) -> Result<bool, Fault> {
    let mut conn = forge.store().read().await?;
    let Some(key) = ssh_keys::by_fingerprint(&mut conn, fingerprint).await? else { return Ok(false) };
    let user = users::by_id(&mut conn, key.user_id).await?;
    Ok(user.is_some_and(|user| user.suspended_at.is_none()))
}

/// The caller behind this SSH key; `None` if no account has it, or the account is suspended.
#[boxed]
pub async fn by_ssh_key(forge: &Forge, fingerprint: &str, ip: Option<IpAddr>) -> Result<Option<Caller>, Fault> {
    let now = forge.clock().now();
    let mut conn = forge.store().read().await?;
    let Some(key) = ssh_keys::by_fingerprint(&mut conn, fingerprint).await? else { return Ok(None) };
    let Some(user) = users::by_id(&mut conn, key.user_id).await? else { return Ok(None) };
    drop(conn);
    if user.suspended_at.is_some() {
        return Ok(None);
    }
    if key.last_used_at.is_none_or(|last| now.since(last) > LAST_USED_PRECISION) {
        note_use(forge, key.id, |tx, id| Box::pin(async move { Ok(ssh_keys::touch(tx, *id).await?) }));
    }
    Ok(Some(Caller { standing: Standing::SshKey(fingerprint.into()), ..Caller::of(user.actor(), ip) }))
}

/// Writes "last used" in a background task: no request waits for it, and losing the write is harmless.
fn note_use<U>(forge: &Forge, id: i64, unit: U)
where
    U: abide_store::Unit<i64, (), Fault>,
{
    let store = forge.store().clone();
    forge.tasks().spawn(async move {
        if let Err(error) = store.write(id, unit).await {
            tracing::warn!(%error, "cannot record the use of a credential");
        }
    });
}
