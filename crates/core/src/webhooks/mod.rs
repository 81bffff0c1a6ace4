//! Webhooks: which events there are, what a hook may look like, when a delivery is tried again, and when a receiver is
//! left in peace.

mod events;
mod schedule;

pub use events::{HookEvent, Kind, Kinds, KindsError, hook_events};
pub use schedule::{Answered, Breaker, Outcome, Schedule, Step};

use crate::words::words;

words! {
    /// How a payload is written.
    ContentType {
        /// As it is.
        Json = "json",
        /// As the field `payload` of a form.
        Form = "form",
    }
}

impl ContentType {
    /// Value of the `Content-Type` header.
    pub const fn mime(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Form => "application/x-www-form-urlencoded",
        }
    }
}

words! {
    /// Where a delivery stands.
    DeliveryState {
        /// Waits for its turn.
        Queued = "queued",
        /// Is being tried.
        Sending = "sending",
        /// Arrived.
        Ok = "ok",
        /// Was given up.
        Failed = "failed",
    }
}

/// The longest secret.
pub const MAX_SECRET: usize = 1024;

/// Why a secret is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Too much of it.
    #[error("must have at most {MAX_SECRET} bytes")]
    TooLong,
    /// It cannot be typed into a receiver's settings again.
    #[error("must not contain control characters")]
    Characters,
}

/// Checks a secret that someone chose; an empty one is none.
pub fn secret(typed: &str) -> Result<Option<&str>, SecretError> {
    match typed {
        "" => Ok(None),
        long if long.len() > MAX_SECRET => Err(SecretError::TooLong),
        odd if odd.chars().any(char::is_control) => Err(SecretError::Characters),
        fine => Ok(Some(fine)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_short_and_can_be_typed() {
        assert_eq!(secret(""), Ok(None));
        assert_eq!(secret("It's a Secret to Everybody"), Ok(Some("It's a Secret to Everybody")));
        assert_eq!(secret("a\nb"), Err(SecretError::Characters));
        assert_eq!(secret(&"x".repeat(MAX_SECRET + 1)), Err(SecretError::TooLong));
    }
}
