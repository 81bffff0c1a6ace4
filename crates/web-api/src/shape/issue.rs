//! Lists of issues, and their timeline.

use super::{Issue, Repository, SimpleUser, Urls, time};
use crate::App;
use abide_core::UserId;
use abide_core::issues::State;
use abide_forge::issues::Entry;
use abide_forge::repos::Repo;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// An issue with its repository, in a list across repositories.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct OwnIssue {
    #[serde(flatten)]
    pub issue: Issue,
    pub repository: Option<Repository>,
}

/// Result of a search for issues.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FoundIssues {
    pub total_count: i64,
    /// Whether the search stopped before it had looked through all issues.
    pub incomplete_results: bool,
    pub items: Vec<IssueMatch>,
}

/// An issue in the result of a search.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct IssueMatch {
    #[serde(flatten)]
    pub issue: Issue,
    pub score: f64,
}

/// An event in the timeline of an issue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TimelineEvent {
    id: i64,
    node_id: String,
    event: String,
    actor: Option<SimpleUser>,
    created_at: String,
    commit_id: Option<String>,
    commit_url: Option<String>,
    /// Text of the comment, if the event is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<SimpleUser>,
    #[serde(skip_serializing_if = "Option::is_none")]
    html_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee: Option<SimpleUser>,
    #[serde(skip_serializing_if = "Option::is_none")]
    milestone: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rename: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_reason: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
}

/// Source of a cross-reference.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TimelineSource)]
struct Source {
    #[serde(rename = "type")]
    kind: &'static str,
    issue: SourceIssue,
}

/// The issue with a cross-reference.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TimelineIssue)]
struct SourceIssue {
    id: i64,
    number: i64,
    title: String,
    state: &'static str,
    url: String,
    html_url: String,
}

impl TimelineEvent {
    pub(crate) fn of(app: &App, repo: &Repo, number: i64, entry: &Entry) -> Self {
        let urls = Urls::of(&app.forge, repo);
        let actor = SimpleUser::author(&app.forge, entry.actor_id, entry.actor_name.as_ref());
        let detail = |name: &str| entry.detail.get(name).cloned();
        let slug = entry.source_slug.clone().unwrap_or_else(|| repo.slug());
        let said = entry.comment.as_ref();
        let assignee = detail("assignee_id")
            .and_then(|id| id.as_i64())
            .map(|id| SimpleUser::new(&app.forge, UserId::new(id), entry.detail["assignee"].as_str(), false));
        Self {
            id: entry.id,
            node_id: format!("TE_{}", entry.id),
            event: entry.kind.clone(),
            created_at: time(entry.created_at),
            commit_url: entry.commit.as_ref().map(|id| app.url(&format!("/api/v3/repos/{slug}/commits/{id}"))),
            commit_id: entry.commit.clone(),
            body: said.map(|said| said.body.clone()),
            user: said.and_then(|_| actor.clone()),
            html_url: said.map(|said| urls.page(&format!("/issues/{number}#comment-{}", said.id))),
            updated_at: said.map(|said| time(said.updated_at)),
            actor,
            label: detail("label"),
            assignee,
            milestone: detail("milestone"),
            rename: (entry.kind == "renamed").then(|| entry.detail.clone()),
            state_reason: detail("state_reason"),
            source: entry.source.as_ref().map(|found| Source {
                kind: "issue",
                issue: SourceIssue {
                    id: found.id.get(),
                    number: found.number,
                    title: found.title.clone(),
                    state: State::as_str(found.state),
                    url: app.url(&format!("/api/v3/repos/{slug}/issues/{}", found.number)),
                    html_url: app.url(&format!("/{slug}/issues/{}", found.number)),
                },
            }),
        }
    }
}
