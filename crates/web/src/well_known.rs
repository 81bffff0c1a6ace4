//! Files at well-known paths: `/.well-known/nostr.json` (NIP-05).

use crate::App;
use abide_forge::accounts::nostr;
use abide_nostr::nip05::{self, Names};
use axum::Json;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    name: String,
}

/// `GET /.well-known/nostr.json?name=…`: the key of the account with that name. Without a name the list is empty; `_`,
/// the name of the site itself, has no key.
pub(crate) async fn nostr_json(State(app): State<App>, Query(asked): Query<Asked>) -> Response {
    let mut names = Names::default();
    if nip05::is_name(&asked.name) {
        match nostr::key_of_name(&app.forge, &asked.name).await {
            Ok(Some(key)) => names.add(&asked.name, &key, &[relay(&app.url(""))]),
            Ok(None) => (),
            Err(error) => {
                tracing::error!(%error, "could not look up a key");
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
        }
    }
    ([(header::CACHE_CONTROL, "public, max-age=60")], Json(names)).into_response()
}

/// URL of a site's relay.
pub fn relay(site: &str) -> String {
    match site.split_once("://") {
        Some(("http", host)) => format!("ws://{host}"),
        Some((_, host)) => format!("wss://{host}"),
        None => site.to_owned(),
    }
}
