//! Issues, and what belongs to them.

use super::{Repository, SimpleUser, Urls, in_path, time};
use crate::App;
use abide_core::issues::{Reason, State};
use abide_core::{Handle, UserId};
use abide_forge::issues::{self, Detailed, Entry, Person};
use abide_forge::repos::Repo;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// An issue with what belongs to it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Issue {
    id: i64,
    node_id: String,
    url: String,
    repository_url: String,
    labels_url: String,
    comments_url: String,
    events_url: String,
    timeline_url: String,
    html_url: String,
    number: i64,
    state: &'static str,
    state_reason: Option<&'static str>,
    title: String,
    body: Option<String>,
    user: Option<SimpleUser>,
    labels: Vec<Label>,
    assignee: Option<SimpleUser>,
    assignees: Vec<SimpleUser>,
    milestone: Option<Milestone>,
    locked: bool,
    active_lock_reason: Option<String>,
    comments: i64,
    created_at: String,
    updated_at: String,
    closed_at: Option<String>,
    closed_by: Option<SimpleUser>,
}

/// Someone who may be gone.
fn someone(app: &App, id: Option<UserId>, name: Option<&Handle>) -> Option<SimpleUser> {
    id.map(|id| SimpleUser::new(app, id, name.map(Handle::as_str), false))
}

/// Someone in a list of people.
pub(crate) fn person(app: &App, person: &Person) -> SimpleUser {
    SimpleUser::new(app, person.id, person.name.as_ref().map(Handle::as_str), person.site_admin)
}

impl Issue {
    pub(crate) fn of(app: &App, repo: &Repo, detailed: &Detailed) -> Self {
        let (urls, issue) = (Urls::of(app, repo), &detailed.issue);
        let at = |tail: &str| urls.api(&format!("/issues/{}{tail}", issue.number));
        let assignees: Vec<_> = detailed.assignees.iter().map(|found| person(app, found)).collect();
        Self {
            id: issue.id.get(),
            node_id: format!("I_{}", issue.id),
            url: at(""),
            repository_url: urls.api(""),
            labels_url: at("/labels{/name}"),
            comments_url: at("/comments"),
            events_url: at("/events"),
            timeline_url: at("/timeline"),
            html_url: urls.page(&format!("/issues/{}", issue.number)),
            number: issue.number,
            state: issue.state.as_str(),
            state_reason: issue.reason.map(Reason::as_str),
            title: issue.title.clone(),
            body: (!issue.body.is_empty()).then(|| issue.body.clone()),
            user: someone(app, issue.author_id, issue.author_name.as_ref()),
            labels: detailed.labels.iter().map(|label| Label::of(app, repo, label)).collect(),
            assignee: assignees.first().cloned(),
            assignees,
            milestone: detailed.milestone.as_ref().map(|found| Milestone::of(app, repo, found)),
            locked: false,
            active_lock_reason: None,
            comments: issue.comment_count,
            created_at: time(issue.created_at),
            updated_at: time(issue.updated_at),
            closed_at: issue.closed_at.map(time),
            closed_by: someone(app, issue.closed_by, issue.closer_name.as_ref()),
        }
    }
}

/// An issue in a list of many repositories.
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
    /// Whether there was more to look at than a search looks through.
    pub incomplete_results: bool,
    pub items: Vec<IssueMatch>,
}

/// An issue that a search found.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct IssueMatch {
    #[serde(flatten)]
    pub issue: Issue,
    pub score: f64,
}

/// A label of a repository.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Label {
    id: i64,
    node_id: String,
    url: String,
    name: String,
    color: String,
    default: bool,
    description: Option<String>,
}

impl Label {
    pub(crate) fn of(app: &App, repo: &Repo, label: &issues::Label) -> Self {
        let name = in_path(label.name.as_str().as_bytes()).replace('/', "%2F");
        Self {
            id: label.id.get(),
            node_id: format!("LA_{}", label.id),
            url: Urls::of(app, repo).api(&format!("/labels/{name}")),
            name: label.name.to_string(),
            color: label.color.to_string(),
            default: false,
            description: (!label.description.is_empty()).then(|| label.description.clone()),
        }
    }
}

/// A milestone of a repository.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Milestone {
    id: i64,
    node_id: String,
    url: String,
    html_url: String,
    number: i64,
    title: String,
    description: Option<String>,
    creator: Option<SimpleUser>,
    open_issues: i64,
    closed_issues: i64,
    state: &'static str,
    created_at: String,
    updated_at: String,
    due_on: Option<String>,
    closed_at: Option<String>,
}

impl Milestone {
    pub(crate) fn of(app: &App, repo: &Repo, found: &issues::Milestone) -> Self {
        let urls = Urls::of(app, repo);
        Self {
            id: found.id.get(),
            node_id: format!("MI_{}", found.id),
            url: urls.api(&format!("/milestones/{}", found.number)),
            html_url: urls.page("/milestones"),
            number: found.number,
            title: found.title.clone(),
            description: (!found.description.is_empty()).then(|| found.description.clone()),
            creator: someone(app, found.creator_id, found.creator_name.as_ref()),
            open_issues: found.open_issues,
            closed_issues: found.closed_issues,
            state: found.state.as_str(),
            created_at: time(found.created_at),
            updated_at: time(found.updated_at),
            due_on: found.due_on.map(time),
            closed_at: found.closed_at.map(time),
        }
    }
}

/// A comment on an issue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct IssueComment {
    id: i64,
    node_id: String,
    url: String,
    html_url: String,
    issue_url: String,
    body: String,
    user: Option<SimpleUser>,
    created_at: String,
    updated_at: String,
}

impl IssueComment {
    pub(crate) fn of(app: &App, repo: &Repo, comment: &issues::Comment) -> Self {
        let urls = Urls::of(app, repo);
        Self {
            id: comment.id.get(),
            node_id: format!("IC_{}", comment.id),
            url: urls.api(&format!("/issues/comments/{}", comment.id)),
            html_url: urls.page(&format!("/issues/{}#comment-{}", comment.number, comment.id)),
            issue_url: urls.api(&format!("/issues/{}", comment.number)),
            body: comment.body.clone(),
            user: someone(app, comment.author_id, comment.author_name.as_ref()),
            created_at: time(comment.created_at),
            updated_at: time(comment.updated_at),
        }
    }
}

/// Something that happened to an issue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TimelineEvent {
    id: i64,
    node_id: String,
    event: String,
    actor: Option<SimpleUser>,
    created_at: String,
    commit_id: Option<String>,
    commit_url: Option<String>,
    /// Text of a comment.
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

/// Where an issue is referred to.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TimelineSource)]
struct Source {
    #[serde(rename = "type")]
    kind: &'static str,
    issue: SourceIssue,
}

/// The issue that refers to another one.
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
        let urls = Urls::of(app, repo);
        let actor = someone(app, entry.actor_id, entry.actor_name.as_ref());
        let detail = |name: &str| entry.detail.get(name).cloned();
        let slug = entry.source_slug.clone().unwrap_or_else(|| repo.slug());
        let said = entry.comment.as_ref();
        let assignee = detail("assignee_id")
            .and_then(|id| id.as_i64())
            .map(|id| SimpleUser::new(app, UserId::new(id), entry.detail["assignee"].as_str(), false));
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
