//! Marks of a repository.

use crate::words::words;

words! {
    /// Who may read a repository without a role.
    Visibility {
        Public = "public",
        /// Only the owner and collaborators.
        Private = "private",
    }
}

impl Visibility {
    pub fn opposite(self) -> Self {
        match self {
            Self::Public => Self::Private,
            Self::Private => Self::Public,
        }
    }

    /// The one that fewer people may read.
    pub fn stricter(self, other: Self) -> Self {
        if self == Self::Private { self } else { other }
    }
}

words! {
    /// Source of authority for pushes.
    Governance {
        /// Accounts, roles and policy.
        Account = "account",
        /// Signed nostr state events.
        Nostr = "nostr",
    }
}

words! {
    /// Permission level of a collaborator; each includes the ones before. The owner counts as [`Role::Admin`].
    Role {
        Read = "read",
        /// Read and manage issues.
        Triage = "triage",
        /// Push.
        Write = "write",
        /// Push, and edit description, topics and homepage.
        Maintain = "maintain",
        Admin = "admin",
    }
}
