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
    #[error("there is nothing of that name here")]
    NotFound,
    /// More than one object begins with these digits.
    #[error("more than one object begins with these digits; give more of them")]
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
    #[error("the two have no common history; compare others")]
    Unrelated,
    /// The answer lies farther away than one request may walk.
    #[error("this lies too far back in the history to be looked up here; use a clone")]
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
