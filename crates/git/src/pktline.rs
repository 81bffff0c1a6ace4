//! git's pkt-line framing: four hexadecimal digits of length, then the payload.
//!
//! [`decode`] and the `put_…` functions do no I/O. [`PacketReader`] drives them over a stream, and remains a stream for
//! the pack that follows the packets.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// Longest packet, including its four length digits.
pub const MAX_PACKET: usize = 65520;
/// Longest payload of a packet.
pub const MAX_DATA: usize = MAX_PACKET - 4;
/// Longest payload after the side-band number.
pub const MAX_SIDEBAND: usize = MAX_DATA - 1;
/// Side-band for pack data or the report.
pub const BAND_DATA: u8 = 1;
/// Side-band for messages that `git` prints after `remote:`.
pub const BAND_PROGRESS: u8 = 2;
/// Side-band for an error that ends the client.
pub const BAND_ERROR: u8 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// `0000`: the end of a list or message.
    Flush,
    /// `0001`: between the sections of a version 2 message.
    Delim,
    /// `0002`: the end of a version 2 response.
    ResponseEnd,
    /// A payload, possibly empty.
    Data(Bytes),
}

/// Malformed packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The first four bytes are not hexadecimal digits.
    #[error("a packet must start with its length as four hexadecimal digits")]
    NotHex,
    /// A length of 3, or longer than git allows.
    #[error("invalid packet length {0}: the limit is {MAX_PACKET}, and 3 is not allowed")]
    BadLength(usize),
}

/// Takes one packet from the front of the buffer; `None` if it is incomplete. The rest stays in the buffer.
pub fn decode(buffer: &mut BytesMut) -> Result<Option<Packet>, PacketError> {
    let Some(length) = peek_length(buffer)? else { return Ok(None) };
    let packet = match length {
        0 => Packet::Flush,
        1 => Packet::Delim,
        2 => Packet::ResponseEnd,
        _ if buffer.len() < length => return Ok(None),
        _ => {
            let mut data = buffer.split_to(length);
            data.advance(4);
            return Ok(Some(Packet::Data(data.freeze())));
        }
    };
    buffer.advance(4);
    Ok(Some(packet))
}

/// Claimed length of the next packet; `None` until its four digits are complete.
pub(crate) fn peek_length(buffer: &[u8]) -> Result<Option<usize>, PacketError> {
    let Some(digits) = buffer.get(..4) else { return Ok(None) };
    let length = digits.iter().try_fold(0, |length, &digit| {
        char::from(digit).to_digit(16).map(|value| length << 4 | value as usize).ok_or(PacketError::NotHex)
    })?;
    match length {
        3 | 65521.. => Err(PacketError::BadLength(length)),
        _ => Ok(Some(length)),
    }
}

fn put_length(buffer: &mut BytesMut, length: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for shift in [12, 8, 4, 0] {
        buffer.put_u8(DIGITS[length >> shift & 15]);
    }
}

/// Appends a packet with this payload.
///
/// # Panics
/// If the payload exceeds [`MAX_DATA`]: callers bound it.
pub fn put_data(buffer: &mut BytesMut, data: &[u8]) {
    put_parts(buffer, &[data]);
}

/// Appends one packet made of several parts, without joining them first.
pub(crate) fn put_parts(buffer: &mut BytesMut, parts: &[&[u8]]) {
    let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    assert!(length <= MAX_PACKET, "a packet of {length} bytes cannot be sent");
    buffer.reserve(length);
    put_length(buffer, length);
    for part in parts {
        buffer.put_slice(part);
    }
}

/// Appends a flush packet.
pub fn put_flush(buffer: &mut BytesMut) {
    buffer.put_slice(b"0000");
}

/// Appends a delimiter packet.
pub fn put_delim(buffer: &mut BytesMut) {
    buffer.put_slice(b"0001");
}

/// Appends data on a side-band in as many packets as needed; none for empty data.
pub fn put_sideband(buffer: &mut BytesMut, band: u8, data: &[u8]) {
    for piece in data.chunks(MAX_SIDEBAND) {
        put_parts(buffer, &[&[band], piece]);
    }
}

/// Failure to read a packet from a stream.
#[derive(Debug, thiserror::Error)]
pub enum PacketReadError {
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error("the connection ended in the middle of a packet")]
    Truncated,
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

/// Reads packets from a stream. As a reader it yields the bytes after the packets read so far.
#[derive(Debug)]
pub struct PacketReader<R> {
    inner: R,
    buffer: BytesMut,
}

impl<R> PacketReader<R> {
    /// Read size.
    const PIECE: usize = 8 * 1024;

    pub fn new(inner: R) -> Self {
        Self { inner, buffer: BytesMut::new() }
    }

    /// Unparsed bytes and the stream.
    pub fn into_parts(self) -> (Bytes, R) {
        (self.buffer.freeze(), self.inner)
    }

    /// The stream itself.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Takes bytes that were read.
    pub(crate) fn consume(&mut self, length: usize) {
        self.buffer.advance(length);
    }

    /// Bytes read from the stream but not parsed yet.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer
    }
}

