//! The composition root: builds the use cases from the configuration.

use crate::config::Config;
use crate::failure::Failure;
use abide_core::Random as _;
use abide_core::time::SystemClock;
use abide_forge::accounts::password::Cost;
use abide_forge::{
    AllowList, AttentionSettings, Bounds, Browsing, Caps, Expiry, Forge, GraspSettings, IssueSettings,
    LifecycleSettings, MailSettings, Node, OsRandom, OutboundLimits, OutboundSettings, PeopleSettings, Rate,
    RelayLimits, RelaySettings, Schedule, Settings, SmtpUrl, WebhookSettings, secret,
};
use abide_git::{Git, GitError, GitLimits, Layout};
use abide_nostr::grasp::announcement::Announce;
use abide_nostr::grasp::quota::Quotas;
use abide_store::{Options, Store};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a process is to the others that share its database.
pub(crate) enum Part {
    /// A server, with the addresses that it really listens at.
    Server {
        /// Where HTTP is reached.
        public_url: String,
        /// What SSH clone addresses start with.
        ssh_url: String,
    },
    /// A command beside the servers.
    Command,
}

/// Makes the data directory, if need be, and builds everything on it.
pub(crate) async fn forge(config: &Config, part: Part) -> Result<Forge, Failure> {
    let data = config.path("server.data");
    let server = matches!(part, Part::Server { .. });
    prepare(&data, server)?;
    let data =
        data.canonicalize().map_err(|error| Failure::failed(format!("cannot use {}: {error}", data.display())))?;
    let run = random_hex();
    let node = match server {
        true => Node::server(&data, config.text("server.node"), &run)
            .map_err(|error| Failure::refused(error.to_string()))?,
        false => Node::command(&run),
    };
    let key = secret::load_or_create(&data, &OsRandom).map_err(|error| Failure::failed(error.to_string()))?;
    let layout = Layout::new(&data);
    let unusable = |error: GitError| Failure::failed(error.to_string());
    let git = Git::new(Path::new(config.text("git.binary")), &layout, git_limits(config)).map_err(unusable)?;
    if server {
        git.version().await.map_err(unusable)?;
    }
    let store = Store::open(&store_options(config, &data), Arc::new(SystemClock))
        .await
        .map_err(|error| Failure::failed(error.to_string()))?;
    let settings = settings(config, part);
    Ok(Forge::new(store, git, layout, Arc::new(OsRandom), settings, node, key))
}

/// A command works on what a server made; only a server, or the first command of all, starts from nothing.
fn prepare(data: &Path, server: bool) -> Result<(), Failure> {
    let fresh = !data.exists();
    std::fs::create_dir_all(data)
        .map_err(|error| Failure::failed(format!("cannot create the data directory {}: {error}", data.display())))?;
    if fresh && !server {
        eprintln!("note: created data directory {}; use --data to choose another", data.display());
    }
    for part in ["repos", "incoming"] {
        let path = data.join(part);
        std::fs::create_dir_all(&path)
            .map_err(|error| Failure::failed(format!("cannot create {}: {error}", path.display())))?;
    }
    Ok(())
}

