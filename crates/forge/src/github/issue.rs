//! Issues, labels, milestones and comments.

use super::{SimpleUser, Urls, in_segment, or_null, time};
use crate::{Forge, issues};
use abide_core::issues::Reason;
use abide_store::repos::Repo;
use serde::Serialize;
use utoipa::ToSchema;

/// An issue with its labels, assignees and milestone.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Issue {
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

impl Issue {
    pub fn of(forge: &Forge, repo: &Repo, detailed: &issues::Detailed) -> Self {
        let (urls, issue) = (Urls::of(forge, repo), &detailed.issue);
        let at = |tail: &str| urls.api(&format!("/issues/{}{tail}", issue.number));
        let assignees: Vec<_> = detailed.assignees.iter().map(|found| SimpleUser::assignee(forge, found)).collect();
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
            body: or_null(&issue.body),
            user: SimpleUser::author(forge, issue.author_id, issue.author_name.as_ref()),
            labels: detailed.labels.iter().map(|label| Label::of(forge, repo, label)).collect(),
            assignee: assignees.first().cloned(),
            assignees,
            milestone: detailed.milestone.as_ref().map(|found| Milestone::of(forge, repo, found)),
            locked: false,
            active_lock_reason: None,
            comments: issue.comment_count,
            created_at: time(issue.created_at),
            updated_at: time(issue.updated_at),
            closed_at: issue.closed_at.map(time),
            closed_by: SimpleUser::author(forge, issue.closed_by, issue.closer_name.as_ref()),
        }
    }
}

/// A label of a repository.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Label {
    id: i64,
    node_id: String,
    url: String,
    name: String,
    color: String,
    default: bool,
    description: Option<String>,
}

impl Label {
    pub fn of(forge: &Forge, repo: &Repo, label: &issues::Label) -> Self {
        Self {
            id: label.id.get(),
            node_id: format!("LA_{}", label.id),
            url: Urls::of(forge, repo).api(&format!("/labels/{}", in_segment(label.name.as_str()))),
            name: label.name.to_string(),
            color: label.color.to_string(),
            default: false,
            description: or_null(&label.description),
        }
    }
}

/// A milestone of a repository.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Milestone {
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
    pub fn of(forge: &Forge, repo: &Repo, found: &issues::Milestone) -> Self {
        let urls = Urls::of(forge, repo);
        Self {
            id: found.id.get(),
            node_id: format!("MI_{}", found.id),
            url: urls.api(&format!("/milestones/{}", found.number)),
            html_url: urls.page("/milestones"),
            number: found.number,
            title: found.title.clone(),
            description: or_null(&found.description),
            creator: SimpleUser::author(forge, found.creator_id, found.creator_name.as_ref()),
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
pub struct IssueComment {
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
    pub fn of(forge: &Forge, repo: &Repo, comment: &issues::Comment) -> Self {
        let urls = Urls::of(forge, repo);
        Self {
            id: comment.id.get(),
            node_id: format!("IC_{}", comment.id),
            url: urls.api(&format!("/issues/comments/{}", comment.id)),
            html_url: urls.page(&format!("/issues/{}#comment-{}", comment.number, comment.id)),
            issue_url: urls.api(&format!("/issues/{}", comment.number)),
            body: comment.body.clone(),
            user: SimpleUser::author(forge, comment.author_id, comment.author_name.as_ref()),
            created_at: time(comment.created_at),
            updated_at: time(comment.updated_at),
        }
    }
}
