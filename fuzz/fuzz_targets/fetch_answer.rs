//! Answers of another git server are read from any bytes, and the pack in them is the same however they arrive.
#![no_main]

use abide_git::fetch::{Demux, Step, parse_offer};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

/// The pack, and the error that ended it.
fn demuxed<'a>(mut demux: Demux, pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Option<String>) {
    let (mut buffer, mut pack) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match demux.next(&mut buffer) {
                Ok(Step::Pack(bytes)) => pack.extend_from_slice(&bytes),
                Ok(Step::More | Step::End) => break,
                Err(error) => return (pack, Some(error.to_string())),
            }
        }
    }
    (pack, None)
}

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_offer(bytes);
    for demux in [Demux::v2, Demux::old] {
        let whole = demuxed(demux(), [bytes].into_iter());
        assert_eq!(demuxed(demux(), bytes.chunks(5)), whole);
        assert!(whole.0.len() <= bytes.len());
    }
});
