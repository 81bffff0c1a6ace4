//! Errors, in the body that GitHub's clients read.
//!
//! A denial of something the caller may not know of is a 404 like any other. Internal failures are logged in
//! full and reported in short.

use super::streams::Full;
use abide_core::InputError as _;
use abide_core::account::AdminRefusal;
use abide_core::policy::DenyCode;
use abide_forge::accounts::admin::AdminError;
use abide_forge::accounts::delete::DeleteError;
use abide_forge::accounts::profile::ProfileError;
use abide_forge::accounts::ssh_keys::AddKeyError;
use abide_forge::attention::AttentionError;
use abide_forge::browse::{BrowseError, ObjectError};
use abide_forge::issues::{self, IssueError};
use abide_forge::repos::collaborators::CollaboratorError;
use abide_forge::repos::create::{CreateError, UnknownChoice};
use abide_forge::repos::edit::EditError;
use abide_forge::repos::fork::ForkError;
use abide_forge::repos::search::SearchError;
use abide_forge::repos::topics::TopicsError;
use abide_forge::repos::{Class, LifeError};
use abide_forge::webhooks::HookError;
use abide_forge::{Access, Fault, GitError};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::borrow::Cow;
use std::time::Duration;
use utoipa::ToSchema;

const DOCUMENTATION: &str = "/api/docs";

/// An error answer.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    message: String,
    errors: Vec<FieldError>,
    retry_after: Option<i64>,
}

/// Error of one field.
#[derive(Debug, Serialize, ToSchema)]
struct FieldError {
    resource: &'static str,
    field: Cow<'static, str>,
    code: &'static str,
    message: String,
}

/// An error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(super) struct Body<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
    documentation_url: &'static str,
    status: String,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Body {
            message: &self.message,
            errors: &self.errors,
            documentation_url: DOCUMENTATION,
            status: self.status.as_u16().to_string(),
        };
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"Abide\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl ApiError {
    /// It is not in a state for that.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), errors: Vec::new(), retry_after: None }
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    /// A 404 about something inside a repository that the caller may read.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn empty_repository() -> Self {
        Self::new(StatusCode::CONFLICT, "Git Repository is empty.")
    }

    pub(super) fn blob_too_large(limit: u64) -> Self {
        let rule =
            format!("blobs larger than {limit} bytes are available only with Accept: application/vnd.github.raw");
        Self { status: StatusCode::FORBIDDEN, ..Self::invalid("Blob", "data", "too_large", rule) }
    }

    pub(super) fn rate_limited(known: bool, retry_after: i64) -> Self {
        let hint = if known {
            "try again in the next hour"
        } else {
            "authenticate for a higher limit, or try again in the next hour"
        };
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, format!("API rate limit exceeded; {hint}"));
        Self { retry_after: Some(retry_after.max(1)), ..error }
    }

    fn too_often(wait: Duration, message: String) -> Self {
        let seconds = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX).max(1);
        Self { retry_after: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed on this path")
    }

    pub(super) fn bad_credentials() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Bad credentials")
    }

    /// The proof of a key does not hold.
    pub(super) fn unproved(why: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, format!("Bad credentials: {why}"))
    }

    pub(super) fn login_required() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Requires authentication")
    }

    /// So many listen already that another one is not taken on.
    pub(super) fn crowded(full: Full) -> Self {
        let (status, who) = match full {
            Full::All => (StatusCode::SERVICE_UNAVAILABLE, "too many event streams are open".to_owned()),
            Full::Own(each) => {
                let who = format!("you already have {each} event streams open, the limit per account or IP address");
                (StatusCode::TOO_MANY_REQUESTS, who)
            }
        };
        Self { retry_after: Some(30), ..Self::new(status, format!("{who}; try again later, or poll the events list")) }
    }

    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal server error; try again later")
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn too_large(limit: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, format!("Request body too large: the limit is {limit} bytes"))
    }

    pub(super) fn timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "The request body did not arrive in time")
    }

    /// GitHub's body, which its clients look into, under the status that a taken name has everywhere here.
    fn name_taken() -> Self {
        let taken = Self::invalid("Repository", "name", "custom", "name already exists on this account");
        Self { status: StatusCode::CONFLICT, ..taken }
    }

    /// One field breaks a rule.
    pub(super) fn invalid(
        resource: &'static str,
        field: impl Into<Cow<'static, str>>,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let errors = vec![FieldError { resource, field: field.into(), code, message: message.into() }];
        Self { errors, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Validation Failed") }
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::DiskFull { .. } => Self::new(StatusCode::INSUFFICIENT_STORAGE, fault.to_string()),
            Fault::Git(GitError::Busy { .. }) => {
                Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, fault.to_string()) }
            }
            fault if fault.is_over_limit() => {
                tracing::warn!(error = %fault, "an API request needs more than one may have");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, fault.public_message())
            }
            _ => {
                tracing::error!(error = %fault, "an API request failed");
                Self::internal()
            }
        }
    }
}

