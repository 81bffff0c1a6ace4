//! JSON request bodies, with limits on size and time.

use super::error::ApiError;
use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::marker::PhantomData;
use std::time::Duration;

const MAX_BODY: usize = 1 << 20;
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
        parse(&whole(request).await?).map(Self)
    }
}

async fn whole(request: Request) -> Result<Bytes, ApiError> {
    tokio::time::timeout(MAX_TIME, to_bytes(request.into_body(), MAX_BODY))
        .await
        .map_err(|_| ApiError::timeout())?
        .map_err(|_| ApiError::too_large(MAX_BODY))
}

/// A JSON object that holds a list, or the list alone, as GitHub's clients send both.
pub(super) struct InputOrList<T, I>(pub T, pub PhantomData<I>);

impl<T, I, S> FromRequest<S> for InputOrList<T, I>
where
    T: DeserializeOwned + From<Vec<I>>,
    I: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let body = whole(request).await?;
        let value = match body.trim_ascii().starts_with(b"[") {
            true => serde_json::from_slice::<Vec<I>>(&body)
                .map_err(|error| ApiError::bad_request(format!("Problems parsing JSON: {error}")))?
                .into(),
            false => parse(&body)?,
        };
        Ok(Self(value, PhantomData))
    }
}

/// A field that is present, possibly `null`. `null` empties the value; an absent field changes nothing.
pub(super) fn even_null<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body = body.trim_ascii();
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    let not_json = |error: serde_json::Error| ApiError::bad_request(format!("Problems parsing JSON: {error}"));
    // serde also accepts a list, as the fields in order; the API refuses it.
    if !body.starts_with(b"{") {
        serde_json::from_slice::<IgnoredAny>(body).map_err(not_json)?;
        return Err(ApiError::bad_request("The body should be a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let error = error.into_inner();
        if error.is_data() { wrong_field(path, &error) } else { not_json(error) }
    })?;
    json.end().map_err(not_json)?;
    Ok(value)
}

/// Name of the field. The path that serde read does not contain a missing field; the message does.
fn wrong_field(path: String, error: &serde_json::Error) -> ApiError {
    let message = error.to_string();
    match message.strip_prefix("missing field `").and_then(|rest| rest.split_once('`')) {
        Some((field, _)) => {
            ApiError::invalid("Request", field.to_owned(), "missing_field", format!("{field} is required"))
        }
        None => ApiError::invalid("Request", path, "invalid", message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use axum::response::IntoResponse as _;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    struct Wanted {
        name: String,
        size: Option<u32>,
    }

    fn refused(body: &str) -> (StatusCode, String) {
        let error = parse::<Wanted>(body.as_bytes()).unwrap_err();
        let said = format!("{error:?}");
        (error.into_response().status(), said)
    }

    #[test]
    fn a_proper_body_is_read() {
        let wanted: Wanted = parse(br#" {"name": "a", "size": 3, "more": []} "#).unwrap();
        assert_eq!((wanted.name.as_str(), wanted.size), ("a", Some(3)));
    }

    #[test]
    fn what_is_no_json_object_is_a_bad_request() {
        for body in ["{", "[\"a\", 3]", "[", "\"a\"", "nothing", "{\"name\": \"a\"} more", "{\"name\": \"\\ud800\"}"] {
            assert_eq!(refused(body).0, StatusCode::BAD_REQUEST, "{body}");
        }
    }

    #[test]
    fn a_field_that_is_missing_or_wrong_is_named() {
        for (body, field) in
            [("", "name"), ("{}", "name"), (r#"{"name": 1}"#, "name"), (r#"{"name":"a","size":-1}"#, "size")]
        {
            let (status, said) = refused(body);
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
            assert!(said.contains(&format!("field: {field:?}")), "{body}: {said}");
        }
    }
}
