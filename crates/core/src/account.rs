//! Account rules: sign-up, profile texts, and actions of admins on other accounts.

use crate::input::InputError;
use crate::policy::SiteAdmin;
use crate::words::words;
use crate::{Timestamp, UserId};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

words! {
    /// Sign-up mode.
    SignUpMode {
        Open = "open",
        Closed = "closed",
        /// Holders of an invitation.
        Invite = "invite",
    }
}

words! {
    /// Keys that may announce new repositories by signed events.
    Announce {
        Open = "open",
        /// Keys linked to an account with a username.
        Linked = "linked",
        /// Only keys that the operator lists.
        Off = "off",
    }
}

impl Announce {
    /// Default if the operator has not set it: those who may sign up may announce. With open sign-up and a list of
    /// allowed keys, only the listed keys may.
    pub fn default_for(signup: SignUpMode, has_list: bool) -> Self {
        match signup {
            SignUpMode::Open if has_list => Self::Off,
            SignUpMode::Open => Self::Open,
            SignUpMode::Invite | SignUpMode::Closed => Self::Linked,
        }
    }
}

/// Characters of a password. The upper limit bounds the cost of hashing.
pub const PASSWORD_LEN: RangeInclusive<usize> = 10..=1024;

/// Whether the length of a password is allowed.
pub fn password_fits(typed: &str) -> bool {
    PASSWORD_LEN.contains(&typed.chars().count())
}

/// How long a confirmation of identity lasts for actions that give others access to the account.
pub const CONFIRMED_FOR: Duration = Duration::from_secs(10 * 60);

/// Whether a confirmation is still valid.
pub fn is_recent(confirmed: Timestamp, now: Timestamp) -> bool {
    now.since(confirmed) <= CONFIRMED_FOR
}

/// Account of a proved key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAccount {
    /// No account has the key.
    None,
    /// An account has the key, with or without a username.
    Live,
    /// The key's account is suspended.
    Suspended,
}

/// Result of logging in with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLogin {
    /// Log in to the key's account. For an account created for a repository, this claims it.
    Enter,
    /// Create an account, without a username until its holder picks one.
    Make,
    /// Refused: the account is suspended.
    Suspended,
    /// Refused: a new account needs an invitation.
    NeedsInvite,
    /// Refused: sign-up is closed.
    Closed,
}

/// Decides the result of a login with a proved key.
pub fn key_login(account: KeyAccount, mode: SignUpMode) -> KeyLogin {
    match (account, mode) {
        (KeyAccount::Live, _) => KeyLogin::Enter,
        (KeyAccount::Suspended, _) => KeyLogin::Suspended,
        (KeyAccount::None, SignUpMode::Open) => KeyLogin::Make,
        (KeyAccount::None, SignUpMode::Invite) => KeyLogin::NeedsInvite,
        (KeyAccount::None, SignUpMode::Closed) => KeyLogin::Closed,
    }
}

/// Reason why a key cannot be unlinked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnlinkRefusal {
    /// Nobody could log in any more.
    #[error("this key is the only way to sign in to this account; set a password first")]
    NoPassword,
    /// The key governs repositories of the account.
    #[error("this key owns repositories of this account; without it no one could sign for them")]
    Governs,
    /// The account has no key.
    #[error("no nostr key is linked to this account")]
    NoKey,
}

/// Whether a key may be unlinked from an account.
pub fn may_unlink(has_key: bool, has_password: bool, governs: bool) -> Result<(), UnlinkRefusal> {
    match (has_key, has_password, governs) {
        (false, ..) => Err(UnlinkRefusal::NoKey),
        (_, false, _) => Err(UnlinkRefusal::NoPassword),
        (_, _, true) => Err(UnlinkRefusal::Governs),
        (true, true, false) => Ok(()),
    }
}

/// An email address `local@domain`, as entered. Only a verification mail proves that its owner reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailAddress(String);

/// The text is no valid address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid e-mail address: use the form someone@example.org, at most 254 ASCII characters")]
pub struct InvalidEmail;

impl EmailAddress {
    /// The address as entered.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for EmailAddress {
    type Err = InvalidEmail;

