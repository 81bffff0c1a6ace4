//! Which domain events become which deliveries, in GitHub's words.

use crate::words::words;

words! {
    /// What a hook can ask for.
    Kind {
        /// Refs moved: one delivery for each.
        Push = "push",
        /// The repository's own life.
        Repository = "repository",
        /// A star was given or taken back.
        Star = "star",
        /// A star was given, under the name that it had before stars had one.
        Watch = "watch",
        /// What happens to issues.
        Issues = "issues",
        /// What is said about them.
        IssueComment = "issue_comment",
        /// Pull requests were opened, updated, closed or reopened.
        PullRequest = "pull_request",
        /// Who works on it.
        Member = "member",
        /// Whether anyone is there. Sent to every hook.
        Ping = "ping",
    }
}

/// One delivery that an event makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Telling {
    /// Which of GitHub's events.
    pub kind: Kind,
    /// What happened; `push` has no such word.
    pub action: Option<&'static str>,
}

const fn telling(kind: Kind, action: &'static str) -> Telling {
    Telling { kind, action: Some(action) }
}

/// What a domain event tells hooks. Some need to look at what it says: `detail` is the word in its payload that decides
/// (the new visibility).
pub fn tellings(event: &str, detail: Option<&str>) -> &'static [Telling] {
    macro_rules! one {
        ($kind:ident, $action:literal) => {
            const { &[telling(Kind::$kind, $action)] as &[Telling] }
        };
    }
    const PUSH: &[Telling] = &[Telling { kind: Kind::Push, action: None }];
    const STAR: &[Telling] = &[telling(Kind::Star, "created"), telling(Kind::Watch, "started")];
    match event {
        "push" => PUSH,
        "repo_created" => one!(Repository, "created"),
        "repo_edited" | "repo_topics_changed" => one!(Repository, "edited"),
        "repo_renamed" => one!(Repository, "renamed"),
        "repo_archived" => one!(Repository, "archived"),
        "repo_unarchived" => one!(Repository, "unarchived"),
        "repo_transfer_accepted" => one!(Repository, "transferred"),
        "repo_visibility_changed" if detail == Some("public") => one!(Repository, "publicized"),
        "repo_visibility_changed" => one!(Repository, "privatized"),
        "repo_soft_deleted" => one!(Repository, "deleted"),
        "repo_restored" => one!(Repository, "restored"),
        "repo_hard_deleted" => one!(Repository, "purged"),
        "star" => STAR,
        "unstar" => one!(Star, "deleted"),
        "collaborator_added" => one!(Member, "added"),
        "collaborator_changed" => one!(Member, "edited"),
        "collaborator_removed" => one!(Member, "removed"),
        "issue_created" => one!(Issues, "opened"),
        "issue_edited" => one!(Issues, "edited"),
        "issue_closed" => one!(Issues, "closed"),
        "issue_reopened" => one!(Issues, "reopened"),
        "issue_assigned" => one!(Issues, "assigned"),
        "issue_unassigned" => one!(Issues, "unassigned"),
        "issue_labeled" => one!(Issues, "labeled"),
        "issue_unlabeled" => one!(Issues, "unlabeled"),
        "issue_milestoned" => one!(Issues, "milestoned"),
        "issue_demilestoned" => one!(Issues, "demilestoned"),
        "pr_opened" => one!(PullRequest, "opened"),
        "pr_synchronized" => one!(PullRequest, "synchronize"),
        "pr_closed" | "pr_merged" => one!(PullRequest, "closed"),
        "pr_reopened" => one!(PullRequest, "reopened"),
        "issue_comment_created" | "pr_comment_created" => one!(IssueComment, "created"),
        "issue_comment_edited" => one!(IssueComment, "edited"),
        "issue_comment_deleted" => one!(IssueComment, "deleted"),
        _ => &[],
    }
}

/// What a hook asked for: some kinds, or everything.
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
        /// What was asked for.
        word: String,
    },
}

fn names() -> String {
    Kinds::choices().map(Kind::as_str).collect::<Vec<_>>().join(", ")
}

impl Kinds {
    /// What a hook gets that does not say.
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

    /// Whether it is asked for. Whoever has a hook is pinged.
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
    fn every_kind_but_ping_comes_from_some_event_and_every_event_is_told_once() {
        let events = [
            "push",
            "repo_created",
            "repo_edited",
            "repo_topics_changed",
            "repo_renamed",
            "repo_archived",
            "repo_unarchived",
            "repo_transfer_accepted",
            "repo_soft_deleted",
            "repo_restored",
            "repo_hard_deleted",
            "star",
            "unstar",
            "collaborator_added",
            "collaborator_changed",
            "collaborator_removed",
            "issue_created",
            "issue_edited",
            "issue_closed",
            "issue_reopened",
            "issue_assigned",
            "issue_unassigned",
            "issue_labeled",
            "issue_unlabeled",
            "issue_milestoned",
            "issue_demilestoned",
            "pr_opened",
            "pr_synchronized",
            "pr_closed",
            "pr_merged",
            "pr_reopened",
            "pr_comment_created",
            "issue_comment_created",
            "issue_comment_edited",
            "issue_comment_deleted",
        ];
        let told: Vec<&Telling> = events.iter().flat_map(|event| tellings(event, None)).collect();
        assert!(events.iter().all(|event| !tellings(event, None).is_empty()));
        for kind in Kinds::choices() {
            assert!(told.iter().any(|telling| telling.kind == kind), "{kind}");
        }
        assert!(!told.iter().any(|telling| telling.kind == Kind::Ping));
        for nobody in ["repo_transfer_requested", "follow", "webhook_created", "user_renamed", ""] {
            assert_eq!(tellings(nobody, None), [], "{nobody}");
        }
    }

    #[test]
    fn a_star_is_told_under_both_of_its_names() {
        assert_eq!(tellings("star", None), [telling(Kind::Star, "created"), telling(Kind::Watch, "started")]);
        assert_eq!(tellings("unstar", None), [telling(Kind::Star, "deleted")]);
    }

    #[test]
    fn a_change_of_visibility_is_told_by_where_it_leads() {
        let action = |detail| tellings("repo_visibility_changed", detail)[0].action;
        assert_eq!(action(Some("public")), Some("publicized"));
        assert_eq!(action(Some("private")), Some("privatized"));
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
