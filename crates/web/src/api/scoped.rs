//! Routes that say who may call them. There is no other way to add one, so none can forget to.
//!
//! They are data before they are a router, so that tests can walk all of them.

use super::error::ApiError;
use crate::auth::{self, Credentials};
use crate::{API, App};
use abide_core::scope::Scope;
use abide_forge::Caller;
use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::handler::Handler;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};

/// Who may call a route. Credentials that open nothing are refused everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone; a token may have any scope.
    Everyone,
    /// Anyone without a token; a token must have the scope.
    Open(Scope),
    /// Only with a token that has the scope.
    Logged(Scope),
}

/// One route of the API, as it was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiRoute {
    /// The method, in capitals.
    pub method: &'static str,
    /// What follows [`crate::API`], with its variable segments in braces.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
}

impl ApiRoute {
    /// The whole path.
    pub fn full_path(&self) -> String {
        format!("{API}{}", self.path)
    }
}

/// Routes under construction.
pub(super) struct Routes(Vec<(ApiRoute, Serve)>);

/// Makes the part of the router that serves a route.
type Serve = Box<dyn FnOnce(&App) -> MethodRouter<App>>;

macro_rules! methods {
    ($($name:ident $method:ident),+) => {
        $(pub(super) fn $name<H, T>(self, path: &'static str, access: Access, handler: H) -> Self
        where
            H: Handler<T, App>,
            T: 'static,
        {
            let route = ApiRoute { method: stringify!($method), path, access };
            self.add(route, MethodFilter::$method, handler)
        })+
    };
}

impl Routes {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    methods!(get GET, post POST, put PUT, patch PATCH, delete DELETE);

    fn add<H, T>(mut self, route: ApiRoute, method: MethodFilter, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let serve = move |app: &App| {
            let app = app.clone();
            let guard = from_fn(move |request: Request, next: Next| guard(app.clone(), route.access, request, next));
            on(method, handler).layer(guard)
        };
        self.0.push((route, Box::new(serve)));
        self
    }

    pub(super) fn declared(&self) -> Vec<ApiRoute> {
        self.0.iter().map(|(route, _)| *route).collect()
    }

    pub(super) fn into_router(self, app: &App) -> Router<App> {
        let add = |router: Router<App>, (route, serve): (ApiRoute, Serve)| router.route(&route.full_path(), serve(app));
        self.0.into_iter().fold(Router::new(), add)
    }
}

async fn guard(app: App, access: Access, mut request: Request, next: Next) -> Response {
    let ip = auth::peer(request.extensions());
    let caller = match auth::identify(&app, request.headers(), ip).await {
        Ok(Credentials::Good(caller)) => caller,
        Ok(Credentials::Bad) => return ApiError::bad_credentials().into_response(),
        Ok(Credentials::None(_)) if matches!(access, Access::Logged(_)) => {
            return ApiError::login_required().into_response();
        }
        Ok(Credentials::None(caller)) => caller,
        Err(fault) => return ApiError::from(fault).into_response(),
    };
    if let Access::Open(scope) | Access::Logged(scope) = access
        && let Err(denied) = caller.ensure_scope(scope)
    {
        return ApiError::from(denied).into_response();
    }
    request.extensions_mut().insert(Who(caller));
    next.run(request).await
}

/// The caller, as the guard let them in.
#[derive(Clone)]
pub(super) struct Who(pub Caller);

impl FromRequestParts<App> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(ApiError::internal)
    }
}
