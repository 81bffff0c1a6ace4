//! Webhook events of domain events, in GitHub's words.

use crate::event::Kind as Event;
use crate::repo::Visibility;
use crate::words::words;

words! {
    /// Events that a webhook can subscribe to.
    Kind {
        /// Refs moved: one delivery for each.
        Push = "push",
        /// The repository's own life.
        Repository = "repository",
        /// A star was given or taken back.
        Star = "star",
        /// A star was given, under the name that it had before stars had one.
        Watch = "watch",
        /// Changes of issues.
        Issues = "issues",
        /// Comments on issues.
        IssueComment = "issue_comment",
        /// Pull requests were opened, updated, closed or reopened.
        PullRequest = "pull_request",
        /// Who works on it.
        Member = "member",
        /// Whether anyone is there. Sent to every hook.
        Ping = "ping",
    }
}

/// A webhook event in GitHub's terms: one delivery of a domain event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookEvent {
    pub kind: Kind,
    /// `push` has no action.
    pub action: Option<&'static str>,
}

const fn hook_event(kind: Kind, action: &'static str) -> HookEvent {
    HookEvent { kind, action: Some(action) }
}

/// Webhook events of a domain event. `visibility` is the new one where it changed.
pub fn hook_events(event: Event, visibility: Option<Visibility>) -> &'static [HookEvent] {
    macro_rules! one {
        ($kind:ident, $action:literal) => {
            const { &[hook_event(Kind::$kind, $action)] as &[HookEvent] }
        };
    }
    const PUSH: &[HookEvent] = &[HookEvent { kind: Kind::Push, action: None }];
    const STAR: &[HookEvent] = &[hook_event(Kind::Star, "created"), hook_event(Kind::Watch, "started")];
    match event {
        Event::Push => PUSH,
        Event::RepoCreated => one!(Repository, "created"),
        Event::RepoEdited | Event::RepoTopicsChanged => one!(Repository, "edited"),
        Event::RepoRenamed => one!(Repository, "renamed"),
        Event::RepoArchived => one!(Repository, "archived"),
        Event::RepoUnarchived => one!(Repository, "unarchived"),
        Event::RepoTransferAccepted => one!(Repository, "transferred"),
        Event::RepoVisibilityChanged if visibility == Some(Visibility::Public) => one!(Repository, "publicized"),
        Event::RepoVisibilityChanged => one!(Repository, "privatized"),
        Event::RepoSoftDeleted => one!(Repository, "deleted"),
        Event::RepoRestored => one!(Repository, "restored"),
        Event::RepoHardDeleted => one!(Repository, "purged"),
        Event::Star => STAR,
        Event::Unstar => one!(Star, "deleted"),
        Event::CollaboratorAdded => one!(Member, "added"),
        Event::CollaboratorChanged => one!(Member, "edited"),
        Event::CollaboratorRemoved => one!(Member, "removed"),
        Event::IssueCreated => one!(Issues, "opened"),
        Event::IssueEdited => one!(Issues, "edited"),
        Event::IssueClosed => one!(Issues, "closed"),
        Event::IssueReopened => one!(Issues, "reopened"),
        Event::IssueAssigned => one!(Issues, "assigned"),
        Event::IssueUnassigned => one!(Issues, "unassigned"),
        Event::IssueLabeled => one!(Issues, "labeled"),
        Event::IssueUnlabeled => one!(Issues, "unlabeled"),
        Event::IssueMilestoned => one!(Issues, "milestoned"),
        Event::IssueDemilestoned => one!(Issues, "demilestoned"),
        Event::PrOpened => one!(PullRequest, "opened"),
        Event::PrSynchronized => one!(PullRequest, "synchronize"),
        Event::PrClosed | Event::PrMerged => one!(PullRequest, "closed"),
        Event::PrReopened => one!(PullRequest, "reopened"),
        Event::IssueCommentCreated | Event::PrCommentCreated => one!(IssueComment, "created"),
        Event::IssueCommentEdited => one!(IssueComment, "edited"),
        Event::IssueCommentDeleted => one!(IssueComment, "deleted"),
        // Offers and webhooks are not for receivers; accounts, labels and milestones have no event here yet.
        Event::RepoForked
        | Event::RepoTransferRequested
        | Event::RepoTransferDeclined
        | Event::RepoTransferCanceled
        | Event::RepoTransferExpired
        | Event::RepoRedirectReleased
        | Event::AnnouncementPromoted
        | Event::AnnouncementReplaced
        | Event::Follow
        | Event::ReviewRequested
        | Event::LabelCreated
        | Event::LabelEdited
        | Event::LabelDeleted
        | Event::MilestoneCreated
        | Event::MilestoneEdited
        | Event::MilestoneOpened
        | Event::MilestoneClosed
        | Event::MilestoneDeleted
        | Event::WebhookCreated
        | Event::WebhookEdited
        | Event::WebhookDeleted
        | Event::WebhookSuspended
        | Event::WebhookResumed
        | Event::UserCreated
        | Event::UserRenamed
        | Event::UserDeleted
        | Event::KeyLinked
        | Event::KeyUnlinked => &[],
    }
}

