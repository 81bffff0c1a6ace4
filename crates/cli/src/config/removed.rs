//! Settings of earlier versions that are constants. A file or an environment that still names one gets a notice instead
//! of an error, so that an upgrade does not stop the server.

use super::Source;

/// Names of settings that earlier versions had.
pub(super) const REMOVED: &[&str] = &[
    "accounts.emails",
    "accounts.old_names",
    "api.rate_limit_tracked",
    "attention.event_tries",
    "browse.compare_commits",
    "browse.entries",
    "browse.heavy",
    "browse.heavy_each",
    "browse.last_commits_time",
    "browse.open_repos",
    "browse.walk",
    "database.batch",
    "database.queue",
    "git.drain_bytes",
    "git.heavy",
    "git.min_rate",
    "git.reads",
    "git.reads_each",
    "git.ref_cache",
    "git.stranger_memory",
    "git.stranger_unpacks",
    "git.unpacked_ratio",
    "grasp.maintainer_steps",
    "grasp.maintainers_at_most",
    "issues.assignees_per_issue",
    "issues.comments_per_issue",
    "issues.keyword_commits",
    "issues.labels",
    "issues.labels_per_issue",
    "issues.milestones",
    "issues.scan",
    "jobs.poll",
    "login.hashes",
    "login.hashes_waiting",
    "outbound.answer_bytes",
    "outbound.at_once",
    "relay.ahead",
    "relay.batch",
    "relay.deletion_targets",
    "relay.event_tags",
    "relay.events_under_way",
    "relay.filter_limit",
    "relay.filter_values",
    "relay.proposal_repos",
    "relay.queue_bytes",
    "relay.reads",
    "relay.state_bytes",
    "repos.search_scan",
    "signup.open_invites",
    "signup.setup_ttl",
    "webhooks.at_once",
    "webhooks.commits",
    "webhooks.first_pause",
    "webhooks.in_a_row",
    "webhooks.longest_pause",
    "webhooks.payload_bytes",
    "webhooks.probe",
    "webhooks.refs_per_push",
];

/// The notice about a removed setting; `None` if the name never was one.
pub(super) fn notice(name: &str, source: &Source) -> Option<String> {
    let removed = REMOVED.contains(&name);
    removed.then(|| format!("{name} ({source}) is fixed in this version; its value is ignored, remove it"))
}
