//! Rules about accounts: who may make one, what it may say about itself, and what an admin may do to another.

use crate::words::words;
use crate::{Timestamp, UserId};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

words! {
    /// Who may make an account for themselves.
    SignUpMode {
        /// Everyone.
        Open = "open",
        /// Nobody.
        Closed = "closed",
        /// Whoever has an invitation.
        Invite = "invite",
    }
}

words! {
    /// Who may announce new repositories by signed events.
    Announce {
        /// Everyone.
        Open = "open",
        /// Keys that are linked to an account with a username.
        Linked = "linked",
        /// Nobody but the keys that the operator lists.
        Off = "off",
    }
}

impl Announce {
    /// Who may announce where the operator has not said it: those who may make an account for themselves. With open
    /// sign-up, a list of allowed keys names the only keys that may.
    pub fn default_for(signup: SignUpMode, has_list: bool) -> Self {
        match signup {
            SignUpMode::Open if has_list => Self::Off,
            SignUpMode::Open => Self::Open,
            SignUpMode::Invite | SignUpMode::Closed => Self::Linked,
        }
    }
}

/// How many characters a password has. The upper end keeps hashing from being made expensive by length.
pub const PASSWORD_LEN: RangeInclusive<usize> = 10..=1024;

/// Whether a password is neither too short nor too long.
pub fn password_fits(typed: &str) -> bool {
    PASSWORD_LEN.contains(&typed.chars().count())
}

/// How long someone who proved that it is them is believed, before something that lets others into their account.
pub const CONFIRMED_FOR: Duration = Duration::from_secs(10 * 60);

/// Whether someone who proved at a time that it is them is still believed.
pub fn is_recent(confirmed: Timestamp, now: Timestamp) -> bool {
    now.since(confirmed) <= CONFIRMED_FOR
}

/// What is known of a key that someone proves to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAccount {
    /// No account has it.
    None,
    /// An account has it, with a name or without.
    Live,
    /// The account that has it may not be used.
    Suspended,
}

/// What logging in with a key leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLogin {
    /// Into the account of that key. Of one that a repository was made under, this is the claim.
    Enter,
    /// A new account, without a name until its holder picks one.
    Make,
    /// Nowhere: the account is suspended.
    Suspended,
    /// Nowhere: a new account would need an invitation.
    NeedsInvite,
    /// Nowhere: nobody makes an account for themselves.
    Closed,
}

/// Decides what someone gets who has proved to have a key.
pub fn key_login(account: KeyAccount, mode: SignUpMode) -> KeyLogin {
    match (account, mode) {
        (KeyAccount::Live, _) => KeyLogin::Enter,
        (KeyAccount::Suspended, _) => KeyLogin::Suspended,
        (KeyAccount::None, SignUpMode::Open) => KeyLogin::Make,
        (KeyAccount::None, SignUpMode::Invite) => KeyLogin::NeedsInvite,
        (KeyAccount::None, SignUpMode::Closed) => KeyLogin::Closed,
    }
}

/// Why a key stays linked to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnlinkRefusal {
    /// Nobody could log in any more.
    #[error("this key is the only way to sign in to this account; set a password first")]
    NoPassword,
    /// The key rules repositories of the account.
    #[error("this key owns repositories of this account; without it no one could sign for them")]
    Governs,
    /// There is none.
    #[error("no nostr key is linked to this account")]
    NoKey,
}

/// Whether a key may be taken off an account.
pub fn may_unlink(has_key: bool, has_password: bool, governs: bool) -> Result<(), UnlinkRefusal> {
    match (has_key, has_password, governs) {
        (false, ..) => Err(UnlinkRefusal::NoKey),
        (_, false, _) => Err(UnlinkRefusal::NoPassword),
        (_, _, true) => Err(UnlinkRefusal::Governs),
        (true, true, false) => Ok(()),
    }
}

/// An address that mail can be sent to: `local@domain`, as typed. Only a mail can prove that someone reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailAddress(String);

/// The text cannot be an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid e-mail address: use the form someone@example.org, at most 254 ASCII characters")]
pub struct InvalidEmail;

impl EmailAddress {
    /// The address as it was typed.
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

    /// Narrower than the standard, which allows quotes, comments and line breaks that only trouble comes from.
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

/// A line that an account says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileField {
    /// What the person calls themselves.
    DisplayName,
    /// What they say about themselves.
    Bio,
    /// Their site.
    Website,
    /// Where they are.
    Location,
}

impl ProfileField {
    /// What it is called in forms and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DisplayName => "display_name",
            Self::Bio => "bio",
            Self::Website => "website",
            Self::Location => "location",
        }
    }

    /// How many characters it has at most.
    pub const fn max_len(self) -> usize {
        match self {
            Self::DisplayName | Self::Location => 100,
            Self::Website => 200,
            Self::Bio => 500,
        }
    }

    /// The text as it is kept, or the rule that it breaks.
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

