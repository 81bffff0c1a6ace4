//! Routes that say who may call them. There is no other way to add one, so none can forget to.

use super::error::ApiError;
use crate::App;
use crate::auth::{self, Credentials};
use abide_core::scope::Scope;
use abide_forge::Caller;
use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::handler::Handler;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Anyone, whatever they come with; the answer is the same for all.
    Everyone,
    /// Anyone without a token; a token must have the scope.
    Open(Scope),
    /// Only with a token that has the scope.
    Logged(Scope),
}

/// Routes under construction.
pub(super) struct Routes {
    app: App,
    router: Router<App>,
}

macro_rules! methods {
    ($($name:ident $filter:ident),+) => {
        $(pub(super) fn $name<H, T>(self, path: &str, access: Access, handler: H) -> Self
        where
            H: Handler<T, App>,
            T: 'static,
        {
            self.add(MethodFilter::$filter, path, access, handler)
        })+
    };
}

impl Routes {
    pub(super) fn new(app: App) -> Self {
        Self { app, router: Router::new() }
    }

    methods!(get GET, post POST, put PUT, patch PATCH, delete DELETE);

    fn add<H, T>(self, method: MethodFilter, path: &str, access: Access, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let app = self.app.clone();
        let guard = from_fn(move |request: Request, next: Next| guard(app.clone(), access, request, next));
        Self { router: self.router.route(path, on(method, handler).layer(guard)), app: self.app }
    }

    pub(super) fn into_router(self) -> Router<App> {
        self.router
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
