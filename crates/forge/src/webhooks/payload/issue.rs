//! Issues and what is said about them, with the fields that the API gives them.

use super::repository::{Urls, person};
use super::{someone, text};
use crate::Forge;
use crate::issues::show::{Detailed, detailed_in};
use abide_core::event::{IssueEdited, IssueField, IssueLabel, IssueMilestone, IssueRef};
use abide_core::issues::Reason;
use abide_core::{CommentId, Handle, IssueId, LabelId, MilestoneId, Timestamp, UserId};
use abide_store::issues::comments::{self, Comment};
use abide_store::issues::labels::{self, Label};
use abide_store::issues::milestones::{self, Milestone};
use abide_store::repos::Repo;
use abide_store::{Conn, StoreError, Tx, issues as stored, issues};
use serde_json::{Map, Value as Json, json};

type Said = Map<String, Json>;

/// Puts an issue into a message. `false` if it is gone.
pub(super) async fn put(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    issue: IssueRef,
    said: &mut Said,
) -> Result<bool, StoreError> {
    let Some(detailed) = load(tx, issue.issue_id).await? else { return Ok(false) };
    said.insert("issue".into(), shape(forge, repo, &detailed));
    Ok(true)
}

/// As [`put`], with the fields that changed. The time leads [`refresh`] to the title before.
pub(super) async fn edited(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    edited: &IssueEdited,
    at: Timestamp,
    said: &mut Said,
) -> Result<bool, StoreError> {
    let change = |field: &IssueField| match field {
        IssueField::Title => (field.to_string(), json!({ "at": at.micros() })),
        IssueField::Body => (field.to_string(), json!({})),
    };
    said.insert("changes".into(), Json::Object(edited.changed.iter().map(change).collect()));
    put(tx, forge, repo, edited.issue, said).await
}

/// As [`put`], with the label.
pub(super) async fn labeled(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    changed: &IssueLabel,
    said: &mut Said,
) -> Result<bool, StoreError> {
    let id = changed.label_id.unwrap_or(LabelId::new(0));
    let known = labels::by_id(tx, repo.id, id).await?;
    let shape = known.map_or_else(|| json!({ "id": id.get() }), |found| label(forge, repo, &found));
    said.insert("label".into(), shape);
    put(tx, forge, repo, changed.issue, said).await
}

/// As [`put`], with the milestone.
pub(super) async fn milestoned(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    changed: &IssueMilestone,
    said: &mut Said,
) -> Result<bool, StoreError> {
    let id = changed.milestone_id.unwrap_or(MilestoneId::new(0));
    let known = milestones::by_ids(tx, &[id]).await?;
    let shape = known.first().map_or_else(|| json!({ "id": id.get() }), |found| milestone(forge, repo, found));
    said.insert("milestone".into(), shape);
    put(tx, forge, repo, changed.issue, said).await
}

/// Puts a comment and its issue into a message. `false` if the issue is gone. `author` is the one of a deleted comment.
pub(super) async fn comment_of(
    tx: &mut Tx,
    forge: &Forge,
    repo: &Repo,
    issue: IssueRef,
    id: CommentId,
    author: Option<UserId>,
    said: &mut Said,
) -> Result<bool, StoreError> {
    let Some(detailed) = load(tx, issue.issue_id).await? else { return Ok(false) };
    said.insert("issue".into(), shape(forge, repo, &detailed));
    let comment = match comments::by_id(tx, repo.id, id).await? {
        Some(found) => comment(forge, repo, &found),
        // It was removed, now or since: what it said is gone.
        None => {
            let urls = Urls::of(forge, repo);
            json!({
                "id": id.get(),
                "node_id": format!("IC_{id}"),
                "url": urls.api(&format!("/issues/comments/{id}")),
                "html_url": urls.page(&format!("/issues/{}#comment-{id}", detailed.issue.number)),
                "issue_url": urls.api(&format!("/issues/{}", detailed.issue.number)),
                "body": "",
                "user": someone(tx, forge, author).await?,
            })
        }
    };
    said.insert("comment".into(), comment);
    Ok(true)
}

