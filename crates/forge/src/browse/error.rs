//! Errors of browsing.

use crate::Fault;
use abide_git::{GitError, ReadError};

/// Reason why something cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum BrowseError {
    #[error("this branch, tag or commit does not exist")]
    NoSuchRevision,
    /// Nothing was pushed yet.
    #[error("this repository is empty; push a branch first")]
    Empty,
    /// The object is missing, or of another type than requested.
    #[error(transparent)]
    Object(ReadError),
    /// An internal failure.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl BrowseError {
    /// Whether the requested thing does not exist.
    pub fn is_absent(&self) -> bool {
        use ReadError::*;
        match self {
            Self::NoSuchRevision | Self::Empty => true,
            Self::Object(error) => matches!(error, NotFound | Ambiguous | NotADirectory | NotAFile | NotACommit),
            Self::Fault(_) => false,
        }
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
