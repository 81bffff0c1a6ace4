//! What feeds tell of the log of events, and what is popular of late.

use crate::words::words;
use std::time::Duration;

words! {
    /// What feeds tell: whoever may read the repository may learn of these. Other events concern only some of them
    /// (offers, roles), or are noise.
    Told {
        /// A repository was made.
        RepoCreated = "repo_created",
        /// One was made from another.
        RepoForked = "repo_forked",
        /// Something was pushed.
        Push = "push",
        /// A repository was starred.
        Star = "star",
        /// Someone follows someone.
        Follow = "follow",
        /// A repository has another name.
        RepoRenamed = "repo_renamed",
        /// It has another owner.
        RepoTransferred = "repo_transfer_accepted",
        /// It became read-only.
        RepoArchived = "repo_archived",
        /// It is no longer read-only.
        RepoUnarchived = "repo_unarchived",
        /// Others may read it than before.
        RepoVisibilityChanged = "repo_visibility_changed",
        /// It is back.
        RepoRestored = "repo_restored",
        /// An issue was opened.
        IssueCreated = "issue_created",
        /// One was closed.
        IssueClosed = "issue_closed",
        /// One was opened again.
        IssueReopened = "issue_reopened",
        /// Something was said about one.
        IssueCommented = "issue_comment_created",
        /// A pull request or patch was opened.
        PrOpened = "pr_opened",
        /// Something was said about one.
        PrCommented = "pr_comment_created",
        /// One has another commit or patch.
        PrSynchronized = "pr_synchronized",
        /// One was closed.
        PrClosed = "pr_closed",
        /// One was merged.
        PrMerged = "pr_merged",
        /// One was opened again.
        PrReopened = "pr_reopened",
    }
}

/// Whether feeds tell of events of a kind.
pub fn is_told(kind: &str) -> bool {
    kind.parse::<Told>().is_ok()
}

words! {
    /// Over which time something is popular.
    Period {
        /// A day.
        Day = "day",
        /// A week.
        Week = "week",
        /// Thirty days.
        Month = "month",
    }
}

const DAY: Duration = Duration::from_secs(86_400);

impl Period {
    /// How long it is.
    pub fn length(self) -> Duration {
        match self {
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 30 * DAY,
        }
    }
}

/// How much one account's attention is worth by the age that it had then: a row of fresh accounts should not lift a
/// repository above one that people like who have been here for a while. From what age on, and how much.
pub const WEIGHTS: [(Duration, i64); 3] =
    [(Duration::ZERO, 1), (Duration::from_secs(86_400), 4), (Duration::from_secs(7 * 86_400), 10)];

/// What the attention of an account of an age is worth.
pub fn weight(age: Duration) -> i64 {
    WEIGHTS.iter().rev().find(|(from, _)| age >= *from).map_or(0, |(_, weight)| *weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_worth_more_the_older_it_is() {
        let hours = |hours: u64| weight(Duration::from_secs(hours * 3600));
        assert_eq!([hours(0), hours(23), hours(24), hours(167), hours(168), hours(100_000)], [1, 1, 4, 4, 10, 10]);
        assert!(WEIGHTS.is_sorted());
    }

    #[test]
    fn what_concerns_only_some_is_not_told() {
        for kind in
            ["repo_transfer_requested", "collaborator_added", "unstar", "repo_soft_deleted", "user_suspended", ""]
        {
            assert!(!is_told(kind), "{kind}");
        }
        for told in Told::ALL {
            assert!(is_told(told.as_str()));
        }
    }
}
