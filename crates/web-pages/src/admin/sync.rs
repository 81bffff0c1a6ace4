//! Fetching from other servers: identifiers that lack git data, the domains it is fetched from, and the relays that are
//! followed.

use crate::App;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Admin;
use crate::problem::Problem;
use crate::respond;
use crate::show::text::{shortened, shown};
use abide_forge::sync::status::{self, Command, Domain, Overview, Relay, Search};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

/// Identifiers and domains that are shown.
const SHOWN: i64 = 100;

#[derive(Template)]
#[template(path = "admin/sync.html")]
struct SyncPage {
    frame: Frame,
    section: &'static str,
    enabled: bool,
    queued: i64,
    running: i64,
    searches: Vec<SearchRow>,
    domains: Vec<DomainRow>,
    follows: bool,
    relays: Vec<Relay>,
    most: i64,
}

struct SearchRow {
    search: Search,
    /// The identifier as it may stand on a page.
    name: String,
}

struct DomainRow {
    domain: Domain,
    rests: bool,
}

/// `GET /admin/sync`
pub(super) async fn show(State(app): State<App>, by: Admin) -> Result<Response, Problem> {
    let Overview { queued, running, searches, domains, relays } =
        status::overview(&app.forge, &by.viewer.caller, SHOWN).await?;
    let now = app.forge.clock().now();
    let name = |search: &Search| shortened(&shown(search.entry.identifier.as_bytes()), 60).into_owned();
    Ok(respond::page(&SyncPage {
        frame: Frame::new(&app, &by.visitor, "Fetching from other servers"),
        section: "sync",
        enabled: app.forge.settings().sync.enabled,
        queued,
        running,
        searches: searches.into_iter().map(|search| SearchRow { name: name(&search), search }).collect(),
        domains: domains
            .into_iter()
            .map(|domain| DomainRow { rests: domain.rests_until.is_some_and(|until| until > now), domain })
            .collect(),
        follows: app.forge.settings().sync.follows(),
        relays,
        most: SHOWN,
    }))
}

/// `POST /admin/sync/manage`
pub(super) async fn manage(State(app): State<App>, by: Admin, form: Form) -> Result<Response, Problem> {
    let domain = || form.text("domain");
    let command = match form.text("action").as_str() {
        "try" => Command::Try(form.id()?),
        "forget" => Command::Forget(form.id()?),
        "rest" => Command::Rest(domain()),
        "wake" => Command::Wake(domain()),
        "forget-domain" => Command::ForgetDomain(domain()),
        "try-relay" => Command::TryRelay(form.text("relay")),
        "rest-relay" => Command::RestRelay(form.text("relay")),
        "forget-relay" => Command::ForgetRelay(form.text("relay")),
        _ => return Err(Problem::new(StatusCode::BAD_REQUEST, "The form has an unknown action. Reload the page.")),
    };
    match status::command(&app.forge, &by.viewer.caller, command).await? {
        true => Ok(respond::see_other("/admin/sync?done=saved")),
        false => Err(Problem::new(
            StatusCode::CONFLICT,
            "The entry is in use now, is already due, or no longer exists. Nothing was changed.",
        )),
    }
}
