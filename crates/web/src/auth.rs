//! Who comes with which token. Passwords and cookies open neither git nor the API.

use crate::App;
use crate::server::Peer;
use abide_forge::accounts::authenticate;
use abide_forge::{Caller, Fault};
use axum::http::{Extensions, HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::IpAddr;

/// What the credentials of a request came to.
pub(crate) enum Credentials {
    /// There were none.
    None(Caller),
    /// They open nothing.
    Bad,
    /// They are someone's.
    Good(Caller),
}

/// Where the request comes from.
pub(crate) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<Peer>().map(|peer| peer.0)
}

/// Finds out who sent a request.
pub(crate) async fn identify(app: &App, headers: &HeaderMap, ip: Option<IpAddr>) -> Result<Credentials, Fault> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(Credentials::None(Caller::anonymous(ip))) };
    let Some(secret) = value.to_str().ok().and_then(secret) else { return Ok(Credentials::Bad) };
    Ok(match authenticate::by_token(&app.forge, &secret, ip).await? {
        Some(caller) => Credentials::Good(caller),
        None => Credentials::Bad,
    })
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
