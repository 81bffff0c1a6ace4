//! Takes the pack out of the answer to a fetch: skips what precedes it and separates the side-bands. Sans-IO.

use super::error::FetchError;
use super::reply::{check_error, line};
use crate::pktline::{BAND_DATA, BAND_ERROR, BAND_PROGRESS, Packet, decode};
use bytes::{Buf as _, Bytes, BytesMut};

/// Largest number of bytes of an answer besides its pack: acknowledgments, progress and keep-alive packets.
const MAX_OVERHEAD: usize = 1 << 20;

/// Parser of the answer to a fetch. The caller appends bytes to a buffer and calls [`Demux::next`] until it needs more.
#[derive(Debug)]
pub struct Demux {
    state: State,
    overhead: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Version 2: before a section.
    Sections,
    /// Version 2: in the acknowledgments, which end with a delimiter.
    Acknowledgments,
    /// Version 0: before the first packet with a side-band.
    OldHead,
    Pack,
    End,
}

/// Result of [`Demux::next`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The next bytes of the pack; never empty.
    Pack(Bytes),
    /// More bytes of the answer are needed.
    More,
    /// The pack is over. Bytes behind its end belong to no packet and are ignored.
    End,
}

impl Demux {
    /// A parser for an answer of version 2.
    pub fn v2() -> Self {
        Self { state: State::Sections, overhead: 0 }
    }

    /// A parser for an answer of version 0 or 1.
    pub fn old() -> Self {
        Self { state: State::OldHead, overhead: 0 }
    }

    /// Whether the pack has begun.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self.state, State::Pack | State::End)
    }

    /// Takes packets off the front of the buffer, up to the next bytes of the pack.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Step, FetchError> {
        while self.state != State::End {
            let packet = decode(buffer).map_err(|error| FetchError::Protocol(error.to_string()))?;
            let Some(packet) = packet else { return Ok(Step::More) };
            if let Some(piece) = self.packet(&packet)? {
                return Ok(Step::Pack(piece));
            }
        }
        Ok(Step::End)
    }

    fn packet(&mut self, packet: &Packet) -> Result<Option<Bytes>, FetchError> {
        let data: &Bytes = match packet {
            Packet::Data(data) => data,
            _ => return self.end(packet).map(|()| None),
        };
        if self.state == State::OldHead && data.first().is_some_and(|band| *band <= BAND_ERROR) {
            self.state = State::Pack;
        }
        if self.state == State::Pack
            && let Some(&BAND_DATA) = data.first()
            && data.len() > 1
        {
            let mut piece = data.clone();
            piece.advance(1);
            return Ok(Some(piece));
        }
        self.overhead += 4 + data.len();
        if self.overhead > MAX_OVERHEAD {
            return Err(FetchError::TooLarge { what: "the progress", limit: MAX_OVERHEAD });
        }
        if self.state == State::Pack {
            banded(data)?
        } else {
            self.head(data)?
        }
        Ok(None)
    }

    /// Takes a line before the pack.
    fn head(&mut self, data: &[u8]) -> Result<(), FetchError> {
        check_error(data)?;
        let line = line(data);
        match self.state {
            State::Sections => match line {
                b"acknowledgments" => self.state = State::Acknowledgments,
                b"packfile" => self.state = State::Pack,
                // Sent unasked by a repository that is a shallow clone itself.
                b"shallow-info" => return Err(FetchError::Shallow),
                _ => return Err(FetchError::unexpected("unknown section", line)),
            },
            State::OldHead if line.starts_with(b"shallow ") => return Err(FetchError::Shallow),
            State::Acknowledgments | State::OldHead if is_acknowledgment(line) => {}
            _ => return Err(FetchError::unexpected("expected ACK or NAK, not", line)),
        }
        Ok(())
    }

    /// Takes a packet without payload.
    fn end(&mut self, packet: &Packet) -> Result<(), FetchError> {
        self.state = match (packet, self.state) {
            (Packet::Delim, State::Acknowledgments) => State::Sections,
            (Packet::Flush, State::Pack) => State::End,
            (Packet::Flush, _) => return Err(FetchError::Protocol("the answer ends without a pack".into())),
            _ => return Err(FetchError::Protocol("a section ends where none may end".into())),
        };
        Ok(())
    }
}

/// Takes a packet of the pack section that brings no pack data.
fn banded(data: &[u8]) -> Result<(), FetchError> {
    match data.split_first() {
        // An empty packet keeps the connection alive; progress is not shown.
        Some((&BAND_DATA | &BAND_PROGRESS, _)) => Ok(()),
        Some((&BAND_ERROR, message)) => Err(FetchError::reported(message)),
        _ => {
            check_error(data)?;
            Err(FetchError::unexpected("unknown side-band in", data))
        }
    }
}

