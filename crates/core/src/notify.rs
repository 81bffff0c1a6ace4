//! Who is notified of an event, and why: the one rule for the inbox and for mails.
//!
//! [`topic()`] gives the audience of an event; [`reason`] decides about one person. [`RepoChange`] has the events about a
//! repository itself. Whether someone may see an event is the policy's to say and comes in as [`Sight`].

mod repo_change;
mod topic;

pub use repo_change::RepoChange;
pub use topic::{Audience, Topic, named, topic};

use crate::words::words;
use crate::{Timestamp, WatchLevel};

words! {
    /// Reason of a notification. Where several reasons hold, the one that stands first counts. The words are GitHub's where
    /// it has one: what it calls `subscribed` is watching the repository.
    Reason {
        /// They are asked to review.
        ReviewRequested = "review_requested",
        /// Someone wrote their name.
        Mention = "mention",
        /// They are responsible for it.
        Assign = "assign",
        /// Something happened to a repository that they own, administer, give or are offered.
        Lifecycle = "lifecycle",
        /// They began the thread.
        Author = "author",
        /// They said something in it.
        Comment = "comment",
        /// They asked to hear of it.
        Manual = "manual",
        /// They watch the repository.
        Watching = "subscribed",
    }
}

impl Reason {
    /// Whether it is mailed as a notification, which everyone can turn off. Changes of one's own repositories are always
    /// mailed, separately.
    pub fn is_mailed(self) -> bool {
        self != Self::Lifecycle
    }

    /// Of an earlier reason that has not been read and another one, what stands in the inbox.
    pub fn over(self, unread: Option<Self>) -> Self {
        unread.map_or(self, |earlier| earlier.min(self))
    }
}

words! {
    /// Kind of a thread's subject.
    Subject {
        /// An issue.
        Issue = "issue",
        /// An issue or a PR event that came by nostr.
        NostrThread = "nostr_thread",
        /// The repository itself: its name, its owner, who may read it.
        Repo = "repo",
    }
}

words! {
    /// State of a notification in an inbox.
    State {
        /// They have not seen it.
        Unread = "unread",
        /// They have.
        Read = "read",
        /// They have put it away.
        Done = "done",
    }
}

words! {
    /// Visibility of an event for one person.
    Sight {
        /// Nothing: they may not read the repository.
        Nothing = "nothing",
        /// The repository, but not this event, which happened while it was private.
        Repo = "repo",
        /// The event.
        Event = "event",
    }
}

/// Someone's subscription to a thread, chosen by them or made by their actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Nothing.
    Unsaid,
    /// They hear of it.
    Subscribed(Reason),
    /// They do not want to hear of it.
    Muted,
}

/// Facts about a person that decide whether they are notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// They made it happen.
    pub actor: bool,
    /// Their account is suspended.
    pub suspended: bool,
    pub sight: Sight,
    /// Their watch level of the repository.
    pub level: WatchLevel,
    /// Their subscription to the thread.
    pub hearing: Hearing,
    /// The event names them.
    pub named: bool,
    /// It happened to what is theirs.
    pub concerned: bool,
}

/// Decides whether someone is notified of an event, and for which reason.
///
/// Mentions and review requests notify people although they ignore the repository or muted the
/// thread: someone speaks to them.
pub fn reason(topic: Topic, person: &Person) -> Option<Reason> {
    if person.actor || person.suspended {
        return None;
    }
    let concerned = topic.subject == Subject::Repo && person.concerned;
    let enough = if concerned { Sight::Repo } else { Sight::Event };
    if person.sight < enough {
        return None;
    }
    let named = person.named.then_some(topic.naming);
    if let Some(reason @ (Reason::Mention | Reason::ReviewRequested)) = named {
        return Some(reason);
    }
    if person.level == WatchLevel::Ignore || person.hearing == Hearing::Muted {
        return None;
    }
    let hears = match (topic.audience, person.hearing) {
        (Audience::Everyone, Hearing::Subscribed(why)) => Some(why),
        _ => None,
    };
    let open = matches!(topic.audience, Audience::Everyone | Audience::ConcernedAndWatchers);
    let watches = (open && person.level == WatchLevel::All).then_some(Reason::Watching);
    [named, concerned.then_some(Reason::Lifecycle), hears, watches].into_iter().flatten().min()
}

/// Whether the mail of a notification is still sent: its recipient may see the event, and has neither muted the
/// thread nor ignored the repository since. Earlier choices were weighed when the notification was written.
pub fn still_mailed(notified: Timestamp, sight: Sight, muted: Option<Timestamp>, ignored: Option<Timestamp>) -> bool {
    let since = |said: Option<Timestamp>| said.is_some_and(|at| at > notified);
    sight == Sight::Event && !since(muted) && !since(ignored)
}

#[cfg(test)]
mod tests;
