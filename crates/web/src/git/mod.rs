//! Smart HTTP. `docs/security.md` has the rule for statuses: a git client sends credentials only after a 401, and
//! deletes a stored token after another 401. So anonymous clients get 401 for private, deleted and absent repositories,
//! and authenticated clients without access get 404 for all of them.

mod answer;
mod body;

use crate::App;
use crate::auth::{self, Credentials};
use abide_core::policy::DenyCode;
use abide_forge::git::push::{self, PushAdmission};
use abide_forge::git::{ProtocolVersion, Transport, fetch};
use abide_forge::repos::open::RepoLocator;
use abide_forge::{Access, Caller, Fault};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use percent_encoding::percent_decode_str;
use std::net::IpAddr;
use tokio::sync::mpsc;

/// The git service of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    UploadPack,
    ReceivePack,
}

impl Service {
    fn name(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::UploadPack, Self::ReceivePack].into_iter().find(|service| service.name() == name)
    }
}

/// `GET …/info/refs?service=…`: refs and capabilities.
pub(crate) async fn info_refs(State(app): State<App>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or("");
    let named = query.split('&').find_map(|pair| pair.strip_prefix("service="));
    let Some(service) = named.and_then(Service::from_name) else { return answer::dumb() };
    let version = version(request.headers());
    let wanted = GitRequest::of(&request);
    let refs = match service {
        Service::UploadPack => match wanted.for_fetch(&app).await {
            Ok(admission) => fetch::advertisement(&app.forge, &admission, version).await,
            Err(refusal) => return refusal.advertised(service),
        },
        Service::ReceivePack => match wanted.for_push(&app).await {
            Ok(admission) => push::advertisement(&app.forge, &admission, version).await,
            Err(refusal) => return refusal.advertised(service),
        },
    };
    match refs {
        Ok(refs) => answer::advertisement(wanted.ip, service, version, refs),
        Err(fault) => answer::fault(&fault),
    }
}

/// `POST …/git-upload-pack`: one request of a fetch.
pub(crate) async fn upload_pack(State(app): State<App>, request: Request) -> Response {
    let version = version(request.headers());
    let wanted = GitRequest::of(&request);
    let admission = match wanted.for_fetch(&app).await {
        Ok(admission) => admission,
        Err(refusal) => return refusal.plain(),
    };
    let input = match body::reader(request, Service::UploadPack) {
        Ok(input) => input,
        Err(response) => return *response,
    };
    match fetch::answer(&app.forge, &admission, version, input).await {
        Ok(fetch::Answer::Refs(refs)) => answer::refs(wanted.ip, refs),
        Ok(fetch::Answer::Stream(stream)) => answer::result(Service::UploadPack, body::from_reader(*stream)),
        Err(fault) => answer::fault(&fault),
    }
}

/// `POST …/git-receive-pack`: a push. The response begins with the first output, which can be progress or a keep-alive,
/// and not earlier: nginx stops forwarding a request once its response has begun.
pub(crate) async fn receive_pack(State(app): State<App>, request: Request) -> Response {
    let git_request = GitRequest::of(&request);
    let caller = match git_request.pusher(&app).await {
        Ok(caller) => caller,
        Err(refusal) => return refusal.plain(),
    };
    let admitted = match git_request.admitted(&app, &caller).await {
        Ok(admission) => Ok(admission),
        // The role can be revoked after the advertisement, and git does not print the body of a 403 here.
        Err(Refusal::InAdvertisement(reason) | Refusal::Denied(reason)) => Err(reason),
        Err(refusal) => return refusal.plain(),
    };
    let input = match body::reader(request, Service::ReceivePack) {
        Ok(input) => input,
        Err(response) => return *response,
    };
    let admission = match admitted {
        Ok(admission) => admission,
        Err(reason) => {
            let report = push::refuse(&app.forge, caller.client(), &reason, Box::new(input)).await;
            return answer::result(Service::ReceivePack, Body::from(report));
        }
    };
    let (out, mut said) = mpsc::channel(16);
    let forge = app.forge.clone();
    tokio::spawn(async move { push::receive(&forge, admission, Box::new(input), out).await });
    let first = said.recv().await;
    answer::result(Service::ReceivePack, body::from_channel(first, said))
}

fn version(headers: &HeaderMap) -> ProtocolVersion {
    let asked = headers.get("git-protocol").and_then(|value| value.to_str().ok());
    asked.map_or(ProtocolVersion::V0, ProtocolVersion::parse)
}

