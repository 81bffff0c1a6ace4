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
    value.parse::<SocketAddr>().map(drop).map_err(|_| "it must be an IP address and a port, e.g. 127.0.0.1:7464".into())
}

fn url(value: &str) -> Result<(), String> {
    let rest = value.strip_prefix("http://").or_else(|| value.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) && !value.ends_with('/') => Ok(()),
        _ => Err("it must start with http:// or https:// and have no slash at the end".into()),
    }
}

fn database(value: &str) -> Result<(), String> {
    if value.is_empty() || value.starts_with("postgres://") || value.starts_with("postgresql://") {
        Ok(())
    } else {
        Err("it must be empty for SQLite, or start with postgres://".into())
    }
}

fn networks(value: &str) -> Result<(), String> {
    let bad = value::list(value).find(|text| abide_web::network(text).is_none());
    match bad {
        Some(text) => Err(format!("{text:?} is not an IP address such as 10.0.0.1 or a network such as 10.0.0.0/8")),
        None => Ok(()),
    }
}

fn node(value: &str) -> Result<(), String> {
    let fine = !value.is_empty() && value.len() <= 64 && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if fine { Ok(()) } else { Err("it must have 1 to 64 letters, digits and hyphens".into()) }
}

fn allowed(value: &str) -> Result<(), String> {
    AllowList::parse(value::list(value)).map(drop).map_err(|error| error.to_string())
}

/// A try must end well before its hold on the webhook does.
fn outbound_timeout(value: &str) -> Result<(), String> {
    some_time(value)?;
    match value::duration(value)? > std::time::Duration::from_secs(30) {
        true => Err("it must be at most 30s".into()),
        false => Ok(()),
    }
}

fn log_format(value: &str) -> Result<(), String> {
    if ["text", "json"].contains(&value) { Ok(()) } else { Err("it must be text or json".into()) }
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
    value.parse::<bool>().map(drop).map_err(|_| "it must be true or false".into())
}

fn model(value: &str) -> Result<(), String> {
    if value == "recursive" { Ok(()) } else { Err("it must be recursive, the only model".into()) }
}

fn hex_key(value: &str) -> Result<(), String> {
    let fine = value.len() == 64 && value.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if value.is_empty() || fine { Ok(()) } else { Err("it must have 64 lowercase hexadecimal digits".into()) }
}

fn npubs(value: &str) -> Result<(), String> {
    let is_key = |part: &str| abide_nostr::nip19::parse_npub(part.trim()).is_ok();
    let fine = value.is_empty() || value.split(',').all(is_key);
    if fine { Ok(()) } else { Err("it must be a comma-separated list of keys (npub1…)".into()) }
}

fn number(value: &str) -> Result<(), String> {
    value::number(value).map(drop)
}

fn at_least_one(value: &str) -> Result<(), String> {
    if value::number(value)? == 0 { Err("it must be at least 1".into()) } else { Ok(()) }
}

fn percent(value: &str) -> Result<(), String> {
    if value::number(value)? > 100 { Err("it must be a percentage, 0 to 100".into()) } else { Ok(()) }
}

