//! Status of a repository that a nostr key announced, served or not.

use super::error::ApiError;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::time;
use crate::App;
use abide_forge::grasp::status::{self, Status, Waiting, WaitingPrEvent, WaitingPrEvents, WaitingState};
use abide_forge::sync::status::{self as search, Search, Source};
use abide_nostr::nip19;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// Status of an announced repository: served, or waiting for missing parts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct GraspStatus {
    /// `waiting` or `served`.
    status: &'static str,
    npub: String,
    identifier: String,
    html_url: String,
    clone_url: String,
    /// Event id of the announcement in purgatory.
    announcement: Option<String>,
    since: Option<String>,
    expires_at: Option<String>,
    /// Missing parts: `state` and `git`, or `git` alone; empty if the repository is served.
    missing: Vec<&'static str>,
    states: Vec<GraspState>,
    /// Patches and pull requests without their commit or without their event: the latest hundred.
    proposals: Vec<GraspPrEvent>,
    proposal_count: i64,
    /// Search for missing git data on other servers; null if nothing is searched for.
    search: Option<GraspSearch>,
}

/// A search for missing git data at the clone URLs of signed events.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct GraspSearch {
    /// Whether a search runs now.
    running: bool,
    next_attempt_at: Option<String>,
    /// Attempts since the last event.
    attempts: u32,
    /// URLs that were tried.
    sources: Vec<GraspSource>,
}

/// A clone URL that was tried.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct GraspSource {
    url: String,
    tried_at: String,
    /// `served`, `incomplete`, `absent`, `refused`, `unreachable`, `protocol` or `postponed`.
    outcome: String,
    /// The outcome as a sentence.
    detail: String,
}

impl From<Search> for GraspSearch {
    fn from(search: Search) -> Self {
        let source = |source: Source| GraspSource {
            url: source.url,
            tried_at: time(source.tried_at),
            outcome: source.outcome,
            detail: source.detail,
        };
        Self {
            running: search.entry.running,
            next_attempt_at: search.entry.next_attempt.map(time),
            attempts: search.entry.attempts,
            sources: search.sources.into_iter().map(source).collect(),
        }
    }
}

/// A state event that waits for git data.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct GraspState {
    event: String,
    author: String,
    /// Whether the author is a maintainer.
    authorised: bool,
    since: String,
    expires_at: String,
    ref_count: usize,
    missing_count: usize,
    /// Missing branches and tags, at most 100.
    missing: Vec<MissingObject>,
}

/// A patch or pull request that waits for its commit, or a commit that waits for its PR event.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = GraspProposal)]
pub(super) struct GraspPrEvent {
    event: String,
    /// Null while the event is missing.
    author: Option<String>,
    commit: String,
    /// `git` or `event`.
    missing: &'static str,
    since: String,
    expires_at: String,
}

/// A branch or tag whose object was not pushed yet.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct MissingObject {
    #[serde(rename = "ref")]
    name: String,
    sha: String,
}

impl From<&WaitingState> for GraspState {
    fn from(state: &WaitingState) -> Self {
        let missing = state.missing.iter();
        Self {
            event: state.event.clone(),
            author: state.author.clone(),
            authorised: state.authorised,
            since: time(state.since),
            expires_at: time(state.expires_at),
            ref_count: state.refs,
            missing_count: state.missing_count,
            missing: missing.map(|one| MissingObject { name: one.name.clone(), sha: one.oid.clone() }).collect(),
        }
    }
}

impl From<WaitingPrEvent> for GraspPrEvent {
    fn from(one: WaitingPrEvent) -> Self {
        Self {
            missing: one.missing(),
            event: one.event,
            author: one.author,
            commit: one.commit,
            since: time(one.since),
            expires_at: time(one.expires_at),
        }
    }
}

impl GraspStatus {
    fn served(
        app: &App,
        npub: String,
        identifier: String,
        slug: &str,
        states: &[WaitingState],
        pr_events: WaitingPrEvents,
    ) -> Self {
        Self {
            status: "served",
            html_url: app.url(&format!("/{slug}")),
            clone_url: clone_url(app, &npub, &identifier),
            npub,
            identifier,
            announcement: None,
            since: None,
            expires_at: None,
            missing: Vec::new(),
            states: states.iter().map(GraspState::from).collect(),
            proposal_count: pr_events.count,
            proposals: pr_events.shown.into_iter().map(GraspPrEvent::from).collect(),
            search: None,
        }
    }

    fn waiting(app: &App, waiting: Waiting) -> Self {
        let clone_url = clone_url(app, &waiting.npub, &waiting.identifier);
        let missing = if waiting.lacks_state() { vec!["state", "git"] } else { vec!["git"] };
        Self {
            status: "waiting",
            html_url: clone_url.strip_suffix(".git").unwrap_or(&clone_url).to_owned(),
            clone_url,
            announcement: Some(waiting.announcement),
            since: Some(time(waiting.since)),
            expires_at: Some(time(waiting.expires_at)),
            missing,
            states: waiting.states.iter().map(GraspState::from).collect(),
            proposal_count: waiting.pr_events.count,
            proposals: waiting.pr_events.shown.into_iter().map(GraspPrEvent::from).collect(),
            npub: waiting.npub,
            identifier: waiting.identifier,
            search: None,
        }
    }
}

fn clone_url(app: &App, npub: &str, identifier: &str) -> String {
    let path = abide_web::url_segment(identifier);
    app.url(&format!("/{npub}/{path}.git"))
}

/// `GET /grasp/{npub}/{identifier}/status`
pub(super) async fn status(
    State(app): State<App>,
    Who(caller): Who,
    Segments((npub, identifier)): Segments<(String, String)>,
) -> Result<Json<GraspStatus>, ApiError> {
    let owner = nip19::parse_npub(&npub).map_err(|_| ApiError::not_found())?;
    let search = search::of(&app.forge, &identifier).await?;
    let mut found = match status::of(&app.forge, &caller, &owner, &identifier).await? {
        Some(Status::Waiting(waiting)) => GraspStatus::waiting(&app, waiting),
        Some(Status::Served { slug, states, pr_events }) => {
            GraspStatus::served(&app, npub, identifier, &slug, &states, pr_events)
        }
        None => return Err(ApiError::not_found()),
    };
    found.search = search.map(GraspSearch::from);
    Ok(Json(found))
}
