//! Stored payloads of deliveries that were not attempted yet.
//!
//! A draft has no text that people wrote, only ids; the fields below are filled in before the first attempt. All other
//! fields are kept as stored (`rest`), because a draft may be older than the running version.

use crate::Fault;
use crate::github::{self, Label};
use abide_store::repos::Repo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

type Rest = Map<String, Json>;

/// Draft of an event without commits, or of a ping.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Draft {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue: Option<IssueDraft>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestDraft>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<CommentDraft>,
    /// Label of `labeled` and `unlabeled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Row>,
    /// Milestone of `milestoned` and `demilestoned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milestone: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesDraft>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryDraft>,
    #[serde(flatten)]
    rest: Rest,
}

/// Draft of a push. Its commits are those that the event names, in case the repository has them no more.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PushDraft {
    #[serde(rename = "ref")]
    pub name: String,
    pub before: String,
    pub after: String,
    pub forced: bool,
    #[serde(default)]
    pub commits: Vec<Commit>,
    pub head_commit: Option<Commit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryDraft>,
    #[serde(flatten)]
    rest: Rest,
}

/// A commit in a payload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Commit {
    pub id: String,
    pub tree_id: String,
    pub distinct: bool,
    pub message: String,
    pub timestamp: String,
    pub url: String,
    pub author: Person,
    pub committer: Person,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub modified: Vec<String>,
}

/// Author or committer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Person {
    pub name: String,
    pub email: String,
    /// Events do not store it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct IssueDraft {
    /// `None` for an issue of nostr.
    pub id: Option<i64>,
    pub title: String,
    pub body: Option<String>,
    pub labels: Vec<Row>,
    pub milestone: Option<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nostr: Option<EventDraft>,
    #[serde(flatten)]
    rest: Rest,
}

/// Pull requests always come by nostr.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PullRequestDraft {
    pub title: String,
    pub body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nostr: Option<EventDraft>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CommentDraft {
    /// `None` for a comment of nostr.
    pub id: Option<i64>,
    pub body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nostr: Option<EventDraft>,
    #[serde(flatten)]
    rest: Rest,
}

/// The event that has the text of an issue, pull request or comment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EventDraft {
    pub id: String,
    #[serde(flatten)]
    rest: Rest,
}

/// A label or milestone: its id in a draft, the whole of it in a complete payload.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Row {
    pub id: Option<i64>,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ChangesDraft {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<TitleChange>,
    #[serde(flatten)]
    rest: Rest,
}

/// Change of a title: its time in a draft, the previous title in a complete payload.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TitleChange {
    /// In microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RepositoryDraft {
    description: Option<String>,
    #[serde(flatten)]
    rest: Rest,
}

impl Draft {
    pub(super) fn parse(stored: &str) -> Result<Self, Fault> {
        parse(stored)
    }
}

impl PushDraft {
    pub(super) fn parse(stored: &str) -> Result<Self, Fault> {
        parse(stored)
    }
}

fn parse<T: DeserializeOwned>(stored: &str) -> Result<T, Fault> {
    serde_json::from_str(stored).map_err(|error| Fault::Internal(format!("a stored payload cannot be read: {error}")))
}

/// The same JSON as another type.
fn reread<T: DeserializeOwned>(shape: &impl Serialize) -> T {
    let json = serde_json::to_value(shape).expect("shapes have text keys and no failing fields");
    serde_json::from_value(json).expect("drafts have the types of the shapes that they are made of")
}

impl IssueDraft {
    /// An issue without its texts, and with ids for its labels and milestone.
    pub(super) fn of(issue: &impl Serialize) -> Self {
        let mut draft: Self = reread(issue);
        draft.title.clear();
        draft.body = None;
        draft.labels.iter_mut().chain(&mut draft.milestone).for_each(|row| row.rest.clear());
        draft
    }
}

impl CommentDraft {
    /// A comment without its text.
    pub(super) fn of(comment: &impl Serialize) -> Self {
        Self { body: String::new(), ..reread(comment) }
    }
}

impl Row {
    pub(super) fn by_id(id: i64) -> Self {
        Self { id: Some(id), rest: Rest::new() }
    }

    pub(super) fn label(label: &Label) -> Self {
        reread(label)
    }

    pub(super) fn milestone(milestone: &github::Milestone) -> Self {
        reread(milestone)
    }
}

impl RepositoryDraft {
    /// Fills in the description.
    pub(super) fn describe(&mut self, repo: &Repo) {
        self.description = Some(repo.description.clone()).filter(|text| !text.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    #[test]
    fn a_draft_of_another_version_is_written_back_as_it_was_stored() {
        for stored in [
            r#"{"action":"opened","issue":{"body":null,"id":7,"labels":[{"id":3}],"later":[1],"milestone":null,"title":""},"repository":{"description":null,"former":{"a":null},"id":1},"sender":{"login":"ann"}}"#,
            r#"{"action":"edited","changes":{"body":{},"title":{"at":5}},"comment":{"body":"","id":null,"nostr":{"id":"e","kind":1}},"later":true}"#,
            r#"{"action":"opened","number":null,"pull_request":{"body":null,"labels":[{"name":"light"}],"nostr":{"id":"e"},"title":""}}"#,
        ] {
            assert_eq!(text(&Draft::parse(stored).unwrap()), stored);
        }
        let stored = r#"{"after":"b","before":"a","commits":[],"forced":false,"head_commit":null,"later":1,"ref":"refs/heads/main"}"#;
        assert_eq!(text(&PushDraft::parse(stored).unwrap()), stored);
        assert!(Draft::parse("[]").is_err());
    }
}
