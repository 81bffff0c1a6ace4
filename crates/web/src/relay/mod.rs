//! Requests to the relay: one URL for browsers, NIP-11 documents and WebSockets.
//!
//! At `/` a WebSocket request becomes a connection to the relay (`socket.rs`), `Accept: application/nostr+json` gets
//! the NIP-11 document, and every other request gets the front page.

mod conversation;
mod counted;
mod socket;

use crate::App;
use crate::auth::peer;
use crate::server::{ConnectionSlot, Sockets};
use abide_core::admission::Network;
use abide_forge::admit::Client;
use abide_forge::relay::{Relay, TooMany};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Handles relay requests for `/`; all other requests pass.
pub(crate) async fn relay_requests(State(app): State<App>, request: Request, next: Next) -> Response {
    let relay = Relay::of(&app.forge);
    if request.uri().path() != "/" || request.method() != Method::GET {
        return next.run(request).await;
    }
    if has_word(request.headers(), header::UPGRADE, "websocket") {
        return match relay.settings().enabled {
            true => upgrade(app, request).await,
            false => {
                (StatusCode::NOT_FOUND, "The nostr relay is disabled on this server (relay.enabled).\n").into_response()
            }
        };
    }
    if relay.settings().enabled && has_word(request.headers(), header::ACCEPT, "application/nostr+json") {
        let info = axum::Json(relay.info(app.forge.settings(), env!("CARGO_PKG_VERSION")));
        return ([(header::CONTENT_TYPE, "application/nostr+json")], info).into_response();
    }
    next.run(request).await
}

/// Whether a header's list contains a word; parameters after a semicolon are ignored.
fn has_word(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let lines = headers.get_all(name);
    let mut words = lines.iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    words.any(|part| part.split(';').next().is_some_and(|part| part.trim().eq_ignore_ascii_case(word)))
}

async fn upgrade(app: App, mut request: Request) -> Response {
    if !request.headers().contains_key(header::SEC_WEBSOCKET_KEY) {
        let text = "Bad WebSocket request: the Sec-WebSocket-Key header is missing.\n";
        return (StatusCode::BAD_REQUEST, text).into_response();
    }
    let response = match tungstenite::handshake::server::create_response_with_body(&request, Body::empty) {
        Ok(response) => response,
        Err(error) => {
            return (StatusCode::BAD_REQUEST, format!("Bad WebSocket request: {error}.\n")).into_response();
        }
    };
    let ip = peer(request.extensions());
    let sockets = request.extensions().get::<Sockets>().cloned();
    let held = request.extensions().get::<ConnectionSlot>().cloned();
    let client = match Client::connect(&app.forge, ip) {
        Ok(client) => client,
        Err(full) => return refused(full),
    };
    let running = sockets.map(|sockets| sockets.0.token());
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        // A WebSocket keeps the slot of its connection.
        let _running = (running, held);
        match upgrade.await {
            Ok(connection) => {
                let socket = socket::Socket::new(&app, connection, ip.map(Network::of)).await;
                conversation::serve(&app, socket, client).await;
            }
            Err(error) => tracing::debug!(%error, "a connection did not become a WebSocket"),
        }
    });
    response
}

fn refused(full: TooMany) -> Response {
    let status = match full {
        TooMany::Connections(_) => StatusCode::SERVICE_UNAVAILABLE,
        TooMany::OfAddress(_) => StatusCode::TOO_MANY_REQUESTS,
    };
    (status, [(header::RETRY_AFTER, "60")], format!("Refused: {full}.\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_lists_whatever_their_case() {
        let with = |value: &str| HeaderMap::from_iter([(header::CONNECTION, value.parse().unwrap())]);
        for yes in ["Upgrade", "keep-alive, Upgrade", "UPGRADE", "upgrade;q=1, x"] {
            assert!(has_word(&with(yes), header::CONNECTION, "upgrade"), "{yes}");
        }
        for no in ["", "upgraded", "keep-alive", "no upgrade"] {
            assert!(!has_word(&with(no), header::CONNECTION, "upgrade"), "{no}");
        }
    }
}