    /// Stricter than the standard, which allows quotes, comments and line breaks that only cause trouble.
    fn from_str(text: &str) -> Result<Self, InvalidEmail> {
        let text = text.trim();
        let (local, domain) = text.rsplit_once('@').ok_or(InvalidEmail)?;
        let fits = text.len() <= 254 && local.len() <= 64;
        if fits && local.split('.').all(is_atom) && domain.contains('.') && domain.split('.').all(is_label) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidEmail)
        }
    }
}

fn is_atom(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&b))
}

fn is_label(part: &str) -> bool {
    let alphabet = part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    (1..=63).contains(&part.len()) && alphabet && !part.starts_with('-') && !part.ends_with('-')
}

/// A field of a user's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileField {
    DisplayName,
    Bio,
    Website,
    Location,
}

impl ProfileField {
    /// Field name in forms and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DisplayName => "display_name",
            Self::Bio => "bio",
            Self::Website => "website",
            Self::Location => "location",
        }
    }

    /// Most characters of the field.
    pub const fn max_len(self) -> usize {
        match self {
            Self::DisplayName | Self::Location => 100,
            Self::Website => 200,
            Self::Bio => 500,
        }
    }

    /// The text as stored, or the rule that it breaks.
    pub fn check(self, typed: &str) -> Result<String, InvalidProfile> {
        let text = typed.trim();
        if text.chars().count() > self.max_len() {
            return Err(InvalidProfile::TooLong(self));
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidProfile::Control(self));
        }
        if self == Self::Website && !text.is_empty() && !is_website(text) {
            return Err(InvalidProfile::Website);
        }
        Ok(text.to_owned())
    }
}

/// Rule that a profile breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProfile {
    #[error("must have at most {} characters", .0.max_len())]
    TooLong(ProfileField),
    /// A line break or another control character.
    #[error("must be one line without control characters")]
    Control(ProfileField),
    /// Not an http or https URL.
    #[error("must start with http:// or https:// and contain no spaces")]
    Website,
}

impl InputError for InvalidProfile {
    fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::TooLong(field) | Self::Control(field) => field.as_str(),
            Self::Website => ProfileField::Website.as_str(),
        })
    }
}

/// Only http and https: a link with another scheme could execute code.
fn is_website(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '['))
        && !text.contains(|c: char| c.is_whitespace() || "\"<>\\^`{|}".contains(c))
}

/// Reason why an admin may not change an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdminRefusal {
    /// Admins cannot suspend themselves.
    #[error("you cannot suspend your own account; ask another administrator")]
    Yourself,
    /// At least one admin must remain.
    #[error("this is the only administrator; make another account an administrator first")]
    LastAdmin,
    /// Disabling one's own second factor needs the password, which the admin page does not ask for.
    #[error("you cannot reset your own two-factor authentication here; turn it off in your settings")]
    OwnSecondFactor,
    /// The account has no second factor.
    #[error("two-factor authentication is already off for this account")]
    NoSecondFactor,
}

/// Whether the admin `actor` may suspend `target`, given the current admins. `actor` itself is usually another admin,
/// but may have been suspended a moment ago, so the last admin is checked too.
pub fn may_suspend(actor: UserId, target: UserId, admins: &[UserId]) -> Result<(), AdminRefusal> {
    if actor == target {
        return Err(AdminRefusal::Yourself);
    }
    may_stop_administering(target, admins)
}

/// Whether the admin `actor` may reset the second factor of `target`. A stolen admin session must not suffice to remove
/// the second factor of that admin's own account.
pub fn may_reset_factor(actor: UserId, target: UserId) -> Result<(), AdminRefusal> {
    if actor == target { Err(AdminRefusal::OwnSecondFactor) } else { Ok(()) }
}

/// Whether `target` may lose the admin role, given the current admins.
pub fn may_stop_administering(target: UserId, admins: &[UserId]) -> Result<(), AdminRefusal> {
    if admins == [target] { Err(AdminRefusal::LastAdmin) } else { Ok(()) }
}

words! {
    /// Fate of the issues and comments of a deleted account.
    Remains {
        /// They stay, without an author.
        Kept = "kept",
        /// Comments are removed, and issues lose their title and text.
        Removed = "removed",
    }
}

