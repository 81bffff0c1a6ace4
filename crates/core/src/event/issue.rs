//! Details of events about issues, pull requests, labels and milestones.
//!
//! No text that people wrote is in here: the log outlives what they remove or edit, so readers take titles and texts from
//! the live rows.

use crate::issues::Reason;
use crate::words::words;
use crate::{CommentId, IssueId, LabelId, MilestoneId, UserId};
use serde::{Deserialize, Serialize};

/// Issues of this site and threads that came by nostr have the same kinds of events, with different details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Origin<T> {
    Nostr(NostrAddition),
    Local(T),
}

impl<T> Origin<T> {
    pub fn nostr(&self) -> Option<&NostrAddition> {
        match self {
            Self::Nostr(addition) => Some(addition),
            Self::Local(_) => None,
        }
    }
}

/// A nostr event that adds to a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NostrAddition {
    /// Id of the first event of the thread, in hexadecimal.
    pub thread: String,
    /// Id of the event that was added.
    pub event: String,
    /// Row number of the event that was added.
    pub said: i64,
    /// Key that signed it, as npub.
    pub author: String,
    /// Accounts that its text mentions.
    #[serde(default)]
    pub mentions: Vec<UserId>,
}

/// The issue that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueRef {
    pub issue_id: IssueId,
    pub number: i64,
    /// `None` if the account is gone.
    pub author_id: Option<UserId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueOpened {
    #[serde(flatten)]
    pub issue: IssueRef,
    #[serde(default)]
    pub mentions: Vec<UserId>,
}

words! {
    /// A text of an issue.
    IssueField {
        Title = "title",
        Body = "body",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueEdited {
    #[serde(flatten)]
    pub issue: IssueRef,
    #[serde(default)]
    pub changed: Vec<IssueField>,
    /// Accounts that the new text mentions and the old one did not.
    #[serde(default)]
    pub mentions: Vec<UserId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueState {
    #[serde(flatten)]
    pub issue: IssueRef,
    pub reason: Option<Reason>,
    /// Commit whose message closed the issue.
    pub commit: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueAssignee {
    #[serde(flatten)]
    pub issue: IssueRef,
    pub assignee: String,
    pub assignee_id: UserId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueLabel {
    #[serde(flatten)]
    pub issue: IssueRef,
    /// Missing in rows of the first version, which had the label's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_id: Option<LabelId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueMilestone {
    #[serde(flatten)]
    pub issue: IssueRef,
    /// Missing in rows of the first version, which had the milestone's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone_id: Option<MilestoneId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commented {
    #[serde(flatten)]
    pub issue: IssueRef,
    pub comment_id: CommentId,
    /// Accounts that the text mentions; after an edit, only those that it did not mention before.
    #[serde(default)]
    pub mentions: Vec<UserId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentDeleted {
    #[serde(flatten)]
    pub issue: IssueRef,
    pub comment_id: CommentId,
    pub comment_author_id: Option<UserId>,
    pub comment_author: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRequested {
    #[serde(flatten)]
    pub issue: IssueRef,
    pub reviewer: String,
    pub reviewer_id: UserId,
}

/// A label of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_id: Option<LabelId>,
}

/// A milestone of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Milestone {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
}
