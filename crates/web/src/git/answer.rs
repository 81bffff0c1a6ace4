//! Responses of git over HTTP.

use super::Service;
use crate::held;
use abide_forge::Fault;
use abide_forge::git::{ProtocolVersion, RefList, error_packet, service_header};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use std::net::IpAddr;

/// Ref advertisement; protocol version 2 omits the service name before it.
pub(super) fn advertisement(ip: Option<IpAddr>, service: Service, version: ProtocolVersion, refs: RefList) -> Response {
    let named = version != ProtocolVersion::V2 || service == Service::ReceivePack;
    let name = named.then(|| service_header(service.name()));
    let size = refs.size() + name.as_ref().map_or(0, |name| name.len() as u64);
    match held::pieces(ip, size, name.into_iter().chain(refs)) {
        Ok(body) => typed(format!("application/x-{}-advertisement", service.name()), body),
        Err(busy) => *busy,
    }
}

/// Response to a request for refs.
pub(super) fn refs(ip: Option<IpAddr>, refs: RefList) -> Response {
    match held::pieces(ip, refs.size(), refs) {
        Ok(body) => result(Service::UploadPack, body),
        Err(busy) => *busy,
    }
}

/// A refusal that git shows as `remote error`.
pub(super) fn refused_advertisement(service: Service, reason: &str) -> Response {
    let body = join(&service_header(service.name()), &error_packet(reason));
    typed(format!("application/x-{}-advertisement", service.name()), Body::from(body))
}

/// Response to a fetch or push.
pub(super) fn result(service: Service, body: Body) -> Response {
    typed(format!("application/x-{}-result", service.name()), body)
}

fn typed(content_type: String, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&content_type) {
        headers.insert(header::CONTENT_TYPE, value);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, max-age=0, must-revalidate"));
    headers.insert(header::EXPIRES, HeaderValue::from_static("Fri, 01 Jan 1980 00:00:00 GMT"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

fn join(first: &[u8], second: &[u8]) -> Bytes {
    let mut both = BytesMut::with_capacity(first.len() + second.len());
    both.extend_from_slice(first);
    both.extend_from_slice(second);
    both.freeze()
}

/// The same 401 for all anonymous clients without read access, and for invalid credentials.
pub(super) fn login() -> Response {
    let body =
        "Sign in with an access token as the password. Repositories that you may not read are reported as not found.\n";
    let challenge = (header::WWW_AUTHENTICATE, "Basic realm=\"Abide\"");
    (StatusCode::UNAUTHORIZED, [challenge, no_store(), plain()], body).into_response()
}

/// The same 404 for all authenticated clients without read access.
pub(super) fn not_found() -> Response {
    (StatusCode::NOT_FOUND, [no_store(), plain()], "Repository not found.\n").into_response()
}

pub(super) fn forbidden(reason: &str) -> Response {
    (StatusCode::FORBIDDEN, [no_store(), plain()], format!("{reason}\n")).into_response()
}

/// Refusal of dumb HTTP.
pub(super) fn dumb() -> Response {
    let body = "Only the smart HTTP protocol is supported; use git 1.6.6 or later.\n";
    (StatusCode::FORBIDDEN, [no_store(), plain()], body).into_response()
}

pub(super) fn unsupported(what: &str) -> Response {
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, [no_store(), plain()], format!("{what}\n")).into_response()
}

/// `Retry-After` when no slot became free in time.
const RETRY_SECONDS: &str = "10";

pub(super) fn fault(fault: &Fault) -> Response {
    use abide_forge::GitError::{Busy, Client, RequestTooLarge};
    let (status, text) = match fault {
        Fault::DiskFull { .. } => (StatusCode::INSUFFICIENT_STORAGE, fault.to_string()),
        Fault::Git(Busy { .. }) => {
            let later = (header::RETRY_AFTER, RETRY_SECONDS);
            let text = format!("{fault}\n");
            return (StatusCode::SERVICE_UNAVAILABLE, [no_store(), plain(), later], text).into_response();
        }
        Fault::Git(RequestTooLarge(_)) => (StatusCode::PAYLOAD_TOO_LARGE, fault.to_string()),
        Fault::Revoked => return forbidden(&fault.to_string()),
        Fault::Git(Client(_)) => (StatusCode::REQUEST_TIMEOUT, fault.to_string()),
        _ => {
            tracing::error!(error = %fault, "a git request failed");
            (StatusCode::INTERNAL_SERVER_ERROR, "internal server error; try again later".to_owned())
        }
    };
    (status, [no_store(), plain()], format!("{text}\n")).into_response()
}

fn no_store() -> (header::HeaderName, &'static str) {
    (header::CACHE_CONTROL, "no-store")
}

fn plain() -> (header::HeaderName, &'static str) {
    (header::CONTENT_TYPE, "text/plain; charset=utf-8")
}
