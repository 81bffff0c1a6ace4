//! Error pages. Each use case's errors become one of these here; a page that shows its form again maps
//! only what belongs to a field.

use super::frame::Frame;
use super::respond;
use abide_core::policy::DenyCode;
use abide_forge::attention::AttentionError;
use abide_forge::browse::BrowseError;
use abide_forge::issues::{self, IssueError};
use abide_forge::repos::{Class, LifeError};
use abide_forge::webhooks::HookError;
use abide_forge::{Access, Fault, GitError};
use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::time::Duration;

/// When someone whose turn did not come may ask again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// An error.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    retry_after: Option<Duration>,
    /// Whether the page offers to log in.
    login: bool,
    /// Whether logging in is all that is missing.
    login_first: bool,
    /// PagePath of the repository to go back to.
    back: Option<String>,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    frame: &'a Frame,
    problem: &'a Problem,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None, login: false, login_first: false, back: None }
    }

    /// The one answer for everything that is not there, or not for this visitor.
    pub(crate) fn not_found() -> Self {
        let detail = "It may not exist, or you may not have access.";
        Self { login: true, ..Self::new(StatusCode::NOT_FOUND, detail) }
    }

    /// Something inside a repository that the visitor may see.
    pub(crate) fn absent(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn foreign_form() -> Self {
        let detail = "Your session expired. Reload the page and try again. Nothing was changed. This needs cookies, so \
            allow them in your browser.";
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    pub(crate) fn form_too_large() -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "This form is larger than 256 KiB, the limit. Nothing was changed.")
    }

    pub(crate) fn form_too_slow() -> Self {
        let detail = "The form did not arrive within 30 seconds. Nothing was changed. Send it again.";
        Self::new(StatusCode::REQUEST_TIMEOUT, detail)
    }

    pub(crate) fn too_often(wait: Duration) -> Self {
        let detail = format!("Too many attempts. Try again in {}.", crate::show::time::span(wait));
        Self { retry_after: Some(wait), ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    /// The same, with a link back to the repository.
    pub(crate) fn back_to(self, repo: String) -> Self {
        Self { back: Some(repo), ..self }
    }

    /// The same, with when to try again.
    pub(crate) fn retried_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    fn fault(fault: &Fault) -> Self {
        if let Fault::Git(GitError::Busy { .. }) = fault {
            let busy = Self::new(StatusCode::SERVICE_UNAVAILABLE, sentence(&fault.public_message()));
            return Self { retry_after: Some(RETRY_AFTER), ..busy };
        }
        if fault.is_over_limit() {
            tracing::warn!(error = %fault, "a page needs more than a request may have");
            return Self::new(StatusCode::SERVICE_UNAVAILABLE, sentence(&fault.public_message()));
        }
        tracing::error!(error = %fault, "a page failed");
        let status = match fault {
            Fault::DiskFull { .. } => StatusCode::INSUFFICIENT_STORAGE,
            Fault::Crowded => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, sentence(&fault.public_message()))
    }

    /// Whether the log-in, which leads back here, is a better answer than a refusal.
    pub(super) fn is_before_login(&self) -> bool {
        self.login_first
    }

    /// The page's title.
    pub(crate) fn title(&self) -> &'static str {
        match self.status {
            StatusCode::NOT_FOUND => "Page not found",
            StatusCode::FORBIDDEN => "Not allowed",
            StatusCode::TOO_MANY_REQUESTS => "Too many attempts",
            StatusCode::CONFLICT => "Conflict",
            StatusCode::GONE => "Gone",
            status if status.is_server_error() => "Server error",
            _ => "Invalid request",
        }
    }

    /// The page.
    pub(super) fn page(&self, frame: &Frame) -> Response {
        let mut response = respond::html(self.status, &ProblemPage { frame, problem: self });
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        response
    }
}

/// A use case's message as a sentence of its own.
pub(crate) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

/// Undressed: `dress` puts the page around it.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::fault(&fault)
    }
}

impl From<Access> for Problem {
    fn from(access: Access) -> Self {
        match access {
            Access::NotFound => Self::not_found(),
            Access::Denied(DenyCode::LoginRequired) => {
                Self { login: true, login_first: true, ..Self::new(StatusCode::FORBIDDEN, "Sign in to do this.") }
            }
            Access::Denied(_) | Access::Scope(_) => Self::new(StatusCode::FORBIDDEN, sentence(&access.to_string())),
            Access::Fault(fault) => Self::fault(&fault),
        }
    }
}

impl From<LifeError> for Problem {
    fn from(error: LifeError) -> Self {
        let detail = sentence(&error.to_string());
        match error.class() {
            Class::Invalid(Some(_)) => Self::new(StatusCode::BAD_REQUEST, detail),
            Class::Invalid(None) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail),
            Class::Conflict => Self::new(StatusCode::CONFLICT, detail),
            Class::Gone => Self::new(StatusCode::GONE, detail),
            Class::TooOften(wait) => {
                let detail = format!("{detail} Try again in {}.", crate::show::time::span(wait));
                Self { retry_after: Some(wait), ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
            }
            Class::Access => match error {
                LifeError::Access(access) => access.into(),
                _ => Self::new(StatusCode::FORBIDDEN, detail),
            },
        }
    }
}

impl From<AttentionError> for Problem {
    fn from(error: AttentionError) -> Self {
        match error {
            AttentionError::Access(access) => access.into(),
            AttentionError::Oneself => Self::new(StatusCode::BAD_REQUEST, sentence(&error.to_string())),
            AttentionError::TooOften { retry_after } => Self::too_often(retry_after),
        }
    }
}

impl From<HookError> for Problem {
    fn from(error: HookError) -> Self {
        match error {
            HookError::Access(access) => access.into(),
            HookError::NotFound(_) => {
                Self::absent("This webhook or delivery does not exist. It may have been deleted.")
            }
            HookError::Inactive => Self::new(StatusCode::CONFLICT, sentence(&error.to_string())),
            HookError::Invalid { .. } | HookError::TooMany(_) => {
                Self::new(StatusCode::BAD_REQUEST, sentence(&error.to_string()))
            }
        }
    }
}

impl From<IssueError> for Problem {
    fn from(error: IssueError) -> Self {
        let detail = sentence(&error.to_string());
        match (error.class(), error) {
            (_, IssueError::Access(access)) => access.into(),
            (issues::Class::NotFound, _) => Self::absent(detail),
            (issues::Class::TooOften(wait), _) => {
                Self { retry_after: Some(wait), ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
            }
            _ => Self::new(StatusCode::BAD_REQUEST, detail),
        }
    }
}

impl From<BrowseError> for Problem {
    fn from(error: BrowseError) -> Self {
        match error {
            BrowseError::Fault(fault) => Self::fault(&fault),
            absent if absent.is_absent() => Self::absent(sentence(&absent.to_string())),
            other => Self::new(StatusCode::UNPROCESSABLE_ENTITY, sentence(&other.to_string())),
        }
    }
}
