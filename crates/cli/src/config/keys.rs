//! Every setting there is.

use super::value;
use abide_core::account::{Announce, SignUpMode};
use abide_forge::{AllowList, mail};
use std::net::SocketAddr;

/// One setting.
pub(super) struct Key {
    pub name: &'static str,
    pub default: &'static str,
    pub about: &'static str,
    pub check: fn(&str) -> Result<(), String>,
}

impl Key {
    /// The value as it may be shown: addresses may hold passwords.
    pub(super) fn shown(&self, value: &str) -> String {
        match self.name {
            "server.database" | "mail.smtp_url" => value::without_password(value),
            _ => value.to_owned(),
        }
    }
}

const fn key(
    name: &'static str,
    default: &'static str,
    check: fn(&str) -> Result<(), String>,
    about: &'static str,
) -> Key {
    Key { name, default, about, check }
}

fn text(value: &str) -> Result<(), String> {
    if value.is_empty() { Err("it must not be empty".into()) } else { Ok(()) }
}

fn any(_: &str) -> Result<(), String> {
    Ok(())
}

fn address(value: &str) -> Result<(), String> {
    value.parse::<SocketAddr>().map(drop).map_err(|_| "it is an IP address and a port, e.g. 127.0.0.1:7464".into())
}

fn url(value: &str) -> Result<(), String> {
    let rest = value.strip_prefix("http://").or_else(|| value.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) && !value.ends_with('/') => Ok(()),
        _ => Err("it starts with http:// or https:// and has no slash at the end".into()),
    }
}

fn database(value: &str) -> Result<(), String> {
    if value.is_empty() || value.starts_with("postgres://") || value.starts_with("postgresql://") {
        Ok(())
    } else {
        Err("it is empty for SQLite, or starts with postgres://".into())
    }
}

fn networks(value: &str) -> Result<(), String> {
    let bad = value::list(value).find(|text| abide_web::network(text).is_none());
    match bad {
        Some(text) => Err(format!("{text:?} is neither an address such as 10.0.0.1 nor a network such as 10.0.0.0/8")),
        None => Ok(()),
    }
}

fn node(value: &str) -> Result<(), String> {
    let fine = !value.is_empty() && value.len() <= 64 && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if fine { Ok(()) } else { Err("it has 1 to 64 letters, digits and hyphens".into()) }
}

fn allowed(value: &str) -> Result<(), String> {
    AllowList::parse(value::list(value)).map(drop).map_err(|error| error.to_string())
}

/// A try must end well before its hold on the webhook does.
fn outbound_timeout(value: &str) -> Result<(), String> {
    some_time(value)?;
    match value::duration(value)? > std::time::Duration::from_secs(30) {
        true => Err("it is at most 30s".into()),
        false => Ok(()),
    }
}

fn log_format(value: &str) -> Result<(), String> {
    if ["text", "json"].contains(&value) { Ok(()) } else { Err("it is text or json".into()) }
}

fn duration(value: &str) -> Result<(), String> {
    value::duration(value).map(drop)
}

/// A duration that cannot be zero, because something would then never or always happen.
fn some_time(value: &str) -> Result<(), String> {
    if value::duration(value)?.is_zero() { Err("it must not be zero".into()) } else { Ok(()) }
}

fn bytes(value: &str) -> Result<(), String> {
    value::bytes(value).map(drop)
}

fn some_bytes(value: &str) -> Result<(), String> {
    if value::bytes(value)? == 0 { Err("it must not be zero".into()) } else { Ok(()) }
}

fn truth(value: &str) -> Result<(), String> {
    value.parse::<bool>().map(drop).map_err(|_| "it is true or false".into())
}

fn model(value: &str) -> Result<(), String> {
    if value == "recursive" { Ok(()) } else { Err("the only model is recursive".into()) }
}

fn hex_key(value: &str) -> Result<(), String> {
    let fine = value.len() == 64 && value.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if value.is_empty() || fine { Ok(()) } else { Err("it has 64 hexadecimal digits in lower case".into()) }
}

fn npubs(value: &str) -> Result<(), String> {
    let is_key = |part: &str| abide_nostr::nip19::parse_npub(part.trim()).is_ok();
    let fine = value.is_empty() || value.split(',').all(is_key);
    if fine { Ok(()) } else { Err("it is a list of keys, npub1…, with commas between".into()) }
}

fn number(value: &str) -> Result<(), String> {
    value::number(value).map(drop)
}

