//! The only module with rules for names of users and repositories.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// First path segments that the router uses, so no user can have these names.
///
/// A test in `abide-web` walks the router and fails if a first segment is missing here.
pub const RESERVED_USER_NAMES: &[&str] = &[
    "about",
    "abide",
    "account",
    "admin",
    "api",
    "apple-touch-icon",
    "assets",
    "atom",
    "dashboard",
    "docs",
    "events",
    "explore",
    "favicon",
    "feed",
    "feeds",
    "forgot",
    "ghost",
    "git",
    "grasp",
    "healthz",
    "help",
    "home",
    "invite",
    "invites",
    "issues",
    "join",
    "legal",
    "login",
    "logout",
    "me",
    "metrics",
    "new",
    "none",
    "nostr",
    "notifications",
    "null",
    "organizations",
    "orgs",
    "privacy",
    "prs",
    "pulls",
    "r",
    "readyz",
    "register",
    "repo",
    "repos",
    "repositories",
    "reset",
    "robots",
    "root",
    "search",
    "security",
    "session",
    "sessions",
    "settings",
    "setup",
    "sign-in",
    "sign-out",
    "sign-up",
    "signin",
    "signout",
    "signup",
    "site",
    "sitemap",
    "ssh",
    "starred",
    "stars",
    "static",
    "status",
    "support",
    "system",
    "terms",
    "topics",
    "track",
    "tracking",
    "transfers",
    "trending",
    "undefined",
    "unsubscribe",
    "user",
    "users",
    "verify",
    "watching",
    "well-known",
    "www",
];

/// Fixed segments routed directly below `/{owner}/`, so no repository can have these names.
pub const RESERVED_REPO_NAMES: &[&str] =
    &["activity", "atom", "deleted", "followers", "following", "new", "repositories", "settings", "stars", "status"];

/// Endings with a meaning elsewhere in the system.
const RESERVED_REPO_ENDINGS: &[&str] = &[".git", ".wiki", ".atom", ".lock"];

/// User name: 1–39 of `a–z 0–9 -`, lower case, no hyphen at either end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName(String);

/// Repository name: 1–100 of `a–z 0–9 . _ -`, lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoName(String);

/// Name of an account in URLs and lists: its username or, without one, its nostr key (`npub1…`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(String);

impl Handle {
    /// Wraps a stored value: a username or an npub.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Stands for a deleted account. The name is reserved, so no account has it.
    pub fn ghost() -> Self {
        Self("ghost".into())
    }

    /// The text used in URLs.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The username; `None` for a key.
    pub fn name(&self) -> Option<UserName> {
        (!self.0.starts_with("npub1")).then(|| UserName(self.0.clone()))
    }

    /// Display form: keys are shortened.
    pub fn shown(&self) -> Cow<'_, str> {
        shortened_key(&self.0)
    }
}

impl From<UserName> for Handle {
    fn from(name: UserName) -> Self {
        Self(name.0)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key as `npub1abcde…vwxyz`; any other text unchanged. No username can look like a key.
pub fn shortened_key(text: &str) -> Cow<'_, str> {
    match (text.get(..10), text.get(text.len().saturating_sub(5)..)) {
        (Some(head), Some(tail)) if head.starts_with("npub1") && text.len() == 63 => {
            Cow::Owned(format!("{head}…{tail}"))
        }
        _ => Cow::Borrowed(text),
    }
}

/// Rule that a name breaks. Worded for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    #[error("a user name must have 1 to 39 characters")]
    UserLength,
    #[error("a user name may contain only letters a–z, digits and hyphens")]
    UserAlphabet,
    #[error("a user name must not start or end with a hyphen")]
    UserHyphen,
    #[error("a user name must not start with npub1, which is reserved for nostr keys")]
    UserNpub,
    #[error("a repository name must have 1 to 100 characters")]
    RepoLength,
    #[error("a repository name may contain only letters a–z, digits, dots, underscores and hyphens")]
    RepoAlphabet,
    #[error("a repository name must start with a letter or digit and end with a letter, digit or underscore")]
    RepoEnds,
    #[error("a repository name must not contain two dots in a row")]
    RepoDots,
    #[error("a repository name must not end in .git, .wiki, .atom or .lock")]
    RepoEnding,
    #[error("this name is reserved; choose another name")]
    Reserved,
}

impl UserName {
    /// Whether the stored name differs from the typed one: names are stored in lower case and found in any case.
    pub fn folds(&self, typed: &str) -> bool {
        typed.trim() != self.0
    }
}

impl FromStr for UserName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let name = text.to_ascii_lowercase();
        if !(1..=39).contains(&name.len()) {
            return Err(InvalidName::UserLength);
        }
        if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return Err(InvalidName::UserAlphabet);
        }
        if name.starts_with('-') || name.ends_with('-') {
            return Err(InvalidName::UserHyphen);
        }
        if name.starts_with("npub1") {
            return Err(InvalidName::UserNpub);
        }
        if RESERVED_USER_NAMES.contains(&name.as_str()) {
            return Err(InvalidName::Reserved);
        }
        Ok(Self(name))
    }
}

