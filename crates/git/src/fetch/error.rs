//! Reasons why a fetch from another server failed, and the class that decides when it is tried again.

use super::remote::RemoteError;
use super::request::MAX_WANTS;
use crate::pktline::PacketReadError;
use crate::receive::printable;
use abide_core::Oid;
use gix::bstr::ByteSlice as _;
use std::io;
use std::time::Duration;

/// Reason why another server's objects could not be fetched. Texts of the server are shortened and printable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// No answer: the name, address, connection, TLS or HTTP of the server failed.
    #[error("the server is unreachable: {0}")]
    Unreachable(String),
    #[error("too many outbound requests are running; try again later")]
    Busy,
    /// Silence over the idle limit.
    #[error("the server was silent for too long: {0}")]
    Idle(String),
    #[error("the connection to the server ended in the middle of its answer: {0}")]
    Cut(String),
    #[error("the server redirects (status {0}) to a URL that is not followed; use the final clone URL")]
    Redirected(u16),
    #[error("the server refuses the repository (status {0}); it must be readable without signing in")]
    Refused(u16),
    #[error("the server has no such repository (status {0}); check the clone URL")]
    NotFound(u16),
    #[error("the server limits the rate of requests; try again later")]
    RateLimited {
        /// Value of `Retry-After`, at most a day.
        retry_after: Option<Duration>,
    },
    #[error("the server failed with status {0}; try again later")]
    Failing(u16),
    /// Another content type than that of smart HTTP: a web page, or files of a repository served without git.
    #[error("the answer has the content type {0:?}, which is not smart HTTP of git; check the clone URL")]
    NotSmart(String),
    /// An error message of git or of the server.
    #[error("the server reports: {0}")]
    Denied(String),
    /// A wanted object that the server lacks or does not give out. The others can be asked for without it.
    #[error("the server does not give out {0}")]
    NotOurRef(Oid),
    #[error("the answer breaks git's protocol: {0}")]
    Protocol(String),
    #[error("the repository uses the object format {0:?}; only sha1 is supported")]
    ObjectFormat(String),
    #[error("the server has a shallow clone, whose history is incomplete; use a complete repository")]
    Shallow,
    #[error("{what} of the server exceeds the limit of {limit}")]
    TooLarge { what: &'static str, limit: usize },
    #[error("one fetch asks for 1 to {MAX_WANTS} objects, not for {0}; ask in several steps")]
    WantCount(usize),
}

/// Class of a failure: what it says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FetchClass {
    /// Our own limits; nothing is known about the server.
    Local,
    Unreachable,
    /// Too slow, or cut off.
    Idle,
    RateLimited,
    /// The server runs and does not serve this repository.
    Refused,
    NotFound,
    /// A failure inside the server.
    Failing,
    /// Another protocol than git's, or a broken one.
    Protocol,
    TooLarge,
    /// The server serves the repository without this object.
    NotOurRef,
}

impl FetchError {
    pub fn class(&self) -> FetchClass {
        match self {
            Self::Busy | Self::WantCount(_) => FetchClass::Local,
            Self::Unreachable(_) => FetchClass::Unreachable,
            Self::Idle(_) | Self::Cut(_) => FetchClass::Idle,
            Self::RateLimited { .. } => FetchClass::RateLimited,
            Self::Redirected(_) | Self::Refused(_) | Self::Denied(_) => FetchClass::Refused,
            Self::NotFound(_) => FetchClass::NotFound,
            Self::Failing(_) => FetchClass::Failing,
            Self::NotSmart(_) | Self::Protocol(_) | Self::ObjectFormat(_) | Self::Shallow => FetchClass::Protocol,
            Self::TooLarge { .. } => FetchClass::TooLarge,
            Self::NotOurRef(_) => FetchClass::NotOurRef,
        }
    }

    /// An answer that breaks the protocol, with the bytes that do.
    pub(super) fn unexpected(what: &str, bytes: &[u8]) -> Self {
        Self::Protocol(format!("{what} {:?}", printable(bytes)))
    }

    /// The failure that an error message of the server reports.
    pub(super) fn reported(message: &[u8]) -> Self {
        let message = message.trim();
        refused_oid(message).map_or_else(|| Self::Denied(printable(message)), Self::NotOurRef)
    }
}

/// The object that an error message refuses to give out: in the words of git, or of JGit.
fn refused_oid(message: &[u8]) -> Option<Oid> {
    let after = |words: &[u8]| message.find(words).map(|at| &message[at + words.len()..]);
    let oid = |text: &[u8]| Oid::from_hex(text.get(..40)?).ok();
    let in_git = after(b"not our ref ").and_then(oid);
    in_git.or_else(|| after(b"want ").filter(|rest| rest.contains_str(b" not valid")).and_then(oid))
}

impl From<RemoteError> for FetchError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Unreachable(reason) => Self::Unreachable(reason),
            RemoteError::TimedOut(_) => Self::Idle(error.to_string()),
            RemoteError::Busy => Self::Busy,
        }
    }
}

impl From<io::Error> for FetchError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Idle(error.to_string()),
            _ => Self::Cut(error.to_string()),
        }
    }
}

impl From<PacketReadError> for FetchError {
    fn from(error: PacketReadError) -> Self {
        match error {
            PacketReadError::Io(error) => error.into(),
            PacketReadError::Truncated => Self::Cut("a packet is incomplete".into()),
            PacketReadError::Packet(error) => Self::Protocol(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_object_is_found_in_the_words_of_git_and_of_jgit() {
        let oid: Oid = "1111111111111111111111111111111111111111".parse().unwrap();
        for message in [
            format!("upload-pack: not our ref {oid}\n"),
            format!("not our ref {oid}"),
            format!("want {oid} not valid"),
            format!("fatal: remote error: upload-pack: not our ref {oid}"),
        ] {
            assert_eq!(FetchError::reported(message.as_bytes()), FetchError::NotOurRef(oid), "{message}");
        }
    }

    #[test]
    fn other_messages_are_shown_without_control_characters() {
        for message in ["not our ref ", "not our ref 11", "want 1111", "access denied", ""] {
            assert_eq!(FetchError::reported(message.as_bytes()), FetchError::Denied(message.trim().into()));
        }
        let error = FetchError::reported(b"\x1b[31mred\x07");
        assert_eq!(error.to_string(), "the server reports: \u{fffd}[31mred\u{fffd}");
        assert_eq!(error.class(), FetchClass::Refused);
    }
}
