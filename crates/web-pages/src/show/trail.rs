//! Audit log of a repository as sentences.

use abide_core::audit::Action;
use abide_core::event::{Push, PushedRef};
use serde::Deserialize;
use serde_json::Value as Json;

/// Fields of audit rows that the page shows. Every action has some of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Meta {
    slug: Option<String>,
    visibility: Option<String>,
    source: Option<String>,
    old_name: Option<String>,
    new_name: Option<String>,
    from: Option<String>,
    to: Option<String>,
    user: Option<String>,
    host: Option<String>,
    transport: Option<String>,
    push: Option<Push>,
    description_changed: bool,
    /// A string, a list or an object, depending on the action.
    before: Json,
    after: Json,
}

/// Sentence for an action; `None` for actions on accounts, and for unknown ones.
pub(crate) fn describe(action: &str, meta: &str) -> Option<String> {
    let action: Action = action.parse().ok()?;
    let meta: Meta = serde_json::from_str(meta).unwrap_or_default();
    let text = |field: &Option<String>| field.clone().unwrap_or_else(|| "?".into());
    let word = |field: &Json| field.as_str().unwrap_or("?").to_owned();
    Some(match action {
        Action::Push => pushed(&meta),
        Action::RepoCreated => format!("Created as {}, {}", text(&meta.slug), text(&meta.visibility)),
        Action::RepoForked => format!("Forked from {}", text(&meta.source)),
        Action::RepoEdited => edited(&meta),
        Action::RepoTopicsChanged => match listed(&meta.after) {
            none if none.is_empty() => "Topics removed".to_owned(),
            topics => format!("Topics changed to {topics}"),
        },
        Action::RepoRenamed => format!("Renamed from {} to {}", text(&meta.old_name), text(&meta.new_name)),
        Action::RepoArchived => "Archived".to_owned(),
        Action::RepoUnarchived => "Unarchived".to_owned(),
        Action::RepoVisibilityChanged => format!("Made {}", word(&meta.after)),
        Action::RepoSoftDeleted => "Deleted".to_owned(),
        Action::RepoRestored if meta.old_name != meta.new_name => {
            format!("Restored as {}, formerly {}", text(&meta.new_name), text(&meta.old_name))
        }
        Action::RepoRestored => "Restored".to_owned(),
        Action::RepoHardDeleted => "Deleted permanently".to_owned(),
        Action::RepoTransferRequested => format!("Transfer offered to {}", text(&meta.to)),
        Action::RepoTransferAccepted => format!("Transferred from {} to {}", text(&meta.from), text(&meta.to)),
        Action::RepoTransferDeclined => format!("Transfer from {} declined", text(&meta.from)),
        Action::RepoTransferCanceled => format!("Transfer to {} cancelled", text(&meta.to)),
        Action::RepoRedirectReleased => format!("Old name {} released", text(&meta.old_name)),
        Action::CollaboratorAdded => format!("{} added with the {} role", text(&meta.user), word(&meta.after)),
        Action::CollaboratorChanged => {
            format!("Role of {} changed from {} to {}", text(&meta.user), word(&meta.before), word(&meta.after))
        }
        Action::CollaboratorRemoved => {
            format!("{} removed, formerly with the {} role", text(&meta.user), word(&meta.before))
        }
        Action::WebhookCreated => format!("Webhook to {} added", text(&meta.host)),
        Action::WebhookEdited => format!("Webhook to {} changed", text(&meta.host)),
        Action::WebhookDeleted => format!("Webhook to {} deleted", text(&meta.host)),
        Action::WebhookSuspended => {
            format!("Webhook to {} suspended: too many deliveries failed in a row", text(&meta.host))
        }
        Action::WebhookResumed => format!("Webhook to {} resumed", text(&meta.host)),
        // Shown by their stored name.
        Action::RepoMovedWithKey
        | Action::AnnouncementPromoted
        | Action::AnnouncementReplaced
        | Action::IssueModerated
        | Action::IssueCommentModerated
        | Action::IssueCommentRemoved
        | Action::LabelDeleted
        | Action::MilestoneDeleted => return None,
        // Actions on other subjects than a repository.
        Action::Star
        | Action::Unstar
        | Action::WatchSet
        | Action::Follow
        | Action::Unfollow
        | Action::UserCreated
        | Action::UserRenamed
        | Action::UserDeleted
        | Action::UserSuspended
        | Action::UserUnsuspended
        | Action::UserRedirectReleased
        | Action::AdminGranted
        | Action::AdminTaken
        | Action::ProfileEdited
        | Action::PasswordChanged
        | Action::TotpEnabled
        | Action::TotpDisabled
        | Action::TotpReset
        | Action::RecoveryCodesReplaced
        | Action::EmailAdded
        | Action::EmailVerified
        | Action::EmailRemoved
        | Action::PrimaryEmailChanged
        | Action::KeyLinked
        | Action::KeyUnlinked
        | Action::KeyReadmitted
        | Action::SshKeyAdded
        | Action::SshKeyRemoved
        | Action::TokenCreated
        | Action::TokenRevoked
        | Action::InviteCreated
        | Action::InviteRevoked
        | Action::LoggedIn
        | Action::LoggedOut
        | Action::LoggedOutEverywhere
        | Action::SessionEnded
        | Action::OtherSessionsEnded
        | Action::JobRetried
        | Action::SyncManaged
        | Action::EventRetried
        | Action::EventDropped => return None,
    })
}

