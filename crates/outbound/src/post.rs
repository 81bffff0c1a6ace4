//! Sends an HTTP POST and reads the start of the response.

use crate::address::{Host, OutboundUrl, Scheme};
use crate::{Gate, GateError};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::task::AbortOnDropHandle;

/// Size limit of a response head.
const HEAD_BYTES: usize = 64 << 10;

/// A request to send.
#[derive(Debug, Clone)]
pub struct Post {
    pub address: OutboundUrl,
    /// Headers besides `Host` and `Content-Length`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Start of the body.
    pub body: Bytes,
    /// Whether the body was truncated.
    pub cut: bool,
}

impl Gate {
    /// Sends a POST and waits for the response. Does not follow redirects. Waiting for a slot takes at most as long as
    /// the exchange itself may, so the caller knows the longest duration.
    pub async fn post(&self, post: Post) -> Result<Answer, GateError> {
        let total = self.limits().total;
        let turn = timeout(total, self.turns().acquire()).await.map_err(|_| GateError::Crowded)?;
        let _turn = turn.map_err(|error| GateError::Http(error.to_string()))?;
        timeout(total, self.converse(post)).await.unwrap_or(Err(GateError::TimedOut(total)))
    }

    async fn converse(&self, post: Post) -> Result<Answer, GateError> {
        let vetted = self.vet(&post.address).await?;
        let stream = self.connect(&vetted).await?;
        // The whole request is written at once, so waiting to fill a packet gains nothing.
        let _ = stream.set_nodelay(true);
        match post.address.scheme() {
            Scheme::Http => exchange(TokioIo::new(stream), post, self.limits().body).await,
            Scheme::Https => {
                let host = vetted.host().to_owned();
                let tls = |error| GateError::Tls { host, error };
                let stream = match server_name(post.address.host()) {
                    Ok(name) => self.tls().connect(name, stream).await.map_err(tls)?,
                    Err(error) => return Err(tls(error)),
                };
                exchange(TokioIo::new(stream), post, self.limits().body).await
            }
        }
    }
}

fn server_name(host: &Host) -> std::io::Result<ServerName<'static>> {
    match host {
        Host::Ip(ip) => Ok(ServerName::from(*ip)),
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(std::io::Error::other),
    }
}

#[expect(clippy::disallowed_methods, reason = "the connection was made by the gate")]
async fn exchange<S>(stream: S, post: Post, room: usize) -> Result<Answer, GateError>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| GateError::Http(said(&error));
    let request = request(post)?;
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(HEAD_BYTES).handshake(stream).await.map_err(broken)?;
    // Aborted with this function; the rest of the response is not needed.
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let (head, mut incoming) = sender.send_request(request).await.map_err(broken)?.into_parts();
    let mut body = Vec::new();
    let mut cut = false;
    while let Some(frame) = incoming.frame().await {
        // The status is what counts. A body that breaks off is kept as far as it arrived.
        let Ok(frame) = frame else {
            cut = true;
            break;
        };
        let Ok(data) = frame.into_data() else { continue };
        let fits = data.len().min(room - body.len());
        body.extend_from_slice(&data[..fits]);
        if fits < data.len() {
            cut = true;
            break;
        }
    }
    Ok(Answer { status: head.status, headers: head.headers, body: body.into(), cut })
}

fn request(post: Post) -> Result<Request<Full<Bytes>>, GateError> {
    let mut request = Request::new(Full::new(post.body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() =
        post.address.target().parse().map_err(|error: http::uri::InvalidUri| GateError::Http(error.to_string()))?;
    let host = HeaderValue::from_str(&post.address.authority()).map_err(|error| GateError::Http(error.to_string()))?;
    let headers = request.headers_mut();
    headers.extend(post.headers);
    headers.insert(header::HOST, host);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// The error with its causes; without them it says little.
fn said(error: &hyper::Error) -> String {
    let mut text = format!("the request failed: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
