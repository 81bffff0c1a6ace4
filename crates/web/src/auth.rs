//! Authentication by token. Git and the API accept neither passwords nor cookies.

use crate::App;
use crate::server::Peer;
use abide_forge::accounts::authenticate;
use abide_forge::accounts::nostr::{self, NostrError};
use abide_forge::accounts::standing::Standing;
use abide_forge::{Caller, Fault};
use abide_nostr::RelayLimits;
use abide_nostr::http_auth::{self, Request};
use axum::body::{Body, to_bytes};
use axum::extract::OriginalUri;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::net::IpAddr;
use std::time::Duration;

/// Limits of a signed request: size of its body, and time to receive it.
const MAX_BODY: usize = 1 << 20;
const MAX_TIME: Duration = Duration::from_secs(30);

/// Result of checking a request's credentials.
pub enum Credentials {
    None(Caller),
    /// Invalid, revoked or expired.
    Bad,
    Good(Caller),
}

/// IP address of the client.
pub fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<Peer>().map(|peer| peer.0)
}

/// Authenticates a request.
pub async fn identify(app: &App, headers: &HeaderMap, ip: Option<IpAddr>) -> Result<Credentials, Fault> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(Credentials::None(Caller::anonymous(ip))) };
    let Some(secret) = value.to_str().ok().and_then(secret) else { return Ok(Credentials::Bad) };
    Ok(match authenticate::by_token(&app.forge, &secret, ip).await? {
        Some(caller) => Credentials::Good(caller),
        None => Credentials::Bad,
    })
}

/// As [`identify`], for requests that a nostr key may sign (NIP-98). The body is read only if the key belongs to an
/// account. The response may name the defect of a signature, because the signer learns nothing about others.
pub async fn identify_signed(
    app: &App,
    parts: &Parts,
    body: Body,
    ip: Option<IpAddr>,
) -> Result<(Result<Credentials, String>, Body), Fault> {
    let Some(header) = signed(&parts.headers) else {
        return Ok((Ok(identify(app, &parts.headers, ip).await?), body));
    };
    let path = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
    let url = app.url(path.path_and_query().map_or("/", |path| path.as_str()));
    match nostr::ensure_account(&app.forge, header, parts.method.as_str(), &url).await {
        Ok(()) => {}
        Err(NostrError::Fault(fault)) => return Err(fault),
        Err(error) => return Ok((Err(error.to_string()), Body::empty())),
    }
    let read = tokio::time::timeout(MAX_TIME, to_bytes(body, MAX_BODY)).await;
    let Ok(Ok(body)) = read else {
        let message = format!("the body of a signed request must not exceed {MAX_BODY} bytes");
        return Ok((Err(message), Body::empty()));
    };
    let sent = match body.is_empty() {
        true => http_auth::Body::Empty,
        false => http_auth::Body::Hash(Sha256::digest(&body).into()),
    };
    let request = Request { method: parts.method.as_str(), url: &url, body: sent };
    let credentials = match nostr::by_header(&app.forge, header, &request, ip).await {
        Ok(caller) => Ok(Credentials::Good(caller)),
        Err(NostrError::Fault(fault)) => return Err(fault),
        Err(error) => Err(error.to_string()),
    };
    Ok((credentials, Body::from(body)))
}

/// The credential of a request. A connection that outlives the request must check it again.
pub fn standing(headers: &HeaderMap, caller: &Caller) -> Standing {
    if let Some(header) = signed(headers) {
        let key = http_auth::named_key(header, &RelayLimits::default()).ok();
        return key.zip(caller.user_id()).map_or(Standing::Anonymous, |(key, user)| Standing::Linked(key, user));
    }
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    value.and_then(secret).map_or(Standing::Anonymous, |secret| Standing::token(&secret))
}

/// The header, if a nostr key signed the request.
fn signed(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, _) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("nostr").then_some(value)
}

/// The token in an Authorization header: `Bearer`, GitHub's `token`, or `Basic` with the token as password. A token
/// given as user name, as some tools do, works too.
fn secret(value: &str) -> Option<String> {
    let (scheme, rest) = value.trim().split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token") {
        return Some(rest.to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
    let (user, password) = pair.split_once(':')?;
    let token = if password.is_empty() || password == "x-oauth-basic" { user } else { password };
    Some(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_in_every_form_that_clients_send() {
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        for value in ["Bearer t", "token t", "TOKEN  t ", &basic("anyone:t"), &basic("t:"), &basic("t:x-oauth-basic")] {
            assert_eq!(secret(value).as_deref(), Some("t"), "{value}");
        }
        for value in ["", "t", "Digest t", "Basic !", &basic("no colon")] {
            assert_eq!(secret(value), None, "{value}");
        }
    }
}
