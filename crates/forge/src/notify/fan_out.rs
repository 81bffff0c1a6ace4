//! The consumer: from an event to a row for everyone who is told of it.
//!
//! People are gone through in pages and written together, so an event costs a few statements however many watch.

use super::{lifecycle, sight};
use crate::consumers::Consumer;
use crate::jobs::{self, Kind};
use crate::threads::tell;
use crate::{Fault, Forge};
use abide_core::notify::{self, Audience, Hearing, Person, Reason, Subject, Topic};
use abide_core::repo::Role;
use abide_core::{IssueId, UserId, failpoint};
use abide_store::events::Numbered;
use abide_store::notifications::{self, About, Candidate, News};
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx, nostr_news};
use futures_util::future::BoxFuture;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// People per statement.
const PAGE: i64 = 500;

/// Tells people what happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Notifications;

impl Consumer for Notifications {
    fn name(&self) -> &'static str {
        "notifications"
    }

    fn wants(&self, kind: &str) -> bool {
        // Whether a role makes news is seen once the payload is read.
        notify::topic(kind, Some(Role::Admin)).is_some()
    }

    fn apply<'a>(&'a self, tx: &'a mut Tx, forge: &'a Forge, event: &'a Numbered) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(tell(tx, forge, event))
    }
}

/// An event in its repository, while people are told of it.
struct Scene<'a> {
    event: &'a Numbered,
    topic: Topic,
    repo: Repo,
    issue: Option<IssueId>,
    news: News,
    named: BTreeSet<UserId>,
    concerned: BTreeSet<UserId>,
    /// Accounts that take part in a thread that came by nostr, each with the reason for telling it.
    taking_part: BTreeMap<UserId, Reason>,
}

async fn tell(tx: &mut Tx, forge: &Forge, event: &Numbered) -> Result<(), Fault> {
    let payload: Json = serde_json::from_str(&event.payload)
        .map_err(|error| Fault::Internal(format!("the payload of event {} is no JSON: {error}", event.seq)))?;
    let Some(topic) = topic(event, &payload) else { return Ok(()) };
    let concerned = match topic.subject {
        Subject::Repo => lifecycle::concerned(tx, event, &payload).await?,
        Subject::Issue | Subject::NostrThread => Vec::new(),
    };
    lifecycle::mail(tx, forge, event, &payload, &concerned).await?;
    let repo = match event.repo {
        Some(id) => repos::by_id(tx, id, None).await?,
        None => None,
    };
    // Of what is gone, or deleted for now, nobody may read anything in their inbox.
    let Some(repo) = repo.filter(|repo| repo.deleted_at.is_none()) else { return Ok(()) };
    let scene = scene(tx, forge, event, topic, repo, &payload, concerned).await?;
    if scene.tell_everyone(tx).await? {
        jobs::enqueue(tx, Kind::NotifyMail, json!({}), Some(event.seq.to_string())).await?;
    }
    Ok(())
}

/// The topic of an event. Threads that came by nostr have the same event kinds; their source tells them apart.
fn topic(event: &Numbered, payload: &Json) -> Option<Topic> {
    let topic = notify::topic(&event.kind, lifecycle::role(payload))?;
    Some(match (topic.subject, event.source_kind.as_str()) {
        (Subject::Issue, tell::SOURCE) => Topic { subject: Subject::NostrThread, ..topic },
        _ => topic,
    })
}

