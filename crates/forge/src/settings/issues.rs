//! Issues, comments, labels and milestones.

use super::Rate;
use abide_core::settings::{bytes, count, window};
use std::time::Duration;

abide_core::settings! {
    /// Issues, comments, labels and milestones.
    #[derive(Debug, Clone)]
    pub struct IssueSettings in "issues" {
        /// Maximum size of an issue or comment text.
        body_bytes: usize = "64KiB", bytes(..);
        /// Issues opened per account in issues.window.
        created: i64 = "100", count(1..);
        /// Comments written per account in issues.window.
        commented: i64 = "500", count(1..);
        /// Window for issues.created and issues.commented.
        window: Duration = "1h", window;
    }
    with {
        comments_per_issue: i64 = 10_000;
        /// Labels per repository.
        labels: i64 = 500;
        labels_per_issue: usize = 100;
        assignees_per_issue: usize = 10;
        /// Milestones per repository.
        milestones: i64 = 500;
        /// Issues scanned per list or search.
        scan: i64 = 50_000;
        /// Commits of one push that are searched for closing keywords.
        keyword_commits: usize = 250;
    }
}

impl IssueSettings {
    /// Limit of `issues.created`.
    pub fn creation(&self) -> Rate {
        Rate { times: self.created, window: self.window }
    }

    /// Limit of `issues.commented`.
    pub fn commenting(&self) -> Rate {
        Rate { times: self.commented, window: self.window }
    }
}
