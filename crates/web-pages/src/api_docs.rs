//! The documentation page of the REST API.

use super::frame::Frame;
use super::respond;
use super::visitor::Visitor;
use crate::App;
use abide_web::API;
use abide_web_api::docs::{Section, sections};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "api_docs.html")]
struct DocsPage {
    frame: Frame,
    base: String,
    sections: Vec<Section>,
}

/// `GET /api/docs`
pub(super) async fn show(State(app): State<App>, visitor: Visitor) -> Response {
    let frame = Frame::new(&app, &visitor, "REST API");
    respond::page(&DocsPage { frame, base: app.url(API), sections: sections() })
}
