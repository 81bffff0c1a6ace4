//! Extractors for pages of signed-in visitors and of site admins.

use super::frame::Frame;
use super::problem::Problem;
use super::respond;
use super::visitor::{self, Visitor};
use crate::App;
use abide_forge::By;
use abide_forge::accounts::Viewer;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};

/// A signed-in visitor. Others are redirected to the sign-in page, which returns here.
pub(crate) struct Member {
    pub visitor: Visitor,
    pub viewer: Viewer,
}

impl FromRequestParts<App> for Member {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let visitor = visitor::found(&parts.extensions).ok_or_else(|| Problem::not_found().into_response())?;
        if let Some(viewer) = visitor.viewer().cloned() {
            return Ok(Self { visitor, viewer });
        }
        // The URL of a form is not a page to return to.
        let to = match parts.method {
            Method::GET | Method::HEAD => Frame::new(app, &visitor, "").login_link(),
            _ => "/login".to_owned(),
        };
        Err(respond::see_other(&to))
    }
}

/// A site admin. Others get 404.
pub(crate) struct Admin {
    pub visitor: Visitor,
    pub viewer: Viewer,
    /// Proof for the use cases.
    pub by: By,
}

impl FromRequestParts<App> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let visitor = visitor::found(&parts.extensions).ok_or_else(Problem::not_found)?;
        let viewer = visitor.viewer().cloned().ok_or_else(Problem::not_found)?;
        let by = By::admin(&viewer.caller)?;
        Ok(Self { visitor, viewer, by })
    }
}