impl From<Access> for ApiError {
    fn from(access: Access) -> Self {
        match access {
            Access::NotFound => Self::not_found(),
            Access::Denied(DenyCode::LoginRequired) => Self::login_required(),
            Access::Denied(DenyCode::Archived(action)) => {
                let message = format!("Repository was archived so is read-only: {}.", action.disabled());
                Self::new(StatusCode::FORBIDDEN, message)
            }
            Access::Denied(_) | Access::Scope(_) => Self::new(StatusCode::FORBIDDEN, access.to_string()),
            Access::Fault(fault) => fault.into(),
        }
    }
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Access(access) => access.into(),
            AdminError::Refused(refusal @ AdminRefusal::NoSecondFactor) => Self::conflict(refusal.to_string()),
            AdminError::Refused(refusal) => Self::new(StatusCode::FORBIDDEN, refusal.to_string()),
        }
    }
}

impl From<DeleteError> for ApiError {
    fn from(error: DeleteError) -> Self {
        match error {
            DeleteError::Access(access) => access.into(),
            other => Self::new(StatusCode::FORBIDDEN, other.with_field()),
        }
    }
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        let invalid = |field: &'static str, code| Self::invalid("Repository", field, code, error.to_string());
        match error {
            CreateError::LoginRequired => Self::login_required(),
            CreateError::Suspended | CreateError::Nameless | CreateError::TooMany(_) => {
                Self::new(StatusCode::FORBIDDEN, error.to_string())
            }
            CreateError::InvalidName(_) => invalid("name", "invalid"),
            CreateError::NameTaken => Self::name_taken(),
            CreateError::Description => invalid("description", "invalid"),
            CreateError::Branch(_) => invalid("default_branch", "invalid"),
            CreateError::Template(UnknownChoice::Licence(_)) => invalid("license_template", "invalid"),
            CreateError::Template(UnknownChoice::Gitignore(_)) => invalid("gitignore_template", "invalid"),
            CreateError::TooOften { retry_after } => Self::too_often(retry_after, error.to_string()),
            CreateError::Fault(fault) => fault.into(),
        }
    }
}

impl From<ForkError> for ApiError {
    fn from(error: ForkError) -> Self {
        let invalid = |field: &'static str, code| Self::invalid("Repository", field, code, error.to_string());
        match error {
            ForkError::Access(access) => access.into(),
            ForkError::InvalidName(_) => invalid("name", "invalid"),
            ForkError::TooOften { retry_after } => Self::too_often(retry_after, error.to_string()),
            ForkError::NameTaken => Self { status: StatusCode::CONFLICT, ..invalid("name", "custom") },
            ForkError::Empty | ForkError::Nameless | ForkError::TooMany(_) => {
                Self::new(StatusCode::FORBIDDEN, error.to_string())
            }
        }
    }
}

impl From<TopicsError> for ApiError {
    fn from(error: TopicsError) -> Self {
        match error {
            TopicsError::Access(access) => access.into(),
            TopicsError::Invalid(_) => Self::invalid("Repository", "names", "invalid", error.to_string()),
        }
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Invalid(_) => Self::invalid("Search", "q", "invalid", error.to_string()),
            SearchError::Fault(fault) => fault.into(),
        }
    }
}

