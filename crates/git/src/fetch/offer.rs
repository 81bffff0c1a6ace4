//! Parses what a server offers: capabilities of version 2, or the refs and capabilities of version 0 or 1. Sans-IO.

use super::error::FetchError;
use super::reply::{check_error, line};
use crate::pktline::{Packet, decode};
use crate::receive::printable;
use abide_core::Oid;
use bytes::BytesMut;
use gix::bstr::ByteSlice as _;
use std::collections::HashSet;

/// Largest number of advertised refs.
pub(super) const MAX_REFS: usize = 100_000;

/// Offer of a server to a client that fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    V2(V2Offer),
    /// Version 0 or 1, which differ in one line.
    Old(OldOffer),
}

/// Capabilities of version 2 that the fetcher uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct V2Offer {
    pub fetch: bool,
    pub ls_refs: bool,
    /// `fetch` can answer haves without sending a pack.
    pub wait_for_done: bool,
    pub object_format: bool,
    pub agent: bool,
}

/// Refs and capabilities of version 0 or 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OldOffer {
    /// Objects that refs point to.
    pub tips: HashSet<Oid>,
    /// Objects that advertised tags point to. The server has them, but they may not be asked for.
    pub peeled: HashSet<Oid>,
    /// Whether the server may give out objects that it does not advertise.
    pub unadvertised: bool,
    pub side_band_64k: bool,
    pub thin_pack: bool,
    pub ofs_delta: bool,
    pub no_progress: bool,
    pub object_format: bool,
    pub agent: bool,
}

/// Parses an advertisement that is completely in memory.
pub fn parse_offer(bytes: &[u8]) -> Result<Offer, FetchError> {
    let mut buffer = BytesMut::from(bytes);
    let mut parser = Parser::default();
    while let Some(packet) = decode(&mut buffer).map_err(|error| FetchError::Protocol(error.to_string()))? {
        if let Packet::Data(data) = &packet {
            check_error(data)?;
        }
        if let Some(offer) = parser.packet(&packet)? {
            return Ok(offer);
        }
    }
    Err(FetchError::Cut("the advertisement has no end".into()))
}

/// Takes an advertisement packet by packet.
#[derive(Debug, Default)]
pub(super) struct Parser {
    state: State,
    refs: usize,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Start,
    /// After the line with the service; a flush follows.
    Service,
    /// After that flush: as at the start, without another such line.
    Begin,
    V2(V2Offer),
    Old {
        offer: OldOffer,
        /// Whether the line with the capabilities has come.
        is_capable: bool,
    },
}