/// A request to a repository.
struct GitRequest {
    locator: RepoLocator,
    headers: HeaderMap,
    ip: Option<IpAddr>,
}

/// Reason of a refused request.
enum Refusal {
    /// Credentials are missing or wrong.
    Login,
    /// The caller is authenticated, but may not see the repository, or it does not exist.
    NotFound,
    /// The token lacks a scope.
    Forbidden(String),
    /// The caller may see the repository, but lacks the permission.
    Denied(String),
    /// As above, but sent as a git error packet, which git prints.
    InAdvertisement(String),
    Fault(Fault),
}

impl GitRequest {
    /// The locator is taken from the raw path: a name never needs decoding.
    fn of(request: &Request) -> Self {
        let mut segments = request.uri().path().split('/').skip(1);
        let (first, second) = (segments.next().unwrap_or(""), segments.next().unwrap_or(""));
        let name = second.strip_suffix(".git").unwrap_or(second);
        let locator = if first == "r" {
            RepoLocator::Id(name.to_owned())
        } else if first.starts_with("npub1") {
            // A nostr identifier can contain any character, so it is percent-decoded.
            RepoLocator::slug(first, percent_decode_str(name).decode_utf8().unwrap_or_default())
        } else {
            RepoLocator::slug(first, name)
        };
        Self { locator, headers: request.headers().clone(), ip: auth::peer(request.extensions()) }
    }

    /// Requests to a nostr repository are anonymous: signed events authorise pushes, and no login is requested.
    fn by_key(&self) -> Option<Caller> {
        matches!(self.locator, RepoLocator::Nostr { .. }).then(|| Caller::anonymous(self.ip))
    }

    async fn for_fetch(&self, app: &App) -> Result<fetch::FetchAdmission, Refusal> {
        if let Some(caller) = self.by_key() {
            let admitted = fetch::admit(&app.forge, &caller, &self.locator, Transport::Http).await;
            return admitted.map_err(|access| Refusal::from(access, true));
        }
        let (caller, known) = match auth::identify(app, &self.headers, self.ip).await.map_err(Refusal::Fault)? {
            Credentials::Bad => return Err(Refusal::Login),
            Credentials::None(caller) => (caller, false),
            Credentials::Good(caller) => (caller, true),
        };
        let admitted = fetch::admit(&app.forge, &caller, &self.locator, Transport::Http).await;
        admitted.map_err(|access| Refusal::from(access, known))
    }

    async fn for_push(&self, app: &App) -> Result<PushAdmission, Refusal> {
        let caller = self.pusher(app).await?;
        self.admitted(app, &caller).await
    }

    async fn pusher(&self, app: &App) -> Result<Caller, Refusal> {
        if let Some(caller) = self.by_key() {
            return Ok(caller);
        }
        match auth::identify(app, &self.headers, self.ip).await.map_err(Refusal::Fault)? {
            // Checked before the repository is looked up: a push always needs a login, so the response reveals nothing.
            Credentials::Bad | Credentials::None(_) => Err(Refusal::Login),
            Credentials::Good(caller) => Ok(caller),
        }
    }

    async fn admitted(&self, app: &App, caller: &Caller) -> Result<PushAdmission, Refusal> {
        let admitted = push::admit(&app.forge, caller, &self.locator, Transport::Http).await;
        admitted.map_err(|access| Refusal::from(access, true))
    }
}

impl Refusal {
    fn from(access: Access, known: bool) -> Self {
        match access {
            Access::NotFound if known => Self::NotFound,
            Access::NotFound => Self::Login,
            Access::Denied(DenyCode::Archived(_)) => Self::InAdvertisement(access.to_string()),
            Access::Denied(_) => Self::Denied(access.to_string()),
            Access::Scope(_) => Self::Forbidden(access.to_string()),
            Access::Fault(fault) => Self::Fault(fault),
        }
    }

    fn advertised(self, service: Service) -> Response {
        match self {
            Self::InAdvertisement(reason) => answer::refused_advertisement(service, &reason),
            other => other.plain(),
        }
    }

    fn plain(self) -> Response {
        match self {
            Self::Login => answer::login(),
            Self::NotFound => answer::not_found(),
            Self::Forbidden(reason) | Self::Denied(reason) | Self::InAdvertisement(reason) => {
                answer::forbidden(&reason)
            }
            Self::Fault(fault) => answer::fault(&fault),
        }
        .into_response()
    }
}
