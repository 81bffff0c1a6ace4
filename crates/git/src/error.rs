//! Internal errors. Each message says what failed, the rule or path, and the next step.
//!
//! Mistakes of a *client* are [`ReceiveError`](crate::ReceiveError) or [`RefTxError`](crate::RefTxError). A
//! [`GitError`] is for the operator and is logged, not shown to clients without an account.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Failure of a repository operation or of the git binary.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The binary did not start.
    #[error("cannot start {}: {source}; install git or set git.binary", binary.display())]
    Start { binary: PathBuf, source: io::Error },
    /// The binary is older than the minimum version, or is not git.
    #[error("git 2.39 or later is needed, but the binary says {found:?}; install a later one")]
    Version {
        /// Output of `git version`.
        found: String,
    },
    /// The binary does not advertise the capabilities that the probe expects.
    #[error("git upload-pack advertised something unexpected ({0}); report this with the output of `git version`")]
    Probe(String),
    /// A git call exited with a failure.
    #[error("git {what} failed ({status}): {stderr}")]
    Failed {
        /// Name of the git command.
        what: &'static str,
        /// Exit code or signal.
        status: String,
        /// Tail of stderr.
        stderr: String,
    },
    /// A git call exceeded its time limit and was killed.
    #[error("git {what} was ended after {} s; raise the limit or look at the repository's size", after.as_secs())]
    TimedOut {
        /// Name of the git command.
        what: &'static str,
        after: Duration,
    },
    /// A process exceeded its memory or CPU limit.
    #[error("git {what} needs more {of} than one process may have; raise `git.memory` or look at the repository")]
    UsedUp {
        /// Name of the git command.
        what: &'static str,
        /// Name of the resource: memory or processor time.
        of: &'static str,
    },
    /// All slots for this kind of work are taken.
    #[error("the server is busy with other {what}; try again in a moment")]
    Busy {
        /// Kind of work.
        what: &'static str,
    },
    /// A fetch request exceeds the size limit.
    #[error("the fetch request is larger than {0} bytes, the limit; fetch fewer refs at a time")]
    RequestTooLarge(u64),
    /// The client's connection failed or stalled.
    #[error("the client closed the connection: {0}")]
    Client(io::Error),
    /// Disk I/O failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The attempted operation.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A ref or object could not be read.
    #[error("cannot read the refs of {}: {detail}; run `abide doctor`", repo.display())]
    Refs { repo: PathBuf, detail: String },
    /// A lock file already exists.
    #[error("{} exists: another process is writing, or a crashed one left it and the next lease holder removes it", .0.display())]
    Locked(PathBuf),
    /// Objects were proved complete in another repository than the target.
    #[error("objects for {} were checked in another repository; nothing was changed, try again", .0.display())]
    Unproved(PathBuf),
    /// The key of an incoming area contains characters that could form a path.
    #[error("{0:?} is not a valid key: use at most 64 letters, digits, `-` and `_`")]
    InvalidKey(String),
}

impl GitError {
    /// Wraps an I/O error with the attempted operation and the path.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// Runs blocking file work on tokio's blocking pool.
pub(crate) async fn blocking<T, F>(work: F) -> T
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => panic!("blocking file work is only cancelled when the runtime shuts down"),
    }
}