/// A window that tries are counted in. Counts are forgotten after a day, so none may be longer.
fn window(value: &str) -> Result<(), String> {
    some_time(value)?;
    if value::duration(value)? > std::time::Duration::from_secs(86_400) {
        return Err("it must be at most 1d".into());
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
    key("server.data", "./data", text, "Data directory."),
    key("server.database", "", database, "PostgreSQL URL. Empty: SQLite in the data directory."),
    key("server.listen", "127.0.0.1:7464", address, "IP address and port for HTTP."),
    key("server.ssh_listen", "127.0.0.1:7465", address, "IP address and port for SSH."),
    key(
        "server.public_url",
        "http://127.0.0.1:7464",
        url,
        "Public URL of this server, used in links and clone addresses.",
    ),
    key(
        "server.public_ssh_url",
        "",
        any,
        "Prefix of SSH clone URLs. Empty: ssh://git@, the host of public_url and the SSH port.",
    ),
    key("server.node", "main", node, "Name of this node. Nodes that share a database need different names."),
    key("server.drain", "30s", duration, "Time that a stopping server waits for running requests and jobs."),
    key(
        "server.trusted_proxies",
        "",
        networks,
        "Proxies whose X-Forwarded-For is trusted: IP addresses or networks, e.g. 127.0.0.1,10.0.0.0/8.",
    ),
    key(
        "server.max_connections",
        "2000",
        at_least_one,
        "Maximum concurrent HTTP connections. Beyond it, only /healthz, /readyz and /metrics are served.",
    ),
    key(
        "server.connections_per_ip",
        "200",
        at_least_one,
        "Maximum concurrent HTTP connections per IP address (IPv6: per /64 network), or requests behind a trusted proxy.",
    ),
    key("server.body_timeout", "60s", some_time, "Idle timeout while a request body is received."),
    key(
        "server.header_timeout",
        "30s",
        some_time,
        "Timeout for request headers, and idle timeout of keep-alive connections.",
    ),
    key(
        "server.write_timeout",
        "60s",
        some_time,
        "Timeout for a client that reads less than 1 KiB per second of its response.",
    ),
    key(
        "server.min_free_percent",
        "5",
        percent,
        "Free disk space (blocks and inodes) below which all writes are refused, in percent.",
    ),
    key(
        "server.stranger_free_percent",
        "15",
        percent,
        "Free disk space below which writes of clients without an account are refused, in percent.",
    ),
    key("database.connections", "8", at_least_one, "Maximum database connections."),
    key("database.batch", "64", at_least_one, "Maximum transactions that SQLite commits together."),
    key(
        "database.queue",
        "256",
        at_least_one,
        "Maximum transactions queued for SQLite's writer; beyond it, callers wait.",
    ),
    key(
        "database.busy_timeout",
        "10s",
        some_time,
        "Timeout for a database connection or for a lock of another process.",
    ),
    key("git.binary", "git", text, "Path of the git program."),
    key("git.max_push", "4GiB", bytes, "Maximum size of one push."),
    key("git.max_push_refs", "50000", at_least_one, "Maximum refs per push."),
    key("git.idle_timeout", "60s", some_time, "Idle timeout of a git client."),
    key("git.min_rate", "1KiB", bytes, "Minimum transfer rate of a git client, in bytes per second."),
    key("git.unpacked", "4GiB", bytes, "Unpacked bytes allowed for every push; git.unpacked_ratio adds to it."),
    key(
        "git.stranger_unpacked",
        "512MiB",
        bytes,
        "Unpacked bytes allowed for a push without an account; git.unpacked_ratio adds to it.",
    ),
    key("git.unpacked_ratio", "500", at_least_one, "Additional unpacked bytes allowed per byte of the pack."),
    key("git.push_timeout", "6h", some_time, "Maximum duration of receiving one push."),
    key(
        "git.unpack_limit",
        "100",
        number,
        "Pushes with fewer objects (and at most 16 MiB) are stored as loose objects, others as packs.",
    ),
    key("git.lease_wait", "30s", duration, "Time that a push waits for another push to the same repository."),
    key("git.lease_ttl", "30s", some_time, "Lifetime of a repository lease whose holder no longer renews it."),
    key(
        "git.drain_bytes",
        "64MiB",
        bytes,
        "Bytes of a refused push or fetch that are read, so that the client sees the error.",
    ),
    key("git.ref_cache", "500000", number, "Maximum refs cached in memory, over all repositories."),
    key("git.fetches", "32", at_least_one, "Maximum concurrent fetches."),
    key("git.queue", "30s", some_time, "Time that a fetch, push or history query waits for a free slot."),
    key("git.fetches_each", "8", at_least_one, "Maximum concurrent fetches per IP address or account."),
    key("git.receives", "128", at_least_one, "Maximum pushes received concurrently."),
    key("git.receives_each", "16", at_least_one, "Maximum pushes received concurrently per IP address or account."),
    key("git.unpacks", "4", at_least_one, "Maximum pushes of accounts unpacked or checked concurrently."),
    key(
        "git.stranger_unpacks",
        "2",
        at_least_one,
        "Maximum pushes without an account unpacked or checked concurrently.",
    ),
    key("git.heavy", "4", at_least_one, "Maximum concurrent forks and maintenance runs."),
    key("git.reads", "4", at_least_one, "Maximum concurrent blames and file histories."),
    key("git.reads_each", "2", at_least_one, "Maximum concurrent blames and file histories per IP address or account."),
    key(
        "git.memory",
        "2GiB",
        bytes,
        "Memory limit of one git process, and of all processes together that unpack pushes of accounts.",
    ),
    key(
        "git.stranger_memory",
        "192MiB",
        bytes,
        "Memory limit of a git process that unpacks a push without an account.",
    ),
    key("git.threads", "2", at_least_one, "Threads per git process."),
    key("ssh.max_connections", "500", at_least_one, "Maximum concurrent SSH connections."),
    key("ssh.per_ip", "50", at_least_one, "Maximum concurrent SSH connections per IP address."),
    key("ssh.per_minute", "600", at_least_one, "New SSH connections per IP address per minute."),
    key("ssh.handshake_timeout", "20s", some_time, "Timeout for SSH authentication."),
    key("ssh.idle_timeout", "10m", some_time, "Idle timeout of an SSH connection."),
    key("repos.per_user", "1000", at_least_one, "Maximum repositories per account."),
    key("repos.create_limit_per_hour", "500", at_least_one, "Repositories and forks created per account per hour."),
    key(
        "repos.search_scan",
        "50000",
        at_least_one,
        "Maximum repositories scanned per search, most recently changed first.",
    ),
    key("lifecycle.grace", "7d", duration, "Grace period in which a deleted repository can be restored."),
    key("lifecycle.transfer_ttl", "7d", some_time, "Expiry of a transfer offer."),
    key("lifecycle.rename_limit", "5", number, "Renames per repository in lifecycle.rename_window."),
    key("lifecycle.rename_window", "30d", some_time, "Window for lifecycle.rename_limit."),
    key(
        "lifecycle.sweep_interval",
        "5m",
        some_time,
        "Interval of the sweep that expires transfer offers and deletes repositories past their grace period.",
    ),
    key("attention.star_limit_per_hour", "100", at_least_one, "Stars and unstars per account per hour."),
    key("attention.watch_limit_per_hour", "100", at_least_one, "Changes of watch level per account per hour."),
    key("attention.follow_limit_per_hour", "100", at_least_one, "Follows and unfollows per account per hour."),
    key(
        "attention.mails_to_one_per_hour",
        "5",
        at_least_one,
        "Mails per hour from one account to one other about transfers and new collaborators. The inbox gets all of them.",
    ),
    key(
        "attention.event_tries",
        "5",
        at_least_one,
        "Attempts of a consumer at an event before the event is marked as failed.",
    ),
    key(
        "attention.event_retention",
        "400d",
        some_time,
        "Retention of the event log. Events that a consumer has not processed yet are kept longer.",
    ),
    key(
        "attention.mail_window",
        "10m",
        duration,
        "Minimum time between two mails about one thread to one person; later events are collected in the next mail.",
    ),
    key("api.rate_limit_per_hour", "15000", number, "API requests per account per hour. 0: no limit."),
    key(
        "api.anonymous_rate_limit_per_hour",
        "3600",
        number,
        "API requests without a token per IP address per hour. 0: no limit.",
    ),
    key(
        "api.rate_limit_tracked",
        "100000",
        at_least_one,
        "Maximum accounts and IP addresses whose API requests are counted separately.",
    ),
    key("api.streams", "200", at_least_one, "Maximum concurrent event streams."),
    key("api.streams_each", "20", at_least_one, "Maximum concurrent event streams per account or IP address."),
    key("browse.entries", "20000", at_least_one, "Maximum directory entries shown."),
    key("browse.compare_commits", "250", at_least_one, "Maximum commits listed in a comparison."),
    key("browse.walk", "1000000", at_least_one, "Maximum commits visited per request."),
    key(
        "browse.last_commits_time",
        "2s",
        some_time,
        "Time limit for finding the last commit of each file in a directory.",
    ),
    key("browse.heavy", "4", at_least_one, "Maximum concurrent history walks and comparisons."),
    key(
        "browse.heavy_each",
        "2",
        at_least_one,
        "Maximum concurrent history walks and comparisons per IP address or account.",
    ),
    key("browse.cache", "48MiB", bytes, "Memory for cached directories, logs and comparisons."),
    key("browse.open_repos", "128", at_least_one, "Maximum repositories whose pack indexes stay open."),
    key(
        "signup.mode",
        "invite",
        signup_mode,
        "Who may sign up: open (everyone), invite (with an invitation) or closed (no one).",
    ),
    key("signup.per_ip", "20", at_least_one, "Sign-ups per IP address in signup.window."),
    key("signup.window", "1h", window, "Window for signup.per_ip."),
    key("signup.invite_ttl", "7d", some_time, "Expiry of an invitation."),
    key("signup.open_invites", "1000", at_least_one, "Maximum open invitations."),
    key(
        "signup.setup_ttl",
        "7d",
        some_time,
        "Expiry of the link that creates the first administrator. A restart prints a new one.",
    ),
    key("login.per_account", "10", at_least_one, "Wrong passwords per account and IP address in login.window."),
    key("login.per_ip", "50", at_least_one, "Failed sign-ins per IP address in login.window."),
    key("login.second_factor", "10", at_least_one, "Wrong two-factor codes per account in login.window."),
    key("login.window", "15m", window, "Window for the login limits."),
    key("login.hashes", "4", at_least_one, "Maximum passwords hashed concurrently. Each takes 19 MiB and one core."),
    key(
        "login.hashes_waiting",
        "64",
        number,
        "Maximum passwords queued for hashing; beyond it, sign-ins are refused with a retry hint.",
    ),
    key("session.ttl", "30d", some_time, "Expiry of an unused session."),
    key(
        "session.per_user",
        "50",
        at_least_one,
        "Maximum sessions per account. Beyond it, the least recently used session ends.",
    ),
    key("reset.per_ip", "20", at_least_one, "Password resets requested per IP address in reset.window."),
    key("reset.per_email", "3", at_least_one, "Password resets requested per e-mail address in reset.window."),
    key("reset.window", "1h", window, "Window for reset.per_ip and reset.per_email."),
    key("reset.ttl", "1h", some_time, "Expiry of a password reset link."),
    key("accounts.emails", "10", at_least_one, "Maximum e-mail addresses per account."),
    key("accounts.old_names", "5", number, "Maximum old names reserved per account. Beyond it, renames are refused."),
    key("accounts.tokens", "200", at_least_one, "Maximum active access tokens per account."),
    key("accounts.token_limit_per_hour", "100", at_least_one, "Access tokens created per account per hour."),
    key("accounts.ssh_keys", "200", at_least_one, "Maximum SSH keys per account."),
    key(
        "mail.smtp_url",
        "",
        smtp_url,
        "SMTP server, e.g. smtps://user:password@mail.example.org. Empty: mails are written to outbox/.",
    ),
    key("mail.from", "Abide <abide@localhost>", mail::check_from, "Sender of all mails."),
    key("mail.timeout", "60s", some_time, "Timeout for sending one mail."),
    key("mail.verify_ttl", "3d", some_time, "Expiry of an e-mail verification link."),
    key(
        "mail.per_account",
        "10",
        at_least_one,
        "Mails that an account may have sent to its own addresses in mail.window.",
    ),
    key("mail.window", "1h", window, "Window for mail.per_account."),
    key("issues.body_bytes", "64KiB", bytes, "Maximum size of an issue or comment text."),
    key("issues.comments_per_issue", "10000", at_least_one, "Maximum comments per issue."),
    key("issues.labels", "500", at_least_one, "Maximum labels per repository."),
    key("issues.labels_per_issue", "100", at_least_one, "Maximum labels per issue."),
    key("issues.assignees_per_issue", "10", at_least_one, "Maximum assignees per issue."),
    key("issues.milestones", "500", at_least_one, "Maximum milestones per repository."),
    key("issues.created", "100", at_least_one, "Issues opened per account in issues.window."),
    key("issues.commented", "500", at_least_one, "Comments written per account in issues.window."),
    key("issues.window", "1h", window, "Window for issues.created and issues.commented."),
    key("issues.scan", "50000", at_least_one, "Maximum issues scanned per list or search."),
    key("issues.keyword_commits", "250", number, "Maximum commits of one push that are searched for closing keywords."),
    key(
        "outbound.allow",
        "",
        allowed,
        "Hosts, IP addresses and networks that may be contacted although they are not public, e.g. ci.internal,10.0.0.0/8.",
    ),
    key("outbound.connect_timeout", "5s", some_time, "Timeout for DNS lookup and connection of outbound requests."),
    key("outbound.timeout", "10s", outbound_timeout, "Timeout for the response to an outbound request."),
    key("outbound.answer_bytes", "16KiB", bytes, "Maximum bytes of an outbound response that are read and stored."),
    key("outbound.at_once", "256", at_least_one, "Maximum concurrent outbound requests."),
    key("webhooks.per_repo", "20", at_least_one, "Maximum webhooks per repository."),
    key("webhooks.at_once", "64", at_least_one, "Maximum webhooks that deliver concurrently."),
    key("webhooks.in_a_row", "50", at_least_one, "Deliveries of one webhook before other webhooks get their turn."),
    key("webhooks.tries", "8", at_least_one, "Attempts per delivery."),
    key("webhooks.first_pause", "30s", some_time, "Delay before the first retry. It doubles with each retry."),
    key("webhooks.longest_pause", "1h", some_time, "Maximum delay between two attempts."),
    key("webhooks.failures", "5", at_least_one, "Failed deliveries in a row that suspend a webhook."),
    key("webhooks.probe", "15m", some_time, "Interval at which a suspended webhook retries its oldest delivery."),
    key("webhooks.retention", "30d", some_time, "Retention of deliveries, including queued ones."),
    key("webhooks.refs_per_push", "100", at_least_one, "Maximum refs of one push that are delivered."),
    key("webhooks.commits", "100", at_least_one, "Maximum commits per ref in a payload."),
    key(
        "webhooks.payload_bytes",
        "1MiB",
        bytes,
        "Maximum size of a payload with commits. Beyond it, files and commits are omitted.",
    ),
    key("grasp.enabled", "true", truth, "Accept repositories over nostr (GRASP), governed by signed events."),
    key(
        "grasp.purgatory_expiry",
        "30m",
        some_time,
        "Expiry of events waiting for git data, and of git data waiting for an event.",
    ),
    key(
        "grasp.after_push",
        "15m",
        some_time,
        "Minimum lifetime left to a state in purgatory after a push it authorises.",
    ),
    key("grasp.expired_memory", "7d", some_time, "How long expired entries are remembered."),
    key("grasp.per_key", "100", at_least_one, "Maximum entries in purgatory per key."),
    key("grasp.per_address", "500", at_least_one, "Maximum entries in purgatory per IP address."),
    key("grasp.entries", "20000", at_least_one, "Maximum entries in purgatory."),
    key("grasp.waiting_bytes", "512MiB", some_bytes, "Maximum size of all events in purgatory."),
    key(
        "grasp.maintainers",
        "recursive",
        model,
        "Maintainer model. recursive: maintainers listed by maintainers count too.",
    ),
    key("grasp.maintainer_steps", "8", at_least_one, "Maximum distance of a maintainer from the owner."),
    key("grasp.maintainers_at_most", "200", at_least_one, "Maximum maintainers per repository."),
    key("grasp.unsigned_per_address", "1GiB", some_bytes, "Maximum size of commits without an event per IP address."),
    key("grasp.unsigned_total", "10GiB", some_bytes, "Maximum size of all commits without an event."),
    key(
        "grasp.announce",
        "",
        announce,
        "Who may announce new repositories over nostr: open (everyone), linked (keys of accounts with a user name) or off \
         (only keys in grasp.allow). Empty: open if signup.mode is open, otherwise linked.",
    ),
    key("grasp.allow", "", npubs, "Keys that may always announce repositories: comma-separated npub1… keys."),
    key("grasp.deny", "", npubs, "Keys that may never announce repositories: comma-separated npub1… keys."),
    key("quota.key_events", "20000", at_least_one, "Maximum events per key without a named account."),
    key("quota.key_bytes", "64MiB", some_bytes, "Maximum size of events per key without a named account."),
    key("quota.key_repos", "20", at_least_one, "Maximum repositories per key without a named account."),
    key("quota.key_repo_bytes", "1GiB", some_bytes, "Maximum size of git data per key without a named account."),
    key(
        "quota.address_bytes_per_day",
        "512MiB",
        some_bytes,
        "Maximum bytes per day from one IP address (IPv6: /64 network) for keys without a named account.",
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
        "Maximum bytes of all keys without a named account together: a size, or a share of the disk.",
    ),
    key("quota.strangers_repos", "20000", at_least_one, "Repositories of all keys without a named account together."),
    key("relay.enabled", "true", truth, "Run a nostr relay at the public URL."),
    key("relay.name", "Abide", text, "Name of the relay (NIP-11)."),
    key(
        "relay.description",
        "Git repositories with nostr events around them.",
        any,
        "Description of the relay (NIP-11).",
    ),
    key("relay.contact", "", any, "Contact of the relay operator (NIP-11), e.g. mailto:admin@example.org."),
    key("relay.pubkey", "", hex_key, "Nostr public key of the relay operator (NIP-11), in hexadecimal."),
    key(
        "relay.acceptance",
        "",
        any,
        "Text of repo_acceptance_criteria in NIP-11. Empty: a text that follows grasp.enabled and grasp.announce.",
    ),
    key("relay.curation", "", any, "Text of curation in NIP-11. Empty: a text that follows grasp.deny."),
    key("relay.message_bytes", "1MiB", some_bytes, "Maximum size of one message to the relay."),
    key("relay.event_bytes", "256KiB", some_bytes, "Maximum size of one event."),
    key("relay.state_bytes", "1048560", some_bytes, "Maximum size of one repository state event (kind 30618)."),
    key("relay.event_tags", "20000", at_least_one, "Maximum tags per event."),
    key("relay.deletion_targets", "500", at_least_one, "Maximum events and coordinates per deletion request."),
    key("relay.proposal_repos", "20", at_least_one, "Maximum repositories per patch or pull request."),
    key("relay.subscriptions", "500", at_least_one, "Maximum subscriptions per connection."),
    key("relay.filters", "20", at_least_one, "Maximum filters per subscription."),
    key("relay.filter_values", "5000", at_least_one, "Maximum values per filter, over all its lists."),
    key("relay.subscribed_values", "50000", at_least_one, "Maximum values in all filters of one connection."),
    key("relay.filter_limit", "500", at_least_one, "Maximum stored events returned per filter."),
    key("relay.ahead", "15m", some_time, "Maximum time that created_at of an event may be in the future."),
    key("relay.events_under_way", "1000", at_least_one, "Maximum events of one connection that are being processed."),
    key(
        "relay.reconciled_events",
        "100000",
        at_least_one,
        "Maximum events in all reconciliations (NIP-77) of one connection.",
    ),
    key("relay.connections", "2000", at_least_one, "Maximum concurrent relay connections."),
    key("relay.connections_per_ip", "50", at_least_one, "Maximum concurrent relay connections per IP address."),
    key("relay.events_per_ip", "6000", at_least_one, "Events published per IP address in relay.window."),
    key("relay.window", "1m", window, "Window for relay.events_per_ip."),
    key(
        "relay.queue_bytes",
        "64MiB",
        some_bytes,
        "Maximum size of events being processed, a quarter of it per network; senders wait, then get rate-limited.",
    ),
    key("relay.batch", "256", at_least_one, "Maximum events checked and stored together."),
    key(
        "relay.outgoing",
        "1000",
        at_least_one,
        "Maximum new events queued per subscriber; beyond it, the subscriber is disconnected.",
    ),
    key("relay.reads", "6", at_least_one, "Maximum concurrent relay queries to the database."),
    key("relay.counted", "100000", at_least_one, "Maximum events counted per filter (NIP-45)."),
    key("relay.ping", "30s", some_time, "Interval of pings to relay clients."),
    key("relay.idle_timeout", "2m", some_time, "Idle timeout of a relay connection."),
    key("jobs.workers", "2", at_least_one, "Maximum concurrent background jobs."),
    key("jobs.poll", "1s", some_time, "Polling interval for jobs and the event log."),
    key("jobs.history", "30d", some_time, "Retention of ended jobs and pushes."),
    key("log.format", "text", log_format, "Log format: text or json."),
    key("log.filter", "info,sqlx=warn,russh=warn", text, "Log filter, e.g. info or abide_forge=debug,info."),
];
