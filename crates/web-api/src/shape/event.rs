//! Events in GitHub's shapes. An event that GitHub does not have is a `RepositoryEvent` with its own action.

use super::time;
use crate::App;
use abide_core::event::{IssueRef, NostrAddition, Origin, Push, PushedCommit, PushedRef};
use abide_core::feed::FeedEvent;
use abide_core::repo::Visibility;
use abide_forge::consumers::manage::{Failure, Progress};
use abide_forge::feeds::{FeedRepo, Item};
use serde::Serialize;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

/// An event in an activity feed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Event {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    actor: Option<EventActor>,
    repo: Option<EventRepo>,
    #[schema(value_type = Object)]
    payload: Json,
    public: bool,
    created_at: String,
}

/// User who caused an event.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct EventActor {
    id: i64,
    login: String,
    display_login: String,
    gravatar_id: String,
    url: String,
    avatar_url: String,
}

/// Repository of an event.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct EventRepo {
    id: i64,
    name: String,
    url: String,
}

impl Event {
    pub(crate) fn of(app: &App, item: &Item) -> Self {
        let (kind, payload) = body(app, item);
        Self {
            id: item.seq.to_string(),
            kind,
            actor: item.actor.as_ref().map(|(id, name)| EventActor {
                id: id.get(),
                login: name.to_string(),
                display_login: name.shown().into_owned(),
                gravatar_id: String::new(),
                url: app.url(&format!("/api/v3/users/{name}")),
                avatar_url: String::new(),
            }),
            repo: item.repo.as_ref().map(|repo| EventRepo {
                id: repo.id.get(),
                name: repo.slug(),
                url: app.url(&format!("/api/v3/repos/{}", repo.slug())),
            }),
            payload,
            public: item.public,
            created_at: time(item.at),
        }
    }
}

/// Type and payload. Only the fields named here are sent, because stored events have fields that readers may not see.
fn body(app: &App, item: &Item) -> (&'static str, Json) {
    let changed = |action: &str| ("RepositoryEvent", json!({ "action": action }));
    let issue = |action: &str, thread: Json| ("IssuesEvent", json!({ "action": action, "issue": thread }));
    let nostr = |addition| nostr_thread(app, item, addition);
    let local = |issue: &IssueRef| local_issue(app, item, issue);
    let pull = |action: &str, addition, merged: bool| {
        let mut pull = nostr(addition);
        pull["merged"] = merged.into();
        ("PullRequestEvent", json!({ "action": action, "number": pull["number"], "pull_request": pull }))
    };
    let commented = |id: Json, thread: Json| {
        let comment = json!({ "id": id, "body": item.excerpt });
        ("IssueCommentEvent", json!({ "action": "created", "issue": thread, "comment": comment }))
    };
    match &item.event {
        FeedEvent::Push(push) => pushed(app, item.repo.as_ref(), push),
        FeedEvent::RepoCreated(created) => {
            let created = json!({
                "ref": null, "ref_type": "repository", "master_branch": created.default_branch, "description": null,
                "pusher_type": "user",
            });
            ("CreateEvent", created)
        }
        FeedEvent::RepoForked(_) => {
            let fork = item.repo.as_ref().map(|repo| {
                json!({
                    "id": repo.id.get(), "name": repo.name.as_str(), "full_name": repo.slug(),
                    "html_url": app.url(&format!("/{}", repo.slug())),
                })
            });
            ("ForkEvent", json!({ "forkee": fork }))
        }
        FeedEvent::Star(_) => ("WatchEvent", json!({ "action": "started" })),
        FeedEvent::Follow(follow) => {
            ("FollowEvent", json!({ "target": { "id": follow.user_id, "login": follow.user } }))
        }
        FeedEvent::RepoVisibilityChanged(change) => match change.after {
            Visibility::Public => ("PublicEvent", json!({})),
            Visibility::Private => changed("privatized"),
        },
        FeedEvent::RepoRenamed(names) => {
            let from = json!({ "repository": { "name": { "from": names.old_name } } });
            ("RepositoryEvent", json!({ "action": "renamed", "changes": from }))
        }
        FeedEvent::RepoTransferAccepted(transfer) => {
            let user = json!({ "id": transfer.from_id, "login": transfer.from });
            let from = json!({ "owner": { "from": { "user": user } } });
            ("RepositoryEvent", json!({ "action": "transferred", "changes": from }))
        }
        FeedEvent::RepoArchived(_) => changed("archived"),
        FeedEvent::RepoUnarchived(_) => changed("unarchived"),
        FeedEvent::RepoRestored(_) => changed("restored"),
        FeedEvent::IssueCreated(Origin::Local(opened)) => issue("opened", local(&opened.issue)),
        FeedEvent::IssueClosed(Origin::Local(state)) => issue("closed", local(&state.issue)),
        FeedEvent::IssueReopened(Origin::Local(state)) => issue("reopened", local(&state.issue)),
        FeedEvent::IssueCreated(Origin::Nostr(addition)) => issue("opened", nostr(addition)),
        FeedEvent::IssueClosed(Origin::Nostr(addition)) => issue("closed", nostr(addition)),
        FeedEvent::IssueReopened(Origin::Nostr(addition)) => issue("reopened", nostr(addition)),
        FeedEvent::PrOpened(addition) => pull("opened", addition, false),
        FeedEvent::PrSynchronized(addition) => pull("synchronize", addition, false),
        FeedEvent::PrClosed(addition) => pull("closed", addition, false),
        FeedEvent::PrMerged(addition) => pull("closed", addition, true),
        FeedEvent::PrReopened(addition) => pull("reopened", addition, false),
        FeedEvent::IssueCommentCreated(Origin::Local(comment)) => {
            commented(json!(comment.comment_id), local(&comment.issue))
        }
        FeedEvent::IssueCommentCreated(Origin::Nostr(addition)) | FeedEvent::PrCommentCreated(addition) => {
            commented(json!(addition.said), nostr(addition))
        }
    }
}

