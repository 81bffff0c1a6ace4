//! Events in GitHub's shapes, where GitHub has the thing; the rest as `RepositoryEvent` with what became of it.

use super::time;
use crate::App;
use abide_core::feed::Told;
use abide_forge::consumers::manage::{Failure, Progress};
use abide_forge::feeds::{Item, Place};
use serde::Serialize;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

/// Something that happened.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(in crate::api) struct Event {
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

/// Who made something happen; nobody is the operator.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(in crate::api) struct EventActor {
    id: i64,
    login: String,
    display_login: String,
    gravatar_id: String,
    url: String,
    avatar_url: String,
}

/// Where something happened.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(in crate::api) struct EventRepo {
    id: i64,
    name: String,
    url: String,
}

impl Event {
    pub(in crate::api) fn of(app: &App, item: &Item) -> Self {
        let stored: Json = serde_json::from_str(&item.payload).unwrap_or_default();
        let (kind, payload) = body(app, item, &stored);
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
            repo: item.repo.as_ref().map(|place| EventRepo {
                id: place.id.get(),
                name: place.slug(),
                url: app.url(&format!("/api/v3/repos/{}", place.slug())),
            }),
            payload,
            public: item.public,
            created_at: time(item.at),
        }
    }
}

/// Type and payload. Only what is named here is sent on: what is stored may say more than a reader may know.
fn body(app: &App, item: &Item, stored: &Json) -> (&'static str, Json) {
    let changed = |action: &str| ("RepositoryEvent", json!({ "action": action }));
    let issue = |action: &str| json!({ "action": action, "issue": issue(app, item, stored) });
    let pull = |action: &str, merged: bool| {
        let mut pull = self::issue(app, item, stored);
        pull["merged"] = merged.into();
        ("PullRequestEvent", json!({ "action": action, "number": pull["number"], "pull_request": pull }))
    };
    match item.told {
        Told::Push => pushed(app, item.repo.as_ref(), stored),
        Told::RepoCreated => {
            let branch = &stored["default_branch"];
            let created = json!({
                "ref": null, "ref_type": "repository", "master_branch": branch, "description": null, "pusher_type": "user",
            });
            ("CreateEvent", created)
        }
        Told::RepoForked => {
            let fork = item.repo.as_ref().map(|place| {
                json!({
                    "id": place.id.get(), "name": place.name.as_str(), "full_name": place.slug(),
                    "html_url": app.url(&format!("/{}", place.slug())),
                })
            });
            ("ForkEvent", json!({ "forkee": fork }))
        }
        Told::Star => ("WatchEvent", json!({ "action": "started" })),
        Told::Follow => ("FollowEvent", json!({ "target": { "id": stored["user_id"], "login": stored["user"] } })),
        Told::RepoVisibilityChanged if stored["after"] == "public" => ("PublicEvent", json!({})),
        Told::RepoVisibilityChanged => changed("privatized"),
        Told::RepoRenamed => {
            let from = json!({ "repository": { "name": { "from": stored["old_name"] } } });
            ("RepositoryEvent", json!({ "action": "renamed", "changes": from }))
        }
        Told::RepoTransferred => {
            let from = json!({ "owner": { "from": { "user": { "id": stored["from_id"], "login": stored["from"] } } } });
            ("RepositoryEvent", json!({ "action": "transferred", "changes": from }))
        }
        Told::RepoArchived => changed("archived"),
        Told::RepoUnarchived => changed("unarchived"),
        Told::RepoRestored => changed("restored"),
        Told::IssueCreated => ("IssuesEvent", issue("opened")),
        Told::IssueClosed => ("IssuesEvent", issue("closed")),
        Told::IssueReopened => ("IssuesEvent", issue("reopened")),
        Told::PrOpened => pull("opened", false),
        Told::PrSynchronized => pull("synchronize", false),
        Told::PrClosed => pull("closed", false),
        Told::PrMerged => pull("closed", true),
        Told::PrReopened => pull("reopened", false),
        Told::IssueCommented | Told::PrCommented => {
            let mut said = issue("created");
            let id = if stored["comment_id"].is_null() { &stored["said"] } else { &stored["comment_id"] };
            said["comment"] = json!({ "id": id, "body": item.excerpt });
            ("IssueCommentEvent", said)
        }
    }
}

