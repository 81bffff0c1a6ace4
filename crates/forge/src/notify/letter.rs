//! Texts of mails about threads.

use super::title::{Names, title};
use super::unsubscribe;
use crate::Forge;
use crate::mail::List;
use crate::mail::letters::Letter;
use crate::relay::readable;
use abide_core::event::{Origin, Payload};
use abide_core::names::shortened_key;
use abide_core::notify::{Reason, RepoChange, Subject};
use abide_core::{CommentId, IssueId};
use abide_store::attention::notification_mail::{self, Pending, Reported};
use abide_store::issues::{self, comments};
use abide_store::repos::{self, Repo};
use abide_store::{Conn, StoreError, nostr};

/// Characters of a text in a mail.
const MAX_TEXT: usize = 10_000;

/// The last event of a thread, as its mail reports it.
pub(super) struct Story {
    pub repo: Repo,
    /// Number of the issue, if the thread is one.
    number: Option<i64>,
    /// Id of the first event of a thread that came by nostr.
    event: Option<String>,
    title: String,
    deed: Option<Deed>,
    actor: String,
    /// Text of the issue or comment.
    text: String,
}

/// An event of a thread, as a mail reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Opened(Said),
    Commented(Said),
    Closed,
    Reopened,
    Updated,
    Merged,
    /// An edit that mentions somebody.
    Mentioned(Said),
    Assigned,
    ReviewRequested,
}

/// The text that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    IssueBody,
    Comment(CommentId),
    /// The content of a nostr event, by its row number.
    Nostr(i64),
}

impl Deed {
    /// `None` for events that are not about a thread.
    fn of(payload: &Payload) -> Option<Self> {
        match payload {
            Payload::IssueCreated(Origin::Local(_)) => Some(Self::Opened(Said::IssueBody)),
            Payload::IssueCreated(Origin::Nostr(addition)) | Payload::PrOpened(addition) => {
                Some(Self::Opened(Said::Nostr(addition.said)))
            }
            Payload::IssueCommentCreated(Origin::Local(comment)) => {
                Some(Self::Commented(Said::Comment(comment.comment_id)))
            }
            Payload::IssueCommentCreated(Origin::Nostr(addition)) | Payload::PrCommentCreated(addition) => {
                Some(Self::Commented(Said::Nostr(addition.said)))
            }
            Payload::IssueClosed(_) | Payload::PrClosed(_) => Some(Self::Closed),
            Payload::IssueReopened(_) | Payload::PrReopened(_) => Some(Self::Reopened),
            Payload::PrSynchronized(_) => Some(Self::Updated),
            Payload::PrMerged(_) => Some(Self::Merged),
            Payload::IssueEdited(_) => Some(Self::Mentioned(Said::IssueBody)),
            Payload::IssueCommentEdited(comment) => Some(Self::Mentioned(Said::Comment(comment.comment_id))),
            Payload::IssueAssigned(_) => Some(Self::Assigned),
            Payload::ReviewRequested(_) => Some(Self::ReviewRequested),
            Payload::IssueUnassigned(_)
            | Payload::IssueLabeled(_)
            | Payload::IssueUnlabeled(_)
            | Payload::IssueMilestoned(_)
            | Payload::IssueDemilestoned(_)
            | Payload::IssueCommentDeleted(_)
            | Payload::RepoCreated(_)
            | Payload::RepoForked(_)
            | Payload::RepoEdited(_)
            | Payload::RepoTopicsChanged(_)
            | Payload::RepoRenamed(_)
            | Payload::RepoArchived(_)
            | Payload::RepoUnarchived(_)
            | Payload::RepoVisibilityChanged(_)
            | Payload::RepoTransferRequested(_)
            | Payload::RepoTransferAccepted(_)
            | Payload::RepoTransferDeclined(_)
            | Payload::RepoTransferCanceled(_)
            | Payload::RepoTransferExpired(_)
            | Payload::RepoSoftDeleted(_)
            | Payload::RepoRestored(_)
            | Payload::RepoHardDeleted(_)
            | Payload::RepoRedirectReleased(_)
            | Payload::AnnouncementPromoted(_)
            | Payload::AnnouncementReplaced(_)
            | Payload::Push(_)
            | Payload::Star(_)
            | Payload::Unstar(_)
            | Payload::Follow(_)
            | Payload::CollaboratorAdded(_)
            | Payload::CollaboratorChanged(_)
            | Payload::CollaboratorRemoved(_)
            | Payload::LabelCreated(_)
            | Payload::LabelEdited(_)
            | Payload::LabelDeleted(_)
            | Payload::MilestoneCreated(_)
            | Payload::MilestoneEdited(_)
            | Payload::MilestoneOpened(_)
            | Payload::MilestoneClosed(_)
            | Payload::MilestoneDeleted(_)
            | Payload::WebhookCreated(_)
            | Payload::WebhookEdited(_)
            | Payload::WebhookDeleted(_)
            | Payload::WebhookSuspended(_)
            | Payload::WebhookResumed(_)
            | Payload::UserCreated(_)
            | Payload::UserRenamed(_)
            | Payload::UserDeleted(_)
            | Payload::KeyLinked(_)
            | Payload::KeyUnlinked(_) => None,
        }
    }

