//! Packets are read from any bytes, whole or in pieces, and come out as they went in.
#![no_main]

use abide_git::pktline::{Packet, decode, put_data, put_delim, put_flush};
use bytes::{BufMut, BytesMut};
use libfuzzer_sys::fuzz_target;

fn all(buffer: &mut BytesMut) -> Vec<Packet> {
    let mut packets = Vec::new();
    while let Ok(Some(packet)) = decode(buffer) {
        packets.push(packet);
    }
    packets
}

fuzz_target!(|bytes: &[u8]| {
    let mut buffer = BytesMut::from(bytes);
    let packets = all(&mut buffer);
    assert!(buffer.len() <= bytes.len());

    // Piece by piece, as a socket gives it.
    let mut grown = BytesMut::new();
    let mut seen = Vec::new();
    for piece in bytes.chunks(7) {
        grown.put_slice(piece);
        seen.extend(all(&mut grown));
    }
    assert_eq!(seen, packets);

    // Written again, it reads the same.
    let mut again = BytesMut::new();
    for packet in &packets {
        match packet {
            Packet::Flush => put_flush(&mut again),
            Packet::Delim => put_delim(&mut again),
            Packet::ResponseEnd => again.put_slice(b"0002"),
            Packet::Data(data) => put_data(&mut again, data),
        }
    }
    assert_eq!(all(&mut again), packets);
    assert!(again.is_empty());
});
