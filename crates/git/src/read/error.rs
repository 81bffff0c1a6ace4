//! Why something could not be read.
//!
//! A visitor may ask for anything, so what is absent or of another kind is an answer of its own, apart from what is
//! wrong with the repository.

use crate::GitError;
use std::path::PathBuf;

/// Why an object, path or range could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such object, or no such path in that commit.
    #[error("this path or object does not exist")]
    NotFound,
    /// More than one object begins with these digits.
    #[error("this short id is ambiguous; use more digits")]
    Ambiguous,
    /// The path leads to a file, symbolic link or submodule.
    #[error("this path is not a directory")]
    NotADirectory,
    /// The path or id leads to a directory, submodule or commit.
    #[error("this path is not a file")]
    NotAFile,
    /// The id leads to a tree or blob.
    #[error("this object is not a commit")]
    NotACommit,
    /// The two commits have no common history.
    #[error("there is no common history to compare")]
    Unrelated,
    /// The answer lies farther away than one request may walk.
    #[error("this is too far back in the history; use a clone")]
    TooFar,
    /// The object, or one that it is stored as a difference to, takes more memory than one request may.
    #[error("this is too large to be shown here; use a clone")]
    TooLarge,
    /// An object that should be there is not, or does not parse.
    #[error("cannot read {}: {detail}; run `abide doctor`", repo.display())]
    Broken {
        /// The repository.
        repo: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The git process or the disk failed.
    #[error(transparent)]
    Git(#[from] GitError),
}