fn at_least_one(value: &str) -> Result<(), String> {
    if value::number(value)? == 0 { Err("it is at least 1".into()) } else { Ok(()) }
}

fn percent(value: &str) -> Result<(), String> {
    if value::number(value)? > 100 { Err("it is a percentage, 0 to 100".into()) } else { Ok(()) }
}

/// A window that tries are counted in. Counts are forgotten after a day, so none may be longer.
fn window(value: &str) -> Result<(), String> {
    some_time(value)?;
    if value::duration(value)? > std::time::Duration::from_secs(86_400) {
        return Err("it is at most 1d".into());
    }
    Ok(())
}

fn signup_mode(value: &str) -> Result<(), String> {
    value.parse::<SignUpMode>().map(drop).map_err(|error| error.to_string())
}

fn announce(value: &str) -> Result<(), String> {
    match value {
        "" => Ok(()),
        word => word.parse::<Announce>().map(drop).map_err(|error| error.to_string()),
    }
}

fn share(value: &str) -> Result<(), String> {
    value::share(value).map(drop)
}

fn smtp_url(value: &str) -> Result<(), String> {
    if value.is_empty() { Ok(()) } else { mail::check_smtp_url(value) }
}

/// In the order in which `abide config` shows them.
pub(super) const KEYS: &[Key] = &[
    key("server.data", "./data", text, "Where everything is kept."),
    key("server.database", "", database, "A PostgreSQL address, or empty for SQLite in the data directory."),
    key("server.listen", "127.0.0.1:7464", address, "Where HTTP is served."),
    key("server.ssh_listen", "127.0.0.1:7465", address, "Where SSH is served."),
    key("server.public_url", "http://127.0.0.1:7464", url, "How people and tools reach this server."),
    key(
        "server.public_ssh_url",
        "",
        any,
        "What SSH clone addresses start with; empty: ssh://git@ and the host of public_url with the SSH port.",
    ),
    key("server.node", "main", node, "The name of this server among several on one database."),
    key("server.drain", "30s", duration, "How long a stopping server waits for running work."),
    key(
        "server.trusted_proxies",
        "",
        networks,
        "Proxies whose X-Forwarded-For is believed: addresses or networks, e.g. 127.0.0.1,10.0.0.0/8.",
    ),
    key(
        "server.max_connections",
        "2000",
        at_least_one,
        "HTTP connections at once; further ones may ask for /healthz, /readyz and /metrics only.",
    ),
    key(
        "server.connections_per_ip",
        "200",
        at_least_one,
        "HTTP connections at once from one address (of IPv6: one /64 network), or requests through a trusted proxy.",
    ),
    key("server.body_timeout", "60s", some_time, "How long the body of a request may be silent."),
    key(
        "server.header_timeout",
        "30s",
        some_time,
        "How long a request's head may take, and a kept connection may be silent.",
    ),
    key("server.write_timeout", "60s", some_time, "How long a client may take no byte of its answer."),
    key("server.min_free_percent", "5", percent, "Below this share of free disk space nothing is written."),
    key(
        "server.stranger_free_percent",
        "15",
        percent,
        "Below this share of free disk space nothing is written for clients without an account.",
    ),
    key("database.connections", "8", at_least_one, "Connections to the database."),
    key("database.batch", "64", at_least_one, "Units of work that SQLite commits together at most."),
    key("database.queue", "256", at_least_one, "Units of work that wait for SQLite's writer before callers wait too."),
    key("database.busy_timeout", "10s", some_time, "How long to wait for a connection or another process's lock."),
    key("git.binary", "git", text, "The git program."),
    key("git.max_push", "4GiB", bytes, "Bytes of one push."),
    key("git.max_push_refs", "50000", at_least_one, "Refs one push may change."),
    key("git.idle_timeout", "60s", some_time, "A git client that sends or takes nothing for so long is given up."),
    key("git.min_rate", "1KiB", bytes, "Bytes a second that a git client must send or take while it is waited for."),
    key("git.unpacked", "4GiB", bytes, "Bytes that any push may become when it is unpacked."),
    key("git.stranger_unpacked", "512MiB", bytes, "Bytes that a push without an account may become."),
    key(
        "git.unpacked_ratio",
        "500",
        at_least_one,
        "Bytes that a push may become in addition for each byte of its pack.",
    ),
    key("git.push_timeout", "6h", some_time, "A push that has not arrived as a whole after so long is given up."),
    key(
        "git.unpack_limit",
        "100",
        number,
        "Pushes with fewer objects, of at most 16 MiB together, are stored loose, others as packs.",
    ),
    key("git.lease_wait", "30s", duration, "How long a push waits for another push to the same repository."),
    key("git.lease_ttl", "30s", some_time, "How long a repository stays locked when its server shows no sign of life."),
    key(
        "git.drain_bytes",
        "64MiB",
        bytes,
        "How much of a refused push or fetch is read so that the client gets to read why.",
    ),
    key("git.ref_cache", "500000", number, "Refs kept in memory, over all repositories."),
    key("git.fetches", "32", at_least_one, "Fetches that git works on at once."),
    key("git.queue", "30s", some_time, "How long a fetch, a push or a question about history waits for its turn."),
    key("git.fetches_each", "8", at_least_one, "Fetches at once for one address or account."),
    key("git.receives", "128", at_least_one, "Pushes that arrive at once."),
    key("git.receives_each", "16", at_least_one, "Pushes that arrive at once from one address or account."),
    key("git.unpacks", "4", at_least_one, "Pushes of accounts that are unpacked or checked at once."),
    key("git.stranger_unpacks", "2", at_least_one, "Pushes without an account that are unpacked or checked at once."),
    key("git.heavy", "4", at_least_one, "Forks and maintenance runs at once."),
    key("git.reads", "4", at_least_one, "Blames and histories of a path at once."),
    key("git.reads_each", "2", at_least_one, "Blames and histories of a path at once for one address or account."),
    key("git.memory", "2GiB", bytes, "Memory of one git process, and of all together that unpack pushes of accounts."),
    key("git.stranger_memory", "192MiB", bytes, "Memory of one git process that unpacks a push without an account."),
    key("git.threads", "2", at_least_one, "Threads of one git process."),
    key("ssh.max_connections", "500", at_least_one, "SSH connections at once."),
    key("ssh.per_ip", "50", at_least_one, "SSH connections at once from one address."),
    key("ssh.per_minute", "600", at_least_one, "SSH connections a minute from one address."),
    key("ssh.handshake_timeout", "20s", some_time, "How long logging in may take."),
    key("ssh.idle_timeout", "10m", some_time, "How long an SSH connection may be silent."),
    key("repos.per_user", "1000", at_least_one, "Repositories one account may own."),
    key("repos.create_limit_per_hour", "500", at_least_one, "Repositories and forks one account makes in an hour."),
    key("repos.search_scan", "50000", at_least_one, "Repositories one search looks through, the latest changes first."),
    key("lifecycle.grace", "7d", duration, "How long a deleted repository can be restored."),
    key("lifecycle.transfer_ttl", "7d", some_time, "How long an offer to hand a repository over can be answered."),
    key("lifecycle.rename_limit", "5", number, "How often a repository can be renamed in lifecycle.rename_window."),
    key("lifecycle.rename_window", "30d", some_time, "How long renames count."),
    key(
        "lifecycle.sweep_interval",
        "5m",
        some_time,
        "How often offers expire and deleted repositories past their grace are removed.",
    ),
    key("attention.star_limit_per_hour", "100", at_least_one, "Stars one account gives and takes back in an hour."),
    key(
        "attention.watch_limit_per_hour",
        "100",
        at_least_one,
        "How often one account chooses what to be told in an hour.",
    ),
    key("attention.follow_limit_per_hour", "100", at_least_one, "People one account follows or stops to in an hour."),
    key(
        "attention.mails_to_one_per_hour",
        "5",
        at_least_one,
        "Mails that one account causes to one other in an hour by offers and as a collaborator; the inbox has the rest.",
    ),
    key("attention.event_tries", "5", at_least_one, "How often a consumer tries an event before it is set aside."),
    key(
        "attention.event_retention",
        "400d",
        some_time,
        "How long the log of events is kept; what a consumer has not taken in is kept longer.",
    ),
    key(
        "attention.mail_window",
        "10m",
        duration,
        "One mail at most about one thread to one person in so long; what happens meanwhile is told in the next.",
    ),
    key("api.rate_limit_per_hour", "15000", number, "Requests to the API in an hour, of one account; 0 for no limit."),
    key(
        "api.anonymous_rate_limit_per_hour",
        "3600",
        number,
        "Requests to the API in an hour without a token, from one address; 0 for no limit.",
    ),
    key("api.rate_limit_tracked", "100000", at_least_one, "Accounts and addresses whose requests are counted apart."),
    key("api.streams", "200", at_least_one, "Clients that may listen to the stream of events at once."),
    key("api.streams_each", "20", at_least_one, "How many of them may be of one account or address."),
    key("browse.entries", "20000", at_least_one, "Entries of one directory that are shown."),
    key("browse.compare_commits", "250", at_least_one, "Commits that a comparison lists."),
    key("browse.walk", "1000000", at_least_one, "Commits that one request looks at."),
    key("browse.last_commits_time", "2s", some_time, "How long a request looks for the last change of each file."),
    key("browse.heavy", "4", at_least_one, "Walks through history and comparisons at once."),
    key("browse.heavy_each", "2", at_least_one, "Walks and comparisons at once for one address or account."),
    key("browse.cache", "48MiB", bytes, "Directories, logs and comparisons kept in memory."),
    key("browse.open_repos", "128", at_least_one, "Repositories whose indexes are kept open."),
    key("signup.mode", "invite", signup_mode, "Who may make an account for themselves: open, closed or invite."),
    key("signup.per_ip", "20", at_least_one, "Sign-ups from one address in signup.window."),
    key("signup.window", "1h", window, "How long sign-ups are counted."),
    key("signup.invite_ttl", "7d", some_time, "How long an invitation can be accepted."),
    key("signup.open_invites", "1000", at_least_one, "Invitations that may wait to be accepted."),
    key(
        "signup.setup_ttl",
        "7d",
        some_time,
        "How long the link that makes the first admin works; a restart prints another.",
    ),
    key("login.per_account", "10", at_least_one, "Wrong passwords for one account from one address in login.window."),
    key("login.per_ip", "50", at_least_one, "Wrong logins from one address in login.window."),
    key("login.second_factor", "10", at_least_one, "Wrong second factors for one account in login.window."),
    key("login.window", "15m", window, "How long wrong logins are counted."),
    key("login.hashes", "4", at_least_one, "Passwords that are hashed at once; each takes 19 MiB and a core."),
    key("login.hashes_waiting", "64", number, "Passwords that may wait for that; more are asked to come back."),
    key("session.ttl", "30d", some_time, "How long a login lasts that is not used."),
    key("session.per_user", "50", at_least_one, "Logins one account may have; the one unused for longest ends."),
    key("reset.per_ip", "20", at_least_one, "New passwords asked for from one address in reset.window."),
    key("reset.per_email", "3", at_least_one, "New passwords asked for by one e-mail address in reset.window."),
    key("reset.window", "1h", window, "How long that is counted."),
    key("reset.ttl", "1h", some_time, "How long the link to a new password works."),
    key("accounts.emails", "10", at_least_one, "Addresses one account may have."),
    key("accounts.old_names", "5", number, "Old names that are kept for one account; another rename is refused."),
    key("accounts.tokens", "200", at_least_one, "Live access tokens one account may have."),
    key("accounts.token_limit_per_hour", "100", at_least_one, "Access tokens one account makes in an hour."),
    key("accounts.ssh_keys", "200", at_least_one, "SSH keys one account may have."),
    key(
        "mail.smtp_url",
        "",
        smtp_url,
        "The mail server, e.g. smtps://user:password@mail.example.org; empty: mails become files in outbox/.",
    ),
    key("mail.from", "Abide <abide@localhost>", mail::check_from, "Who mails are from."),
    key("mail.timeout", "60s", some_time, "How long handing one mail to the mail server may take."),
    key("mail.verify_ttl", "3d", some_time, "How long an address can be verified."),
    key(
        "mail.per_account",
        "10",
        at_least_one,
        "Mails one account can have sent to addresses of its own in mail.window.",
    ),
    key("mail.window", "1h", window, "How long that is counted."),
    key("issues.body_bytes", "64KiB", bytes, "Bytes of the text of an issue or a comment."),
    key("issues.comments_per_issue", "10000", at_least_one, "Comments one issue may have."),
    key("issues.labels", "500", at_least_one, "Labels one repository may have."),
    key("issues.labels_per_issue", "100", at_least_one, "Labels one issue may have."),
    key("issues.assignees_per_issue", "10", at_least_one, "People who may be responsible for one issue."),
    key("issues.milestones", "500", at_least_one, "Milestones one repository may have."),
    key("issues.created", "100", at_least_one, "Issues that one account may open in issues.window."),
    key("issues.commented", "500", at_least_one, "Comments that one account may write in issues.window."),
    key("issues.window", "1h", window, "How long that is counted."),
    key("issues.scan", "50000", at_least_one, "Issues that one list or search looks through."),
    key("issues.keyword_commits", "250", number, "Commits of one push that are read for issues they close."),
    key(
        "outbound.allow",
        "",
        allowed,
        "Hosts, addresses and networks that may be sent to although they are not public, e.g. ci.internal,10.0.0.0/8.",
    ),
    key("outbound.connect_timeout", "5s", some_time, "How long looking up and connecting to another server may take."),
    key("outbound.timeout", "10s", outbound_timeout, "How long another server may take to answer."),
    key("outbound.answer_bytes", "16KiB", bytes, "Bytes of another server's answer that are read and kept."),
    key("outbound.at_once", "256", at_least_one, "Conversations with other servers at once."),
    key("webhooks.per_repo", "20", at_least_one, "Webhooks one repository may have."),
    key("webhooks.at_once", "64", at_least_one, "Webhooks that are told something at once."),
    key("webhooks.in_a_row", "50", at_least_one, "Deliveries one webhook sends before others get their turn."),
    key("webhooks.tries", "8", at_least_one, "How often a delivery is tried."),
    key("webhooks.first_pause", "30s", some_time, "The pause after the first try; it doubles with each."),
    key("webhooks.longest_pause", "1h", some_time, "The longest pause between two tries."),
    key("webhooks.failures", "5", at_least_one, "So many deliveries that failed in a row suspend a webhook."),
    key("webhooks.probe", "15m", some_time, "How often a suspended webhook's oldest delivery is tried."),
    key("webhooks.retention", "30d", some_time, "How long deliveries are kept, and wait at most."),
    key("webhooks.refs_per_push", "100", at_least_one, "Refs of one push that are told."),
    key("webhooks.commits", "100", at_least_one, "Commits of one ref that are told."),
    key(
        "webhooks.payload_bytes",
        "1MiB",
        bytes,
        "Bytes of a payload with commits; beyond, files and commits are left out.",
    ),
    key(
        "grasp.enabled",
        "true",
        truth,
        "Whether repositories are taken from nostr: announced there, ruled by what is signed.",
    ),
    key(
        "grasp.purgatory_expiry",
        "30m",
        some_time,
        "How long an event waits for its git data, and git data for its event.",
    ),
    key(
        "grasp.after_push",
        "15m",
        some_time,
        "Minimum lifetime left to a state in purgatory after a push it authorises.",
    ),
    key("grasp.expired_memory", "7d", some_time, "How long it is remembered that something waited in vain."),
    key("grasp.per_key", "100", at_least_one, "Entries of one key that may wait."),
    key("grasp.per_address", "500", at_least_one, "Entries from one address that may wait."),
    key("grasp.entries", "20000", at_least_one, "Entries that may wait altogether."),
    key("grasp.waiting_bytes", "512MiB", some_bytes, "Bytes of events that may wait altogether."),
    key("grasp.maintainers", "recursive", model, "Who maintains: recursive counts whom maintainers list themselves."),
    key("grasp.maintainer_steps", "8", at_least_one, "How far from the owner a maintainer may be listed."),
    key("grasp.maintainers_at_most", "200", at_least_one, "Maintainers of one repository that count."),
    key("grasp.unsigned_per_address", "1GiB", some_bytes, "Bytes of commits without an event from one address."),
    key("grasp.unsigned_total", "10GiB", some_bytes, "Bytes of commits without an event altogether."),
    key(
        "grasp.announce",
        "",
        announce,
        "Who may announce new repositories by nostr: open (everyone), linked (keys of accounts with a username) or off \
         (keys in grasp.allow only). Empty: open where signup.mode is open, linked elsewhere.",
    ),
    key(
        "grasp.allow",
        "",
        npubs,
        "Keys that may announce repositories whatever grasp.announce says, as npub1… with commas between.",
    ),
    key("grasp.deny", "", npubs, "These keys may not announce repositories, as npub1… with commas between."),
    key("quota.key_events", "20000", at_least_one, "Events that a key without a named account may store."),
    key("quota.key_bytes", "64MiB", some_bytes, "Bytes of events that a key without a named account may store."),
    key("quota.key_repos", "20", at_least_one, "Repositories that a key without a named account may announce."),
    key("quota.key_repo_bytes", "1GiB", some_bytes, "Bytes of git data that a key without a named account may push."),
    key(
        "quota.address_bytes_per_day",
        "512MiB",
        some_bytes,
        "Bytes that one address (IPv6: one /64 network) may send in a day for keys without a named account.",
    ),
    key(
        "quota.address_repos_per_day",
        "200",
        at_least_one,
        "Repositories that may be announced from one address (IPv6: one /64 network) in a day by keys without a named \
         account.",
    ),
    key(
        "quota.strangers_bytes",
        "20%",
        share,
        "Bytes of all keys without a named account together: a size, or a share of the disk.",
    ),
    key("quota.strangers_repos", "20000", at_least_one, "Repositories of all keys without a named account together."),
    key("relay.enabled", "true", truth, "Whether nostr events are taken and served, at the address of the front page."),
    key("relay.name", "Abide", text, "What the relay calls itself."),
    key("relay.description", "Git repositories with nostr events around them.", any, "What the relay says it is for."),
    key("relay.contact", "", any, "How to reach whoever runs the relay, e.g. mailto:admin@example.org."),
    key("relay.pubkey", "", hex_key, "The nostr key of whoever runs the relay, in hexadecimal."),
    key(
        "relay.acceptance",
        "",
        any,
        "Text of repo_acceptance_criteria in NIP-11. Empty: a text that follows grasp.enabled and grasp.announce.",
    ),
    key("relay.curation", "", any, "Text of curation in NIP-11. Empty: a text that follows grasp.deny."),
    key("relay.message_bytes", "1MiB", some_bytes, "Bytes of one message to the relay."),
    key("relay.event_bytes", "256KiB", some_bytes, "Bytes of one event."),
    key("relay.state_bytes", "1048560", some_bytes, "Bytes of one event that names all refs of a repository."),
    key("relay.event_tags", "20000", at_least_one, "Tags of one event."),
    key("relay.deletion_targets", "500", at_least_one, "Events and coordinates that one deletion request names."),
    key("relay.proposal_repos", "20", at_least_one, "Repositories that one patch or pull request is for."),
    key("relay.subscriptions", "500", at_least_one, "Subscriptions of one connection."),
    key("relay.filters", "20", at_least_one, "Filters of one subscription."),
    key("relay.filter_values", "5000", at_least_one, "Values of one filter, all its lists together."),
    key("relay.subscribed_values", "50000", at_least_one, "Values of all filters that one connection listens by."),
    key("relay.filter_limit", "500", at_least_one, "Stored events that one filter returns."),
    key("relay.ahead", "15m", some_time, "How far ahead of our clock an event may be dated."),
    key("relay.events_under_way", "1000", at_least_one, "Events of one connection that wait for their answer."),
    key("relay.reconciled_events", "100000", at_least_one, "Events in one reconciliation (NIP-77)."),
    key("relay.connections", "2000", at_least_one, "Connections to the relay at once."),
    key("relay.connections_per_ip", "50", at_least_one, "Connections to the relay from one address."),
    key("relay.events_per_ip", "6000", at_least_one, "Events that one address may publish in relay.window."),
    key("relay.window", "1m", window, "How long that is counted."),
    key("relay.queue_bytes", "64MiB", some_bytes, "Bytes of events that are being taken in; beyond, senders wait."),
    key("relay.batch", "256", at_least_one, "Events that are judged and stored together."),
    key("relay.outgoing", "1000", at_least_one, "New events that may wait for one reader, who is cut off beyond that."),
    key("relay.reads", "6", at_least_one, "Questions of the relay's readers that the database answers at once."),
    key("relay.counted", "100000", at_least_one, "Events that are counted for one filter (NIP-45)."),
    key("relay.ping", "30s", some_time, "How often clients of the relay are asked whether they are there."),
    key("relay.idle_timeout", "2m", some_time, "A client of the relay that is silent for so long is gone."),
    key("jobs.workers", "2", at_least_one, "Jobs that run at once."),
    key("jobs.poll", "1s", some_time, "How often logs and jobs are looked at without a hint."),
    key("jobs.history", "30d", some_time, "How long ended jobs and pushes are kept."),
    key("log.format", "text", log_format, "text or json."),
    key("log.filter", "info,sqlx=warn,russh=warn", text, "What is logged, e.g. info or abide_forge=debug,info."),
];