fn pushed(meta: &Meta) -> String {
    const NAMED: usize = 3;
    let refs = meta.push.as_ref().map(Push::refs).unwrap_or_default();
    let short =
        |entry: &PushedRef| entry.name.trim_start_matches("refs/heads/").trim_start_matches("refs/tags/").to_owned();
    let named: Vec<String> = refs.iter().take(NAMED).map(short).collect();
    let all = meta.push.as_ref().and_then(|push| push.ref_count).unwrap_or(refs.len() as u64);
    let others = match all.saturating_sub(named.len() as u64) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let transport = meta.transport.as_deref().unwrap_or("?").to_uppercase();
    format!("Pushed {}{others} over {transport}", named.join(", "))
}

/// Settings of a repository before or after an edit. Rows of older versions have the description; others only say that
/// it changed.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Settings {
    description: Option<String>,
    default_branch: Option<String>,
}

fn edited(meta: &Meta) -> String {
    let read = |settings: &Json| Settings::deserialize(settings).unwrap_or_default();
    let (before, after) = (read(&meta.before), read(&meta.after));
    let described = meta.description_changed || before.description != after.description;
    match (described, before.default_branch != after.default_branch) {
        (_, true) => {
            let short =
                |branch: &Option<String>| branch.as_deref().unwrap_or("?").trim_start_matches("refs/heads/").to_owned();
            let also = if described { ", description changed" } else { "" };
            let (from, to) = (short(&before.default_branch), short(&after.default_branch));
            format!("Default branch changed from {from} to {to}{also}")
        }
        (true, false) => "Description changed".to_owned(),
        (false, false) => "Edited".to_owned(),
    }
}

fn listed(words: &Json) -> String {
    let words = words.as_array().map(Vec::as_slice).unwrap_or_default();
    words.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told_in_words() {
        for (action, meta, expected) in [
            ("repo_renamed", r#"{"old_name":"a","new_name":"b"}"#, "Renamed from a to b"),
            ("repo_restored", r#"{"old_name":"a","new_name":"a"}"#, "Restored"),
            ("repo_restored", r#"{"old_name":"a","new_name":"b"}"#, "Restored as b, formerly a"),
            ("repo_visibility_changed", r#"{"before":"public","after":"private"}"#, "Made private"),
            ("repo_topics_changed", r#"{"before":["x"],"after":["y","z"]}"#, "Topics changed to y, z"),
            ("repo_topics_changed", r#"{"before":["x"],"after":[]}"#, "Topics removed"),
            ("repo_transfer_accepted", r#"{"from":"ann","to":"bob"}"#, "Transferred from ann to bob"),
            (
                "push",
                r#"{"transport":"ssh","push":{"ref_count":5,"refs":[{"name":"refs/heads/main"},{"name":"refs/tags/v1"},
                    {"name":"refs/heads/a"},{"name":"refs/heads/b"}]}}"#,
                "Pushed main, v1, a and 2 more over SSH",
            ),
            (
                "repo_edited",
                r#"{"before":{"description":"","default_branch":"refs/heads/a"},
                    "after":{"description":"x","default_branch":"refs/heads/b"}}"#,
                "Default branch changed from a to b, description changed",
            ),
            (
                "repo_edited",
                r#"{"description_changed":true,"before":{"default_branch":"refs/heads/a"},
                    "after":{"default_branch":"refs/heads/a"}}"#,
                "Description changed",
            ),
        ] {
            assert_eq!(describe(action, meta).as_deref(), Some(expected));
        }
        assert_eq!(describe("repo_renamed", "nonsense").as_deref(), Some("Renamed from ? to ?"));
        assert_eq!(describe("something_else", "{}"), None);
    }
}
