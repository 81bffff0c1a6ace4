//! The caller's notifications.

use super::{Repository, Urls, time};
use crate::App;
use abide_forge::notify::{Item, State, Subject};
use abide_nostr::kinds;
use serde::Serialize;
use utoipa::ToSchema;

/// A thread in the caller's inbox. `reason` has GitHub's values (`subscribed`: the caller watches the repository) and
/// `lifecycle`: a change to a repository of the caller, for example its transfer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Notification {
    id: String,
    repository: Repository,
    subject: NotificationSubject,
    reason: &'static str,
    unread: bool,
    updated_at: String,
    last_read_at: Option<String>,
    url: String,
    subscription_url: String,
}

/// Subject of the notification.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct NotificationSubject {
    title: String,
    url: String,
    latest_comment_url: String,
    /// `Issue`, `PullRequest` or `Repository`.
    #[serde(rename = "type")]
    kind: &'static str,
}

fn thread_url(app: &App, item: &Item, tail: &str) -> String {
    app.url(&format!("/api/v3/notifications/threads/{}{tail}", item.thread))
}

impl Notification {
    pub(crate) fn of(app: &App, item: &Item, repository: Repository) -> Self {
        let urls = Urls::of(&app.forge, &item.repo);
        let url = match item.issue {
            Some((number, _)) => urls.api(&format!("/issues/{number}")),
            None => match &item.event {
                Some((id, _)) => urls.page(&format!("/nostr/{id}")),
                None => urls.api(""),
            },
        };
        let kind = match item.subject {
            Subject::Issue => "Issue",
            Subject::NostrThread if item.event.as_ref().is_some_and(|(_, kind)| *kind == i64::from(kinds::ISSUE)) => {
                "Issue"
            }
            Subject::NostrThread => "PullRequest",
            Subject::Repo => "Repository",
        };
        Self {
            id: item.thread.to_string(),
            repository,
            subject: NotificationSubject { title: item.title.clone(), latest_comment_url: url.clone(), url, kind },
            reason: item.reason.as_str(),
            unread: item.state == State::Unread,
            updated_at: time(item.notified_at),
            last_read_at: item.read_at.map(time),
            url: thread_url(app, item, ""),
            subscription_url: thread_url(app, item, "/subscription"),
        }
    }
}

/// The caller's subscription to a thread.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ThreadSubscription {
    subscribed: bool,
    ignored: bool,
    reason: Option<String>,
    created_at: String,
    url: String,
    thread_url: String,
}

impl ThreadSubscription {
    pub(crate) fn of(app: &App, item: &Item) -> Self {
        Self {
            subscribed: !item.muted,
            ignored: item.muted,
            reason: Some(item.reason.as_str().to_owned()),
            created_at: time(item.notified_at),
            url: thread_url(app, item, "/subscription"),
            thread_url: thread_url(app, item, ""),
        }
    }
}
