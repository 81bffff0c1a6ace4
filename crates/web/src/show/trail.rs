//! What the audit log says about a repository, in words.

use serde_json::Value as Json;

/// What was done, in words; `None` if this version has no words for it.
pub(crate) fn told(action: &str, meta: &str) -> Option<String> {
    let meta: Json = serde_json::from_str(meta).unwrap_or_default();
    let text = |field: &str| meta[field].as_str().unwrap_or("?").to_owned();
    Some(match action {
        "push" => pushed(&meta),
        "repo_created" => format!("Created as {}, {}", text("slug"), text("visibility")),
        "repo_forked" => format!("Forked from {}", text("source")),
        "repo_edited" => edited(&meta),
        "repo_topics_changed" => match listed(&meta["after"]) {
            none if none.is_empty() => "Topics removed".to_owned(),
            topics => format!("Topics changed to {topics}"),
        },
        "repo_renamed" => format!("Renamed from {} to {}", text("old_name"), text("new_name")),
        "repo_archived" => "Archived".to_owned(),
        "repo_unarchived" => "Unarchived".to_owned(),
        "repo_visibility_changed" => format!("Made {}", text("after")),
        "repo_soft_deleted" => "Deleted".to_owned(),
        "repo_restored" if meta["old_name"] != meta["new_name"] => {
            format!("Restored as {}, formerly {}", text("new_name"), text("old_name"))
        }
        "repo_restored" => "Restored".to_owned(),
        "repo_hard_deleted" => "Deleted permanently".to_owned(),
        "repo_transfer_requested" => format!("Transfer offered to {}", text("to")),
        "repo_transfer_accepted" => format!("Transferred from {} to {}", text("from"), text("to")),
        "repo_transfer_declined" => format!("Transfer from {} declined", text("from")),
        "repo_transfer_canceled" => format!("Transfer to {} cancelled", text("to")),
        "repo_redirect_released" => format!("Old name {} released", text("old_name")),
        "collaborator_added" => format!("{} added with the {} role", text("user"), text("after")),
        "collaborator_changed" => {
            format!("Role of {} changed from {} to {}", text("user"), text("before"), text("after"))
        }
        "collaborator_removed" => format!("{} removed, formerly with the {} role", text("user"), text("before")),
        "webhook_created" => format!("Webhook to {} added", text("host")),
        "webhook_edited" => format!("Webhook to {} changed", text("host")),
        "webhook_deleted" => format!("Webhook to {} deleted", text("host")),
        "webhook_suspended" => format!("Webhook to {} suspended: too many deliveries failed in a row", text("host")),
        "webhook_resumed" => format!("Webhook to {} resumed", text("host")),
        _ => return None,
    })
}

fn pushed(meta: &Json) -> String {
    const NAMED: usize = 3;
    let push = &meta["push"];
    let refs = push["refs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let short = |entry: &Json| {
        let name = entry["name"].as_str().unwrap_or("?");
        name.trim_start_matches("refs/heads/").trim_start_matches("refs/tags/").to_owned()
    };
    let named: Vec<String> = refs.iter().take(NAMED).map(short).collect();
    let all = push["ref_count"].as_u64().unwrap_or(refs.len() as u64);
    let others = match all.saturating_sub(named.len() as u64) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    format!("Pushed {}{others} over {}", named.join(", "), meta["transport"].as_str().unwrap_or("?").to_uppercase())
}

/// Rows of older versions hold both descriptions; others say only that it changed.
fn edited(meta: &Json) -> String {
    let (before, after) = (&meta["before"], &meta["after"]);
    let changed = |field: &str| before[field] != after[field];
    let described = meta["description_changed"] == true || changed("description");
    match (described, changed("default_branch")) {
        (_, true) => {
            let short = |branch: &Json| branch.as_str().unwrap_or("?").trim_start_matches("refs/heads/").to_owned();
            let also = if described { ", description changed" } else { "" };
            let (from, to) = (short(&before["default_branch"]), short(&after["default_branch"]));
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
            assert_eq!(told(action, meta).as_deref(), Some(expected));
        }
        assert_eq!(told("repo_renamed", "nonsense").as_deref(), Some("Renamed from ? to ?"));
        assert_eq!(told("something_else", "{}"), None);
    }
}