fn random_hex() -> String {
    let mut bytes = [0; 8];
    OsRandom.fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn git_limits(config: &Config) -> GitLimits {
    let number = |name| config.number(name) as usize;
    GitLimits {
        fetches: number("git.fetches"),
        fetches_each: number("git.fetches_each"),
        receives: number("git.receives"),
        receives_each: number("git.receives_each"),
        unpacks: number("git.unpacks"),
        stranger_unpacks: number("git.stranger_unpacks"),
        heavy: number("git.heavy"),
        reads: number("git.reads"),
        reads_each: number("git.reads_each"),
        memory: config.bytes("git.memory"),
        stranger_memory: config.bytes("git.stranger_memory"),
        queue: config.duration("git.queue"),
        pack_threads: number("git.threads"),
        ..GitLimits::default()
    }
}

pub(crate) fn store_options(config: &Config, data: &Path) -> Options {
    let url = config.text("server.database");
    Options {
        url: (!url.is_empty()).then(|| url.to_owned()),
        sqlite_file: data.join("abide.db"),
        connections: config.number("database.connections") as u32,
        batch: config.number("database.batch") as usize,
        queue: config.number("database.queue") as usize,
        busy_timeout: config.duration("database.busy_timeout"),
    }
}

fn settings(config: &Config, part: Part) -> Settings {
    let defaults = Settings::default();
    let (public_url, ssh_url) = match part {
        Part::Server { public_url, ssh_url } => (public_url, ssh_url),
        Part::Command => (config.text("server.public_url").to_owned(), defaults.ssh_url),
    };
    Settings {
        public_url,
        ssh_url,
        repos_per_user: config.number("repos.per_user") as i64,
        repos_made: hourly(config, "repos.create_limit_per_hour"),
        search_scan: config.number("repos.search_scan") as i64,
        max_push_bytes: config.bytes("git.max_push"),
        max_push_commands: config.number("git.max_push_refs") as usize,
        idle_timeout: config.duration("git.idle_timeout"),
        min_rate: config.bytes("git.min_rate"),
        unpacked_bytes: config.bytes("git.unpacked"),
        stranger_unpacked_bytes: config.bytes("git.stranger_unpacked"),
        unpacked_ratio: config.number("git.unpacked_ratio"),
        push_timeout: config.duration("git.push_timeout"),
        unpack_limit: config.number("git.unpack_limit") as u32,
        lease_wait: config.duration("git.lease_wait"),
        lease_ttl: config.duration("git.lease_ttl"),
        drain_bytes: config.bytes("git.drain_bytes"),
        ref_cache_refs: config.number("git.ref_cache") as usize,
        min_free_percent: config.number("server.min_free_percent"),
        stranger_free_percent: config.number("server.stranger_free_percent"),
        job_workers: config.number("jobs.workers") as usize,
        poll_interval: config.duration("jobs.poll"),
        history: config.duration("jobs.history"),
        drain_timeout: config.duration("server.drain"),
        lifecycle: LifecycleSettings {
            grace: config.duration("lifecycle.grace"),
            transfer_ttl: config.duration("lifecycle.transfer_ttl"),
            rename_limit: config.number("lifecycle.rename_limit") as usize,
            rename_window: config.duration("lifecycle.rename_window"),
            sweep_interval: config.duration("lifecycle.sweep_interval"),
        },
        attention: attention(config),
        browse: Browsing {
            entries: config.number("browse.entries") as usize,
            compare_commits: config.number("browse.compare_commits") as usize,
            walk: config.number("browse.walk") as usize,
            last_commits_time: config.duration("browse.last_commits_time"),
            heavy: config.number("browse.heavy") as usize,
            heavy_each: config.number("browse.heavy_each") as usize,
            cache: config.bytes("browse.cache"),
            open_repos: config.number("browse.open_repos") as usize,
            ..Browsing::default()
        },
        signup_mode: config.text("signup.mode").parse().expect("every value was checked when it was read"),
        people: people(config),
        mail: mail(config),
        issues: issues(config),
        webhooks: webhooks(config),
        outbound: outbound(config),
        grasp: grasp(config),
        relay: relay(config),
    }
}

fn issues(config: &Config) -> IssueSettings {
    let number = |name| config.number(name) as i64;
    let rate = |times| Rate { times: number(times), window: config.duration("issues.window") };
    IssueSettings {
        body_bytes: config.bytes("issues.body_bytes") as usize,
        comments_per_issue: number("issues.comments_per_issue"),
        labels: number("issues.labels"),
        labels_per_issue: number("issues.labels_per_issue") as usize,
        assignees_per_issue: number("issues.assignees_per_issue") as usize,
        milestones: number("issues.milestones"),
        created: rate("issues.created"),
        commented: rate("issues.commented"),
        scan: number("issues.scan"),
        keyword_commits: number("issues.keyword_commits") as usize,
    }
}

fn webhooks(config: &Config) -> WebhookSettings {
    let number = |name| config.number(name) as i64;
    WebhookSettings {
        per_repo: number("webhooks.per_repo"),
        schedule: Schedule {
            tries: number("webhooks.tries"),
            first_pause: config.duration("webhooks.first_pause"),
            longest_pause: config.duration("webhooks.longest_pause"),
            failures: number("webhooks.failures"),
            probe: config.duration("webhooks.probe"),
        },
        at_once: number("webhooks.at_once") as usize,
        in_a_row: number("webhooks.in_a_row") as usize,
        retention: config.duration("webhooks.retention"),
        refs_per_push: number("webhooks.refs_per_push") as usize,
        commits: number("webhooks.commits") as usize,
        payload_bytes: config.bytes("webhooks.payload_bytes") as usize,
    }
}

fn outbound(config: &Config) -> OutboundSettings {
    OutboundSettings {
        allow: AllowList::parse(config.list("outbound.allow")).expect("every value was checked when it was read"),
        limits: OutboundLimits {
            connect: config.duration("outbound.connect_timeout"),
            total: config.duration("outbound.timeout"),
            body: config.bytes("outbound.answer_bytes") as usize,
            at_once: config.number("outbound.at_once") as usize,
        },
    }
}

fn grasp(config: &Config) -> GraspSettings {
    let keys = |name| {
        let parts = config.text(name).split(',').map(str::trim);
        parts.filter_map(|part| abide_nostr::nip19::parse_npub(part).ok()).collect()
    };
    GraspSettings {
        enabled: config.text("grasp.enabled") == "true",
        expiry: Expiry {
            entry: config.duration("grasp.purgatory_expiry"),
            after_push: config.duration("grasp.after_push"),
            remembered: config.duration("grasp.expired_memory"),
        },
        caps: Caps {
            per_key: config.number("grasp.per_key"),
            per_address: config.number("grasp.per_address"),
            total: config.number("grasp.entries"),
            bytes: config.bytes("grasp.waiting_bytes"),
        },
        maintainers: Bounds {
            depth: config.number("grasp.maintainer_steps") as usize,
            size: config.number("grasp.maintainers_at_most") as usize,
        },
        limits: Arc::new(relay(config).limits),
        announce: announce(config),
        quotas: Quotas {
            key_events: config.number("quota.key_events"),
            key_bytes: config.bytes("quota.key_bytes"),
            key_repos: config.number("quota.key_repos"),
            key_repo_bytes: config.bytes("quota.key_repo_bytes"),
            address_bytes_per_day: config.bytes("quota.address_bytes_per_day"),
            address_repos_per_day: config.number("quota.address_repos_per_day"),
            strangers_bytes: config.share("quota.strangers_bytes"),
            strangers_repos: config.number("quota.strangers_repos"),
            strangers_free_percent: config
                .number("server.min_free_percent")
                .max(config.number("server.stranger_free_percent")),
        },
        allow: keys("grasp.allow"),
        deny: keys("grasp.deny"),
        unsigned_per_address: config.bytes("grasp.unsigned_per_address"),
        unsigned_total: config.bytes("grasp.unsigned_total"),
    }
}

/// Who may announce: what the operator says, or else what follows from who may sign up.
fn announce(config: &Config) -> Announce {
    let signup = config.text("signup.mode").parse().expect("every value was checked when it was read");
    match config.text("grasp.announce") {
        "" => Announce::default_for(signup, !config.text("grasp.allow").is_empty()),
        word => word.parse().expect("every value was checked when it was read"),
    }
}

fn relay(config: &Config) -> RelaySettings {
    let number = |name| config.number(name) as usize;
    let size = |name| config.bytes(name) as usize;
    RelaySettings {
        enabled: config.text("relay.enabled") == "true",
        name: config.text("relay.name").to_owned(),
        description: config.text("relay.description").to_owned(),
        contact: config.text("relay.contact").to_owned(),
        pubkey: config.text("relay.pubkey").to_owned(),
        acceptance: config.text("relay.acceptance").to_owned(),
        curation: config.text("relay.curation").to_owned(),
        limits: RelayLimits {
            message_bytes: size("relay.message_bytes"),
            event_bytes: size("relay.event_bytes"),
            state_bytes: size("relay.state_bytes"),
            event_tags: number("relay.event_tags"),
            deletion_targets: number("relay.deletion_targets"),
            proposal_repos: number("relay.proposal_repos"),
            subscriptions: number("relay.subscriptions"),
            filters: number("relay.filters"),
            filter_values: number("relay.filter_values"),
            subscribed_values: number("relay.subscribed_values"),
            filter_limit: number("relay.filter_limit"),
            ahead: config.duration("relay.ahead"),
            events_under_way: number("relay.events_under_way"),
            reconciled_events: number("relay.reconciled_events"),
            ..RelayLimits::default()
        },
        connections: number("relay.connections"),
        connections_per_ip: number("relay.connections_per_ip"),
        events_per_ip: Rate { times: number("relay.events_per_ip") as i64, window: config.duration("relay.window") },
        queue_bytes: size("relay.queue_bytes"),
        batch: number("relay.batch"),
        outgoing: number("relay.outgoing"),
        reads: number("relay.reads"),
        counted: number("relay.counted") as i64,
        ping: config.duration("relay.ping"),
        idle_timeout: config.duration("relay.idle_timeout"),
        ..RelaySettings::default()
    }
}

/// Tests run development builds, which alone can be told to hash cheaply.
fn password_cost() -> Cost {
    let cheap = cfg!(debug_assertions) && std::env::var_os("ABIDE_TEST_CHEAP_PASSWORDS").is_some();
    if cheap { Cost::Least } else { Cost::Full }
}

fn people(config: &Config) -> PeopleSettings {
    let number = |name| config.number(name) as i64;
    let rate = |times, window| Rate { times: number(times), window: config.duration(window) };
    PeopleSettings {
        session_ttl: config.duration("session.ttl"),
        sessions_per_user: number("session.per_user"),
        emails_per_user: number("accounts.emails"),
        old_names_per_user: number("accounts.old_names"),
        tokens_per_user: number("accounts.tokens"),
        tokens_made: hourly(config, "accounts.token_limit_per_hour"),
        keys_per_user: number("accounts.ssh_keys"),
        open_invites: number("signup.open_invites"),
        verify_ttl: config.duration("mail.verify_ttl"),
        reset_ttl: config.duration("reset.ttl"),
        invite_ttl: config.duration("signup.invite_ttl"),
        setup_ttl: config.duration("signup.setup_ttl"),
        password_cost: password_cost(),
        hashes_at_once: config.number("login.hashes") as usize,
        hashes_waiting: config.number("login.hashes_waiting") as usize,
        login_per_account: rate("login.per_account", "login.window"),
        login_per_ip: rate("login.per_ip", "login.window"),
        second_factor: rate("login.second_factor", "login.window"),
        signup_per_ip: rate("signup.per_ip", "signup.window"),
        reset_per_ip: rate("reset.per_ip", "reset.window"),
        reset_per_email: rate("reset.per_email", "reset.window"),
        mails_per_account: rate("mail.per_account", "mail.window"),
    }
}

fn hourly(config: &Config, name: &str) -> Rate {
    Rate { times: config.number(name) as i64, window: Duration::from_secs(3600) }
}

fn attention(config: &Config) -> AttentionSettings {
    AttentionSettings {
        stars: hourly(config, "attention.star_limit_per_hour"),
        watches: hourly(config, "attention.watch_limit_per_hour"),
        follows: hourly(config, "attention.follow_limit_per_hour"),
        event_tries: config.number("attention.event_tries") as i64,
        event_retention: config.duration("attention.event_retention"),
        mail_window: config.duration("attention.mail_window"),
        mails_to_one: hourly(config, "attention.mails_to_one_per_hour"),
    }
}

fn mail(config: &Config) -> MailSettings {
    let url = config.text("mail.smtp_url");
    MailSettings {
        smtp_url: (!url.is_empty()).then(|| SmtpUrl(url.to_owned())),
        from: config.text("mail.from").to_owned(),
        timeout: config.duration("mail.timeout"),
    }
}
