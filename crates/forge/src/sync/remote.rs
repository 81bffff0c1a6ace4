//! A clone URL as a remote of the fetcher, over the outbound gate.

use super::throttle::domain_of;
use abide_git::fetch::{Answering, Remote, RemoteError, RemoteRequest, Reply};
use abide_outbound::http::{HeaderName, HeaderValue, Method, header};
use abide_outbound::{Gate, GateError, Host, OutboundUrl};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Redirects of the first request that are followed.
const REDIRECTS: usize = 3;

/// Failure of the host rather than of one repository on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostFailure {
    /// The name, its addresses or its certificate are wrong: trying again soon is pointless.
    Lasting(String),
    /// No connection.
    Passing(String),
}

/// A repository at a clone URL.
pub(super) struct GuardedRemote {
    gate: Gate,
    idle: Duration,
    /// The clone URL, or the URL that its first request was redirected to.
    base: Mutex<String>,
    failure: Mutex<Option<HostFailure>>,
}

impl GuardedRemote {
    pub(super) fn new(gate: Gate, url: &OutboundUrl, idle: Duration) -> Self {
        let base = url.as_str().trim_end_matches('/').to_owned();
        Self { gate, idle, base: Mutex::new(base), failure: Mutex::new(None) }
    }

    /// The last failure of the host.
    pub(super) fn host_failure(&self) -> Option<HostFailure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn base(&self) -> String {
        self.base.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn exchange(&self, request: RemoteRequest) -> Result<Reply, RemoteError> {
        let suffix = format!("/{}", request.path());
        let mut url = parsed(&format!("{}{suffix}", self.base()))?;
        for _ in 0..=REDIRECTS {
            let answer = self.gate.open(self.request(&url, &request)).await.map_err(|error| self.failed(error))?;
            let location = match request.body() {
                None if answer.status.is_redirection() => answer.headers.get(header::LOCATION).cloned(),
                _ => None,
            };
            let next = location.and_then(|location| next_hop(&url, &location, &suffix));
            match next {
                Some((base, next)) => {
                    *self.base.lock().unwrap_or_else(PoisonError::into_inner) = base;
                    url = next;
                }
                None => {
                    let text = |name| answer.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
                    return Ok(Reply {
                        status: answer.status.as_u16(),
                        content_type: text(header::CONTENT_TYPE),
                        retry_after: text(header::RETRY_AFTER),
                        body: Box::new(answer.body),
                    });
                }
            }
        }
        Err(RemoteError::Unreachable(format!("the URL redirects more than {REDIRECTS} times")))
    }

    fn request(&self, url: &OutboundUrl, request: &RemoteRequest) -> abide_outbound::Request {
        let header = |(name, value): (&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let agent = (header::USER_AGENT, HeaderValue::from_static(concat!("git/2 abide/", env!("CARGO_PKG_VERSION"))));
        abide_outbound::Request {
            method: if request.body().is_some() { Method::POST } else { Method::GET },
            address: url.clone(),
            headers: request.headers().into_iter().map(header).chain([agent]).collect(),
            body: request.body().cloned().unwrap_or_default(),
            idle: self.idle,
        }
    }

    fn failed(&self, error: GateError) -> RemoteError {
        let text = error.public_message();
        let failure = match &error {
            GateError::Refused { .. } | GateError::Lookup { .. } | GateError::Tls { .. } => {
                Some(HostFailure::Lasting(text.clone()))
            }
            GateError::Connect { .. } | GateError::TimedOut(_) | GateError::Http(_) => {
                Some(HostFailure::Passing(text.clone()))
            }
            GateError::Crowded => None,
        };
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        match error {
            GateError::Crowded => RemoteError::Busy,
            GateError::TimedOut(time) => RemoteError::TimedOut(time),
            _ => RemoteError::Unreachable(text),
        }
    }
}

impl Remote for GuardedRemote {
    fn ask(&self, request: RemoteRequest) -> Answering<'_> {
        Box::pin(self.exchange(request))
    }
}

fn parsed(url: &str) -> Result<OutboundUrl, RemoteError> {
    url.parse().map_err(|rule| RemoteError::Unreachable(format!("the URL {rule}")))
}

/// Where a redirect of the first request leads: the new clone URL and the URL of the same request. Only redirects within a
/// host are followed, for renamed repositories and from http to https: requests are counted by domain, and a redirect
/// elsewhere would be a request that the other domain never had counted.
fn next_hop(from: &OutboundUrl, location: &HeaderValue, suffix: &str) -> Option<(String, OutboundUrl)> {
    let next = from.join(location.to_str().ok()?).ok()?;
    let base = next.as_str().strip_suffix(suffix)?.to_owned();
    let same_name = match (from.host(), next.host()) {
        (Host::Name(from), Host::Name(to)) => from == to,
        (Host::Ip(_), Host::Ip(_)) => domain_of(from) == domain_of(&next),
        _ => false,
    };
    same_name.then_some((base, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(from: &str, to: &str) -> Option<String> {
        let from: OutboundUrl = from.parse().unwrap();
        next_hop(&from, &HeaderValue::from_str(to).unwrap(), "/info/refs?service=git-upload-pack").map(|(base, _)| base)
    }

    #[test]
    fn only_redirects_of_the_same_request_within_a_host_are_followed() {
        let from = "http://git.example/old/x.git/info/refs?service=git-upload-pack";
        let path = "info/refs?service=git-upload-pack";
        assert_eq!(
            hop(from, &format!("https://git.example/new/x.git/{path}")).unwrap(),
            "https://git.example/new/x.git"
        );
        assert_eq!(hop(from, &format!("/new/x.git/{path}")).unwrap(), "http://git.example/new/x.git");
        for elsewhere in [
            format!("https://other.example/new/x.git/{path}"),
            format!("https://git.example.evil.net/x.git/{path}"),
            format!("https://user@git.example/x.git/{path}"),
            format!("http://169.254.169.254/x.git/{path}"),
            "https://git.example/login".to_owned(),
            "ftp://git.example/x".to_owned(),
            "\u{b}".escape_default().to_string(),
        ] {
            assert_eq!(hop(from, &elsewhere), None, "{elsewhere}");
        }
        let ip = "http://127.0.0.1:8000/x.git/info/refs?service=git-upload-pack";
        assert_eq!(hop(ip, &format!("http://127.0.0.1:8001/x.git/{path}")), None, "another port is another server");
        assert_eq!(hop(ip, &format!("/y.git/{path}")).unwrap(), "http://127.0.0.1:8000/y.git");
    }
}