/// Objects missing in a repository that the caller may read.
impl From<BrowseError> for ApiError {
    fn from(error: BrowseError) -> Self {
        match error {
            BrowseError::Empty => Self::empty_repository(),
            BrowseError::NoSuchRevision => Self::missing("No commit found for the ref"),
            BrowseError::Object(ObjectError::Ambiguous | ObjectError::TooFar | ObjectError::TooLarge) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
            }
            BrowseError::Object(ObjectError::Unrelated) => Self::missing("No common ancestor between base and head."),
            BrowseError::Object(_) => Self::not_found(),
            BrowseError::Fault(fault) => fault.into(),
        }
    }
}

impl From<EditError> for ApiError {
    fn from(error: EditError) -> Self {
        let invalid = |field: &'static str| Self::invalid("Repository", field, "invalid", error.to_string());
        match error {
            EditError::Access(access) => access.into(),
            EditError::Description => invalid("description"),
            EditError::BranchName(_) | EditError::NoSuchBranch(_) => invalid("default_branch"),
            EditError::Life(life) => life.into(),
        }
    }
}

impl From<LifeError> for ApiError {
    fn from(error: LifeError) -> Self {
        let (rule, message) = (error.to_string(), error.with_field());
        match (error.class(), error) {
            (_, LifeError::Access(access)) => access.into(),
            (_, LifeError::NameTaken) => Self::name_taken(),
            (Class::Invalid(Some(field)), _) => Self::invalid("Repository", field, "invalid", rule),
            (Class::Invalid(None), _) => Self::invalid("Repository", "base", "unprocessable", message),
            (Class::Gone, _) => Self::new(StatusCode::GONE, message),
            (Class::TooOften(wait), _) => Self::too_often(wait, message),
            (Class::Conflict | Class::Access, _) => Self::new(StatusCode::CONFLICT, message),
        }
    }
}

impl From<AttentionError> for ApiError {
    fn from(error: AttentionError) -> Self {
        match error {
            AttentionError::Access(access) => access.into(),
            AttentionError::Oneself => Self::invalid("User", "username", "invalid", error.to_string()),
            AttentionError::TooOften { retry_after } => Self::too_often(retry_after, error.to_string()),
        }
    }
}

impl From<IssueError> for ApiError {
    fn from(error: IssueError) -> Self {
        let message = error.to_string();
        match (error.class(), error) {
            (_, IssueError::Access(access)) => access.into(),
            (issues::Class::Invalid(field), _) => Self::invalid("Issue", field, "invalid", message),
            (issues::Class::Taken(field), _) => Self::invalid("Issue", field, "already_exists", message),
            (issues::Class::NotFound | issues::Class::Access, _) => Self::not_found(),
            (issues::Class::TooOften(wait), _) => Self::too_often(wait, message),
        }
    }
}

impl From<HookError> for ApiError {
    fn from(error: HookError) -> Self {
        let message = error.to_string();
        match error {
            HookError::Access(access) => access.into(),
            HookError::Invalid { field, rule } => Self::invalid("Hook", field, "invalid", rule),
            HookError::TooMany(_) => Self::invalid("Hook", "base", "custom", message),
            HookError::Inactive => Self::invalid("Hook", "active", "invalid", message),
            HookError::NotFound(_) => Self::not_found(),
        }
    }
}

impl From<CollaboratorError> for ApiError {
    fn from(error: CollaboratorError) -> Self {
        match error {
            CollaboratorError::Access(access) => access.into(),
            CollaboratorError::IsOwner => Self::invalid("Collaborator", "username", "invalid", error.to_string()),
        }
    }
}

impl From<ProfileError> for ApiError {
    fn from(error: ProfileError) -> Self {
        let field = match error.field() {
            Some("display_name") => "name",
            Some("website") => "blog",
            Some(field) => field,
            None => "",
        };
        match error {
            ProfileError::Access(access) => access.into(),
            ProfileError::Field(_) => Self::invalid("User", field, "invalid", error.to_string()),
        }
    }
}

impl From<AddKeyError> for ApiError {
    fn from(error: AddKeyError) -> Self {
        let invalid = |field: &'static str, code| Self::invalid("PublicKey", field, code, error.to_string());
        match error {
            AddKeyError::Malformed | AddKeyError::Weak => invalid("key", "invalid"),
            AddKeyError::Title => invalid("title", "invalid"),
            AddKeyError::Taken => invalid("key", "already_exists"),
            AddKeyError::TooMany(_) => invalid("key", "custom"),
            AddKeyError::Fault(fault) => fault.into(),
        }
    }
}
