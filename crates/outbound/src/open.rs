//! Sends an HTTP request whose response is read as a stream.

use crate::address::OutboundUrl;
use crate::exchange::{Begun, begin, causes, request};
use crate::gate::Slots;
use crate::{Gate, GateError};
use bytes::{Buf as _, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

/// A request with a streamed response.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    pub address: OutboundUrl,
    /// Headers besides `Host`, `Content-Length` and `Accept-Encoding`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
    /// Longest silence within the body of the response.
    pub idle: Duration,
}

/// A response whose body is still to be read.
#[derive(Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Address that the gate connected to.
    pub peer: IpAddr,
    pub body: Body,
}

impl Gate {
    /// Sends a request and returns when the head of its response has arrived, within [`OutboundLimits::total`]. The slot
    /// is held until the body ends or is dropped.
    ///
    /// Does not follow redirects: the caller judges [`OutboundUrl::join`] of their `Location` and opens it through the
    /// gate. A compressed response is an error, because the size of its content would be unknown.
    ///
    /// [`OutboundLimits::total`]: crate::OutboundLimits
    pub async fn open(&self, request: Request) -> Result<Response, GateError> {
        let slot = self.slot(Slots::Streams).await?;
        let total = self.limits().total;
        timeout(total, self.begin_stream(request, slot)).await.unwrap_or(Err(GateError::TimedOut(total)))
    }

    async fn begin_stream(&self, mut asked: Request, slot: OwnedSemaphorePermit) -> Result<Response, GateError> {
        let endpoint = asked.address.endpoint();
        asked.headers.retain(|(name, _)| name != header::ACCEPT_ENCODING);
        asked.headers.push((header::ACCEPT_ENCODING, IDENTITY));
        let request = request(asked.method, endpoint, asked.headers, asked.body)?;
        let connection = self.dial(endpoint, slot).await?;
        let peer = connection.peer();
        let Begun { head, body, driver } = begin(connection, request).await?;
        if head.headers.get_all(header::CONTENT_ENCODING).iter().any(|encoding| encoding != IDENTITY) {
            return Err(GateError::Http("the response is compressed, which the request did not allow".into()));
        }
        let body = Body::new(body, driver, asked.idle);
        Ok(Response { status: head.status, headers: head.headers, peer, body })
    }
}

const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// Body of a response. Silence over the idle limit is an error of the kind `TimedOut`.
pub struct Body {
    incoming: Incoming,
    piece: Bytes,
    idle: Duration,
    /// Runs from the start of a wait.
    timer: Pin<Box<Sleep>>,
    is_waiting: bool,
    /// Drives the connection, and closes it when dropped.
    _driver: AbortOnDropHandle<hyper::Result<()>>,
}

impl Body {
    fn new(incoming: Incoming, driver: AbortOnDropHandle<hyper::Result<()>>, idle: Duration) -> Self {
        let timer = Box::pin(sleep(idle));
        Self { incoming, piece: Bytes::new(), idle, timer, is_waiting: false, _driver: driver }
    }

    /// The next piece; `None` at the end.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            match Pin::new(&mut self.incoming).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Empty frames and trailers are not data, so the wait goes on.
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        self.is_waiting = false;
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(io::Error::other(causes(&error))))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => break,
            }
        }
        if !self.is_waiting {
            self.is_waiting = true;
            let deadline = Instant::now() + self.idle;
            self.timer.as_mut().reset(deadline);
        }
        ready!(self.timer.as_mut().poll(context));
        let text = format!("no data received for {} s", self.idle.as_secs_f32());
        Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, text))))
    }
}

impl AsyncRead for Body {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.piece.is_empty() {
            match ready!(self.poll_piece(context)) {
                Some(piece) => self.piece = piece?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = out.remaining().min(self.piece.len());
        out.put_slice(&self.piece[..length]);
        self.piece.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("idle", &self.idle).finish_non_exhaustive()
    }
}
