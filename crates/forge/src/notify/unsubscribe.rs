//! Unsubscribing from a thread by a link in a mail, without signing in.
//!
//! The link is signed with the installation's secret and can only mute that thread for that person.

use super::inbox;
use crate::{Fault, Forge, sealed};
use abide_core::{ThreadId, UserId};
use abide_macros::boxed;
use abide_store::attention::notification_mail;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const PURPOSE: &str = "unsubscribe";

/// URL that mutes a thread for a recipient.
pub(super) fn link(forge: &Forge, user: UserId, thread: ThreadId) -> String {
    let signature = URL_SAFE_NO_PAD.encode(sealed::sign(forge, PURPOSE, &message(user, thread)));
    format!("{}/notifications/unsubscribe/{user}-{thread}-{signature}", forge.settings().public_url)
}

fn message(user: UserId, thread: ThreadId) -> Vec<u8> {
    format!("{user}-{thread}").into_bytes()
}

/// Whether a link is signed by this server and its thread exists.
#[boxed]
pub async fn is_good(forge: &Forge, token: &str) -> Result<bool, Fault> {
    let Some((user, thread)) = read(forge, token) else { return Ok(false) };
    Ok(notification_mail::of(&mut *forge.store().read().await?, user, thread).await?.is_some())
}

/// Mutes the thread of a link for its recipient; `false` if the link is invalid. Idempotent.
#[boxed]
pub async fn unsubscribe(forge: &Forge, token: &str) -> Result<bool, Fault> {
    let Some((user, thread)) = read(forge, token) else { return Ok(false) };
    forge
        .store()
        .write((user, thread), |tx, &(user, thread)| {
            Box::pin(async move {
                let Some(mailed) = notification_mail::of(tx, user, thread).await? else { return Ok(false) };
                inbox::mute(tx, user, thread, mailed.subject, mailed.subject_id, true).await?;
                Ok(true)
            })
        })
        .await
}

fn read(forge: &Forge, token: &str) -> Option<(UserId, ThreadId)> {
    let mut parts = token.splitn(3, '-');
    let (user, thread) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let signature = URL_SAFE_NO_PAD.decode(parts.next()?).ok()?;
    sealed::is_signed(forge, PURPOSE, &message(user, thread), &signature).then_some((user, thread))
}