/// Takes what people wrote out of a draft. [`refresh`] reads by the remaining ids.
pub(super) fn blank(said: &mut Json) {
    if said["issue"].is_object() {
        let issue = &mut said["issue"];
        issue["title"] = "".into();
        issue["body"] = Json::Null;
        let labels = issue["labels"].as_array().into_iter().flatten().map(only_id).collect();
        issue["labels"] = Json::Array(labels);
        if issue["milestone"].is_object() {
            issue["milestone"] = only_id(&issue["milestone"]);
        }
    }
    if said["comment"].is_object() {
        said["comment"]["body"] = "".into();
    }
    for name in ["label", "milestone"] {
        if said[name].is_object() {
            said[name] = only_id(&said[name]);
        }
    }
}

fn only_id(found: &Json) -> Json {
    json!({ "id": found["id"] })
}

/// Puts the titles, texts and labels of the live rows into a draft. A row that is gone says nothing.
pub(super) async fn refresh(conn: &mut Conn, forge: &Forge, repo: &Repo, said: &mut Json) -> Result<(), StoreError> {
    if let Some(id) = said["issue"]["id"].as_i64().map(IssueId::new) {
        let (title, body) = match stored::by_id(conn, id).await? {
            Some(issue) => (issue.title, issue.body),
            None => Default::default(),
        };
        said["issue"]["title"] = title.into();
        said["issue"]["body"] = text(body);
        let mut labels = Vec::new();
        for kept in said["issue"]["labels"].as_array().into_iter().flatten() {
            labels.extend(live_label(conn, forge, repo, kept).await?);
        }
        said["issue"]["labels"] = labels.into();
        let kept = said["issue"]["milestone"].clone();
        said["issue"]["milestone"] = live_milestone(conn, forge, repo, &kept).await?.unwrap_or_default();
        if let Some(at) = said["changes"]["title"]["at"].as_i64().map(Timestamp::from_micros) {
            let before = issues::timeline::title_before(conn, id, at).await?;
            said["changes"]["title"] = before.map_or_else(|| json!({}), |before| json!({ "from": before }));
        }
    }
    if let Some(id) = said["comment"]["id"].as_i64() {
        let found = comments::by_id(conn, repo.id, CommentId::new(id)).await?;
        said["comment"]["body"] = found.map(|comment| comment.body).unwrap_or_default().into();
    }
    let (kept_label, kept_milestone) = (said["label"].clone(), said["milestone"].clone());
    if let Some(found) = live_label(conn, forge, repo, &kept_label).await? {
        said["label"] = found;
    }
    if let Some(found) = live_milestone(conn, forge, repo, &kept_milestone).await? {
        said["milestone"] = found;
    }
    Ok(())
}

async fn live_label(conn: &mut Conn, forge: &Forge, repo: &Repo, kept: &Json) -> Result<Option<Json>, StoreError> {
    let Some(id) = kept["id"].as_i64().map(LabelId::new) else { return Ok(None) };
    Ok(labels::by_id(conn, repo.id, id).await?.map(|found| label(forge, repo, &found)))
}

async fn live_milestone(conn: &mut Conn, forge: &Forge, repo: &Repo, kept: &Json) -> Result<Option<Json>, StoreError> {
    let Some(id) = kept["id"].as_i64().map(MilestoneId::new) else { return Ok(None) };
    let found = milestones::by_ids(conn, &[id]).await?;
    Ok(found.first().map(|found| milestone(forge, repo, found)))
}

async fn load(tx: &mut Tx, id: IssueId) -> Result<Option<Detailed>, StoreError> {
    let found = stored::by_id(tx, id).await?;
    Ok(detailed_in(tx, found.into_iter().collect()).await?.pop())
}

/// Someone who may be gone.
fn perhaps(forge: &Forge, id: Option<UserId>, name: Option<&Handle>) -> Json {
    id.map_or(Json::Null, |id| person(forge, id, name, false))
}

