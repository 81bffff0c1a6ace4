//! The consumer: writes a notification for each recipient of an event.
//!
//! Recipients are read in pages and written together, so an event costs a few statements per page of watchers.

use super::title::{Names, title};
use super::{lifecycle, sight};
use crate::consumer::{Consumer, read};
use crate::jobs::{self, Kind, NoPayload};
use crate::{Fault, Forge};
use abide_core::event::{Kind as EventKind, Payload, SubjectKind};
use abide_core::notify::{self, Audience, Hearing, Person, Reason, RepoChange, Subject, Topic};
use abide_core::repo::Role;
use abide_core::{IssueId, UserId, failpoint};
use abide_store::attention::notifications::{self, About, Candidate, News};
use abide_store::events::Numbered;
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx, nostr};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};

/// People per statement.
const PAGE: i64 = 500;

/// Consumer that writes notifications.
#[derive(Debug, Clone, Copy, Default)]
pub struct Notifications;

impl Consumer for Notifications {
    fn name(&self) -> &'static str {
        "notifications"
    }

    fn wants(&self, kind: EventKind) -> bool {
        // The payload decides whether a change of role has a topic.
        notify::topic(kind, Some(Role::Admin)).is_some()
    }

    fn apply<'a>(&'a self, tx: &'a mut Tx, forge: &'a Forge, event: &'a Numbered) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(notify(tx, forge, event))
    }
}

/// An event in its repository, while its notifications are written.
struct NotifyContext<'a> {
    event: &'a Numbered,
    change: Option<RepoChange<'a>>,
    /// `None` if the operator acted, or if the title does not name the actor.
    actor_name: Option<String>,
    topic: Topic,
    repo: Repo,
    issue: Option<IssueId>,
    news: News,
    named: BTreeSet<UserId>,
    concerned: BTreeSet<UserId>,
    /// Accounts that take part in a thread that came by nostr, each with the reason of the notification.
    taking_part: BTreeMap<UserId, Reason>,
}

async fn notify(tx: &mut Tx, forge: &Forge, event: &Numbered) -> Result<(), Fault> {
    let body = read(event)?;
    let Some(topic) = topic(event, &body.payload) else { return Ok(()) };
    let change = RepoChange::of(&body.payload);
    let (mut concerned, mut actor_name) = (Vec::new(), None);
    if let Some(change) = change {
        concerned = lifecycle::concerned(tx, event, &body, change).await?;
        actor_name = lifecycle::actor_name(tx, event).await?;
        lifecycle::mail(tx, forge, event, &body, change, actor_name.as_deref(), &concerned).await?;
    }
    let repo = match event.repo {
        Some(id) => repos::by_id(tx, id, None).await?,
        None => None,
    };
    // The inbox shows nothing of a removed or deleted repository.
    let Some(repo) = repo.filter(Repo::is_live) else { return Ok(()) };
    let context = context(tx, forge, event, topic, repo, &body.payload, (concerned, actor_name)).await?;
    if context.notify_everyone(tx).await? {
        jobs::enqueue(tx, Kind::NotifyMail, &NoPayload {}, Some(event.seq.to_string())).await?;
    }
    Ok(())
}

/// The topic of an event. Threads that came by nostr have the same event kinds; their subject distinguishes them.
fn topic(event: &Numbered, payload: &Payload) -> Option<Topic> {
    let role = RepoChange::of(payload).and_then(RepoChange::collaborator).and_then(|changed| changed.after);
    let topic = notify::topic(payload.kind(), role)?;
    Some(match (topic.subject, event.subject_kind) {
        (Subject::Issue, Some(SubjectKind::NostrThread)) => Topic { subject: Subject::NostrThread, ..topic },
        _ => topic,
    })
}

