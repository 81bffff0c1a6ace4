//! The stream below a WebSocket. It counts the bytes of a message until the message is complete and handled.
//!
//! The WebSocket library collects a whole message before it returns it. A client that sends most of a message and then
//! stops would hold that memory for as long as it answers pings. So this stream follows the frames: it takes the bytes of
//! a long message from a budget before it reads them, and ends a connection whose message arrives too slowly.
//!
//! A read never passes the end of a header or a payload. Between two messages the library therefore has nothing buffered,
//! and its buffers can be replaced (`socket.rs`).

use abide_core::admission::{ByteBudget, Bytes, Network};
use abide_core::patience::Patience;
use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Bytes of unfinished messages of all networks together, and of one network: four messages of the largest size.
const ALL: u64 = 48 << 20;
const OF_ONE: u64 = 8 << 20;

/// A message up to this size is bounded by the number of connections alone. Longer ones take pieces of this size.
const PIECE: usize = 64 << 10;

/// Time without bytes of an unfinished message, and its minimum rate in bytes per second.
const SILENCE: Duration = Duration::from_secs(30);
const RATE: u64 = 4096;

/// Header and short messages are read from the connection at once.
const READ_AHEAD: usize = 8 << 10;

/// One for the process, because the memory is one.
static UNFINISHED: LazyLock<ByteBudget<Option<Network>>> = LazyLock::new(|| ByteBudget::new(ALL, OF_ONE));

/// Follows the frames of a client, without their content.
#[derive(Default)]
struct Frames {
    header: [u8; 14],
    /// Bytes of the header that have arrived.
    known: usize,
    /// Bytes of the payload that are still missing.
    missing: u64,
    /// Bytes of the current message that have arrived, over all its frames.
    message: usize,
    /// Whether the current message lacks bytes or frames.
    unfinished: bool,
}

impl Frames {
    /// Bytes up to the next border of a header or payload.
    fn until_border(&self) -> usize {
        match (self.missing, self.known) {
            (1.., _) => usize::try_from(self.missing).unwrap_or(usize::MAX),
            (0, ..2) => 2 - self.known,
            (0, known) => self.header_length() - known,
        }
    }

    /// Length of the header, as its second byte says.
    fn header_length(&self) -> usize {
        let size = match self.header[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + size + if self.is_masked() { 4 } else { 0 }
    }

    fn is_masked(&self) -> bool {
        self.header[1] & 0x80 != 0
    }

    fn payload_length(&self) -> u64 {
        match self.header[1] & 0x7f {
            126 => u64::from(u16::from_be_bytes([self.header[2], self.header[3]])),
            127 => self.header[2..10].iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
            length => u64::from(length),
        }
    }

    /// Control frames come between the frames of a message and are no part of it.
    fn is_control(&self) -> bool {
        self.header[0] & 0x08 != 0
    }

    fn is_final(&self) -> bool {
        self.header[0] & 0x80 != 0
    }

    /// Whether the next bytes belong to the payload of a message.
    fn in_message(&self) -> bool {
        self.missing > 0 && !self.is_control()
    }

    /// Whether the next byte is the first one of a message or of a control frame outside of messages.
    fn is_between_messages(&self) -> bool {
        self.known == 0 && !self.unfinished
    }

    /// Counts bytes that arrived: at most as many as were missing to the next border.
    fn arrived(&mut self, bytes: &[u8]) {
        if self.missing > 0 {
            self.missing -= bytes.len() as u64;
            if !self.is_control() {
                self.message += bytes.len();
            }
        } else {
            self.header[self.known..self.known + bytes.len()].copy_from_slice(bytes);
            self.known += bytes.len();
            if self.known < 2 || self.known < self.header_length() {
                return;
            }
            self.missing = self.payload_length();
            if !self.is_control() {
                if !self.unfinished {
                    self.message = 0;
                }
                self.unfinished = true;
            }
        }
        if self.missing == 0 {
            self.known = 0;
            if !self.is_control() && self.is_final() {
                self.unfinished = false;
            }
        }
    }
}

/// A connection whose unfinished message is counted.
pub(super) struct Counted<S> {
    inner: BufReader<S>,
    frames: Frames,
    budget: ByteBudget<Option<Network>>,
    network: Option<Network>,
    /// Bytes of the current message that were taken from the budget.
    taken: Vec<Bytes<Option<Network>>>,
    patience: Patience,
    /// Set while an unfinished message waits for its client: start of the wait, and its timeout.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S: AsyncRead> Counted<S> {
    /// A connection from this network; `None` if its address is unknown.
    pub(super) fn new(inner: S, network: Option<Network>) -> Self {
        Self::within(inner, network, UNFINISHED.clone())
    }

