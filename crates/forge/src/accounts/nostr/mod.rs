//! Nostr keys as a way in: [`login()`] and [`link()`] by a signed answer to our challenge, [`by_header`] for the API.
//!
//! A proof is a NIP-98 event. Each serves once: its id, and the challenge that it answers, are remembered until neither
//! would be taken any more. Challenges themselves are signed and not stored, so nothing is kept for those who never answer.

mod challenge;
mod header;
mod link;
mod login;
mod merge;

pub use challenge::issue as challenge;
pub use header::{by_header, ensure_account};
pub use link::{confirm, link, unlink};
pub use login::login;

pub(crate) use login::tell_of_new;

use super::confirm::ConfirmError;
use super::throttle;
use crate::{Fault, Forge};
use abide_core::account::UnlinkRefusal;
use abide_nostr::http_auth::{self, HttpAuthError, Proof};
use abide_nostr::{Limits, PublicKey, nip19};
use abide_store::users::{self, User};
use abide_store::{StoreError, Tx, user_keys};
use std::time::Duration;

/// A browser's answer to a challenge.
pub struct Answer {
    /// The signed event, as JSON.
    pub event: String,
    /// The challenge, as it was given out.
    pub challenge: String,
    /// What the challenge is bound to: something that only this browser sends.
    pub bound: String,
    /// The path that the form was sent to.
    pub path: &'static str,
}

/// Why a key opens nothing.
#[derive(Debug, thiserror::Error)]
pub enum NostrError {
    /// The challenge is not ours, not this browser's, or too old.
    #[error("the challenge has expired or belongs to another browser; reload the page and sign again")]
    Challenge,
    /// The event proves nothing.
    #[error("invalid signature event: {0}")]
    Proof(#[from] HttpAuthError),
    /// The proof served before.
    #[error("this signature was already used; sign again")]
    Used,
    /// No account has the key.
    #[error("no account has this key; sign in with it on the site first")]
    UnknownKey,
    /// Nobody can sign up here.
    #[error("no account has this key, and sign-up is closed; ask the site administrator for an account")]
    Closed,
    /// An invitation is needed.
    #[error("no account has this key, and sign-up needs an invitation; sign up with one, then link the key")]
    NeedsInvite,
    /// The account may not be used.
    #[error("this account is suspended; ask the site administrator")]
    Suspended,
    /// Another account has the key.
    #[error("this key already has an account; sign in with that key instead")]
    KeyTaken,
    /// The account has a key.
    #[error("this account already has a nostr key; unlink it first")]
    HasKey,
    /// The key stays.
    #[error(transparent)]
    Unlink(#[from] UnlinkRefusal),
    /// The password was not right.
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
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

impl From<StoreError> for NostrError {
    fn from(error: StoreError) -> Self {
        match error {
            // The only thing that two can want here is a key.
            StoreError::Unique => Self::KeyTaken,
            other => Self::Fault(other.into()),
        }
    }
}

/// The account of a key, which is given as people write it. What is no key has none.
pub async fn find(forge: &Forge, npub: &str) -> Result<Option<User>, Fault> {
    if nip19::parse_npub(npub).is_err() {
        return Ok(None);
    }
    Ok(user_keys::by_npub(&mut *forge.store().read().await?, npub).await?)
}

/// The key of the account of that name, for NIP-05.
pub async fn key_of_name(forge: &Forge, name: &str) -> Result<Option<PublicKey>, Fault> {
    let Ok(name) = name.parse() else { return Ok(None) };
    let user = users::by_name(&mut *forge.store().read().await?, &name).await?;
    let npub = user.filter(|user| user.suspended_at.is_none()).and_then(|user| user.npub);
    Ok(npub.and_then(|npub| nip19::parse_npub(&npub).ok()))
}

/// Judges an answer. What it says is true, but it may have served before: see [`use_up`].
fn check(forge: &Forge, answer: &Answer) -> Result<Proved, NostrError> {
    let until = challenge::ends(forge, &answer.bound, &answer.challenge).ok_or(NostrError::Challenge)?;
    let url = format!("{}{}", forge.settings().public_url, answer.path);
    let request = http_auth::Request { method: "POST", url: &url, body: http_auth::Body::Unread };
    let now = forge.clock().now();
    let proof = http_auth::verify_answer(&answer.event, &request, &answer.challenge, now, &Limits::default())?;
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

/// Whether the account of a key was deleted while it was suspended.
async fn is_barred(tx: &mut Tx, npub: &str) -> Result<bool, StoreError> {
    Ok(!user_keys::barred(tx, &[npub.to_owned()]).await?.is_empty())
}

/// Notes that proof and challenge have served; fails if one of them did before.
async fn use_up(tx: &mut Tx, proved: &Proved) -> Result<(), NostrError> {
    use_event(tx, &proved.proof).await?;
    match user_keys::use_proof(tx, &proved.challenge, proved.until).await? {
        true => Ok(()),
        false => Err(NostrError::Used),
    }
}

/// Notes that a proof has served. It may be dated ahead by the window and lasts that long behind.
async fn use_event(tx: &mut Tx, proof: &Proof) -> Result<(), NostrError> {
    let until = tx.now().plus(http_auth::WINDOW * 3);
    match user_keys::use_proof(tx, proof.event.as_bytes(), until).await? {
        true => Ok(()),
        false => Err(NostrError::Used),
    }
}
