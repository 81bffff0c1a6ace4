//! Segments of a route's path. A segment that cannot be parsed causes 404.

use super::error::ApiError;
use axum::extract::{FromRequestParts, MatchedPath, OriginalUri, Path};
use axum::http::Uri;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

/// The variable segments of the path, decoded. Invalid numbers and invalid UTF-8 cause 404.
pub(super) struct Segments<T>(pub T);

/// `/repos/{owner}/{repo}/…`
pub(super) type RepoPath = Segments<(String, String)>;

/// `/repos/{owner}/{repo}/…/{item}`
pub(super) type RepoItemPath = Segments<(String, String, String)>;

impl<T, S> FromRequestParts<S> for Segments<T>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, state).await.map_err(|_| ApiError::not_found())?;
        Ok(Self(path.0))
    }
}

/// `/repos/{owner}/{repo}/…/{*tail}`: the repository, and the rest of the path as bytes. Some clients encode the
/// slashes of ref names and some do not; file paths need not be UTF-8.
pub(super) struct Tail {
    /// Owner and name, as requested.
    pub slug: (String, String),
    /// The rest of the path; may be empty.
    pub rest: Vec<u8>,
}

impl Tail {
    /// The rest of the path as text. Ref names are UTF-8, so other bytes cause 404.
    pub(super) fn text(&self) -> Result<&str, ApiError> {
        std::str::from_utf8(&self.rest).map_err(|_| ApiError::not_found())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Tail {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let matched = MatchedPath::from_request_parts(parts, state).await.map_err(|_| ApiError::not_found())?;
        let mut slug = (String::new(), String::new());
        let mut raw = uri(parts).path().split('/');
        for pattern in matched.as_str().split('/') {
            if pattern.starts_with("{*") {
                break;
            }
            let segment = raw.next().unwrap_or_default();
            let text = || percent_decode_str(segment).decode_utf8().map_err(|_| ApiError::not_found());
            match pattern {
                "{owner}" => slug.0 = text()?.into_owned(),
                "{repo}" => slug.1 = text()?.into_owned(),
                _ => (),
            }
        }
        let rest = raw.collect::<Vec<_>>().join("/");
        Ok(Self { slug, rest: percent_decode_str(&rest).collect() })
    }
}

/// The parameters of the query, decoded.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// The first non-empty parameter with a name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty())
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = uri(parts).query().unwrap_or_default();
        let owned = |(key, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
            (key.into_owned(), value.into_owned())
        };
        Ok(Self(form_urlencoded::parse(query.as_bytes()).map(owned).collect()))
    }
}

fn uri(parts: &Parts) -> &Uri {
    parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0)
}