    fn within(inner: S, network: Option<Network>, budget: ByteBudget<Option<Network>>) -> Self {
        Self {
            inner: BufReader::with_capacity(READ_AHEAD, inner),
            frames: Frames::default(),
            budget,
            network,
            taken: Vec::new(),
            patience: Patience::new(SILENCE, RATE),
            waiting: None,
        }
    }

    /// Whether no part of a message is buffered.
    pub(super) fn is_between_messages(&self) -> bool {
        self.frames.is_between_messages()
    }

    /// Takes the bytes from the budget that the next read may bring. `None` if the budget has too few.
    fn take(&mut self, bytes: usize) -> Option<()> {
        while self.frames.in_message() && self.frames.message + bytes > PIECE * (self.taken.len() + 1) {
            self.taken.push(self.budget.take(self.network, PIECE as u64)?);
        }
        Some(())
    }

    /// Ends the wait for an unfinished message at its timeout.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.frames.unfinished {
            return Poll::Pending;
        }
        let left = self.patience.left();
        let (_, timer) = self.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(tokio::time::sleep_until(now + left)))
        });
        ready!(timer.as_mut().poll(context));
        let text = format!("a message has to arrive at {RATE} bytes a second");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.frames.is_between_messages() {
            // The library asks for the next message only after the last one was handled.
            this.taken.clear();
            this.patience = Patience::new(SILENCE, RATE);
            this.waiting = None;
        }
        let length = this.frames.until_border().min(out.remaining()).min(PIECE);
        if this.take(length).is_none() {
            let text = "too many unfinished messages; send fewer long messages at once";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::QuotaExceeded, text)));
        }
        let in_message = this.frames.in_message();
        let mut part = ReadBuf::new(out.initialize_unfilled_to(length));
        let Poll::Ready(read) = Pin::new(&mut this.inner).poll_read(context, &mut part) else {
            return this.wait(context);
        };
        read?;
        let arrived = part.filled().len();
        this.frames.arrived(part.filled());
        out.advance(arrived);
        let waited = this.waiting.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
        // Control frames prove that the client is there, not that its message makes progress.
        this.patience.waited(waited, if in_message { arrived as u64 } else { 0 });
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    const TEXT: u8 = 1;
    const CONTINUATION: u8 = 0;
    const PING: u8 = 9;

    fn budget(all: usize, one: usize) -> ByteBudget<Option<Network>> {
        ByteBudget::new(all as u64, one as u64)
    }

    /// A frame as a client sends it, with a mask of zeros.
    fn frame(opcode: u8, is_final: bool, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![if is_final { 0x80 | opcode } else { opcode }];
        match payload.len() {
            length @ ..126 => bytes.push(0x80 | u8::try_from(length).unwrap()),
            length @ ..65536 => {
                bytes.push(0x80 | 126);
                bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
            length => {
                bytes.push(0x80 | 127);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        bytes.extend([0; 4]);
        bytes.extend(payload);
        bytes
    }

    proptest! {
        #[test]
        fn every_byte_passes_and_borders_are_those_of_the_frames(
            lengths in prop::collection::vec(prop_oneof![0..300_usize, 65_000..70_000_usize], 1..6),
            largest in 1..5000_usize,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let (mut client, server) = duplex(1 << 20);
                let mut counted = Counted::within(server, None, budget(1 << 30, 1 << 30));
                for length in lengths {
                    let sent = [
                        frame(TEXT, false, &vec![b'a'; length]),
                        frame(PING, true, b"x"),
                        frame(CONTINUATION, true, &vec![b'b'; length / 2]),
                    ];
                    for part in &sent {
                        client.write_all(part).await.unwrap();
                    }
                    let sent = sent.concat();
                    let mut read: Vec<u8> = Vec::new();
                    while read.len() < sent.len() {
                        prop_assert_eq!(counted.is_between_messages(), read.is_empty());
                        let mut buffer = vec![0; largest];
                        let got = counted.read(&mut buffer).await.unwrap();
                        read.extend(&buffer[..got]);
                    }
                    prop_assert!(read == sent && counted.is_between_messages());
                }
                Ok(())
            })?;
        }
    }

    #[tokio::test]
    async fn a_long_message_counts_until_it_was_handled() {
        let budget = budget(1 << 30, 1 << 30);
        let (mut client, server) = duplex(1 << 20);
        let mut counted = Counted::within(server, None, budget.clone());
        let text = frame(TEXT, true, &vec![b'x'; 5 * PIECE]);
        client.write_all(&text).await.unwrap();
        let mut whole = vec![0; text.len()];
        counted.read_exact(&mut whole[..3 * PIECE]).await.unwrap();
        assert_eq!(budget.used(), 2 * PIECE as u64, "all but the first piece");
        counted.read_exact(&mut whole[3 * PIECE..]).await.unwrap();
        assert_eq!(budget.used(), 4 * PIECE as u64, "the message is complete, but not handled yet");
        let next = frame(TEXT, true, b"short");
        client.write_all(&next).await.unwrap();
        counted.read_exact(&mut whole[..next.len()]).await.unwrap();
        assert_eq!(budget.used(), 0);
        client.write_all(&text[..2 * PIECE]).await.unwrap();
        counted.read_exact(&mut whole[..2 * PIECE]).await.unwrap();
        assert!(budget.used() > 0);
        drop(counted);
        assert_eq!(budget.used(), 0, "a connection that ends gives its bytes back");
    }

    #[tokio::test]
    async fn unfinished_messages_of_one_network_have_a_share_and_short_ones_are_free() {
        let budget = budget(100 * PIECE, 2 * PIECE);
        let (first, second) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let open = |ip: [u8; 4]| {
            let (client, server) = duplex(1 << 20);
            (client, Counted::within(server, Some(Network::of(ip.into())), budget.clone()))
        };
        let text = frame(TEXT, true, &vec![b'x'; 4 * PIECE]);
        let (mut client, mut counted) = open(first);
        client.write_all(&text).await.unwrap();
        let mut whole = vec![0; text.len()];
        let refused = counted.read_exact(&mut whole).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded);

        let (mut client, mut other) = open(second);
        client.write_all(&text).await.unwrap();
        other.read_exact(&mut whole[..3 * PIECE]).await.unwrap();
        let (mut client, mut short) = open(first);
        let small = frame(TEXT, true, &vec![b'x'; PIECE]);
        client.write_all(&small).await.unwrap();
        short.read_exact(&mut whole[..small.len()]).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_message_has_to_make_progress_and_control_frames_are_none() {
        let (mut client, server) = duplex(1 << 20);
        let mut counted = Counted::within(server, None, budget(1 << 30, 1 << 30));
        let mut whole = vec![0; 4 * PIECE];
        let idle = tokio::time::timeout(100 * SILENCE, counted.read(&mut whole)).await;
        assert!(idle.is_err(), "a client without an unfinished message may be silent");

        let begin = frame(TEXT, false, &vec![b'x'; PIECE]);
        client.write_all(&begin).await.unwrap();
        counted.read_exact(&mut whole[..begin.len()]).await.unwrap();
        // At the minimum rate, no timeout ends the message.
        for _ in 0..20 {
            let more = frame(CONTINUATION, false, &vec![b'x'; 20 * RATE as usize]);
            let send = async {
                tokio::time::sleep(Duration::from_secs(20)).await;
                client.write_all(&more).await.unwrap();
            };
            let read = async { counted.read_exact(&mut whole[..more.len()]).await.map(drop) };
            let ((), read) = tokio::join!(send, read);
            read.unwrap();
        }
        let ping = frame(PING, true, b"");
        let pings = async {
            loop {
                tokio::time::sleep(SILENCE / 3).await;
                if client.write_all(&ping).await.is_err() {
                    return;
                }
            }
        };
        let ended = async {
            loop {
                if let Err(error) = counted.read(&mut whole).await {
                    return error.kind();
                }
            }
        };
        let kind = tokio::select! { kind = ended => Some(kind), () = pings => None };
        assert_eq!(kind, Some(io::ErrorKind::TimedOut));
    }
}
