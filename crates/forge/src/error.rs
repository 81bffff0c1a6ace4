//! Errors that several use cases share.
//!
//! Each use case has its own enum, whose messages are shown to people. A failure of the server itself is a [`Fault`],
//! which is logged with its cause and shown without it. Roads map each enum in one place.

use abide_core::policy::DenyCode;
use abide_core::scope::Scope;
use abide_git::GitError;
use abide_store::StoreError;

/// The server failed, not the caller.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    /// The free disk space is below the reserve of a setting.
    #[error(
        "the server's disk is nearly full: {free_percent}% of blocks or inodes are free, {setting} reserves {reserve}%; \
         reads still work; ask the administrator to free disk space"
    )]
    DiskFull {
        free_percent: u64,
        /// Free percentage required for a caller of this class.
        reserve: u64,
        /// The setting that requires it.
        setting: &'static str,
    },
    /// The queue of password checks is full.
    #[error("too many sign-ins at once; try again in a few seconds")]
    Crowded,
    /// The account was suspended or the credential revoked while the request ran.
    #[error("{REVOKED}")]
    Revoked,
    /// A bug: a state that the code rules out.
    #[error("{0}")]
    Internal(String),
}

/// Message for a client whose credential ended during its request.
pub(crate) const REVOKED: &str = "request ended: the account was suspended, or its token or key was removed";

impl Fault {
    /// Whether the client disconnected or was too slow; the server is well.
    pub fn is_clients(&self) -> bool {
        matches!(self, Self::Git(GitError::Client(_)))
    }

    /// Whether git had no free slot: nothing was done, and a retry can succeed.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Git(GitError::Busy { .. }))
    }

    /// Whether git or the database exceeded the time or memory of one request. The server is well; the request is too
    /// expensive.
    pub fn is_over_limit(&self) -> bool {
        matches!(
            self,
            Self::Git(GitError::TimedOut { .. } | GitError::UsedUp { .. }) | Self::Store(StoreError::TooSlow(_))
        )
    }

    /// Message for clients. It says that the server is full or busy; causes stay in the log.
    pub fn public_message(&self) -> String {
        match self {
            Self::DiskFull { .. }
            | Self::Crowded
            | Self::Revoked
            | Self::Git(GitError::Busy { .. } | GitError::RequestTooLarge(_)) => self.to_string(),
            Self::Store(StoreError::TooSlow(_)) => {
                "this request takes the database longer than the server allows; ask for less, such as a narrower search"
                    .to_owned()
            }
            fault if fault.is_over_limit() => {
                "this request needs more processor time or memory than the server allows; ask for less, such as a \
                 smaller file or a shorter history"
                    .to_owned()
            }
            _ => "internal server error; try again later".to_owned(),
        }
    }
}

/// Why a repository was not opened.
#[derive(Debug, thiserror::Error)]
pub enum Access {
    /// It does not exist, or the caller may not know of it. Both look the same.
    #[error("repository not found")]
    NotFound,
    /// The caller may see it, but not do this.
    #[error("{}", explain(*.0))]
    Denied(DenyCode),
    /// The token lacks a scope.
    #[error("this needs a token with the {0} scope; create one with that scope")]
    Scope(Scope),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<StoreError> for Access {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// Text of a denial for someone who may know that the repository exists.
fn explain(code: DenyCode) -> String {
    match code {
        DenyCode::Deleted | DenyCode::Private => "repository not found".into(),
        DenyCode::Suspended => "this account is suspended and read-only; ask the site administrator".into(),
        DenyCode::Archived(action) => format!("repository is archived; {}", action.disabled()),
        DenyCode::LoginRequired => "authentication required".into(),
        DenyCode::OtherSide => "only the other party of the transfer can do this".into(),
        DenyCode::RoleTooLow { needed } => {
            format!("you need the {needed} role in this repository; ask its owner to change your access")
        }
    }
}
