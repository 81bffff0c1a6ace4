//! What the mails about threads say.

use super::{lifecycle, unsubscribe};
use crate::Forge;
use crate::mail::List;
use crate::mail::letters::Letter;
use crate::relay::readable;
use abide_core::names::shortened_key;
use abide_core::notify::{Reason, Subject};
use abide_core::{CommentId, IssueId};
use abide_store::notification_mail::{self, Pending};
use abide_store::repos::{self, Repo};
use abide_store::{Conn, StoreError, comments, issues, nostr_news};
use serde_json::Value as Json;

/// Characters of a text that a mail holds.
const MAX_TEXT: usize = 10_000;

/// What happened last in a thread, for everyone who is told of it.
pub(super) struct Story {
    /// Where.
    pub repo: Repo,
    /// The issue's number, if it is one.
    number: Option<i64>,
    /// The id of the event that begins the thread, if it came by nostr.
    event: Option<String>,
    title: String,
    kind: String,
    actor: String,
    /// What was said.
    text: String,
}

/// Loads what a mail tells of; `None` if the repository or the issue is gone.
pub(super) async fn story(conn: &mut Conn, pending: &Pending) -> Result<Option<Story>, StoreError> {
    let Some(repo) = repos::by_id(conn, pending.repo, None).await? else { return Ok(None) };
    let (kind, payload, actor) = notification_mail::event(conn, pending.seq).await?.unwrap_or_default();
    let payload: Json = serde_json::from_str(&payload).unwrap_or_default();
    let actor = actor.or_else(|| payload["author"].as_str().map(str::to_owned));
    let actor = actor.map_or_else(|| "Someone".into(), |actor| shortened_key(&actor).into_owned());
    let mut event = None;
    let (number, title, text) = match pending.subject {
        Subject::Repo if kind.is_empty() => (None, pending.title.clone(), String::new()),
        Subject::Repo => (None, lifecycle::title(&kind, &payload), String::new()),
        Subject::Issue => {
            let Some(issue) = issues::by_id(conn, IssueId::new(pending.subject_id)).await? else { return Ok(None) };
            let comment = payload["comment_id"].as_i64().map(CommentId::new);
            let text = match (kind.as_str(), comment) {
                ("issue_comment_created" | "issue_comment_edited", Some(id)) => {
                    let found = comments::by_id(conn, repo.id, id).await?;
                    found.map_or_else(|| "(The comment was deleted.)".into(), |found| found.body)
                }
                ("issue_created" | "issue_edited", _) => issue.body,
                _ => String::new(),
            };
            (Some(issue.number), issue.title, text)
        }
        Subject::NostrThread => {
            let Some(thread) = nostr_news::thread(conn, pending.subject_id).await? else { return Ok(None) };
            event = Some(hex::encode(thread.id));
            let text = match (kind.as_str(), payload["said"].as_i64()) {
                ("issue_created" | "pr_opened" | "issue_comment_created" | "pr_comment_created", Some(n)) => {
                    let said = nostr_news::json(conn, n).await?.and_then(|json| readable(&json));
                    said.map_or_else(|| "(The comment was deleted.)".into(), |event| event.content)
                }
                _ => String::new(),
            };
            (None, thread.title, text)
        }
    };
    let text = text.chars().take(MAX_TEXT).collect();
    Ok(Some(Story { repo, number, event, title, kind, actor, text }))
}

/// The mail to one person, and the list that it belongs to.
pub(super) fn write(forge: &Forge, pending: &Pending, story: &Story) -> (Letter, List) {
    let (site, slug) = (&forge.settings().public_url, story.repo.slug());
    let link = match (story.number, &story.event) {
        (Some(number), _) => format!("{site}/{slug}/issues/{number}"),
        (None, Some(event)) => format!("{site}/{slug}/nostr/{event}"),
        (None, None) => format!("{site}/{slug}"),
    };
    let unsubscribe = unsubscribe::link(forge, pending.user, pending.thread);
    let mut text = format!("{}\n", story.said());
    if !story.text.trim().is_empty() {
        text.push_str(&format!("\n{}\n", story.text.trim_end()));
    }
    if let earlier @ 1.. = pending.events - 1 {
        let (noun, verb) = if earlier == 1 { ("event", "has") } else { ("events", "have") };
        text.push_str(&format!("\n{earlier} more {noun} {verb} occurred in this thread since the last mail.\n"));
    }
    text.push_str(&format!("\n{link}\n\n-- \nYou get this mail because {}.\n", because(pending.reason)));
    text.push_str(&format!("Unsubscribe: {unsubscribe}\nE-mail settings: {site}/settings/notifications\n"));
    let subject = match story.number {
        Some(number) => format!("[{}] {} (#{number})", story.repo.shown(), story.title),
        None => format!("[{}] {}", story.repo.shown(), story.title),
    };
    let list = List {
        name: slug,
        id: format!("repo-{}", story.repo.id),
        thread: format!("abide-thread-{}", pending.thread),
        archive: link,
        unsubscribe,
    };
    (Letter { subject, text }, list)
}

impl Story {
    fn said(&self) -> String {
        let (actor, title) = (&self.actor, &self.title);
        let what = match self.number {
            Some(number) => format!("#{number} ({title})"),
            None if self.event.is_some() => title.clone(),
            None => format!("{}: {title}", self.repo.shown()),
        };
        match self.kind.as_str() {
            "issue_created" | "pr_opened" => format!("{actor} opened {what}"),
            "issue_comment_created" | "pr_comment_created" => format!("{actor} commented on {what}"),
            "issue_closed" | "pr_closed" => format!("{actor} closed {what}"),
            "issue_reopened" | "pr_reopened" => format!("{actor} reopened {what}"),
            "pr_synchronized" => format!("{actor} updated {what}"),
            "pr_merged" => format!("{actor} merged {what}"),
            "issue_edited" | "issue_comment_edited" => format!("{actor} mentioned you in {what}"),
            "issue_assigned" => format!("{actor} assigned {what} to you"),
            "review_requested" => format!("{actor} requested your review of {what}"),
            _ => what,
        }
    }
}

/// Why someone is told, as the end of a sentence that begins with "because".
fn because(reason: Reason) -> &'static str {
    match reason {
        Reason::ReviewRequested => "your review was requested",
        Reason::Mention => "you were mentioned",
        Reason::Assign => "you are assigned",
        Reason::Lifecycle => "you own or administer this repository",
        Reason::Author => "you opened the thread",
        Reason::Comment => "you commented",
        Reason::Manual => "you are subscribed",
        Reason::Watching => "you watch this repository",
    }
}