impl Parser {
    /// Takes the next packet. Returns the offer at its end.
    pub fn packet(&mut self, packet: &Packet) -> Result<Option<Offer>, FetchError> {
        match (packet, &mut self.state) {
            (Packet::Data(data), _) => self.line(line(data)).map(|()| None),
            (Packet::Flush, State::Service) => {
                self.state = State::Begin;
                Ok(None)
            }
            (Packet::Flush, State::Start | State::Begin) => Ok(Some(Offer::Old(OldOffer::default()))),
            (Packet::Flush, State::V2(V2Offer { fetch: false, .. })) => {
                Err(FetchError::Protocol("the server does not offer the command fetch".into()))
            }
            (Packet::Flush, State::V2(offer)) => Ok(Some(Offer::V2(*offer))),
            (Packet::Flush, State::Old { offer, .. }) => Ok(Some(Offer::Old(std::mem::take(offer)))),
            (Packet::Delim | Packet::ResponseEnd, _) => {
                Err(FetchError::Protocol("the advertisement has a packet of another message".into()))
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), FetchError> {
        match &mut self.state {
            State::Start if line == b"# service=git-upload-pack" => self.state = State::Service,
            State::Start | State::Begin => match line {
                b"version 2" => self.state = State::V2(V2Offer::default()),
                b"version 1" => self.state = State::Old { offer: OldOffer::default(), is_capable: false },
                _ => {
                    self.state = State::Old { offer: OldOffer::default(), is_capable: false };
                    return self.line(line);
                }
            },
            State::Service => return Err(FetchError::unexpected("a flush must follow the service, not", line)),
            State::V2(offer) => offer.capability(line)?,
            State::Old { offer, is_capable } => {
                let (line, capabilities) = match line.split_once_str(b"\0") {
                    Some((line, capabilities)) if !*is_capable => (line, Some(capabilities)),
                    _ => (line, None),
                };
                *is_capable = true;
                capabilities.map_or(Ok(()), |list| offer.capabilities(list))?;
                self.refs += 1;
                if self.refs > MAX_REFS {
                    return Err(FetchError::TooLarge { what: "the number of refs", limit: MAX_REFS });
                }
                offer.advertised(line)?;
            }
        }
        Ok(())
    }
}

impl V2Offer {
    fn capability(&mut self, line: &[u8]) -> Result<(), FetchError> {
        let (key, value) = line.split_once_str(b"=").unwrap_or((line, b""));
        match key {
            b"fetch" => {
                self.fetch = true;
                self.wait_for_done = value.fields().any(|feature| feature == b"wait-for-done");
            }
            b"ls-refs" => self.ls_refs = true,
            b"object-format" => self.object_format = is_sha1(value)?,
            b"agent" => self.agent = true,
            // Other capabilities are offers that may be ignored.
            _ => {}
        }
        Ok(())
    }
}

impl OldOffer {
    fn capabilities(&mut self, list: &[u8]) -> Result<(), FetchError> {
        for word in list.fields() {
            let (key, value) = word.split_once_str(b"=").unwrap_or((word, b""));
            match key {
                b"allow-tip-sha1-in-want" | b"allow-reachable-sha1-in-want" => self.unadvertised = true,
                b"side-band-64k" => self.side_band_64k = true,
                b"thin-pack" => self.thin_pack = true,
                b"ofs-delta" => self.ofs_delta = true,
                b"no-progress" => self.no_progress = true,
                b"object-format" => self.object_format = is_sha1(value)?,
                b"agent" => self.agent = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes a line `<oid> <name>`, in which the name of a peeled tag ends with `^{}`.
    fn advertised(&mut self, line: &[u8]) -> Result<(), FetchError> {
        if line.starts_with(b"shallow ") {
            return Err(FetchError::Shallow);
        }
        let (oid, name) = listed(line)?;
        match name {
            b"capabilities^{}" => {}
            _ => {
                let oids = if name.ends_with(b"^{}") { &mut self.peeled } else { &mut self.tips };
                oids.insert(oid);
            }
        }
        Ok(())
    }
}

/// Splits a line of a ref list into the object and the text behind it.
pub(super) fn listed(line: &[u8]) -> Result<(Oid, &[u8]), FetchError> {
    let split = line.split_at_checked(40).and_then(|(oid, rest)| Some((oid, rest.strip_prefix(b" ")?)));
    split
        .and_then(|(oid, rest)| Some((Oid::from_hex(oid).ok()?, rest)))
        .ok_or_else(|| FetchError::unexpected("expected `<id> <ref>`, not", line))
}

fn is_sha1(format: &[u8]) -> Result<bool, FetchError> {
    if format == b"sha1" { Ok(true) } else { Err(FetchError::ObjectFormat(printable(format))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pktline::{put_data, put_flush};
    use proptest::prelude::*;

    const ONE: &str = "1111111111111111111111111111111111111111";

    fn offer(lines: &[&str]) -> Result<Offer, FetchError> {
        let mut wire = BytesMut::new();
        for line in lines {
            match *line {
                "" => put_flush(&mut wire),
                line => put_data(&mut wire, line.as_bytes()),
            }
        }
        parse_offer(&wire)
    }

    #[test]
    fn capabilities_are_read_in_both_forms() {
        let v2 = V2Offer { fetch: true, ls_refs: true, ..V2Offer::default() };
        let full = V2Offer { wait_for_done: true, object_format: true, agent: true, ..v2 };
        let lines =
            ["agent=x", "ls-refs=unborn", "fetch=shallow wait-for-done filter", "object-format=sha1", "later=1"];
        assert_eq!(offer(&[&["version 2"], &lines[..], &[""]].concat()), Ok(Offer::V2(full)));
        assert_eq!(offer(&["version 2\n", "ls-refs\n", "fetch\n", ""]), Ok(Offer::V2(v2)));

        let oid = |byte| Oid::from_bytes([byte; 20]);
        let old = OldOffer {
            tips: [oid(0x11), oid(0x22)].into(),
            peeled: [oid(0x33)].into(),
            unadvertised: true,
            side_band_64k: true,
            thin_pack: true,
            ofs_delta: true,
            no_progress: true,
            object_format: true,
            agent: true,
        };
        let (two, three) = ("2".repeat(40), "3".repeat(40));
        let head = "multi_ack thin-pack side-band side-band-64k ofs-delta no-progress allow-tip-sha1-in-want \
                    object-format=sha1 agent=git/2";
        let lines = [
            &format!("{ONE} HEAD\0{head}\n"),
            &format!("{two} refs/tags/v1\n"),
            &format!("{three} refs/tags/v1^{{}}\n"),
        ];
        assert_eq!(offer(&[lines[0], lines[1], lines[2], ""]), Ok(Offer::Old(old)));
        // Only the first line carries capabilities.
        let late = offer(&[&format!("{ONE} HEAD"), &format!("{two} x\0agent=git/2"), ""]).unwrap();
        assert!(matches!(late, Offer::Old(offer) if !offer.agent && offer.tips.len() == 2));
    }

    #[test]
    fn broken_advertisements_are_errors() {
        for lines in [
            &["# service=git-upload-pack", "version 2"][..],
            &["# service=git-receive-pack", ""],
            &["version 3", ""],
            &["<html>", ""],
            &[&ONE[..39]],
            &[ONE],
            &["version 2", ""],
        ] {
            assert!(matches!(offer(lines), Err(FetchError::Protocol(_))), "{lines:?}: {:?}", offer(lines));
        }
        assert_eq!(offer(&[&format!("shallow {ONE}"), ""]), Err(FetchError::Shallow));
        assert!(matches!(offer(&["version 2", "fetch"]), Err(FetchError::Cut(_))));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = parse_offer(&bytes);
        }

        #[test]
        fn arbitrary_lines_never_panic(lines in proptest::collection::vec("(version [0-9]|# service=git-upload-pack|[0-9a-f]{40} [a-z^{}/]{0,9}|fetch=[a-z -]{0,20}|)", 0..9)) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let _ = offer(&lines);
        }
    }
}
