//! Details of timeline entries, as they are stored: names at the time of the change.

use super::Reason;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The kind of an entry decides the variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Detail {
    Label(LabelDetail),
    Milestone(MilestoneDetail),
    Assignee(AssigneeDetail),
    Title(TitleDetail),
    State(StateDetail),
    Commit(CommitDetail),
    /// Entries without a detail, and details that this version cannot read.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelDetail {
    pub label: LabelThen,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelThen {
    pub color: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MilestoneDetail {
    pub milestone: MilestoneThen,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MilestoneThen {
    pub title: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssigneeDetail {
    pub assignee: String,
    pub assignee_id: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleDetail {
    pub from: String,
    pub to: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateDetail {
    pub state_reason: Option<Reason>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitDetail {
    /// First line of the commit message.
    pub subject: String,
}

impl Detail {
    /// Reads the stored detail of an entry of that kind.
    pub fn read(kind: &str, stored: &Json) -> Self {
        fn read<'de, T: Deserialize<'de>>(stored: &'de Json, variant: fn(T) -> Detail) -> Detail {
            T::deserialize(stored).map_or(Detail::None, variant)
        }
        match kind {
            "labeled" | "unlabeled" => read(stored, Self::Label),
            "milestoned" | "demilestoned" => read(stored, Self::Milestone),
            "assigned" | "unassigned" => read(stored, Self::Assignee),
            "renamed" => read(stored, Self::Title),
            "closed" | "reopened" => read(stored, Self::State),
            "referenced" => read(stored, Self::Commit),
            _ => Self::None,
        }
    }

    /// JSON that is stored.
    pub fn stored(&self) -> Json {
        serde_json::to_value(self).expect("texts and numbers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_reads_what_is_stored_and_stores_it_unchanged() {
        let label = |kind| (kind, json!({ "label": { "name": "bug", "color": "ff0000" } }));
        let milestone = |kind| (kind, json!({ "milestone": { "title": "1.0" } }));
        let assignee = |kind| (kind, json!({ "assignee": "ann", "assignee_id": 7 }));
        for (kind, stored) in [
            label("labeled"),
            label("unlabeled"),
            milestone("milestoned"),
            milestone("demilestoned"),
            assignee("assigned"),
            assignee("unassigned"),
            ("renamed", json!({ "from": "Tpyo", "to": "Typo" })),
            ("closed", json!({ "state_reason": "not_planned" })),
            ("reopened", json!({ "state_reason": null })),
            ("referenced", json!({ "subject": "Fix it" })),
        ] {
            let read = Detail::read(kind, &stored);
            assert_ne!(read, Detail::None, "{kind}");
            assert_eq!(read.stored(), stored, "{kind}");
        }
    }

    #[test]
    fn a_detail_that_cannot_be_read_is_none() {
        assert_eq!(Detail::read("commented", &Json::Null), Detail::None);
        assert_eq!(Detail::read("renamed", &json!({ "from": "a" })), Detail::None);
        assert_eq!(Detail::None.stored(), Json::Null);
    }
}
