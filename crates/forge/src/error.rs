//! Errors that several use cases share.
//!
//! Each use case has an enum of its own whose messages are shown to people; what is nobody's fault but the machine's is a
//! [`Fault`], which is logged with its cause and shown without it. Roads map each enum in one place.

use abide_core::policy::DenyCode;
use abide_core::scope::Scope;
use abide_git::GitError;
use abide_store::StoreError;

/// The machine failed, not the caller.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git or the disk.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is too little room left to accept anything.
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
    /// So many passwords wait to be checked that another one is not taken on.
    #[error("too many sign-ins at once; try again in a few seconds")]
    Crowded,
    /// The account was suspended, or the credential revoked, while the work went on.
    #[error("{REVOKED}")]
    Revoked,
    /// Something that cannot happen did.
    #[error("{0}")]
    Internal(String),
}

/// The reason that a client hears whose work ended with its credential.
pub(crate) const REVOKED: &str = "request ended: the account was suspended, or its token or key was removed";

impl Fault {
    /// Whether only the client's side failed (gone, or too slow): nothing is wrong with this server.
    pub fn is_clients(&self) -> bool {
        matches!(self, Self::Git(GitError::Client(_)))
    }

    /// Whether git had no slot for the work: nothing was done, and it may be done later.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Git(GitError::Busy { .. }))
    }

    /// Whether git or the database exceeded the time or memory of one request. The server is well; the question costs
    /// too much.
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

/// Why a repository was not handed out.
#[derive(Debug, thiserror::Error)]
pub enum Access {
    /// There is none, or the caller may not know of it. Both look the same.
    #[error("repository not found")]
    NotFound,
    /// The caller may see it, but not do this.
    #[error("{}", explain(*.0))]
    Denied(DenyCode),
    /// The token they came with is not made for this.
    #[error("this needs a token with the {0} scope; create one with that scope")]
    Scope(Scope),
    /// The machine failed.
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