fn issue(app: &App, item: &Item, stored: &Json) -> Json {
    let slug = item.repo.as_ref().map(Place::slug).unwrap_or_default();
    // A thread that came by nostr has an event id instead of a number.
    if let Some(thread) = stored["thread"].as_str() {
        let page = app.url(&format!("/{slug}/nostr/{thread}"));
        return json!({
            "id": null, "number": null, "title": item.title, "url": page, "html_url": page,
            "nostr": { "id": thread, "event": stored["event"], "author": stored["author"] },
        });
    }
    let number = stored["number"].as_i64().unwrap_or_default();
    json!({
        "id": stored["issue_id"], "number": number, "title": item.title,
        "url": app.url(&format!("/api/v3/repos/{slug}/issues/{number}")),
        "html_url": app.url(&format!("/{slug}/issues/{number}")),
    })
}

/// One ref that came or went is GitHub's `CreateEvent` or `DeleteEvent`; everything else a `PushEvent` of the first ref,
/// with all of them beside.
fn pushed(app: &App, place: Option<&Place>, stored: &Json) -> (&'static str, Json) {
    let refs = stored["refs"].as_array().map_or(&[][..], Vec::as_slice);
    let none = |id: &Json| id.as_str().is_none_or(|id| id.bytes().all(|byte| byte == b'0'));
    let typed = |name: &str| match (name.strip_prefix("refs/heads/"), name.strip_prefix("refs/tags/")) {
        (Some(branch), _) => Some(("branch", branch.to_owned())),
        (_, Some(tag)) => Some(("tag", tag.to_owned())),
        _ => None,
    };
    let only = if let [only] = refs { Some(only) } else { None };
    if let Some(only) = only
        && let Some((ref_type, name)) = only["name"].as_str().and_then(typed)
    {
        let what = json!({ "ref": name, "ref_type": ref_type, "pusher_type": "user" });
        match (none(&only["before"]), none(&only["after"])) {
            (_, true) => return ("DeleteEvent", what),
            (true, _) => return ("CreateEvent", what),
            _ => {}
        }
    }
    let first = refs.first().cloned().unwrap_or_default();
    let moved = |told: &Json| json!({ "name": told["name"], "before": told["before"], "after": told["after"] });
    let push = json!({
        "push_id": stored["push_id"], "ref": first["name"], "before": first["before"], "head": first["after"],
        "ref_count": stored["ref_count"], "refs": refs.iter().map(moved).collect::<Vec<_>>(),
        "commits": commits(app, place, &first),
    });
    ("PushEvent", push)
}

/// The newest commits that a ref brought, oldest of them first.
fn commits(app: &App, place: Option<&Place>, told: &Json) -> Vec<Json> {
    let slug = place.map(Place::slug).unwrap_or_default();
    let commit = |commit: &Json| {
        let id = commit["id"].as_str().unwrap_or_default();
        json!({
            "sha": id, "message": commit["message"], "author": commit["author"], "distinct": true,
            "url": app.url(&format!("/api/v3/repos/{slug}/commits/{id}")),
        })
    };
    told["commits"].as_array().into_iter().flatten().rev().map(commit).collect()
}

/// How far a consumer of the log of events has come.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(in crate::api) struct Consumer {
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
    pub(in crate::api) fn of(progress: &Progress) -> Self {
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

/// An event that a consumer could not take in.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(in crate::api) struct SetAside {
    consumer: String,
    event: i64,
    kind: String,
    error: String,
    tries: i64,
    failed_at: String,
}

impl SetAside {
    pub(in crate::api) fn of(failure: &Failure) -> Self {
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