/// Reason why an account cannot be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteRefusal {
    /// At least one admin must remain.
    #[error("this is the only administrator; make another account an administrator first")]
    LastAdmin,
    /// A suspended user cannot change anything, including their own account.
    #[error("this account is suspended and read-only; ask the site administrator")]
    Suspended,
    /// Admins delete their own account in its settings, with their password.
    #[error("you cannot delete your own account here; use your account settings")]
    Yourself,
}

/// The party that requests the deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleter {
    /// The account's owner.
    Owner,
    Admin(SiteAdmin),
    /// The operator, on the command line.
    Operator,
}

/// Whether `target` may be deleted, given the current admins.
pub fn may_delete(by: Deleter, target: UserId, suspended: bool, admins: &[UserId]) -> Result<(), DeleteRefusal> {
    match by {
        Deleter::Owner if suspended => return Err(DeleteRefusal::Suspended),
        Deleter::Admin(admin) if admin.id() == target => return Err(DeleteRefusal::Yourself),
        _ => {}
    }
    if admins == [target] { Err(DeleteRefusal::LastAdmin) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Actor, site_admin};
    use proptest::prelude::*;

    #[test]
    fn a_key_with_an_account_opens_it_in_every_mode_and_another_only_where_accounts_are_made() {
        use {KeyAccount as A, KeyLogin as L};
        for &mode in SignUpMode::ALL {
            assert_eq!(key_login(A::Live, mode), L::Enter);
            assert_eq!(key_login(A::Suspended, mode), L::Suspended);
        }
        let unknown = [SignUpMode::Open, SignUpMode::Invite, SignUpMode::Closed].map(|mode| key_login(A::None, mode));
        assert_eq!(unknown, [L::Make, L::NeedsInvite, L::Closed]);
    }

    #[test]
    fn who_may_announce_follows_sign_up_and_a_list() {
        use {Announce as A, SignUpMode as S};
        let defaults = [(S::Open, false), (S::Open, true), (S::Invite, false), (S::Invite, true), (S::Closed, false)];
        let expected = [A::Open, A::Off, A::Linked, A::Linked, A::Linked];
        assert_eq!(defaults.map(|(signup, list)| A::default_for(signup, list)), expected);
    }

    #[test]
    fn a_key_is_taken_off_only_if_a_password_remains_and_it_governs_nothing() {
        for has_password in [false, true] {
            for governs in [false, true] {
                assert_eq!(may_unlink(false, has_password, governs), Err(UnlinkRefusal::NoKey));
            }
        }
        assert_eq!(may_unlink(true, false, false), Err(UnlinkRefusal::NoPassword));
        assert_eq!(may_unlink(true, false, true), Err(UnlinkRefusal::NoPassword));
        assert_eq!(may_unlink(true, true, true), Err(UnlinkRefusal::Governs));
        assert_eq!(may_unlink(true, true, false), Ok(()));
    }

    #[test]
    fn what_cannot_be_an_address_is_refused() {
        for good in ["a.b+c@example.org", "O'Neil@Example.ORG", " x@a-b.co ", "1@2.3"] {
            assert_eq!(good.parse::<EmailAddress>().unwrap().as_str(), good.trim());
        }
        for bad in [
            "",
            "a",
            "@example.org",
            "a@b",
            "a@.org",
            "a@org.",
            "a b@example.org",
            "a@example.org\nBcc: x@example.org",
            "a\r\n@example.org",
            "<a@example.org>",
            "a@b@example.org",
            "\"a b\"@example.org",
            "a..b@example.org",
            ".a@example.org",
            "a@-x.org",
            "a@exa_mple.org",
            "é@example.org",
            "a@[127.0.0.1]",
        ] {
            assert_eq!(bad.parse::<EmailAddress>(), Err(InvalidEmail), "{bad:?}");
        }
        assert!(format!("{}@example.org", "a".repeat(65)).parse::<EmailAddress>().is_err());
        assert!(format!("a@{}.org", "b".repeat(64)).parse::<EmailAddress>().is_err());
    }

    #[test]
    fn a_password_is_counted_in_characters() {
        assert!(!password_fits("short"));
        assert!(!password_fits(&"é".repeat(9)));
        assert!(password_fits(&"é".repeat(10)));
        assert!(password_fits(&"x".repeat(1024)));
        assert!(!password_fits(&"x".repeat(1025)));
    }

    #[test]
    fn a_profile_says_which_field_breaks_which_rule() {
        use ProfileField::*;
        assert_eq!(DisplayName.check("  Ada  ").unwrap(), "Ada");
        assert_eq!(Bio.check(&"x".repeat(501)).unwrap_err().with_field(), "bio: must have at most 500 characters");
        assert_eq!(Location.check("a\nb").unwrap_err().field(), Some("location"));
        assert_eq!(Website.check("").unwrap(), "");
        for good in ["https://example.org/a?b=c#d", "HTTP://example.org", "http://[::1]/", "https://bücher.example/ü"]
        {
            assert_eq!(Website.check(good).as_deref(), Ok(good));
        }
        for bad in [
            "javascript:alert(1)",
            "ftp://x",
            "https://",
            "https:///x",
            "http://a b",
            "example.org",
            "http://\"onmouseover=x",
        ] {
            assert_eq!(Website.check(bad), Err(InvalidProfile::Website), "{bad:?}");
        }
    }

    #[test]
    fn the_last_admin_stays_and_nobody_suspends_themselves() {
        let (ada, bob, eve) = (UserId::new(1), UserId::new(2), UserId::new(3));
        assert_eq!(may_suspend(ada, ada, &[ada, bob]), Err(AdminRefusal::Yourself));
        assert_eq!(may_suspend(ada, bob, &[ada, bob]), Ok(()));
        assert_eq!(may_suspend(bob, ada, &[ada]), Err(AdminRefusal::LastAdmin));
        assert_eq!(may_suspend(ada, eve, &[ada]), Ok(()));
        assert_eq!(may_stop_administering(ada, &[ada]), Err(AdminRefusal::LastAdmin));
        assert_eq!(may_stop_administering(ada, &[ada, bob]), Ok(()));
        assert_eq!(may_stop_administering(eve, &[ada]), Ok(()), "that changes nothing");
    }

    fn admin(id: UserId) -> SiteAdmin {
        site_admin(&Actor::User { id, site_admin: true, suspended: false }).unwrap()
    }

    #[test]
    fn the_last_admin_the_suspended_and_oneself_as_an_admin_stay() {
        let (ada, bob, eve) = (UserId::new(1), UserId::new(2), UserId::new(3));
        for by in [Deleter::Owner, Deleter::Admin(admin(bob)), Deleter::Operator] {
            for suspended in [false, true] {
                for admins in [vec![], vec![ada], vec![ada, bob]] {
                    for target in [ada, eve] {
                        let expected = if suspended && by == Deleter::Owner {
                            Err(DeleteRefusal::Suspended)
                        } else if admins == [target] {
                            Err(DeleteRefusal::LastAdmin)
                        } else {
                            Ok(())
                        };
                        assert_eq!(may_delete(by, target, suspended, &admins), expected, "{by:?} {target} {admins:?}");
                    }
                }
            }
        }
        assert_eq!(may_delete(Deleter::Admin(admin(ada)), ada, false, &[ada, bob]), Err(DeleteRefusal::Yourself));
    }

    #[test]
    fn a_second_factor_is_reset_for_others_only() {
        let (ada, bob) = (UserId::new(1), UserId::new(2));
        assert_eq!(may_reset_factor(ada, bob), Ok(()));
        assert_eq!(may_reset_factor(ada, ada), Err(AdminRefusal::OwnSecondFactor));
    }

    proptest! {
        #[test]
        fn an_accepted_address_cannot_end_a_header(text in "\\PC{0,300}|[ -~\\r\\n]{0,40}@[ -~\\r\\n]{0,40}") {
            if let Ok(address) = text.parse::<EmailAddress>() {
                prop_assert!(address.as_str().bytes().all(|b| b.is_ascii_graphic() && !b"<>,;:\"".contains(&b)));
            }
        }
    }
}
