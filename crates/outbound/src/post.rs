//! Sends an HTTP POST and reads the start of the response.

use crate::address::OutboundUrl;
use crate::exchange::{begin, request};
use crate::gate::Slots;
use crate::{Gate, GateError};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

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
        let slot = self.slot(Slots::Exchanges).await?;
        let total = self.limits().total;
        timeout(total, self.converse(post, slot)).await.unwrap_or(Err(GateError::TimedOut(total)))
    }

    async fn converse(&self, post: Post, slot: OwnedSemaphorePermit) -> Result<Answer, GateError> {
        let endpoint = post.address.endpoint();
        let request = request(Method::POST, endpoint, post.headers, post.body)?;
        let mut begun = begin(self.dial(endpoint, slot).await?, request).await?;
        let room = self.limits().body;
        let mut body = Vec::new();
        let mut cut = false;
        while let Some(frame) = begun.body.frame().await {
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
        Ok(Answer { status: begun.head.status, headers: begun.head.headers, body: body.into(), cut })
    }
}