async fn scene<'a>(
    tx: &mut Tx,
    forge: &Forge,
    event: &'a Numbered,
    topic: Topic,
    repo: Repo,
    payload: &Json,
    concerned: Vec<UserId>,
) -> Result<Scene<'a>, Fault> {
    let issue = match topic.subject {
        Subject::Issue => Some(IssueId::new(event.source_id)),
        Subject::NostrThread | Subject::Repo => None,
    };
    let subject_id = match topic.subject {
        Subject::Issue | Subject::NostrThread => event.source_id,
        Subject::Repo => repo.id.get(),
    };
    let about = About { repo: repo.id, subject: topic.subject, subject_id };
    let title = match topic.subject {
        // Inbox and mail read the thread's own title.
        Subject::Issue | Subject::NostrThread => String::new(),
        Subject::Repo => lifecycle::title(&event.kind, payload),
    };
    let news = News {
        thread: notifications::thread(tx, &about).await?,
        title,
        seq: event.seq,
        private: !event.public,
        window: forge.settings().attention.mail_window,
    };
    let taking_part = match topic.subject {
        Subject::NostrThread => taking_part(tx, event.source_id).await?,
        Subject::Issue | Subject::Repo => BTreeMap::new(),
    };
    let concerned = concerned.into_iter().collect();
    Ok(Scene { event, topic, repo, issue, news, named: named(topic, payload), concerned, taking_part })
}

/// Accounts that began a thread that came by nostr or commented on it.
async fn taking_part(tx: &mut Tx, root: i64) -> Result<BTreeMap<UserId, Reason>, StoreError> {
    let found = nostr_news::participants(tx, root, PAGE).await?;
    let reason = |began| if began { Reason::Author } else { Reason::Comment };
    Ok(found.into_iter().map(|(user, began)| (user, reason(began))).collect())
}

/// Whom an event names.
fn named(topic: Topic, payload: &Json) -> BTreeSet<UserId> {
    let one = |field: &str| payload[field].as_i64().map(UserId::new).into_iter().collect();
    match topic.naming {
        Reason::Mention => {
            let all = payload["mentions"].as_array().into_iter().flatten();
            all.filter_map(Json::as_i64).map(UserId::new).collect()
        }
        Reason::Assign => one("assignee_id"),
        Reason::ReviewRequested => one("reviewer_id"),
        _ => BTreeSet::new(),
    }
}

impl Scene<'_> {
    /// Goes through everyone whom it may concern. `true` if someone is to be told by mail too.
    async fn tell_everyone(&self, tx: &mut Tx) -> Result<bool, StoreError> {
        let (repo, thread) = (self.repo.id, self.news.thread);
        let few = self.named.iter().chain(&self.concerned).chain(self.taking_part.keys());
        let few: Vec<_> = few.copied().collect::<BTreeSet<_>>().into_iter().collect();
        let people = notifications::people(tx, repo, self.issue, thread, &few).await?;
        let mut mailed = self.tell_some(tx, &people).await?;
        if !matches!(self.topic.audience, Audience::Everyone | Audience::ConcernedAndWatchers) {
            return Ok(mailed);
        }
        let mut after = UserId::new(0);
        loop {
            let page = notifications::crowd(tx, repo, self.issue, thread, after, PAGE).await?;
            mailed |= self.tell_some(tx, &page).await?;
            failpoint::hit(failpoint::NOTIFY_HALFWAY);
            match page.last() {
                Some(last) if page.len() as i64 == PAGE => after = last.id,
                _ => return Ok(mailed),
            }
        }
    }

    /// Asks the rule about some people and writes a row for those who are told.
    async fn tell_some(&self, tx: &mut Tx, people: &[Candidate]) -> Result<bool, StoreError> {
        let mut told: BTreeMap<(Reason, bool), Vec<UserId>> = BTreeMap::new();
        for candidate in people {
            if let Some(reason) = notify::told(self.topic, &self.person(candidate)) {
                let shown = reason.over(candidate.unread);
                told.entry((shown, reason.is_mailed())).or_default().push(candidate.id);
            }
        }
        let mut mailed = false;
        for ((reason, mail), people) in told {
            // What happens to their own repository, which is mailed by itself, is never out of their sight.
            let private = self.news.private && mail;
            let news = News { private, ..self.news.clone() };
            mailed |= notifications::tell(tx, &news, reason, mail, &people).await? > 0 && mail;
        }
        Ok(mailed)
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
