//! The marks a repository carries.

use crate::words::words;

words! {
    /// Who may read a repository without a role in it.
    Visibility {
        /// Everyone.
        Public = "public",
        /// Only the owner and collaborators.
        Private = "private",
    }
}

words! {
    /// Where the authority to push comes from.
    Governance {
        /// Accounts, roles and policy.
        Account = "account",
        /// Signed nostr state events.
        Nostr = "nostr",
    }
}

words! {
    /// What a collaborator may do, each including the ones before. The owner counts as [`Role::Admin`].
    Role {
        /// Read.
        Read = "read",
        /// Read and manage issues.
        Triage = "triage",
        /// Push.
        Write = "write",
        /// Push and edit what the repository says about itself.
        Maintain = "maintain",
        /// Everything.
        Admin = "admin",
    }
}
