//! Ticket between the password and the second factor. It is signed, so that abandoned logins leave no rows, and it
//! becomes invalid when the password changes.

use crate::{Forge, sealed};
use abide_core::{Timestamp, UserId};
use abide_store::accounts::users::User;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::time::Duration;

/// Lifetime of a ticket: time to find the phone.
const TTL: Duration = Duration::from_secs(600);
const PURPOSE: &str = "second factor ticket";
const ID_LEN: usize = 8;
const TIME_LEN: usize = 8;
const SIGNATURE_LEN: usize = 32;

/// A ticket as the client sent it. Untrusted until [`Ticket::is_genuine`] returns `true`.
pub(super) struct Ticket {
    pub user: UserId,
    expires_at: Timestamp,
    signature: [u8; SIGNATURE_LEN],
}

/// A ticket for a user who gave the right password.
pub(super) fn issue(forge: &Forge, user: &User) -> String {
    let expires_at = forge.clock().now().plus(TTL);
    let signature = sealed::sign(forge, PURPOSE, &message(user, expires_at));
    let bytes = [&user.id.get().to_be_bytes()[..], &expires_at.micros().to_be_bytes(), &signature].concat();
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The signed message; it includes the password hash.
fn message(user: &User, expires_at: Timestamp) -> Vec<u8> {
    let hash = user.password_hash.as_ref().map_or("", |hash| hash.expose().as_str());
    [&user.id.get().to_be_bytes()[..], &expires_at.micros().to_be_bytes(), hash.as_bytes()].concat()
}

impl Ticket {
    /// Parses a ticket from a client; `None` if the format is wrong.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (id, rest) = bytes.split_first_chunk::<ID_LEN>()?;
        let (time, rest) = rest.split_first_chunk::<TIME_LEN>()?;
        Some(Self {
            user: UserId::new(i64::from_be_bytes(*id)),
            expires_at: Timestamp::from_micros(i64::from_be_bytes(*time)),
            signature: rest.try_into().ok()?,
        })
    }

    /// Whether it was issued here, to this account with this password, and has not expired.
    pub(super) fn is_genuine(&self, forge: &Forge, user: &User) -> bool {
        user.id == self.user
            && sealed::is_signed(forge, PURPOSE, &message(user, self.expires_at), &self.signature)
            && forge.clock().now() < self.expires_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_a_stranger_sends_is_read_or_refused(text in "\\PC*|[A-Za-z0-9_-]{60,68}") {
            if let Some(ticket) = Ticket::parse(&text) {
                prop_assert_eq!(text.len(), 64);
                prop_assert_eq!(ticket.signature.len(), SIGNATURE_LEN);
            }
        }
    }
}