impl RepoName {
    /// Whether the stored name differs from the typed one: names are stored in lower case and found in any case.
    pub fn folds(&self, typed: &str) -> bool {
        typed.trim() != self.0
    }
}

impl FromStr for RepoName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let name = text.to_ascii_lowercase();
        if !(1..=100).contains(&name.len()) {
            return Err(InvalidName::RepoLength);
        }
        if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b)) {
            return Err(InvalidName::RepoAlphabet);
        }
        let first = name.as_bytes()[0];
        let last = name.as_bytes()[name.len() - 1];
        if !first.is_ascii_alphanumeric() || !(last.is_ascii_alphanumeric() || last == b'_') {
            return Err(InvalidName::RepoEnds);
        }
        if name.contains("..") {
            return Err(InvalidName::RepoDots);
        }
        if RESERVED_REPO_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            return Err(InvalidName::RepoEnding);
        }
        if RESERVED_REPO_NAMES.contains(&name.as_str()) {
            return Err(InvalidName::Reserved);
        }
        Ok(Self(name))
    }
}

macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// The name as stored and shown.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Wraps a name from the database, which holds only valid ones.
            pub fn from_stored(text: String) -> Self {
                Self(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
text!(UserName);
text!(RepoName);

#[cfg(test)]
mod tests {
    use super::InvalidName::*;
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("", UserLength)]
    #[case(&"a".repeat(40), UserLength)]
    #[case("a_b", UserAlphabet)]
    #[case("a.b", UserAlphabet)]
    #[case("..", UserAlphabet)]
    #[case("%2e%2e", UserAlphabet)]
    #[case("a\0", UserAlphabet)]
    #[case("аlice", UserAlphabet)]
    #[case("-a", UserHyphen)]
    #[case("a-", UserHyphen)]
    #[case("npub1abc", UserNpub)]
    #[case("API", Reserved)]
    #[case("settings", Reserved)]
    fn refused_user_names_say_which_rule(#[case] name: &str, #[case] rule: InvalidName) {
        assert_eq!(name.parse::<UserName>(), Err(rule));
    }

    #[test]
    fn a_key_is_shown_in_short_and_a_name_as_it_is() {
        let key = "npub1hxm9euqdw389u6nxr28gm2lv6e78dxlc4ekvs2h09z8rv0elp3fs36y47h";
        assert_eq!(shortened_key(key), "npub1hxm9e…6y47h");
        let handle = Handle::from_stored(key.to_owned());
        assert_eq!((handle.as_str(), &*handle.shown()), (key, "npub1hxm9e…6y47h"));
        for name in ["", "ada", "npub1", &"ü".repeat(40), &format!("npub1{}", "é".repeat(29))] {
            assert_eq!(shortened_key(name), name);
        }
    }

    #[rstest]
    #[case("", RepoLength)]
    #[case(&"a".repeat(101), RepoLength)]
    #[case("a/b", RepoAlphabet)]
    #[case("a\\b", RepoAlphabet)]
    #[case("a b", RepoAlphabet)]
    #[case("a%2Fb", RepoAlphabet)]
    #[case("a\0b", RepoAlphabet)]
    #[case("rеpo", RepoAlphabet)]
    #[case(".", RepoEnds)]
    #[case("..", RepoEnds)]
    #[case(".git", RepoEnds)]
    #[case("-rf", RepoEnds)]
    #[case("a.", RepoEnds)]
    #[case("a-", RepoEnds)]
    #[case("a..b", RepoDots)]
    #[case("a.GIT", RepoEnding)]
    #[case("a.lock", RepoEnding)]
    #[case("settings", Reserved)]
    fn refused_repo_names_say_which_rule(#[case] name: &str, #[case] rule: InvalidName) {
        assert_eq!(name.parse::<RepoName>(), Err(rule));
    }

    #[rstest]
    #[case("Hello-World", "hello-world")]
    #[case("a", "a")]
    #[case("0", "0")]
    #[case("x_", "x_")]
    #[case("lib.rs", "lib.rs")]
    fn good_repo_names_are_folded_to_lower_case(#[case] typed: &str, #[case] stored: &str) {
        assert_eq!(typed.parse::<RepoName>().unwrap().as_str(), stored);
    }

    #[test]
    fn reserved_lists_are_sorted_and_lower_case_so_that_they_stay_readable() {
        for list in [RESERVED_USER_NAMES, RESERVED_REPO_NAMES] {
            assert!(list.iter().all(|name| name.to_lowercase() == **name));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics_and_accepted_names_are_stable(text: String) {
            if let Ok(name) = text.parse::<RepoName>() {
                prop_assert_eq!(name.as_str().parse::<RepoName>(), Ok(name.clone()));
                prop_assert!(!name.as_str().contains('/') && !name.as_str().starts_with('.'));
            }
            if let Ok(name) = text.parse::<UserName>() {
                prop_assert_eq!(name.as_str().parse::<UserName>(), Ok(name.clone()));
            }
        }
    }
}
