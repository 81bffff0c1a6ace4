//! The visitor of a page. Session cookies are valid for pages only; git and the API need tokens.

use crate::App;
use abide_forge::accounts::User;
use abide_forge::accounts::sessions::{self, Viewer};
use abide_forge::notify::inbox;
use abide_forge::{Caller, Fault};
use abide_web::Peer;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, StatusCode, header};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The visitor of a page. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Visitor(Arc<Inner>);

struct Inner {
    viewer: Option<Viewer>,
    ip: Option<IpAddr>,
    agent: String,
    /// Key that CSRF tokens are derived from: the session cookie, or a separate cookie without a session.
    form_key: String,
    /// Whether that cookie is new and must be set.
    fresh: bool,
    wants_forms: AtomicBool,
    path_and_query: String,
    unread: AtomicI64,
}

/// Names of the cookies. With https they have the prefix `__Host-`, which binds them to this host and to https.
pub(crate) struct Cookies {
    secure: bool,
}

impl Cookies {
    pub(crate) fn of(app: &App) -> Self {
        Self { secure: app.forge.settings().public_url.starts_with("https://") }
    }

    fn session(&self) -> &'static str {
        if self.secure { "__Host-abide" } else { "abide" }
    }

    fn form(&self) -> &'static str {
        if self.secure { "__Host-abide-form" } else { "abide-form" }
    }

    /// `Set-Cookie` of the session, for the lifetime of an unused session.
    pub(crate) fn new_session(&self, app: &App, value: &str) -> String {
        self.set(self.session(), value, app.forge.settings().session.ttl.as_secs())
    }

    /// `Set-Cookie` that removes the session.
    pub(crate) fn no_session(&self) -> String {
        self.set(self.session(), "", 0)
    }

    /// `Set-Cookie` with a lifetime in seconds; 0 removes the cookie.
    fn set(&self, name: &str, value: &str, seconds: u64) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
    }
}

/// Lifetime of the form cookie of visitors who are not signed in.
const FORM_COOKIE_SECONDS: u64 = 86_400;

impl Visitor {
    /// Identifies the visitor.
    pub(crate) async fn of(app: &App, parts: &Parts) -> Result<Self, Fault> {
        let ip = parts.extensions.get::<Peer>().map(|peer| peer.0);
        let cookies = Cookies::of(app);
        let session = cookie(&parts.headers, cookies.session());
        let viewer = match &session {
            Some(cookie) => sessions::by_cookie(&app.forge, cookie, ip).await?,
            None => None,
        };
        let known = session.filter(|_| viewer.is_some()).or_else(|| cookie(&parts.headers, cookies.form()));
        let fresh = known.is_none();
        let form_key = known.unwrap_or_else(|| app.forge.random_token());
        let unread = match &viewer {
            Some(viewer) if shows_a_page(parts) => inbox::unread(&app.forge, &viewer.caller).await?,
            _ => 0,
        };
        let agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Ok(Self(Arc::new(Inner {
            viewer,
            ip,
            agent: agent.chars().take(200).collect(),
            form_key,
            fresh,
            wants_forms: AtomicBool::new(false),
            unread: AtomicI64::new(unread),
            path_and_query: parts.uri.path_and_query().map_or("/".into(), |text| text.as_str().to_owned()),
        })))
    }

    /// The session, if someone is logged in.
    pub(crate) fn viewer(&self) -> Option<&Viewer> {
        self.0.viewer.as_ref()
    }

    /// The account, if someone is logged in.
    pub(crate) fn user(&self) -> Option<&User> {
        self.viewer().map(|viewer| &viewer.user)
    }

    /// The visitor as the caller of use cases.
    pub(crate) fn caller(&self) -> Caller {
        self.viewer().map_or_else(|| Caller::anonymous(self.0.ip), |viewer| viewer.caller.clone())
    }

    /// IP address of the visitor.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.0.ip
    }

    /// User agent, shortened.
    pub(crate) fn agent(&self) -> &str {
        &self.0.agent
    }

    /// Path and query of the request.
    pub(crate) fn path_and_query(&self) -> &str {
        &self.0.path_and_query
    }

    /// Unread notifications, counted up to a limit.
    pub(crate) fn unread(&self) -> i64 {
        self.0.unread.load(Ordering::Relaxed)
    }

    /// Subtracts the notification that this page marks as read.
    pub(crate) fn reads_one(&self) {
        self.0.unread.fetch_sub(1, Ordering::Relaxed);
    }

    /// CSRF token of the forms on this page.
    pub(crate) fn form_token(&self, app: &App) -> String {
        self.0.wants_forms.store(true, Ordering::Relaxed);
        sessions::csrf_token(&app.forge, &self.0.form_key)
    }

    /// Value that only this browser sends; challenges are bound to it, so other browsers cannot answer them.
    pub(crate) fn bound(&self) -> &str {
        self.0.wants_forms.store(true, Ordering::Relaxed);
        &self.0.form_key
    }

    /// Whether a form token was issued to this visitor.
    pub(crate) fn owns_form(&self, app: &App, token: &str) -> bool {
        !self.0.fresh && sessions::csrf_matches(&app.forge, &self.0.form_key, token)
    }

    /// `Set-Cookie` of the form cookie, if the page has forms and the visitor is not signed in.
    pub(crate) fn form_cookie(&self, app: &App) -> Option<String> {
        let needed = self.0.fresh && self.0.wants_forms.load(Ordering::Relaxed);
        let cookies = Cookies::of(app);
        needed.then(|| cookies.set(cookies.form(), &self.0.form_key, FORM_COOKIE_SECONDS))
    }

    /// `Set-Cookie` of the session, if this request extended it.
    pub(crate) fn prolonged_cookie(&self, app: &App) -> Option<String> {
        let cookies = Cookies::of(app);
        // The form key of a signed-in visitor is the session cookie.
        let prolonged = self.viewer().is_some_and(|viewer| viewer.prolonged);
        prolonged.then(|| cookies.new_session(app, &self.0.form_key))
    }

    /// Value of the session cookie in the request.
    pub(crate) fn session_cookie(app: &App, headers: &HeaderMap) -> Option<String> {
        cookie(headers, Cookies::of(app).session())
    }
}

/// Whether the response shows the number of unread notifications: form requests redirect, and assets have no layout.
fn shows_a_page(parts: &Parts) -> bool {
    matches!(parts.method, Method::GET | Method::HEAD) && !parts.uri.path().starts_with("/assets/")
}

/// The visitor that `dress` identified.
impl FromRequestParts<App> for Visitor {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, StatusCode> {
        found(&parts.extensions).ok_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

pub(crate) fn found(extensions: &Extensions) -> Option<Visitor> {
    extensions.get::<Visitor>().cloned()
}

/// A cookie by name. Values longer than every cookie of this site are ignored.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    const LONGEST: usize = 256;
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, value)| *key == name && value.len() <= LONGEST).map(|(_, value)| value.to_owned())
}
