//! Texts of mails. Plain text; a subject contains nothing from a stranger.

use std::time::Duration;

/// A mail without its envelope.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Letter {
    /// One line.
    pub subject: String,
    pub text: String,
}

impl Letter {
    fn new(subject: &str, paragraphs: &[&str]) -> Self {
        Self { subject: subject.to_owned(), text: format!("{}\n", paragraphs.join("\n\n")) }
    }
}

/// Verification of an address.
pub(crate) fn verify(link: &str, ttl: Duration) -> Letter {
    Letter::new(
        "Verify your e-mail address",
        &[
            "This address was added to an account. Open this link to verify it:",
            link,
            &format!("The link works once and expires after {}. If you did not do this, ignore this mail.", words(ttl)),
        ],
    )
}

/// Password reset.
pub(crate) fn reset(name: &str, link: &str, ttl: Duration) -> Letter {
    Letter::new(
        "Reset your password",
        &[
            &format!("A password reset was requested for the account {name}. Open this link to set a new password:"),
            link,
            &format!(
                "The link works once and expires after {}. If you did not request this, ignore this mail: your password does not change.",
                words(ttl)
            ),
        ],
    )
}

pub(crate) fn invite(site: &str, link: &str, ttl: Duration) -> Letter {
    Letter::new(
        "You are invited",
        &[
            &format!("You are invited to {site}. Open this link to create your account:"),
            link,
            &format!("The link works once and expires after {}.", words(ttl)),
        ],
    )
}

/// Notice of a changed password, in case it was not the user.
pub(crate) fn password_changed(site: &str) -> Letter {
    Letter::new(
        "Your password was changed",
        &[
            &format!("The password of your account at {site} was changed. Your other sessions have ended."),
            &format!("If this was not you, reset your password at once: {site}/forgot"),
        ],
    )
}

/// Notice that the second factor was turned off, in case it was not the user.
pub(crate) fn factor_off(site: &str) -> Letter {
    Letter::new(
        "Two-factor authentication was turned off",
        &[
            &format!("You can now sign in to your account at {site} with your password alone."),
            &format!("If this was not you, reset your password at once: {site}/forgot"),
        ],
    )
}

/// Notice to the owner that an admin turned the second factor off.
pub(crate) fn factor_reset(site: &str) -> Letter {
    Letter::new(
        "Two-factor authentication was reset",
        &[
            &format!(
                "An administrator of {site} turned off two-factor authentication for your account and ended all its sessions."
            ),
            &format!("Sign in with your password and set it up again: {site}/settings/security/two-factor"),
            &format!("If you did not ask for this, reset your password at once: {site}/forgot"),
        ],
    )
}

/// Notice of a new primary address, sent to the previous one.
pub(crate) fn address_changed(site: &str, address: &str) -> Letter {
    Letter::new(
        "Your primary address was changed",
        &[
            &format!("Mail for your account at {site} now goes to {address}."),
            "If this was not you, sign in, change your password and make this address primary again.",
        ],
    )
}

/// A duration in the largest unit that fits.
fn words(ttl: Duration) -> String {
    let (count, unit) = match ttl.as_secs() {
        seconds if seconds >= 172_800 => (seconds / 86_400, "day"),
        seconds if seconds >= 3600 => (seconds / 3600, "hour"),
        seconds => (seconds.div_ceil(60), "minute"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        for (seconds, text) in [(60, "1 minute"), (1800, "30 minutes"), (3600, "1 hour"), (86_400, "24 hours")] {
            assert_eq!(words(Duration::from_secs(seconds)), text);
        }
        assert_eq!(words(Duration::from_secs(7 * 86_400)), "7 days");
    }
}