fn shape(forge: &Forge, repo: &Repo, detailed: &Detailed) -> Json {
    let (urls, issue) = (Urls::of(forge, repo), &detailed.issue);
    let at = |tail: &str| urls.api(&format!("/issues/{}{tail}", issue.number));
    let assignees: Vec<Json> =
        detailed.assignees.iter().map(|found| person(forge, found.id, found.name.as_ref(), found.site_admin)).collect();
    json!({
        "id": issue.id.get(),
        "node_id": format!("I_{}", issue.id),
        "url": at(""),
        "repository_url": urls.api(""),
        "labels_url": at("/labels{/name}"),
        "comments_url": at("/comments"),
        "events_url": at("/events"),
        "timeline_url": at("/timeline"),
        "html_url": urls.page(&format!("/issues/{}", issue.number)),
        "number": issue.number,
        "state": issue.state.as_str(),
        "state_reason": issue.reason.map(Reason::as_str),
        "title": issue.title,
        "body": (!issue.body.is_empty()).then_some(&issue.body),
        "user": perhaps(forge, issue.author_id, issue.author_name.as_ref()),
        "labels": detailed.labels.iter().map(|found| label(forge, repo, found)).collect::<Vec<_>>(),
        "assignee": assignees.first(),
        "assignees": assignees,
        "milestone": detailed.milestone.as_ref().map(|found| milestone(forge, repo, found)),
        "locked": false,
        "active_lock_reason": null,
        "comments": issue.comment_count,
        "created_at": issue.created_at.to_string(),
        "updated_at": issue.updated_at.to_string(),
        "closed_at": issue.closed_at.map(|at| at.to_string()),
        "closed_by": perhaps(forge, issue.closed_by, issue.closer_name.as_ref()),
    })
}

fn label(forge: &Forge, repo: &Repo, found: &Label) -> Json {
    json!({
        "id": found.id.get(),
        "node_id": format!("LA_{}", found.id),
        "url": Urls::of(forge, repo).api(&format!("/labels/{}", in_path(found.name.as_str()))),
        "name": found.name.as_str(),
        "color": found.color.as_str(),
        "default": false,
        "description": (!found.description.is_empty()).then_some(&found.description),
    })
}

fn milestone(forge: &Forge, repo: &Repo, found: &Milestone) -> Json {
    let urls = Urls::of(forge, repo);
    json!({
        "id": found.id.get(),
        "node_id": format!("MI_{}", found.id),
        "url": urls.api(&format!("/milestones/{}", found.number)),
        "html_url": urls.page("/milestones"),
        "number": found.number,
        "title": found.title,
        "description": (!found.description.is_empty()).then_some(&found.description),
        "creator": perhaps(forge, found.creator_id, found.creator_name.as_ref()),
        "open_issues": found.open_issues,
        "closed_issues": found.closed_issues,
        "state": found.state.as_str(),
        "created_at": found.created_at.to_string(),
        "updated_at": found.updated_at.to_string(),
        "due_on": found.due_on.map(|at| at.to_string()),
        "closed_at": found.closed_at.map(|at| at.to_string()),
    })
}

fn comment(forge: &Forge, repo: &Repo, found: &Comment) -> Json {
    let urls = Urls::of(forge, repo);
    json!({
        "id": found.id.get(),
        "node_id": format!("IC_{}", found.id),
        "url": urls.api(&format!("/issues/comments/{}", found.id)),
        "html_url": urls.page(&format!("/issues/{}#comment-{}", found.number, found.id)),
        "issue_url": urls.api(&format!("/issues/{}", found.number)),
        "body": found.body,
        "user": perhaps(forge, found.author_id, found.author_name.as_ref()),
        "created_at": found.created_at.to_string(),
        "updated_at": found.updated_at.to_string(),
    })
}

/// A name in an address: everything that is not plain is escaped.
fn in_path(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    let escape = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}