    fn said(self) -> Option<Said> {
        match self {
            Self::Opened(said) | Self::Commented(said) | Self::Mentioned(said) => Some(said),
            Self::Closed | Self::Reopened | Self::Updated | Self::Merged | Self::Assigned | Self::ReviewRequested => {
                None
            }
        }
    }
}

const DELETED: &str = "(The comment was deleted.)";

/// Loads the content of a mail; `None` if the repository or the issue is gone.
pub(super) async fn story(conn: &mut Conn, pending: &Pending) -> Result<Option<Story>, StoreError> {
    let Some(repo) = repos::by_id(conn, pending.repo, None).await? else { return Ok(None) };
    let Reported { body, actor, actor_id } = notification_mail::event(conn, pending.seq).await?;
    let payload = body.map(|body| body.payload);
    let signer = payload.as_ref().and_then(Payload::nostr).map(|addition| addition.author.clone());
    let actor = actor.or(signer).map_or_else(|| "Someone".into(), |actor| shortened_key(&actor).into_owned());
    let deed = payload.as_ref().and_then(Deed::of);
    let mut event = None;
    let (number, title, text) = match pending.subject {
        Subject::Repo => {
            let names = Names { reader: pending.user, actor: actor_id, actor_name: actor_id.map(|_| actor.as_str()) };
            let change = payload.as_ref().and_then(RepoChange::of);
            let title = change.map_or_else(|| pending.title.clone(), |change| title(change, names));
            (None, title, String::new())
        }
        Subject::Issue => {
            let Some(issue) = issues::by_id(conn, IssueId::new(pending.subject_id)).await? else { return Ok(None) };
            let text = match deed.and_then(Deed::said) {
                Some(Said::Comment(id)) => {
                    let found = comments::by_id(conn, repo.id, id).await?;
                    found.map_or_else(|| DELETED.into(), |found| found.body)
                }
                Some(Said::IssueBody) => issue.body,
                Some(Said::Nostr(_)) | None => String::new(),
            };
            (Some(issue.number), issue.title, text)
        }
        Subject::NostrThread => {
            let Some(thread) = nostr::news::thread(conn, pending.subject_id).await? else { return Ok(None) };
            event = Some(hex::encode(thread.id));
            let text = match deed.and_then(Deed::said) {
                Some(Said::Nostr(n)) => {
                    let said = nostr::news::json(conn, n).await?.and_then(|json| readable(&json));
                    said.map_or_else(|| DELETED.into(), |event| event.content)
                }
                Some(Said::Comment(_) | Said::IssueBody) | None => String::new(),
            };
            (None, thread.title, text)
        }
    };
    let text = text.chars().take(MAX_TEXT).collect();
    Ok(Some(Story { repo, number, event, title, deed, actor, text }))
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
        match self.deed {
            Some(Deed::Opened(_)) => format!("{actor} opened {what}"),
            Some(Deed::Commented(_)) => format!("{actor} commented on {what}"),
            Some(Deed::Closed) => format!("{actor} closed {what}"),
            Some(Deed::Reopened) => format!("{actor} reopened {what}"),
            Some(Deed::Updated) => format!("{actor} updated {what}"),
            Some(Deed::Merged) => format!("{actor} merged {what}"),
            Some(Deed::Mentioned(_)) => format!("{actor} mentioned you in {what}"),
            Some(Deed::Assigned) => format!("{actor} assigned {what} to you"),
            Some(Deed::ReviewRequested) => format!("{actor} requested your review of {what}"),
            None => what,
        }
    }
}

/// Reason of a notification, as the end of a sentence that begins with "because".
fn because(reason: Reason) -> &'static str {
    match reason {
        Reason::ReviewRequested => "your review was requested",
        Reason::Mention => "you were mentioned",
        Reason::Assign => "you are assigned",
        Reason::Author => "you opened the thread",
        Reason::Comment => "you commented",
        Reason::Manual => "you are subscribed",
        // Owners and admins get a mail of another kind (`lifecycle`). A watcher has this reason if an earlier notification
        // about their role or an offer is unread.
        Reason::Watching | Reason::Lifecycle => "you watch this repository",
    }
}