fn is_acknowledgment(line: &[u8]) -> bool {
    line == b"NAK" || line == b"ready" || line.starts_with(b"ACK ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pktline::{put_data, put_delim, put_flush, put_sideband};
    use proptest::prelude::*;

    /// The pack and the end of an answer that arrives in pieces.
    fn demuxed(mut demux: Demux, pieces: &[&[u8]]) -> Result<(Vec<u8>, Step), FetchError> {
        let (mut buffer, mut pack, mut last) = (BytesMut::new(), Vec::new(), Step::More);
        for piece in pieces {
            buffer.extend_from_slice(piece);
            last = loop {
                match demux.next(&mut buffer)? {
                    Step::Pack(bytes) => pack.extend_from_slice(&bytes),
                    other => break other,
                }
            };
        }
        Ok((pack, last))
    }

    fn head(is_v2: bool, acknowledgments: usize) -> BytesMut {
        let mut wire = BytesMut::new();
        if is_v2 && acknowledgments > 0 {
            put_data(&mut wire, b"acknowledgments\n");
        }
        for number in 0..acknowledgments {
            put_data(&mut wire, format!("ACK {number:040x}\n").as_bytes());
        }
        match (is_v2, acknowledgments) {
            (true, 0) => {}
            (true, _) => put_delim(&mut wire),
            (false, _) => put_data(&mut wire, b"NAK\n"),
        }
        if is_v2 {
            put_data(&mut wire, b"packfile\n");
        }
        wire
    }

    fn demux(is_v2: bool) -> Demux {
        if is_v2 { Demux::v2() } else { Demux::old() }
    }

    proptest! {
        #[test]
        fn the_pack_is_the_same_however_the_answer_is_cut(
            is_v2: bool,
            acknowledgments in 0..3usize,
            bands in proptest::collection::vec((1..=2u8, proptest::collection::vec(any::<u8>(), 0..90)), 0..12),
            step in 1..70usize,
            behind in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let (mut wire, mut expected) = (head(is_v2, acknowledgments), Vec::new());
            for (band, data) in &bands {
                put_data(&mut wire, &[&[*band][..], data].concat());
                if *band == BAND_DATA {
                    expected.extend_from_slice(data);
                }
            }
            put_sideband(&mut wire, BAND_PROGRESS, b"done");
            put_flush(&mut wire);
            wire.extend_from_slice(&behind);
            let pieces: Vec<&[u8]> = wire.chunks(step).collect();
            prop_assert_eq!(demuxed(demux(is_v2), &pieces).unwrap(), (expected.clone(), Step::End));
            prop_assert_eq!(demuxed(demux(is_v2), &[&wire]).unwrap(), (expected, Step::End));
        }

        #[test]
        fn arbitrary_bytes_never_panic(is_v2: bool, bytes: Vec<u8>, step in 1..9usize) {
            let pieces: Vec<&[u8]> = bytes.chunks(step).collect();
            prop_assert_eq!(demuxed(demux(is_v2), &pieces), demuxed(demux(is_v2), &[&bytes]));
        }
    }

    #[test]
    fn broken_answers_are_errors() {
        for (is_v2, wire) in [
            (true, &b"0000"[..]),
            (true, b"0001"),
            (true, b"0014acknowledgments\n0000"),
            (true, b"0014acknowledgments\n0008NOPE"),
            (true, b"0010wanted-refs\n"),
            (true, b"000dpackfile\n0004"),
            (true, b"000dpackfile\n0005\x04"),
            (true, b"000dpackfile\n0001"),
            (true, b"zzzz"),
            (false, b"0000"),
            (false, b"0008NAK\n0000"),
            (false, b"0008NAK\n000bPACK..."),
        ] {
            let error = demuxed(demux(is_v2), &[wire]).expect_err(&String::from_utf8_lossy(wire));
            assert!(matches!(error, FetchError::Protocol(_)), "{error:?}");
        }
        for (is_v2, wire) in [
            (true, "0011shallow-info\n".to_owned()),
            (false, format!("0035shallow {:040x}\n", 1)),
            (false, format!("0034shallow {:040x}", 1)),
        ] {
            assert_eq!(demuxed(demux(is_v2), &[wire.as_bytes()]), Err(FetchError::Shallow), "{wire}");
        }
    }

    #[test]
    fn an_error_of_the_server_ends_the_answer_wherever_it_comes() {
        let denied = FetchError::Denied("out of memory".into());
        for (is_v2, wire) in [
            (true, &b"0016ERR out of memory\n"[..]),
            (true, b"000dpackfile\n0013\x03out of memory\n"),
            (true, b"000dpackfile\n0009\x01PACK0016ERR out of memory\n"),
            (false, b"0016ERR out of memory\n"),
            (false, b"0008NAK\n0013\x03out of memory\n"),
        ] {
            assert_eq!(demuxed(demux(is_v2), &[wire]), Err(denied.clone()), "{}", String::from_utf8_lossy(wire));
        }
    }

    #[test]
    fn endless_progress_is_cut_off() {
        for packet in [&b"0005\x01"[..], b"0005\x02", b"000b\x02noise."] {
            let mut wire = head(true, 0);
            for _ in 0..MAX_OVERHEAD / 5 + 1 {
                wire.extend_from_slice(packet);
            }
            assert!(matches!(demuxed(Demux::v2(), &[&wire]), Err(FetchError::TooLarge { .. })));
        }
    }
}
