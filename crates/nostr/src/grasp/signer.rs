//! Signer of an event, in relation to the accounts of this server.

use super::{Prefix, Refusal};

/// Relation of an author's key to the accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signer {
    /// No account has the key.
    Stranger,
    /// The key's account has no username: it was created for a repository, and its holder has not chosen a name.
    Nameless,
    /// The key's account has a username.
    Account,
    /// The key's account is suspended.
    Suspended,
}

/// The account of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAccount {
    /// Whether it has a username.
    pub named: bool,
    pub suspended: bool,
}

impl Signer {
    /// Signer for the account of a key.
    pub fn of(account: Option<KeyAccount>) -> Self {
        match account {
            None => Self::Stranger,
            Some(KeyAccount { suspended: true, .. }) => Self::Suspended,
            Some(KeyAccount { named: false, .. }) => Self::Nameless,
            Some(KeyAccount { named: true, .. }) => Self::Account,
        }
    }

    /// Whether the quotas of strangers apply. Anyone can get an account without a username by pushing once.
    pub fn is_stranger(self) -> bool {
        matches!(self, Self::Stranger | Self::Nameless)
    }
}

/// Whether a signature counts at all. Every entry point checks this before it acts on behalf of a key.
pub fn admit(signer: Signer) -> Result<(), Refusal> {
    match signer {
        Signer::Stranger | Signer::Nameless | Signer::Account => Ok(()),
        Signer::Suspended => Err(suspended()),
    }
}

/// Refusal for the key of a suspended account.
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
