//! Inserts a message for people into git's own version 2 answer: at the start of the pack, on the progress side-band.

use crate::pktline::peek_length;
use crate::report::sideband_message;
use bytes::{Buf as _, Bytes, BytesMut};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Read size while searching for the start of the pack.
const PIECE: usize = 4096;

/// A version 2 answer with a message inserted before its pack, if it has one.
#[derive(Debug)]
pub struct Hinted<R> {
    inner: R,
    /// Encoded message; `None` once it is inserted or no place for it can be found.
    hint: Option<Bytes>,
    /// Bytes read but not parsed yet.
    pending: BytesMut,
    /// Bytes ready for the reader.
    out: BytesMut,
}

impl<R> Hinted<R> {
    /// Inserts a message into an answer. Without a message the answer passes through unchanged.
    pub fn new(inner: R, message: Option<&str>) -> Self {
        Self { inner, hint: message.map(sideband_message), pending: BytesMut::new(), out: BytesMut::new() }
    }

    /// Moves whole packets to `out` until the pack begins.
    fn advance(&mut self) {
        while let Some(hint) = &self.hint {
            let length = match peek_length(&self.pending) {
                Ok(Some(length)) => length.max(4),
                Ok(None) => return,
                // Not pkt-line: pass the rest through unchanged.
                Err(_) => break,
            };
            if self.pending.len() < length {
                return;
            }
            let packet = self.pending.split_to(length);
            let pack_follows = &packet[4..] == b"packfile\n";
            self.out.extend_from_slice(&packet);
            if pack_follows {
                self.out.extend_from_slice(hint);
                break;
            }
        }
        self.give_up();
    }

    fn give_up(&mut self) {
        self.hint = None;
        self.out.extend_from_slice(&std::mem::take(&mut self.pending));
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Hinted<R> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.out.is_empty() {
                let length = this.out.len().min(buffer.remaining());
                buffer.put_slice(&this.out[..length]);
                this.out.advance(length);
                return Poll::Ready(Ok(()));
            }
            if this.hint.is_none() {
                return Pin::new(&mut this.inner).poll_read(context, buffer);
            }
            let mut piece = [0; PIECE];
            let mut read = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                this.give_up();
            } else {
                this.pending.extend_from_slice(read.filled());
                this.advance();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pktline::{put_data, put_delim, put_flush};
    use proptest::prelude::*;
    use tokio::io::AsyncReadExt as _;

    async fn read(answer: &[u8], pieces: usize, message: Option<&str>) -> Vec<u8> {
        let mut all = Vec::new();
        Hinted::new(Pieces(answer, pieces), message).read_to_end(&mut all).await.unwrap();
        all
    }

    /// A reader that yields a few bytes per call.
    struct Pieces<'a>(&'a [u8], usize);

    impl AsyncRead for Pieces<'_> {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            let (piece, rest) = self.0.split_at(self.0.len().min(self.1).min(out.remaining()));
            out.put_slice(piece);
            self.0 = rest;
            Poll::Ready(Ok(()))
        }
    }

    fn answer(lines: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let mut head = BytesMut::new();
        put_data(&mut head, b"acknowledgments\n");
        put_delim(&mut head);
        lines.iter().for_each(|line| put_data(&mut head, line));
        let mut pack = BytesMut::new();
        put_data(&mut pack, b"\x01PACK");
        put_flush(&mut pack);
        (head.to_vec(), pack.to_vec())
    }

    #[tokio::test]
    async fn the_message_comes_right_before_the_pack_however_the_answer_is_cut() {
        let (head, pack) = answer(&[b"packfile\n"]);
        let whole = [head.clone(), pack.clone()].concat();
        let said = sideband_message("it moved").to_vec();
        for pieces in 1..=whole.len() {
            assert_eq!(read(&whole, pieces, Some("it moved")).await, [&head[..], &said, &pack].concat());
            assert_eq!(read(&whole, pieces, None).await, whole);
        }
    }

    #[tokio::test]
    async fn an_answer_without_a_pack_is_left_alone() {
        let (head, pack) = answer(&[b"NAK\n"]);
        let whole = [head, pack].concat();
        assert_eq!(read(&whole, 7, Some("it moved")).await, whole);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_of_any_bytes(bytes: Vec<u8>, pieces in 1usize..50) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let all = runtime.block_on(read(&bytes, pieces, Some("x")));
            let said = sideband_message("x");
            let without: Vec<u8> = match all.windows(said.len()).position(|window| window == said) {
                Some(at) if all.len() > bytes.len() => [&all[..at], &all[at + said.len()..]].concat(),
                _ => all,
            };
            prop_assert_eq!(without, bytes);
        }
    }
}