/// Subscription of a webhook: some kinds, or everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinds {
    everything: bool,
    named: Vec<Kind>,
}

/// Stands for every kind, those that are yet to come included.
const EVERYTHING: &str = "*";

/// Why a list of kinds is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KindsError {
    /// Nothing is asked for.
    #[error("must contain at least one event")]
    Nothing,
    /// There is no such event.
    #[error("contains the unknown event {word:?}; use {}, or * for all", names())]
    Unknown {
        /// The unknown word.
        word: String,
    },
}

fn names() -> String {
    Kinds::choices().map(Kind::as_str).collect::<Vec<_>>().join(", ")
}

impl Kinds {
    /// Subscription of a webhook that names no events.
    pub fn usual() -> Self {
        Self { everything: false, named: vec![Kind::Push] }
    }

    /// Everything that can be asked for.
    pub fn choices() -> impl Iterator<Item = Kind> {
        Kind::ALL.iter().copied().filter(|kind| *kind != Kind::Ping)
    }

    /// Reads what was asked for.
    pub fn parse<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> Result<Self, KindsError> {
        let mut kinds = Self { everything: false, named: Vec::new() };
        for word in words {
            match word.as_ref() {
                EVERYTHING => kinds.everything = true,
                word => kinds.named.push(word.parse().map_err(|_| KindsError::Unknown { word: word.to_owned() })?),
            }
        }
        kinds.named.sort_unstable();
        kinds.named.dedup();
        match kinds.everything || !kinds.named.is_empty() {
            true => Ok(kinds),
            false => Err(KindsError::Nothing),
        }
    }

    /// Whether the webhook asks for this kind. Every webhook gets pings.
    pub fn contain(&self, kind: Kind) -> bool {
        self.everything || kind == Kind::Ping || self.named.contains(&kind)
    }

    /// Whether everything is.
    pub fn are_everything(&self) -> bool {
        self.everything
    }

    /// The words that were asked for.
    pub fn words(&self) -> Vec<&'static str> {
        let everything = self.everything.then_some(EVERYTHING);
        everything.into_iter().chain(self.named.iter().map(|kind| kind.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_but_ping_comes_from_some_event() {
        let sent: Vec<&HookEvent> = Event::ALL.iter().flat_map(|event| hook_events(*event, None)).collect();
        for kind in Kinds::choices() {
            assert!(sent.iter().any(|event| event.kind == kind), "{kind}");
        }
        assert!(!sent.iter().any(|event| event.kind == Kind::Ping));
        for silent in [Event::RepoTransferRequested, Event::Follow, Event::WebhookCreated, Event::UserRenamed] {
            assert_eq!(hook_events(silent, None), [], "{silent}");
        }
    }

    #[test]
    fn a_star_is_sent_under_both_of_its_names() {
        let star = [hook_event(Kind::Star, "created"), hook_event(Kind::Watch, "started")];
        assert_eq!(hook_events(Event::Star, None), star);
        assert_eq!(hook_events(Event::Unstar, None), [hook_event(Kind::Star, "deleted")]);
    }

    #[test]
    fn a_change_of_visibility_is_named_after_the_new_one() {
        let action = |visibility| hook_events(Event::RepoVisibilityChanged, Some(visibility))[0].action;
        assert_eq!(action(Visibility::Public), Some("publicized"));
        assert_eq!(action(Visibility::Private), Some("privatized"));
    }

    #[test]
    fn what_a_hook_asks_for_is_a_list_of_known_words() {
        let kinds = Kinds::parse(["star", "push", "push"]).unwrap();
        assert_eq!(kinds.words(), ["push", "star"]);
        assert!(kinds.contain(Kind::Push) && kinds.contain(Kind::Ping) && !kinds.contain(Kind::Watch));
        let all = Kinds::parse(["*"]).unwrap();
        assert!(Kind::ALL.iter().all(|kind| all.contain(*kind)));
        assert_eq!(all.words(), ["*"]);
        assert_eq!(Kinds::parse::<&str>([]), Err(KindsError::Nothing));
        let error = Kinds::parse(["push", "deployment"]).unwrap_err();
        assert_eq!(error, KindsError::Unknown { word: "deployment".into() });
        assert!(error.to_string().contains("push, repository, star"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(words in proptest::collection::vec("[a-z_*]{0,14}|push|star|issues|\\*", 0..6)) {
            if let Ok(kinds) = Kinds::parse(&words) {
                prop_assert_eq!(Kinds::parse(kinds.words()).unwrap(), kinds);
            }
        }
    }
}
