//! One HTTP/1.1 exchange on a connection, up to the head of the response.

use crate::GateError;
use crate::address::Endpoint;
use crate::dial::Connection;
use bytes::Bytes;
use http::response::Parts;
use http::{HeaderName, HeaderValue, Method, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio_util::task::AbortOnDropHandle;

/// Size limit of a response head.
const HEAD_BYTES: usize = 64 << 10;

/// A response whose body is still to be read. The connection ends with `driver`.
pub(crate) struct Begun {
    pub head: Parts,
    pub body: Incoming,
    pub driver: AbortOnDropHandle<hyper::Result<()>>,
}

/// Builds a request for one exchange.
pub(crate) fn request(
    method: Method,
    endpoint: &Endpoint,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
) -> Result<http::Request<Full<Bytes>>, GateError> {
    let mut request = http::Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() =
        endpoint.target.parse().map_err(|error: http::uri::InvalidUri| GateError::Http(error.to_string()))?;
    let host = HeaderValue::from_str(&endpoint.authority()).map_err(|error| GateError::Http(error.to_string()))?;
    let map = request.headers_mut();
    map.extend(headers);
    map.insert(header::HOST, host);
    map.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// Sends a request and reads the head of its response.
#[expect(clippy::disallowed_methods, reason = "the connection was made by the gate")]
pub(crate) async fn begin(connection: Connection, request: http::Request<Full<Bytes>>) -> Result<Begun, GateError> {
    let broken = |error: hyper::Error| GateError::Http(causes(&error));
    let stream = TokioIo::new(connection);
    let (mut sender, driver) =
        http1::Builder::new().max_buf_size(HEAD_BYTES).handshake(stream).await.map_err(broken)?;
    let driver = AbortOnDropHandle::new(tokio::spawn(driver));
    let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
    Ok(Begun { head, body, driver })
}

/// The error with its causes; without them it says little.
pub(crate) fn causes(error: &hyper::Error) -> String {
    let mut text = format!("the request failed: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