/// A nostr thread has an event id instead of a number.
fn nostr_thread(app: &App, item: &Item, addition: &NostrAddition) -> Json {
    let slug = item.repo.as_ref().map(FeedRepo::slug).unwrap_or_default();
    let page = app.url(&format!("/{slug}/nostr/{}", addition.thread));
    json!({
        "id": null, "number": null, "title": item.title, "url": page, "html_url": page,
        "nostr": { "id": addition.thread, "event": addition.event, "author": addition.author },
    })
}

fn local_issue(app: &App, item: &Item, issue: &IssueRef) -> Json {
    let slug = item.repo.as_ref().map(FeedRepo::slug).unwrap_or_default();
    let number = issue.number;
    json!({
        "id": issue.issue_id, "number": number, "title": item.title,
        "url": app.url(&format!("/api/v3/repos/{slug}/issues/{number}")),
        "html_url": app.url(&format!("/{slug}/issues/{number}")),
    })
}

/// The creation or deletion of a single ref is GitHub's `CreateEvent` or `DeleteEvent`. Every other push is a `PushEvent` of
/// its first ref; `refs` lists all of them.
fn pushed(app: &App, repo: Option<&FeedRepo>, push: &Push) -> (&'static str, Json) {
    let refs = push.refs();
    let typed = |name: &str| match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/tags/")) {
        (Some(branch), _) => Some(("branch", branch.to_owned())),
        (_, Some(tag)) => Some(("tag", tag.to_owned())),
        _ => None,
    };
    if let [only] = refs
        && let Some((ref_type, name)) = typed(&only.name)
    {
        let what = json!({ "ref": name, "ref_type": ref_type, "pusher_type": "user" });
        match (only.is_created(), only.is_deleted()) {
            (_, true) => return ("DeleteEvent", what),
            (true, _) => return ("CreateEvent", what),
            _ => {}
        }
    }
    let first = refs.first();
    let moved = |moved: &PushedRef| json!({ "name": moved.name, "before": moved.before, "after": moved.after });
    let push = json!({
        "push_id": push.push_id,
        "ref": first.map(|first| &first.name),
        "before": first.map(|first| &first.before),
        "head": first.map(|first| &first.after),
        "ref_count": push.ref_count,
        "refs": refs.iter().map(moved).collect::<Vec<_>>(),
        "commits": first.map_or_else(Vec::new, |first| commits(app, repo, first)),
    });
    ("PushEvent", push)
}

/// The newest commits of a ref, oldest of them first.
fn commits(app: &App, repo: Option<&FeedRepo>, pushed: &PushedRef) -> Vec<Json> {
    let slug = repo.map(FeedRepo::slug).unwrap_or_default();
    let commit = |commit: &PushedCommit| {
        let id = &commit.id;
        json!({
            "sha": id, "message": commit.message, "author": commit.author, "distinct": true,
            "url": app.url(&format!("/api/v3/repos/{slug}/commits/{id}")),
        })
    };
    pushed.commits.iter().rev().map(commit).collect()
}

/// Progress of a consumer of the event log.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Consumer {
    name: String,
    cursor: i64,
    head: i64,
    lag: i64,
    tries: i64,
    last_error: Option<String>,
    retry_at: Option<String>,
    moved_at: String,
    failures: i64,
}

impl Consumer {
    pub(crate) fn of(progress: &Progress) -> Self {
        Self {
            name: progress.name.clone(),
            cursor: progress.cursor,
            head: progress.head,
            lag: progress.lag(),
            tries: progress.tries,
            last_error: progress.last_error.clone(),
            retry_at: progress.retry_at.map(time),
            moved_at: time(progress.moved_at),
            failures: progress.failures,
        }
    }
}

/// An event that a consumer skipped after repeated failures.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SetAside {
    consumer: String,
    event: i64,
    kind: String,
    error: String,
    tries: i64,
    failed_at: String,
}

impl SetAside {
    pub(crate) fn of(failure: &Failure) -> Self {
        Self {
            consumer: failure.consumer.clone(),
            event: failure.seq,
            kind: failure.kind.clone(),
            error: failure.error.clone(),
            tries: failure.tries,
            failed_at: time(failure.failed_at),
        }
    }
}
