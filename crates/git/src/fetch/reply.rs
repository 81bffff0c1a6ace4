//! Checks of an HTTP answer, and the packets of its body within a size limit.

use super::error::FetchError;
use super::remote::{Body, Remote, RemoteRequest, Reply};
use crate::pktline::{Packet, PacketReader};
use crate::receive::printable;
use std::time::Duration;

/// Longest accepted `Retry-After`.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// Sends a request and returns the body of its answer, if that is smart HTTP.
pub(super) async fn ask(remote: &dyn Remote, request: RemoteRequest) -> Result<Body, FetchError> {
    let expected = request.answer_type();
    let reply = remote.ask(request).await?;
    check(&reply, expected)?;
    Ok(reply.body)
}

fn check(reply: &Reply, expected: &str) -> Result<(), FetchError> {
    let wait = || reply.retry_after.as_deref().and_then(seconds);
    match reply.status {
        200 => {}
        status @ 300..400 => return Err(FetchError::Redirected(status)),
        status @ (404 | 410) => return Err(FetchError::NotFound(status)),
        429 => return Err(FetchError::RateLimited { retry_after: wait() }),
        // A server that says when to come back limits the rate, too.
        503 if wait().is_some() => return Err(FetchError::RateLimited { retry_after: wait() }),
        status @ 500..600 => return Err(FetchError::Failing(status)),
        status => return Err(FetchError::Refused(status)),
    }
    let named = reply.content_type.as_deref().unwrap_or_default();
    let kind = named.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case(expected) { Ok(()) } else { Err(FetchError::NotSmart(printable(named.as_bytes()))) }
}

/// `Retry-After` in seconds. Its other form, a date, needs the clock of the server to be right.
fn seconds(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

/// Packets of one part of an answer, with a limit on their bytes.
pub(super) struct Packets {
    reader: PacketReader<Body>,
    /// Name of the part.
    what: &'static str,
    limit: usize,
    left: usize,
}

impl Packets {
    pub fn new(body: Body, what: &'static str, limit: usize) -> Self {
        Self { reader: PacketReader::new(body), what, limit, left: limit }
    }

    /// The next packet. The end of the body is an error, because each part ends with a packet.
    pub async fn next(&mut self) -> Result<Packet, FetchError> {
        let packet = self.reader.next().await?;
        let packet = packet.ok_or_else(|| FetchError::Cut(format!("{} has no end", self.what)))?;
        let length = 4 + if let Packet::Data(data) = &packet { data.len() } else { 0 };
        let over = FetchError::TooLarge { what: self.what, limit: self.limit };
        self.left = self.left.checked_sub(length).ok_or(over)?;
        if let Packet::Data(data) = &packet {
            check_error(data)?;
        }
        Ok(packet)
    }
}

/// Recognises the packet by which git reports an error instead of an answer.
pub(super) fn check_error(data: &[u8]) -> Result<(), FetchError> {
    data.strip_prefix(b"ERR ").map_or(Ok(()), |message| Err(FetchError::reported(message)))
}

/// A line without its line feed, which is optional.
pub(super) fn line(data: &[u8]) -> &[u8] {
    data.strip_suffix(b"\n").unwrap_or(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(status: u16, content_type: Option<&str>, retry_after: Option<&str>) -> Result<(), FetchError> {
        let [content_type, retry_after] = [content_type, retry_after].map(|text| text.map(str::to_owned));
        check(&Reply { status, content_type, retry_after, body: Box::new(tokio::io::empty()) }, "application/x-git")
    }

    #[test]
    fn only_a_smart_answer_is_read() {
        for accepted in ["application/x-git", "Application/X-Git", "application/x-git; charset=utf-8"] {
            assert_eq!(checked(200, Some(accepted), None), Ok(()), "{accepted}");
        }
        for refused in [Some("text/plain"), Some("text/html; charset=utf-8"), Some("application/x-git-other"), None] {
            let text = refused.unwrap_or_default().to_owned();
            assert_eq!(checked(200, refused, None), Err(FetchError::NotSmart(text)));
        }
    }

    #[test]
    fn every_status_has_its_error() {
        let limited = |seconds| FetchError::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
        for (status, retry_after, error) in [
            (204, None, FetchError::Refused(204)),
            (301, None, FetchError::Redirected(301)),
            (401, None, FetchError::Refused(401)),
            (403, None, FetchError::Refused(403)),
            (404, None, FetchError::NotFound(404)),
            (410, None, FetchError::NotFound(410)),
            (429, None, FetchError::RateLimited { retry_after: None }),
            (429, Some("Wed, 21 Oct 2026 07:28:00 GMT"), FetchError::RateLimited { retry_after: None }),
            (429, Some(" 30 "), limited(30)),
            (503, Some("99999999"), limited(86_400)),
            (503, None, FetchError::Failing(503)),
            (500, Some("30"), FetchError::Failing(500)),
        ] {
            assert_eq!(checked(status, Some("application/x-git"), retry_after), Err(error), "{status}");
        }
    }
}
