//! Asking someone who is logged in for their password again, before something that an unattended browser must not do.

use super::sessions::Viewer;
use super::{password as hashed, throttle};
use crate::{Fault, Forge};
use abide_core::account;
use abide_store::{StoreError, sessions, throttles, users};
use std::time::Duration;

const SCOPE: &str = "confirm:account";

/// Why they were not believed.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    /// That is not their password.
    #[error("current_password: wrong password")]
    Wrong,
    /// They have no password, and it is a while since they proved their key.
    #[error("sign in with your key again, then repeat this within 10 minutes")]
    Stale,
    /// Too many tries.
    #[error("{}", throttle::wait(*.retry_after))]
    Throttled {
        /// When to try again.
        retry_after: Duration,
    },
    /// The machine failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl ConfirmError {
    /// Which field of the form it is about.
    pub fn field(&self) -> Option<&'static str> {
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

/// Whether the viewer proved so lately that it is them that they need not be asked.
pub fn is_recent(forge: &Forge, viewer: &Viewer) -> bool {
    account::is_recent(viewer.confirmed_at, forge.clock().now())
}

/// How someone proved that it is them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// By typing their password.
    Password,
    /// They have none, and proved their key a short while ago.
    RecentLogin,
}

/// Fails unless that is the viewer's password; their login is believed for a while again. An account without a password
/// is believed from its last proof of the key on, and nothing else prolongs that.
pub async fn again(forge: &Forge, viewer: &Viewer, typed: String) -> Result<(), ConfirmError> {
    if password(forge, viewer, typed).await? == Proof::RecentLogin {
        return Ok(());
    }
    let unit = (viewer.user.id, hex::decode(&viewer.session_id).unwrap_or_default());
    let noted = forge.store().write(unit, |tx, (user, hash)| Box::pin(sessions::confirm(tx, *user, hash)));
    Ok(noted.await?)
}

/// Fails unless that is the viewer's password. Wrong ones are counted like wrong logins.
pub(super) async fn password(forge: &Forge, viewer: &Viewer, typed: String) -> Result<Proof, ConfirmError> {
    let limit = throttle::limit(SCOPE, forge.settings().people.login_per_account);
    let account = viewer.user.id.to_string();
    let hit = forge.store().write((limit, account.clone()), |tx, (limit, account)| {
        Box::pin(async move { Ok::<_, ConfirmError>(throttles::hit(tx, *limit, account).await?) })
    });
    if let Some(retry_after) = hit.await? {
        return Err(ConfirmError::Throttled { retry_after });
    }
    // As it is now: it may have been changed since this request began.
    let user = users::by_id(&mut *forge.store().read().await?, viewer.user.id).await?;
    if user.as_ref().is_some_and(|user| user.password_hash.is_none() && user.npub.is_some()) {
        return if is_recent(forge, viewer) { Ok(Proof::RecentLogin) } else { Err(ConfirmError::Stale) };
    }
    if !hashed::verify(forge, typed, user.and_then(|user| user.password_hash)).await? {
        return Err(ConfirmError::Wrong);
    }
    let cleared: Result<(), StoreError> =
        forge.store().write(account, |tx, account| Box::pin(throttles::clear(tx, SCOPE, account))).await;
    cleared?;
    Ok(Proof::Password)
}
