//! Event consumers with their cursors, and failed events.

use super::ask;
use crate::App;
use crate::ask::{Question, lines};
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Admin;
use crate::path::PagePath;
use crate::problem::{Problem, sentence};
use crate::respond;
use abide_forge::consumers;
use abide_forge::consumers::manage::{self, Failure, Progress, Settle, SettleError};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

/// Failed events on the page; `abide events failures` lists more.
const SHOWN: i64 = 100;

#[derive(Template)]
#[template(path = "admin/events.html")]
struct EventsPage {
    frame: Frame,
    section: &'static str,
    consumers: Vec<Progress>,
    failures: Vec<Failure>,
    shown: i64,
}

/// `GET /admin/events`
pub(super) async fn show(State(app): State<App>, by: Admin) -> Result<Response, Problem> {
    Ok(respond::page(&EventsPage {
        frame: Frame::new(&app, &by.visitor, "Events"),
        section: "events",
        consumers: manage::status(&app.forge, &by.by).await?,
        failures: manage::failures(&app.forge, &by.by, i64::MAX, SHOWN).await?,
        shown: SHOWN,
    }))
}

/// `GET /admin/events/settle?consumer=…&id=…`: asks before an event is discarded.
pub(super) async fn ask_drop(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let (consumer, id) = (page_path.query_text("consumer"), page_path.id()?);
    let failures = manage::failures(&app.forge, &by.by, i64::MAX, SHOWN).await?;
    let failure = failures.into_iter().find(|failure| failure.consumer == consumer && failure.seq == id);
    let failure = failure.ok_or_else(Problem::not_found)?;
    let question = Question {
        title: "Discard this event?".into(),
        about: format!("{} {} for {}", failure.kind, failure.seq, failure.consumer),
        consequences: lines([
            "This consumer will never process the event: its notifications or deliveries are not sent.",
            "The event stays in the log. This cannot be undone.",
        ]),
        action: "/admin/events/settle".into(),
        button: "Discard event".into(),
        back: "/admin/events".into(),
        hidden: vec![("consumer", consumer), ("id", id.to_string()), ("how", "drop".to_owned())],
        ..Question::default()
    };
    Ok(ask(&app, &by, "events", question))
}

/// `POST /admin/events/settle`
pub(super) async fn settle(State(app): State<App>, by: Admin, form: Form) -> Result<Response, Problem> {
    let (how, done) = match form.text("how").as_str() {
        "drop" => (Settle::Drop, "removed"),
        _ => (Settle::Retry, "taken-in"),
    };
    let what = (form.text("consumer"), form.id()?);
    let settled = manage::settle(&app.forge, &by.by, &consumers::all(), (&what.0, what.1), how).await;
    settled.map_err(|error| match error {
        SettleError::Access(access) => access.into(),
        other => Problem::new(StatusCode::CONFLICT, sentence(&other.to_string())),
    })?;
    Ok(respond::see_other(&format!("/admin/events?done={done}")))
}
