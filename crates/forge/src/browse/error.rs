//! Why something cannot be shown.

use crate::Fault;
use abide_git::{GitError, ReadError};
use tokio::task::JoinError;

/// Why something cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum BrowseError {
    /// No branch, tag or commit of that name.
    #[error("this branch, tag or commit does not exist")]
    NoSuchRevision,
    /// Nothing was pushed yet.
    #[error("this repository is empty; push a branch first")]
    Empty,
    /// The objects do not hold it, or not as what it was asked for.
    #[error(transparent)]
    Object(ReadError),
    /// The machine failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl BrowseError {
    /// Whether it is simply not there.
    pub fn is_absent(&self) -> bool {
        use ReadError::*;
        match self {
            Self::NoSuchRevision | Self::Empty => true,
            Self::Object(error) => matches!(error, NotFound | Ambiguous | NotADirectory | NotAFile | NotACommit),
            Self::Fault(_) => false,
        }
    }

    pub(super) fn interrupted(error: &JoinError) -> Self {
        Self::Fault(Fault::Internal(format!("reading objects was interrupted: {error}")))
    }
}

impl From<ReadError> for BrowseError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Git(error) => Self::Fault(error.into()),
            broken @ ReadError::Broken { .. } => Self::Fault(Fault::Internal(broken.to_string())),
            other => Self::Object(other),
        }
    }
}

impl From<GitError> for BrowseError {
    fn from(error: GitError) -> Self {
        Self::Fault(error.into())
    }
}
