//! Who signed an event, as far as the accounts of this server are concerned.

use super::{Prefix, Refusal};

/// What the key of an author is to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signer {
    /// No account has the key.
    Stranger,
    /// The key has an account without a username: it was made for a repository, and nobody has chosen a name yet.
    Nameless,
    /// An account with a username has the key.
    Account,
    /// The account of the key is suspended.
    Suspended,
}

/// The account of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAccount {
    /// Whether it has a username.
    pub named: bool,
    /// Whether it is suspended.
    pub suspended: bool,
}

impl Signer {
    /// The signer behind a key, given the account that has the key.
    pub fn of(account: Option<KeyAccount>) -> Self {
        match account {
            None => Self::Stranger,
            Some(KeyAccount { suspended: true, .. }) => Self::Suspended,
            Some(KeyAccount { named: false, .. }) => Self::Nameless,
            Some(KeyAccount { named: true, .. }) => Self::Account,
        }
    }

    /// Whether quotas for strangers apply. An account without a username is one that anybody can have by pushing once.
    pub fn is_stranger(self) -> bool {
        matches!(self, Self::Stranger | Self::Nameless)
    }
}

/// Whether a signature counts at all. Every road asks this before it does anything on behalf of a key.
pub fn admit(signer: Signer) -> Result<(), Refusal> {
    match signer {
        Signer::Stranger | Signer::Nameless | Signer::Account => Ok(()),
        Signer::Suspended => Err(suspended()),
    }
}

/// The refusal for the key of a suspended account.
pub fn suspended() -> Refusal {
    Refusal::new(Prefix::Blocked, "the account of this key is suspended; ask the administrator of this site")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_account_gives_one_signer_and_only_a_suspended_one_is_refused() {
        let account = |named, suspended| Signer::of(Some(KeyAccount { named, suspended }));
        let cases = [
            (Signer::of(None), Signer::Stranger, true, true),
            (account(false, false), Signer::Nameless, true, true),
            (account(true, false), Signer::Account, false, true),
            (account(false, true), Signer::Suspended, false, false),
            (account(true, true), Signer::Suspended, false, false),
        ];
        for (found, expected, stranger, admitted) in cases {
            assert_eq!(found, expected);
            assert_eq!((found.is_stranger(), admit(found).is_ok()), (stranger, admitted), "{found:?}");
        }
        assert!(suspended().to_string().starts_with("blocked: the account of this key is suspended"));
    }
}
