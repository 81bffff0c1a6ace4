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
        "Verify your address",
        &[
            "Someone, probably you, gave this address to an account. Open this link to verify it:",
            link,
            &format!("It works once, for {}. If it was not you, do nothing.", words(ttl)),
        ],
    )
}

/// Password reset.
pub(crate) fn reset(name: &str, link: &str, ttl: Duration) -> Letter {
    Letter::new(
        "Set a new password",
        &[
            &format!(
                "Someone, probably you, asked for a new password for the account {name}. Open this link to set it:"
            ),
            link,
            &format!("It works once, for {}. If it was not you, do nothing: the password stays.", words(ttl)),
        ],
    )
}

pub(crate) fn invite(site: &str, link: &str, ttl: Duration) -> Letter {
    Letter::new(
        "You are invited",
        &[
            &format!("You are invited to {site}. Open this link to make your account:"),
            link,
            &format!("It works once, for {}.", words(ttl)),
        ],
    )
}

/// Notice of a changed password, in case it was not the user.
pub(crate) fn password_changed(site: &str) -> Letter {
    Letter::new(
        "Your password was changed",
        &[
            &format!("The password of your account at {site} was changed. Other logins have ended."),
            &format!("If it was not you, set a new one at once: {site}/forgot"),
        ],
    )
}

/// Notice that the second factor was turned off, in case it was not the user.
pub(crate) fn factor_off(site: &str) -> Letter {
    Letter::new(
        "Two-factor login was turned off",
        &[
            &format!("Logging in to your account at {site} needs no code any more."),
            &format!("If it was not you, set a new password at once: {site}/forgot"),
        ],
    )
}

/// Notice to the owner that an admin turned the second factor off.
pub(crate) fn factor_reset(site: &str) -> Letter {
    Letter::new(
        "Two-factor login was reset",
        &[
            &format!(
                "An administrator of {site} turned two-factor login off for your account, and all logins were ended."
            ),
            &format!("Log in with your password and set it up again: {site}/settings/security/two-factor"),
            &format!("If you did not ask for this, set a new password at once: {site}/forgot"),
        ],
    )
}

/// Notice of a new primary address, sent to the previous one.
pub(crate) fn address_changed(site: &str, address: &str) -> Letter {
    Letter::new(
        "Your primary address was changed",
        &[
            &format!("Mail for your account at {site} goes to {address} from now on."),
            "If it was not you, log in, change your password and make this address the primary one again.",
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
