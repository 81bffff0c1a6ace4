//! Routes with access and description. There is no other way to add a route, so none lacks them.
//!
//! Routes are data before they become a router, so that tests can iterate over them.

use super::about::About;
use super::error::ApiError;
use super::fresh;
use super::limit::Standing;
use crate::App;
use abide_core::scope::Scope;
use abide_forge::Caller;
use abide_forge::disk::{self, Writer};
use abide_web::API;
use abide_web::auth::{self, Credentials};
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::handler::Handler;
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};

/// Access to a route. Invalid credentials are refused on every route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone; a token may have any scope.
    Everyone,
    /// As [`Access::Everyone`], and the request is not counted.
    Uncounted,
    /// Anyone without a token; a token must have the scope.
    Open(Scope),
    /// Only with a token that has the scope.
    Logged(Scope),
    /// Only with a token that has both scopes.
    Both(Scope, Scope),
}

/// One route of the API, as it was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiRoute {
    /// The method, in capitals.
    pub method: &'static str,
    /// Path below [`abide_web::API`], with its variable segments in braces.
    pub path: &'static str,
    pub access: Access,
}

impl Access {
    /// Scopes that a token needs, all of them.
    pub fn scopes(self) -> Vec<Scope> {
        match self {
            Self::Everyone | Self::Uncounted => Vec::new(),
            Self::Open(scope) | Self::Logged(scope) => vec![scope],
            Self::Both(one, other) => vec![one, other],
        }
    }
}

impl ApiRoute {
    /// The whole path.
    pub fn full_path(&self) -> String {
        format!("{API}{}", self.path)
    }

    /// Whether the route is served when the disk is nearly full: reads, deletions, and revoking a right or an offer.
    pub fn works_on_a_full_disk(&self) -> bool {
        matches!(self.method, "GET" | "DELETE") || WORK_ON_A_FULL_DISK.contains(&self.path)
    }
}

/// Routes that delete or revoke with another method than DELETE.
const WORK_ON_A_FULL_DISK: [&str; 3] =
    ["/users/{user}/suspended", "/repository_transfers/{id}/decline", "/repository_transfers/{id}/cancel"];

/// Routes under construction.
pub(super) struct Routes {
    area: &'static str,
    list: Vec<Declared>,
}

/// A route with its description and handler.
pub(super) struct Declared {
    pub route: ApiRoute,
    pub about: About,
    /// Area of the API, for `/api/docs`.
    pub area: &'static str,
    /// Handler without the guard.
    serve: MethodRouter<App>,
}

macro_rules! methods {
    ($($name:ident $method:ident),+) => {
        $(pub(super) fn $name<H, T>(self, path: &'static str, access: Access, handler: H, about: About) -> Self
        where
            H: Handler<T, App>,
            T: 'static,
        {
            let route = ApiRoute { method: stringify!($method), path, access };
            self.add(route, MethodFilter::$method, handler, about)
        })+
    };
}

impl Routes {
    /// The routes of one area of the API.
    pub(super) fn of(area: &'static str) -> Self {
        Self { area, list: Vec::new() }
    }

    methods!(get GET, post POST, put PUT, patch PATCH, delete DELETE);

    fn add<H, T>(mut self, route: ApiRoute, method: MethodFilter, handler: H, about: About) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.list.push(Declared { route, about, area: self.area, serve: on(method, handler) });
        self
    }

    /// Adds the routes of another area.
    pub(super) fn and(mut self, more: Self) -> Self {
        self.list.extend(more.list);
        self
    }

    pub(super) fn declared(&self) -> &[Declared] {
        &self.list
    }

    pub(super) fn into_router(self, app: &App) -> Router<App> {
        self.list.into_iter().fold(Router::new(), |router, Declared { route, serve, .. }| {
            router.route(&route.full_path(), guarded(serve, app.clone(), route))
        })
    }
}

/// Wraps a handler in the guard. A function of its own: inside the generic code that adds handlers, the compiler would
/// compile the guard again for each handler type.
fn guarded(serve: MethodRouter<App>, app: App, route: ApiRoute) -> MethodRouter<App> {
    serve.layer(from_fn(move |request: Request, next: Next| guard(app.clone(), route, request, next)))
}

/// Refuses writing requests while the disk is nearly full.
fn room_for(app: &App, route: ApiRoute, caller: &Caller) -> Result<(), ApiError> {
    match route.works_on_a_full_disk() {
        true => Ok(()),
        false => Ok(disk::ensure_room(&app.forge, Writer::of(caller))?),
    }
}

/// Checks around every route: identity, scope, rate limit and conditional requests.
async fn guard(app: App, route: ApiRoute, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let (parts, body) = request.into_parts();
    let known = parts.headers.get(header::IF_NONE_MATCH).cloned();
    let (Admission { caller, standing }, body) = admit(&app, route.access, &parts, body).await;
    let response = match caller.and_then(|caller| room_for(&app, route, &caller).map(|()| caller)) {
        Ok(caller) => {
            let mut request = Request::from_parts(parts, body);
            request.extensions_mut().insert(Who(caller));
            next.run(request).await
        }
        Err(error) => error.into_response(),
    };
    let mut response = fresh::conditional(&method, known.as_ref(), response).await;
    if let Some(standing) = standing {
        standing.set_headers(response.headers_mut());
    }
    response
}

/// Checks access and counts the request. Refused requests are counted too, so that guessing tokens is limited.
struct Admission {
    caller: Result<Caller, ApiError>,
    standing: Option<Standing>,
}

async fn admit(app: &App, access: Access, parts: &Parts, body: Body) -> (Admission, Body) {
    let ip = auth::peer(&parts.extensions);
    let (credentials, body) = match auth::identify_signed(app, parts, body, ip).await {
        Ok(found) => found,
        Err(fault) => return (Admission { caller: Err(fault.into()), standing: None }, Body::empty()),
    };
    let (caller, refused) = match credentials {
        Ok(Credentials::Good(caller) | Credentials::None(caller)) => (caller, None),
        Ok(Credentials::Bad) => (Caller::anonymous(ip), Some(ApiError::bad_credentials())),
        Err(why) => (Caller::anonymous(ip), Some(ApiError::unproved(&why))),
    };
    let standing = match access {
        // Reading the rate limit does not count.
        Access::Uncounted => app.api.standing(&caller),
        _ => app.api.charge(&caller),
    };
    let judged = match access {
        Access::Uncounted => Ok(()),
        _ => standing.ensure_within(&caller),
    };
    let judged = judged.and_then(|()| match refused {
        None => judge(access, &caller),
        Some(error) => Err(error),
    });
    (Admission { caller: judged.map(|()| caller), standing: Some(standing) }, body)
}

fn judge(access: Access, caller: &Caller) -> Result<(), ApiError> {
    match access {
        Access::Everyone | Access::Uncounted => Ok(()),
        Access::Logged(_) | Access::Both(..) if caller.user_id().is_none() => Err(ApiError::login_required()),
        Access::Open(scope) | Access::Logged(scope) => Ok(caller.ensure_scope(scope)?),
        Access::Both(one, other) => {
            caller.ensure_scope(one)?;
            Ok(caller.ensure_scope(other)?)
        }
    }
}

/// The caller that the guard admitted.
#[derive(Clone)]
pub(super) struct Who(pub Caller);

impl FromRequestParts<App> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(ApiError::internal)
    }
}