async fn context<'a>(
    tx: &mut Tx,
    forge: &Forge,
    event: &'a Numbered,
    topic: Topic,
    repo: Repo,
    payload: &'a Payload,
    (concerned, actor_name): (Vec<UserId>, Option<String>),
) -> Result<NotifyContext<'a>, Fault> {
    let issue = match topic.subject {
        Subject::Issue => Some(IssueId::new(event.subject_id)),
        Subject::NostrThread | Subject::Repo => None,
    };
    let subject_id = match topic.subject {
        Subject::Issue | Subject::NostrThread => event.subject_id,
        Subject::Repo => repo.id.get(),
    };
    let about = About { repo: repo.id, subject: topic.subject, subject_id };
    let news = News {
        thread: notifications::thread(tx, &about).await?,
        title: String::new(),
        seq: event.seq,
        private: !event.public,
        window: forge.settings().attention.mail_window,
    };
    let taking_part = match topic.subject {
        Subject::NostrThread => taking_part(tx, event.subject_id).await?,
        Subject::Issue | Subject::Repo => BTreeMap::new(),
    };
    let concerned = concerned.into_iter().collect();
    Ok(NotifyContext {
        event,
        change: RepoChange::of(payload),
        actor_name,
        topic,
        repo,
        issue,
        news,
        named: notify::named(payload).into_iter().collect(),
        concerned,
        taking_part,
    })
}

/// Accounts that began a thread that came by nostr or commented on it.
async fn taking_part(tx: &mut Tx, root: i64) -> Result<BTreeMap<UserId, Reason>, StoreError> {
    let found = nostr::news::participants(tx, root, PAGE).await?;
    let reason = |began| if began { Reason::Author } else { Reason::Comment };
    Ok(found.into_iter().map(|(user, began)| (user, reason(began))).collect())
}

impl NotifyContext<'_> {
    /// Notifies all recipients, page by page. `true` if one of them also gets a mail.
    async fn notify_everyone(&self, tx: &mut Tx) -> Result<bool, StoreError> {
        let (repo, thread) = (self.repo.id, self.news.thread);
        let few = self.named.iter().chain(&self.concerned).chain(self.taking_part.keys());
        let few: Vec<_> = few.copied().collect::<BTreeSet<_>>().into_iter().collect();
        let people = notifications::people(tx, repo, self.issue, thread, &few).await?;
        let mut mailed = self.notify_some(tx, &people).await?;
        if !matches!(self.topic.audience, Audience::Everyone | Audience::ConcernedAndWatchers) {
            return Ok(mailed);
        }
        let mut after = UserId::new(0);
        loop {
            let page = notifications::crowd(tx, repo, self.issue, thread, after, PAGE).await?;
            mailed |= self.notify_some(tx, &page).await?;
            failpoint::hit(failpoint::NOTIFY_HALFWAY);
            match page.last() {
                Some(last) if page.len() as i64 == PAGE => after = last.id,
                _ => return Ok(mailed),
            }
        }
    }

    /// Asks the rule about some people and writes a notification for each recipient.
    async fn notify_some(&self, tx: &mut Tx, people: &[Candidate]) -> Result<bool, StoreError> {
        let mut groups: BTreeMap<(Reason, bool, String), Vec<UserId>> = BTreeMap::new();
        for candidate in people {
            if let Some(reason) = notify::reason(self.topic, &self.person(candidate)) {
                let shown = reason.over(candidate.unread);
                let group = (shown, reason.is_mailed(), self.title(candidate.id));
                groups.entry(group).or_default().push(candidate.id);
            }
        }
        let mut mailed = false;
        for ((reason, mail, title), people) in groups {
            // Changes of a user's own repository are mailed separately and always visible to them.
            let private = self.news.private && mail;
            let news = News { title, private, ..self.news.clone() };
            mailed |= notifications::notify(tx, &news, reason, mail, &people).await? > 0 && mail;
        }
        Ok(mailed)
    }

    /// Title for one recipient. Inbox and mail read the own title of an issue or a thread.
    fn title(&self, reader: UserId) -> String {
        let names = Names { reader, actor: self.event.actor, actor_name: self.actor_name.as_deref() };
        self.change.map(|change| title(change, names)).unwrap_or_default()
    }

    fn hearing(&self, candidate: &Candidate) -> Hearing {
        match (candidate.hearing, self.taking_part.get(&candidate.id)) {
            (Hearing::Unsaid, Some(reason)) => Hearing::Subscribed(*reason),
            (said, _) => said,
        }
    }

    fn person(&self, candidate: &Candidate) -> Person {
        Person {
            actor: self.event.actor == Some(candidate.id),
            suspended: candidate.suspended,
            sight: sight(&candidate.actor, self.event.public, &self.repo, candidate.role),
            level: candidate.level,
            hearing: self.hearing(candidate),
            named: self.named.contains(&candidate.id),
            concerned: self.concerned.contains(&candidate.id),
        }
    }
}
