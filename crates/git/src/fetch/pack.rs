//! Asks for a pack, and reads it out of the answer.

use super::demux::{Demux, Step};
use super::discover::Source;
use super::error::FetchError;
use super::offer::{Offer, OldOffer};
use super::remote::{Body, RemoteRequest};
use super::reply::ask;
use super::request::{MAX_HAVES, MAX_WANTS, fetch_old, fetch_v2};
use crate::ProtocolVersion;
use abide_core::Oid;
use bytes::{Buf as _, Bytes, BytesMut};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

/// Read size: as long as the longest packet.
const PIECE: usize = 64 * 1024;

impl Source<'_> {
    /// Asks for a pack with these objects and everything that they reach, except for objects that `haves` reach. Returns
    /// when the pack begins.
    ///
    /// The pack may be thin: its deltas may need objects that `haves` reach, so these must be complete in the repository
    /// that receives the pack. Haves over [`MAX_HAVES`] are not named.
    ///
    /// [`FetchError::NotOurRef`] names one of `wants`; the others can be asked for without it.
    pub async fn pack(&self, wants: &[Oid], haves: &[Oid]) -> Result<PackReader, FetchError> {
        if wants.is_empty() || wants.len() > MAX_WANTS {
            return Err(FetchError::WantCount(wants.len()));
        }
        let haves = &haves[..haves.len().min(MAX_HAVES)];
        let (body, protocol, demux) = match self.offer() {
            Offer::V2(offer) => (fetch_v2(offer, wants, haves), ProtocolVersion::V2, Demux::v2()),
            Offer::Old(offer) => {
                may_want(offer, wants)?;
                (fetch_old(offer, wants, haves), ProtocolVersion::V0, Demux::old())
            }
        };
        let request = RemoteRequest::command(body, protocol);
        let body = ask(self.remote(), request).await?;
        let mut pack = PackReader { body, buffer: BytesMut::new(), demux, piece: Bytes::new(), end: None };
        pack.begin().await.map_err(|error| of_wants(error, wants))?;
        Ok(pack)
    }
}

/// Finds an object that a server of version 0 is certain to refuse, without asking it.
fn may_want(offer: &OldOffer, wants: &[Oid]) -> Result<(), FetchError> {
    let refused = wants.iter().find(|oid| !offer.unadvertised && !offer.tips.contains(oid));
    match refused {
        Some(oid) => Err(FetchError::NotOurRef(*oid)),
        None if !offer.side_band_64k => {
            Err(FetchError::Protocol("the server does not offer side-band-64k; update its git".into()))
        }
        None => Ok(()),
    }
}

/// The caller drops a refused object and asks again, so it must be one of those that were asked for.
fn of_wants(error: FetchError, wants: &[Oid]) -> FetchError {
    match (error, wants) {
        (FetchError::NotOurRef(oid), _) if !wants.contains(&oid) => {
            FetchError::Protocol(format!("the server refuses {oid}, which was not asked for"))
        }
        (FetchError::Denied(message), [only]) if message.ends_with("not our ref") => FetchError::NotOurRef(*only),
        (error, _) => error,
    }
}

/// The bytes of a pack, for [`Incoming::receive`](crate::Incoming::receive). It ends where the server ends the pack, and
/// fails if the answer ends before.
pub struct PackReader {
    body: Body,
    buffer: BytesMut,
    demux: Demux,
    piece: Bytes,
    end: Option<Result<(), FetchError>>,
}

impl PackReader {
    /// Reason why reading failed. The reader's error has the same text without the type.
    pub fn failure(&self) -> Option<&FetchError> {
        self.end.as_ref()?.as_ref().err()
    }

    /// Reads up to the start of the pack, where git reports refused objects.
    async fn begin(&mut self) -> Result<(), FetchError> {
        poll_fn(|context| self.poll_piece(context)).await?;
        Ok(())
    }

    /// Waits until `piece` has bytes, or the pack is over.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<(), FetchError>> {
        loop {
            match self.demux.next(&mut self.buffer)? {
                Step::Pack(piece) => {
                    self.piece = piece;
                    return Poll::Ready(Ok(()));
                }
                Step::End => {
                    self.end = Some(Ok(()));
                    return Poll::Ready(Ok(()));
                }
                Step::More => {}
            }
            // The buffer can use its memory again only if no piece shares it.
            self.piece = Bytes::new();
            self.buffer.reserve(PIECE);
            if ready!(poll_read_buf(Pin::new(&mut self.body), context, &mut self.buffer))? == 0 {
                let what = if self.demux.has_begun() { "the pack has no end" } else { "no pack follows" };
                return Poll::Ready(Err(FetchError::Cut(what.into())));
            }
        }
    }
}

impl AsyncRead for PackReader {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.piece.is_empty() {
            match &self.end {
                Some(Ok(())) => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error.clone()))),
                None => {}
            }
            if let Err(error) = ready!(self.poll_piece(context)) {
                self.end = Some(Err(error));
            }
        }
        let length = out.remaining().min(self.piece.len());
        out.put_slice(&self.piece[..length]);
        self.piece.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for PackReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackReader").field("demux", &self.demux).field("end", &self.end).finish_non_exhaustive()
    }
}
