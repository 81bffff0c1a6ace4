//! Authentication with nostr keys: [`login()`] and [`link()`] by a signed answer to our challenge, [`by_header`] for
//! the API.
//!
//! A proof is a NIP-98 event. Each proof works once: its id, and the challenge that it answers, are stored until both
//! have expired. Challenges themselves are signed and not stored, so clients that never answer leave no rows.

mod challenge;
mod header;
mod link;
mod login;
mod merge;

pub use challenge::issue as challenge;
pub use header::{by_header, ensure_account};
pub use link::{confirm, link, unlink};
pub use login::login;

use super::confirm::ConfirmError;
use crate::throttle;
use crate::{Fault, Forge};
use abide_core::InputError;
use abide_core::account::UnlinkRefusal;
use abide_macros::boxed;
use abide_nostr::http_auth::{self, HttpAuthError, Proof};
use abide_nostr::{PublicKey, RelayLimits, nip19};
use abide_store::accounts::user_keys;
use abide_store::accounts::users::{self, User};
use abide_store::{StoreError, Tx};
use std::time::Duration;

/// A browser's answer to a challenge.
pub struct Answer {
    /// The signed event, as JSON.
    pub event: String,
    /// The challenge, as it was issued.
    pub challenge: String,
    /// The value that the challenge is bound to; only this browser sends it.
    pub bound: String,
    /// The path of the form's request.
    pub path: &'static str,
}

/// Why a key was refused.
#[derive(Debug, thiserror::Error)]
pub enum NostrError {
    /// The challenge was not issued here or to this browser, or is too old.
    #[error("the challenge has expired or belongs to another browser; reload the page and sign again")]
    Challenge,
    /// The event is not a valid proof.
    #[error("invalid signature event: {0}")]
    Proof(#[from] HttpAuthError),
    /// The proof was used before.
    #[error("this signature was already used; sign again")]
    Used,
    /// No account has the key.
    #[error("no account has this key; sign in with it on the site first")]
    UnknownKey,
    /// Sign-up is closed.
    #[error("no account has this key, and sign-up is closed; ask the site administrator for an account")]
    Closed,
    /// Sign-up needs an invitation.
    #[error("no account has this key, and sign-up needs an invitation; sign up with one, then link the key")]
    NeedsInvite,
    #[error("this account is suspended; ask the site administrator")]
    Suspended,
    /// Another account has the key.
    #[error("this key already has an account; sign in with that key instead")]
    KeyTaken,
    /// The account has a key already.
    #[error("this account already has a nostr key; unlink it first")]
    HasKey,
    /// The key cannot be unlinked.
    #[error(transparent)]
    Unlink(#[from] UnlinkRefusal),
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error("{}", throttle::wait(*.retry_after))]
    Throttled { retry_after: Duration },
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl InputError for NostrError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Confirm(error) => error.field(),
            _ => None,
        }
    }
}

impl From<StoreError> for NostrError {
    fn from(error: StoreError) -> Self {
        match error {
            // The key is the only unique value in these transactions.
            StoreError::Unique => Self::KeyTaken,
            other => Self::Fault(other.into()),
        }
    }
}

/// The account of an npub; `None` for text that is not an npub.
#[boxed]
pub async fn find(forge: &Forge, npub: &str) -> Result<Option<User>, Fault> {
    if nip19::parse_npub(npub).is_err() {
        return Ok(None);
    }
    Ok(user_keys::by_npub(&mut *forge.store().read().await?, npub).await?)
}

/// The key of the account with this name, for NIP-05.
#[boxed]
pub async fn key_of_name(forge: &Forge, name: &str) -> Result<Option<PublicKey>, Fault> {
    let Ok(name) = name.parse() else { return Ok(None) };
    let user = users::by_name(&mut *forge.store().read().await?, &name).await?;
    let npub = user.filter(|user| user.suspended_at.is_none()).and_then(|user| user.npub);
    Ok(npub.and_then(|npub| nip19::parse_npub(&npub).ok()))
}

/// Verifies an answer. It may have been used before: see [`use_up`].
fn check(forge: &Forge, answer: &Answer) -> Result<Proved, NostrError> {
    let until = challenge::ends(forge, &answer.bound, &answer.challenge).ok_or(NostrError::Challenge)?;
    let url = format!("{}{}", forge.settings().public_url, answer.path);
    let request = http_auth::Request { method: "POST", url: &url, body: http_auth::Body::Unread };
    let now = forge.clock().now();
    let proof = http_auth::verify_answer(&answer.event, &request, &answer.challenge, now, &RelayLimits::default())?;
    Ok(Proved { proof, challenge: challenge::id(&answer.challenge), until })
}

/// A proof with the challenge that it answers.
#[derive(Clone)]
struct Proved {
    proof: Proof,
    challenge: [u8; 32],
    until: abide_core::Timestamp,
}

impl Proved {
    fn npub(&self) -> String {
        nip19::npub(&self.proof.key)
    }
}

/// Whether the account of a key was deleted while suspended.
async fn is_barred(tx: &mut Tx, npub: &str) -> Result<bool, StoreError> {
    Ok(!user_keys::barred(tx, &[npub.to_owned()]).await?.is_empty())
}

/// Records that proof and challenge are used; fails if one of them was used before.
async fn use_up(tx: &mut Tx, proved: &Proved) -> Result<(), NostrError> {
    use_event(tx, &proved.proof).await?;
    match user_keys::use_proof(tx, &proved.challenge, proved.until).await? {
        true => Ok(()),
        false => Err(NostrError::Used),
    }
}

/// Records that a proof is used. Its date may lie ahead by the window, and it stays valid for a window after its date.
async fn use_event(tx: &mut Tx, proof: &Proof) -> Result<(), NostrError> {
    let until = tx.now().plus(http_auth::WINDOW * 3);
    match user_keys::use_proof(tx, proof.event.as_bytes(), until).await? {
        true => Ok(()),
        false => Err(NostrError::Used),
    }
}
