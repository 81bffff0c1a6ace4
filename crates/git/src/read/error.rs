//! Read errors.
//!
//! A visitor may request anything, so a missing object or one of another type has its own variant, separate from damage
//! in the repository.

use crate::GitError;
use std::path::PathBuf;

/// Failure to read an object, path or range.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such object, or no such path in that commit.
    #[error("this path or object does not exist")]
    NotFound,
    /// More than one object begins with these digits.
    #[error("this short id is ambiguous; use more digits")]
    Ambiguous,
    /// The path is a file, symbolic link or submodule.
    #[error("this path is not a directory")]
    NotADirectory,
    /// The path or id is a directory, submodule or commit.
    #[error("this path is not a file")]
    NotAFile,
    /// The id is a tree or blob.
    #[error("this object is not a commit")]
    NotACommit,
    /// The two commits have no common history.
    #[error("there is no common history to compare")]
    Unrelated,
    /// The result is further away than one request may walk.
    #[error("this is too far back in the history; use a clone")]
    TooFar,
    /// The object, or one that it is stored as a difference to, takes more memory than one request may.
    #[error("this is too large to be shown here; use a clone")]
    TooLarge,
    /// A referenced object is missing or does not parse.
    #[error("cannot read {}: {detail}; run `abide doctor`", repo.display())]
    Broken { repo: PathBuf, detail: String },
    /// The git process or the disk failed.
    #[error(transparent)]
    Git(#[from] GitError),
}
