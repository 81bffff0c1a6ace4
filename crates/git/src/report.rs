//! The server's part of a push: the result of each ref, and messages for the user.

use crate::Capabilities;
use crate::pktline::{BAND_DATA, BAND_ERROR, BAND_PROGRESS, MAX_DATA, put_data, put_flush, put_parts, put_sideband};
use abide_core::RefName;
use bytes::{Bytes, BytesMut};

/// An empty progress packet, sent while a side-band client waits, as git does.
pub const KEEPALIVE: &[u8] = b"0005\x02";

/// Longest reason after a ref name.
const MAX_REASON: usize = 1000;

/// Result of one ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefResult {
    Ok,
    /// Refused, with the reason.
    Ng(String),
}

/// Result of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether the pack was accepted, or why not.
    pub unpack: Result<(), String>,
    /// Result of each ref, in the order of the commands.
    pub refs: Vec<(RefName, RefResult)>,
}

impl Report {
    /// Encodes the report with its final flush; empty if the client wants neither a report nor side-bands.
    pub fn encode(&self, client: &Capabilities) -> Bytes {
        let mut out = BytesMut::new();
        if client.report_status || client.report_status_v2 {
            let lines = self.lines();
            match client.side_band_64k {
                true => put_sideband(&mut out, BAND_DATA, &lines),
                false => out = lines,
            }
        }
        if client.side_band_64k {
            put_flush(&mut out);
        }
        out.freeze()
    }

    fn lines(&self) -> BytesMut {
        let mut out = BytesMut::new();
        match &self.unpack {
            Ok(()) => put_data(&mut out, b"unpack ok\n"),
            Err(reason) => put_parts(&mut out, &[b"unpack ", one_line(reason).as_bytes(), b"\n"]),
        }
        for (name, result) in &self.refs {
            let name = name.as_str().as_bytes();
            match result {
                RefResult::Ok => put_parts(&mut out, &[b"ok ", name, b"\n"]),
                RefResult::Ng(reason) => {
                    put_parts(&mut out, &[b"ng ", name, b" ", one_line(reason).as_bytes(), b"\n"]);
                }
            }
        }
        put_flush(&mut out);
        out
    }
}

/// A message that the client prints after `remote:`. Only for clients with side-bands.
pub fn sideband_message(text: &str) -> Bytes {
    let mut out = BytesMut::new();
    let mut lines = text.trim_end().to_owned();
    lines.push('\n');
    put_sideband(&mut out, BAND_PROGRESS, lines.as_bytes());
    out.freeze()
}

/// A chunk of git's progress output.
pub fn sideband_progress(bytes: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    put_sideband(&mut out, BAND_PROGRESS, bytes);
    out.freeze()
}

/// An `ERR` packet in place of an advertisement or response; the client exits with this text.
pub fn error_packet(text: &str) -> Bytes {
    let mut out = BytesMut::new();
    put_parts(&mut out, &[b"ERR ", shorten(text, MAX_DATA - 4).as_bytes()]);
    out.freeze()
}

/// Error response to a push that gets no report, in a form that the client can read.
pub fn refused_request(client: &Capabilities, reason: &str) -> Bytes {
    if !client.side_band_64k {
        return error_packet(reason);
    }
    let mut out = BytesMut::new();
    put_sideband(&mut out, BAND_ERROR, format!("{}\n", one_line(reason)).as_bytes());
    put_flush(&mut out);
    out.freeze()
}

/// Makes a reason one line without control characters.
fn one_line(reason: &str) -> String {
    let line: String = reason.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shorten(&line, MAX_REASON).to_owned()
}

fn shorten(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let name = |text: &str| text.parse().unwrap();
        let refs =
            vec![(name("refs/heads/a"), RefResult::Ok), (name("refs/heads/b"), RefResult::Ng("not\nhere".to_owned()))];
        Report { unpack: Ok(()), refs }
    }

    const PLAIN: &[u8] = b"000eunpack ok\n0014ok refs/heads/a\n001dng refs/heads/b not here\n0000";

    #[test]
    fn a_plain_client_gets_lines_and_a_flush() {
        let client = Capabilities { report_status: true, ..Capabilities::default() };
        assert_eq!(report().encode(&client), PLAIN);
    }

    #[test]
    fn a_side_band_client_gets_the_same_in_band_one() {
        let client = Capabilities { report_status_v2: true, side_band_64k: true, ..Capabilities::default() };
        let mut expected = format!("{:04x}\x01", PLAIN.len() + 5).into_bytes();
        expected.extend_from_slice(PLAIN);
        expected.extend_from_slice(b"0000");
        assert_eq!(report().encode(&client), expected);
    }

    #[test]
    fn a_client_that_wants_no_report_gets_none() {
        assert!(report().encode(&Capabilities::default()).is_empty());
        let bands = Capabilities { side_band_64k: true, ..Capabilities::default() };
        assert_eq!(report().encode(&bands), &b"0000"[..]);
    }

    #[test]
    fn a_refused_request_is_told_in_the_band_for_errors_if_there_are_bands() {
        assert_eq!(refused_request(&Capabilities::default(), "no"), &b"000aERR no"[..]);
        let bands = Capabilities { side_band_64k: true, ..Capabilities::default() };
        assert_eq!(refused_request(&bands, "no"), &b"0008\x03no\n0000"[..]);
    }

    #[test]
    fn reasons_stay_on_their_line_and_within_a_packet() {
        let long = Report { unpack: Err("ü".repeat(100_000)), refs: vec![] };
        let client = Capabilities { report_status: true, ..Capabilities::default() };
        assert!(long.encode(&client).len() < 1100);
        assert_eq!(error_packet("no"), &b"000aERR no"[..]);
        assert!(error_packet(&"ü".repeat(100_000)).len() <= crate::pktline::MAX_PACKET);
    }
}
