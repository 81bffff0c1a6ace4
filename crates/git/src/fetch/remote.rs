//! One HTTP exchange with another git server, as the fetcher sees it.

use crate::ProtocolVersion;
use bytes::Bytes;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::AsyncRead;

/// Service of a fetch in smart HTTP.
const SERVICE: &str = "git-upload-pack";

/// A server with one repository. Implementations append [`RemoteRequest::path`] to the clone URL, and limit the time to the
/// head of an answer and the silence within its body.
///
/// Redirects are theirs to judge, too. As in git, a redirect of the advertisement moves the clone URL, so that later
/// requests go to the new server. A redirect that reaches the fetcher is an error.
pub trait Remote: Send + Sync {
    /// Sends a request and returns when the head of its answer has arrived.
    fn ask(&self, request: RemoteRequest) -> Answering<'_>;
}

/// A pending answer.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Reply, RemoteError>> + Send + 'a>>;

/// Body of an answer. Silence over the limit of the implementation is an error of the kind `TimedOut`.
pub type Body = Box<dyn AsyncRead + Send + Unpin>;

/// Head of an answer, and its body as a stream.
pub struct Reply {
    pub status: u16,
    /// Value of `Content-Type`.
    pub content_type: Option<String>,
    /// Value of `Retry-After`.
    pub retry_after: Option<String>,
    pub body: Body,
}

/// Failure before the head of an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Look-up, guard, connection, TLS or HTTP failed. The text may be shown to users.
    #[error("{0}")]
    Unreachable(String),
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// Our own limit of concurrent requests; the server was not asked.
    #[error("too many outbound requests are running; try again later")]
    Busy,
}

/// A request of the fetcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRequest {
    /// `None` asks for the advertisement.
    body: Option<Bytes>,
    protocol: ProtocolVersion,
}

impl RemoteRequest {
    /// Asks what the server offers.
    pub(super) fn advertisement() -> Self {
        Self { body: None, protocol: ProtocolVersion::V2 }
    }

    /// Sends a command to `git upload-pack`.
    pub(super) fn command(body: Bytes, protocol: ProtocolVersion) -> Self {
        Self { body: Some(body), protocol }
    }

    /// Path and query, to be appended to the clone URL after a slash.
    pub fn path(&self) -> &'static str {
        match self.body {
            None => "info/refs?service=git-upload-pack",
            Some(_) => SERVICE,
        }
    }

    /// Body of a POST; `None` is a GET.
    pub fn body(&self) -> Option<&Bytes> {
        self.body.as_ref()
    }

    /// Protocol version of the request.
    pub fn protocol(&self) -> ProtocolVersion {
        self.protocol
    }

    /// Names and values of the headers that the protocol needs.
    pub fn headers(&self) -> Vec<(&'static str, &'static str)> {
        let mut headers = match self.body {
            None => vec![("accept", ADVERTISEMENT)],
            Some(_) => vec![("content-type", "application/x-git-upload-pack-request"), ("accept", RESULT)],
        };
        headers.extend(self.protocol.as_env().map(|version| ("git-protocol", version)));
        headers
    }

    /// Content type of a smart answer.
    pub(super) fn answer_type(&self) -> &'static str {
        if self.body.is_some() { RESULT } else { ADVERTISEMENT }
    }
}

const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
const RESULT: &str = "application/x-git-upload-pack-result";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_headers_of_smart_http() {
        let get = RemoteRequest::advertisement();
        assert_eq!((get.path(), get.body()), ("info/refs?service=git-upload-pack", None));
        assert_eq!(get.headers(), [("accept", ADVERTISEMENT), ("git-protocol", "version=2")]);
        let post = RemoteRequest::command("0000".into(), ProtocolVersion::V0);
        assert_eq!((post.path(), post.body()), ("git-upload-pack", Some(&Bytes::from_static(b"0000"))));
        assert_eq!(post.headers(), [("content-type", "application/x-git-upload-pack-request"), ("accept", RESULT)]);
    }
}
