//! Bodies: JSON of bounded size that arrives in bounded time.

use super::error::ApiError;
use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// No API body needs more.
const MAX_BODY: usize = 1 << 20;
/// A body that small needs no longer.
const MAX_TIME: Duration = Duration::from_secs(30);

/// A JSON body. An empty one counts as `{}`.
pub(super) struct Input<T>(pub T);

impl<T, S> FromRequest<S> for Input<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let body = tokio::time::timeout(MAX_TIME, to_bytes(request.into_body(), MAX_BODY))
            .await
            .map_err(|_| ApiError::timeout())?
            .map_err(|_| ApiError::too_large(MAX_BODY))?;
        let text: &[u8] = if body.is_empty() { b"{}" } else { &body };
        serde_json::from_slice(text).map(Self).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => {
                ApiError::bad_request(format!("The body does not have the fields expected here: {error}"))
            }
            _ => ApiError::bad_request(format!("Problems parsing JSON: {error}")),
        })
    }
}
