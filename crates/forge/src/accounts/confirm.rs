//! Asks a logged-in user for the password again, before actions that an unattended browser must not perform.

use super::password as hashed;
use super::sessions::Viewer;
use crate::{Fault, Forge, throttle};
use abide_core::InputError;
use abide_core::account;
use abide_macros::boxed;
use abide_store::accounts::{sessions, users};
use abide_store::{StoreError, throttles};
use std::time::Duration;

const SCOPE: &str = "confirm:account";

/// Why the confirmation failed.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    #[error("wrong password")]
    Wrong,
    /// The account has no password, and its key was not proved recently.
    #[error("sign in with your key again, then repeat this within 10 minutes")]
    Stale,
    #[error("{}", throttle::wait(*.retry_after))]
    Throttled { retry_after: Duration },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for ConfirmError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Wrong => Some("current_password"),
            Self::Stale | Self::Throttled { .. } | Self::Fault(_) => None,
        }
    }
}

impl From<StoreError> for ConfirmError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Whether the viewer confirmed their identity recently, so that they need not be asked.
pub fn is_recent(forge: &Forge, viewer: &Viewer) -> bool {
    account::is_recent(viewer.confirmed_at, forge.clock().now())
}

/// How a user confirmed their identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    Password,
    /// The account has no password, and its key was proved recently.
    RecentLogin,
}

/// Fails unless `typed` is the viewer's password; then renews the confirmation of the session. For an account without a
/// password, the confirmation counts from the last proof of the key, and nothing else renews it.
#[boxed]
pub async fn again(forge: &Forge, viewer: &Viewer, typed: String) -> Result<(), ConfirmError> {
    if password(forge, viewer, typed).await? == Proof::RecentLogin {
        return Ok(());
    }
    let unit = (viewer.user.id, hex::decode(&viewer.session_id).unwrap_or_default());
    let noted = forge.store().write(unit, |tx, (user, hash)| Box::pin(sessions::confirm(tx, *user, hash)));
    Ok(noted.await?)
}

/// Fails unless `typed` is the viewer's password. Wrong passwords are counted like failed logins.
pub(super) async fn password(forge: &Forge, viewer: &Viewer, typed: String) -> Result<Proof, ConfirmError> {
    let limit = throttle::limit(SCOPE, forge.settings().login.by_account());
    let account = viewer.user.id.to_string();
    let hit = forge.store().write((limit, account.clone()), |tx, (limit, account)| {
        Box::pin(async move { Ok::<_, ConfirmError>(throttles::hit(tx, *limit, account).await?) })
    });
    if let Some(retry_after) = hit.await? {
        return Err(ConfirmError::Throttled { retry_after });
    }
    // The current hash: the password may have changed since this request began.
    let user = users::by_id(&mut *forge.store().read().await?, viewer.user.id).await?;
    if user.as_ref().is_some_and(|user| user.password_hash.is_none() && user.npub.is_some()) {
        return if is_recent(forge, viewer) { Ok(Proof::RecentLogin) } else { Err(ConfirmError::Stale) };
    }
    if !hashed::verify(forge, typed.into(), user.and_then(|user| user.password_hash)).await? {
        return Err(ConfirmError::Wrong);
    }
    let cleared: Result<(), StoreError> =
        forge.store().write(account, |tx, account| Box::pin(throttles::clear(tx, SCOPE, account))).await;
    cleared?;
    Ok(Proof::Password)
}
