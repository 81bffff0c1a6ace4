//! Scopes of access tokens.

use crate::repo::Visibility;
use crate::words::words;
use std::fmt;

words! {
    /// One permission of a token.
    Scope {
        /// Read repositories that its user may read.
        RepoRead = "repo:read",
        /// Everything its user may do with repositories, including push.
        Repo = "repo",
        /// Read the account.
        UserRead = "user:read",
        /// Read and change the account: profile and follows.
        User = "user",
        /// Read the account's SSH keys.
        KeysRead = "keys:read",
        /// Read, add and remove the account's SSH keys. A key gives access to everything the account may read and push
        /// to.
        Keys = "keys",
        /// Read and change notifications; those of private repositories only together with `repo:read`.
        Notifications = "notifications",
        /// Manage webhooks; those of private repositories only together with `repo:read`.
        Hooks = "hooks",
        /// Site administration, for site admins.
        Admin = "admin",
    }
}

impl Scope {
    /// Whether a token with `self` passes where `needed` is required.
    pub fn covers(self, needed: Self) -> bool {
        let pairs = [(Self::Repo, Self::RepoRead), (Self::User, Self::UserRead), (Self::Keys, Self::KeysRead)];
        self == needed || pairs.contains(&(self, needed))
    }
}

/// Scopes of one token. An empty set permits nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Scopes(Vec<Scope>);

/// Invalid list of scopes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScopes {
    #[error("unknown scope: {0}")]
    Unknown(#[from] crate::words::UnknownWord),
    #[error("give at least one scope, e.g. repo")]
    Empty,
}

impl Scopes {
    /// Exactly these scopes.
    pub fn of(scopes: Vec<Scope>) -> Self {
        Self(scopes)
    }

    /// Parses a comma-separated list.
    pub fn parse(text: &str) -> Result<Self, InvalidScopes> {
        let mut scopes = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let scope = word.parse()?;
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        if scopes.is_empty() { Err(InvalidScopes::Empty) } else { Ok(Self(scopes)) }
    }

    /// Whether a token with these scopes may know that a repository of this visibility exists. Without a repository
    /// scope, only public ones.
    pub fn reach(&self, visibility: Visibility) -> bool {
        visibility == Visibility::Public || self.allow(Scope::RepoRead)
    }

    /// Whether any scope covers the needed one.
    pub fn allow(&self, needed: Scope) -> bool {
        self.0.iter().any(|scope| scope.covers(needed))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{scope}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wide_scope_covers_its_narrow_one() {
        for &have in Scope::ALL {
            for &need in Scope::ALL {
                let expected = have == need
                    || (have == Scope::Repo && need == Scope::RepoRead)
                    || (have == Scope::User && need == Scope::UserRead)
                    || (have == Scope::Keys && need == Scope::KeysRead);
                assert_eq!(have.covers(need), expected, "{have} for {need}");
            }
        }
    }

    #[test]
    fn only_the_scopes_of_repositories_reach_private_ones() {
        for &scope in Scope::ALL {
            let scopes = Scopes::of(vec![scope]);
            assert!(scopes.reach(Visibility::Public));
            assert_eq!(scopes.reach(Visibility::Private), matches!(scope, Scope::Repo | Scope::RepoRead), "{scope}");
        }
        assert!(Scopes::of(vec![Scope::Hooks, Scope::RepoRead]).reach(Visibility::Private));
    }

    #[test]
    fn an_empty_set_allows_nothing() {
        assert!(Scope::ALL.iter().all(|&scope| !Scopes::default().allow(scope)));
    }

    #[test]
    fn lists_are_read_and_written_and_typos_named() {
        assert_eq!(Scopes::parse("repo, user,repo").unwrap().to_string(), "repo,user");
        assert_eq!(Scopes::parse(" ,"), Err(InvalidScopes::Empty));
        let message = Scopes::parse("repo,rep").unwrap_err().to_string();
        assert!(message.contains("\"rep\" is not one of repo:read, repo,"), "{message}");
    }
}