impl<R: AsyncRead + Unpin> PacketReader<R> {
    /// The next packet; `None` if the stream ends between two packets. Cancel-safe: no bytes are lost.
    pub async fn next(&mut self) -> Result<Option<Packet>, PacketReadError> {
        loop {
            if let Some(packet) = decode(&mut self.buffer)? {
                return Ok(Some(packet));
            }
            if self.fill().await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(PacketReadError::Truncated) };
            }
        }
    }

    /// Reads more bytes into the buffer; 0 at the end of the stream.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        self.buffer.reserve(Self::PIECE);
        self.inner.read_buf(&mut self.buffer).await
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for PacketReader<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.buffer.is_empty() {
            // The pack may take hours, so free the packet buffer first.
            if self.buffer.capacity() > 0 {
                self.buffer = BytesMut::new();
            }
            return Pin::new(&mut self.inner).poll_read(context, out);
        }
        let length = out.remaining().min(self.buffer.len());
        out.put_slice(&self.buffer.split_to(length));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet() -> impl Strategy<Value = Packet> {
        prop_oneof![
            Just(Packet::Flush),
            Just(Packet::Delim),
            Just(Packet::ResponseEnd),
            proptest::collection::vec(any::<u8>(), 0..300).prop_map(|data| Packet::Data(data.into())),
        ]
    }

    fn encode(packets: &[Packet]) -> BytesMut {
        let mut wire = BytesMut::new();
        for packet in packets {
            match packet {
                Packet::Flush => put_flush(&mut wire),
                Packet::Delim => put_delim(&mut wire),
                Packet::ResponseEnd => wire.put_slice(b"0002"),
                Packet::Data(data) => put_data(&mut wire, data),
            }
        }
        wire
    }

    fn drain(buffer: &mut BytesMut, into: &mut Vec<Packet>) -> Result<(), PacketError> {
        while let Some(packet) = decode(buffer)? {
            into.push(packet);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn what_is_put_is_read_back_wherever_the_stream_is_cut(
            packets in proptest::collection::vec(packet(), 0..12),
            cut in any::<prop::sample::Index>(),
        ) {
            let wire = encode(&packets);
            let (head, tail) = wire.split_at(cut.index(wire.len() + 1));
            let (mut buffer, mut read) = (BytesMut::from(head), Vec::new());
            drain(&mut buffer, &mut read).unwrap();
            buffer.extend_from_slice(tail);
            drain(&mut buffer, &mut read).unwrap();
            prop_assert_eq!(read, packets);
            prop_assert!(buffer.is_empty());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = drain(&mut BytesMut::from(&bytes[..]), &mut Vec::new());
        }

        #[test]
        fn arbitrary_lengths_never_panic(length in "[0-9a-fA-F]{4}", rest: Vec<u8>) {
            let mut buffer = BytesMut::from(length.as_bytes());
            buffer.extend_from_slice(&rest);
            let _ = drain(&mut buffer, &mut Vec::new());
        }

        #[test]
        fn sideband_data_comes_out_whole(length in 0..200_000usize) {
            let data: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let (mut wire, mut packets) = (BytesMut::new(), Vec::new());
            put_sideband(&mut wire, BAND_DATA, &data);
            drain(&mut wire, &mut packets).unwrap();
            let joined: Vec<u8> = packets.iter().flat_map(|packet| match packet {
                Packet::Data(data) if data[0] == BAND_DATA => data[1..].to_vec(),
                other => panic!("{other:?}"),
            }).collect();
            prop_assert_eq!(joined, data);
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for (wire, error) in [
            (&b"0003"[..], PacketError::BadLength(3)),
            (b"fff1", PacketError::BadLength(65521)),
            (b"ffff", PacketError::BadLength(65535)),
            (b"+004", PacketError::NotHex),
            (b"PACK", PacketError::NotHex),
        ] {
            assert_eq!(decode(&mut BytesMut::from(wire)), Err(error));
        }
        assert_eq!(decode(&mut BytesMut::from(&b"0004"[..])), Ok(Some(Packet::Data(Bytes::new()))));
    }

    #[tokio::test]
    async fn the_reader_hands_on_what_follows_the_packets() {
        let mut reader = PacketReader::new(&b"0006a\n0000PACK..."[..]);
        assert_eq!(reader.next().await.unwrap(), Some(Packet::Data(Bytes::from_static(b"a\n"))));
        assert_eq!(reader.next().await.unwrap(), Some(Packet::Flush));
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"PACK...");
    }

    #[tokio::test]
    async fn an_end_inside_a_packet_is_an_error_and_between_packets_is_not() {
        let mut reader = PacketReader::new(&b"0000"[..]);
        assert_eq!(reader.next().await.unwrap(), Some(Packet::Flush));
        assert_eq!(reader.next().await.unwrap(), None);
        assert!(matches!(PacketReader::new(&b"0009ab"[..]).next().await, Err(PacketReadError::Truncated)));
        assert!(matches!(PacketReader::new(&b"00"[..]).next().await, Err(PacketReadError::Truncated)));
    }
}
