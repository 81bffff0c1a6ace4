//! Who is notified of an event, and why: the one rule for the inbox and for mails.
//!
//! [`topic()`] gives the audience of an event; [`told`] decides about one person. [`RepoChange`] has the events about a
//! repository itself. Whether someone may see an event is the policy's to say and comes in as [`Sight`].

mod repo_change;
mod topic;

pub use repo_change::RepoChange;
pub use topic::{Audience, Topic, named, topic};

use crate::words::words;
use crate::{Timestamp, WatchLevel};

words! {
    /// Why someone is told. Where several reasons hold, the one that stands first counts. The words are GitHub's where
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
    /// Whether it is mailed as a notification, which everyone can turn off. What happens to one's own repositories is
    /// mailed by itself, always.
    pub fn is_mailed(self) -> bool {
        self != Self::Lifecycle
    }

    /// Of an earlier reason that has not been read and another one, what stands in the inbox.
    pub fn over(self, unread: Option<Self>) -> Self {
        unread.map_or(self, |earlier| earlier.min(self))
    }
}

words! {
    /// What a thread is about.
    Subject {
        /// An issue.
        Issue = "issue",
        /// An issue or a proposal that came by nostr.
        NostrThread = "nostr_thread",
        /// The repository itself: its name, its owner, who may read it.
        Repo = "repo",
    }
}

words! {
    /// Where something stands in the inbox of someone who was told of it.
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
    /// What someone may see of an event.
    Sight {
        /// Nothing: they may not read the repository.
        Nothing = "nothing",
        /// The repository, but not this event, which happened while it was private.
        Repo = "repo",
        /// The event.
        Event = "event",
    }
}

/// What someone said about a thread, or what followed from what they did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Nothing.
    Unsaid,
    /// They hear of it.
    Subscribed(Reason),
    /// They do not want to hear of it.
    Muted,
}

/// What the decision needs to know of someone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// They made it happen.
    pub actor: bool,
    /// Their account is suspended.
    pub suspended: bool,
    /// What they may see now.
    pub sight: Sight,
    /// How much they want to be told about the repository.
    pub level: WatchLevel,
    /// What holds between them and the thread.
    pub hearing: Hearing,
    /// The event names them.
    pub named: bool,
    /// It happened to what is theirs.
    pub concerned: bool,
}

/// Decides whether someone is told of an event, and why.
///
/// Whom a text names directly, and who is asked to review, hears of it although they ignore the repository or muted the
/// thread: someone speaks to them.
pub fn told(topic: Topic, person: &Person) -> Option<Reason> {
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

/// Whether a mail about something that someone was told still goes out: they may see it, and have neither muted the
/// thread nor ignored the repository since. What they had said before was weighed when they were told.
pub fn still_mailed(told: Timestamp, sight: Sight, muted: Option<Timestamp>, ignored: Option<Timestamp>) -> bool {
    let since = |said: Option<Timestamp>| said.is_some_and(|at| at > told);
    sight == Sight::Event && !since(muted) && !since(ignored)
}

#[cfg(test)]
mod tests;
