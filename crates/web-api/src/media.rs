//! Media type of a response, from the `Accept` header.

use super::error::ApiError;
use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;

/// Media type that the `Accept` header names; JSON unless it is one of GitHub's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Raw,
    /// A directory as one object.
    Object,
    Diff,
    /// A commit in the format of `git format-patch`.
    Patch,
    /// Only the id of a commit.
    Sha,
    /// Stars with the time of each.
    Star,
}

impl Media {
    fn of(accept: &str) -> Self {
        accept.split(',').find_map(Self::named).unwrap_or(Self::Json)
    }

    /// Parses `application/vnd.github.raw+json`, with or without GitHub's older version part.
    fn named(one: &str) -> Option<Self> {
        let kind = one.split(';').next().unwrap_or_default().trim();
        let name = kind.strip_prefix("application/vnd.github.")?;
        let name = name.trim_start_matches("v3.").trim_end_matches("+json");
        match name {
            "raw" => Some(Self::Raw),
            "object" => Some(Self::Object),
            "diff" => Some(Self::Diff),
            "patch" => Some(Self::Patch),
            "sha" => Some(Self::Sha),
            "star" => Some(Self::Star),
            _ => None,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Media {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let accept = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        Ok(accept.map_or(Self::Json, Self::of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn githubs_forms_are_known_with_and_without_a_version() {
        for accept in ["application/vnd.github.raw", "application/vnd.github.v3.raw", "application/vnd.github.raw+json"]
        {
            assert_eq!(Media::of(accept), Media::Raw, "{accept}");
        }
        assert_eq!(Media::of("text/html, application/vnd.github.v3.diff; q=0.9"), Media::Diff);
        for accept in ["", "*/*", "application/json", "application/vnd.github+json", "application/vnd.github.v3+json"] {
            assert_eq!(Media::of(accept), Media::Json, "{accept}");
        }
    }
}