/// Which rule a profile breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProfile {
    /// Too long.
    #[error("{}: must have at most {} characters", .0.as_str(), .0.max_len())]
    TooLong(ProfileField),
    /// A line break or the like.
    #[error("{}: must be one line without control characters", .0.as_str())]
    Control(ProfileField),
    /// Not an address of the web.
    #[error("website: must start with http:// or https:// and contain no spaces")]
    Website,
}

impl InvalidProfile {
    /// Which field it is about.
    pub const fn field(self) -> &'static str {
        match self {
            Self::TooLong(field) | Self::Control(field) => field.as_str(),
            Self::Website => ProfileField::Website.as_str(),
        }
    }
}

/// Only what a browser opens as a page: a link with another scheme could run something.
fn is_website(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '['))
        && !text.contains(|c: char| c.is_whitespace() || "\"<>\\^`{|}".contains(c))
}

/// Why an admin may not do that to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdminRefusal {
    /// Nobody locks themselves out.
    #[error("you cannot suspend your own account; ask another administrator")]
    Yourself,
    /// Somebody must be left to administer the site.
    #[error("this is the only administrator; make another account an administrator first")]
    LastAdmin,
    /// Turning off one's own needs the password, which an admin's page does not ask for.
    #[error("you cannot reset your own two-factor authentication here; turn it off in your settings")]
    OwnSecondFactor,
    /// There is nothing to reset.
    #[error("two-factor authentication is already off for this account")]
    NoSecondFactor,
}

/// Whether the admin `actor` may suspend `target`, given who can administer the site now. With another admin at hand the
/// last one cannot be meant, but whoever asks may have been suspended a moment ago.
pub fn may_suspend(actor: UserId, target: UserId, admins: &[UserId]) -> Result<(), AdminRefusal> {
    if actor == target {
        return Err(AdminRefusal::Yourself);
    }
    may_stop_administering(target, admins)
}

/// Whether the admin `actor` may turn off the second factor of `target`, who lost it. A stolen session of an admin is not
/// enough to take the second factor off that admin's own account.
pub fn may_reset_factor(actor: UserId, target: UserId) -> Result<(), AdminRefusal> {
    if actor == target { Err(AdminRefusal::OwnSecondFactor) } else { Ok(()) }
}

/// Whether `target` may be an ordinary account, given who can administer the site now.
pub fn may_stop_administering(target: UserId, admins: &[UserId]) -> Result<(), AdminRefusal> {
    if admins == [target] { Err(AdminRefusal::LastAdmin) } else { Ok(()) }
}

words! {
    /// What becomes of the issues and comments of an account that is deleted.
    Remains {
        /// They stay, and nobody in particular wrote them.
        Kept = "kept",
        /// Comments go, and issues lose their title and text.
        Removed = "removed",
    }
}

/// Why an account stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteRefusal {
    /// Somebody must be left to administer the site.
    #[error("this is the only administrator; make another account an administrator first")]
    LastAdmin,
    /// Who is suspended changes nothing, themselves included.
    #[error("this account is suspended and read-only; ask the site administrator")]
    Suspended,
    /// An admin deletes their own account as everyone does, with their password.
    #[error("you cannot delete your own account here; use your account settings")]
    Yourself,
}

/// Who wants an account to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleter {
    /// Whose it is.
    Owner,
    /// An administrator.
    Admin(UserId),
    /// Whoever runs the server, at its command line.
    Operator,
}

/// Whether `target` may be deleted, given who can administer the site now.
pub fn may_delete(by: Deleter, target: UserId, suspended: bool, admins: &[UserId]) -> Result<(), DeleteRefusal> {
    match by {
        Deleter::Owner if suspended => return Err(DeleteRefusal::Suspended),
        Deleter::Admin(admin) if admin == target => return Err(DeleteRefusal::Yourself),
        _ => {}
    }
    if admins == [target] { Err(DeleteRefusal::LastAdmin) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(Bio.check(&"x".repeat(501)).unwrap_err().to_string(), "bio: must have at most 500 characters");
        assert_eq!(Location.check("a\nb").unwrap_err().field(), "location");
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

    #[test]
    fn the_last_admin_the_suspended_and_oneself_as_an_admin_stay() {
        let (ada, bob, eve) = (UserId::new(1), UserId::new(2), UserId::new(3));
        for by in [Deleter::Owner, Deleter::Admin(bob), Deleter::Operator] {
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
        assert_eq!(may_delete(Deleter::Admin(ada), ada, false, &[ada, bob]), Err(DeleteRefusal::Yourself));
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
