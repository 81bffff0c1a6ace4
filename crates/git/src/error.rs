//! Errors of the machinery. Each says what happened, which rule or path, and what to do.
//!
//! What a *client* did wrong is [`ReceiveError`](crate::ReceiveError) or [`RefTxError`](crate::RefTxError); a
//! [`GitError`] is the operator's business and is logged, not shown to a stranger.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a repository or the git binary could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The binary could not be started at all.
    #[error("cannot start {}: {source}; install git or set git.binary", binary.display())]
    Start {
        /// What was to be started.
        binary: PathBuf,
        /// Why it was not.
        source: io::Error,
    },
    /// The binary is older than what Abide relies on, or is not git.
    #[error("git 2.39 or later is needed, but the binary says {found:?}; install a later one")]
    Version {
        /// What `git version` printed.
        found: String,
    },
    /// The binary does not advertise what the probe expects.
    #[error("git upload-pack advertised something unexpected ({0}); report this with the output of `git version`")]
    Probe(String),
    /// A call ended with a failure.
    #[error("git {what} failed ({status}): {stderr}")]
    Failed {
        /// The git command.
        what: &'static str,
        /// Exit code or signal.
        status: String,
        /// The end of what it printed.
        stderr: String,
    },
    /// A call took longer than its limit and was ended.
    #[error("git {what} was ended after {} s; raise the limit or look at the repository's size", after.as_secs())]
    TimedOut {
        /// The git command.
        what: &'static str,
        /// The limit.
        after: Duration,
    },
    /// A process needed more than the kernel gives it.
    #[error("git {what} needs more {of} than one process may have; raise `git.memory` or look at the repository")]
    UsedUp {
        /// The git command.
        what: &'static str,
        /// Memory or processor time.
        of: &'static str,
    },
    /// As many processes of this kind are running as the configuration allows.
    #[error("the server is busy with other {what}; try again in a moment")]
    Busy {
        /// Which kind of work.
        what: &'static str,
    },
    /// A request is longer than any that a git client sends.
    #[error("the fetch request is larger than {0} bytes, the limit; fetch fewer refs at a time")]
    RequestTooLarge(u64),
    /// The client's side of a stream failed or stood still.
    #[error("the client closed the connection: {0}")]
    Client(io::Error),
    /// Reading or writing the disk failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A ref or object could not be read.
    #[error("cannot read the refs of {}: {detail}; run `abide doctor`", repo.display())]
    Refs {
        /// The repository.
        repo: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A lock file is in the way.
    #[error("{} exists: another process is writing, or a crashed one left it and the next lease holder removes it", .0.display())]
    Locked(PathBuf),
    /// Objects were proved complete in another repository than the one that should take them.
    #[error("objects for {} were checked in another repository; nothing was changed, try again", .0.display())]
    Unproved(PathBuf),
    /// The key of an incoming area could be misread as a path.
    #[error("{0:?} is not a valid key: use at most 64 letters, digits, `-` and `_`")]
    InvalidKey(String),
}

impl GitError {
    /// An I/O error with what was attempted and where.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// Runs blocking file work on the pool that is made for it.
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
