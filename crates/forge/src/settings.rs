//! Limits and intervals of the use cases, with their defaults. The command line fills them from the configuration.

use crate::accounts::password::Cost;
use crate::grasp::GraspSettings;
use crate::relay::RelaySettings;
use abide_core::account::SignUpMode;
use abide_core::webhooks::Schedule;
use abide_outbound::{AllowList, Limits};
use std::fmt;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Limits and intervals.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where people and tools reach this server, without a slash at the end.
    pub public_url: String,
    /// What SSH clone addresses start with, without a slash at the end.
    pub ssh_url: String,
    /// Repositories one account may own.
    pub repos_per_user: i64,
    /// Repositories one account makes, forks among them.
    pub repos_made: Rate,
    /// Repositories one search looks through.
    pub search_scan: i64,
    /// Bytes of one push.
    pub max_push_bytes: u64,
    /// Refs one push may change.
    pub max_push_commands: usize,
    /// A client that sends nothing for so long is given up.
    pub idle_timeout: Duration,
    /// Bytes a second that a git client must send or take while it is waited for.
    pub min_rate: u64,
    /// Bytes that any pack may become when it is unpacked.
    pub unpacked_bytes: u64,
    /// The same for a push without an account.
    pub stranger_unpacked_bytes: u64,
    /// Bytes that a pack may become in addition for each of its own.
    pub unpacked_ratio: u64,
    /// A pack that has not arrived as a whole after so long is given up, however steadily it drips.
    pub push_timeout: Duration,
    /// Packs with fewer objects than this become loose objects; others stay packs.
    pub unpack_limit: u32,
    /// How long a push waits for another push to the same repository.
    pub lease_wait: Duration,
    /// How long a lease holds without a sign of life.
    pub lease_ttl: Duration,
    /// How much of a refused push or fetch is read and thrown away, so that the client gets to read why.
    pub drain_bytes: u64,
    /// Refs that may be kept in memory, over all repositories.
    pub ref_cache_refs: usize,
    /// Below this share of free disk space nothing is written any more.
    pub min_free_percent: u64,
    /// Below this share of free disk space strangers write nothing any more.
    pub stranger_free_percent: u64,
    /// Jobs that run at once.
    pub job_workers: usize,
    /// How often logs, jobs and schedules are looked at without a hint.
    pub poll_interval: Duration,
    /// How long ended jobs and pushes are kept.
    pub history: Duration,
    /// How long a stopping server waits for running work.
    pub drain_timeout: Duration,
    /// How a repository's life goes on.
    pub lifecycle: LifecycleSettings,
    /// Stars, watches and follows.
    pub attention: AttentionSettings,
    /// Looking into repositories.
    pub browse: Browsing,
    /// Who may make an account for themselves.
    pub signup_mode: SignUpMode,
    /// Logins, links and what one account may have.
    pub people: PeopleSettings,
    /// How mail is sent.
    pub mail: MailSettings,
    /// How much can be said in issues, and how often.
    pub issues: IssueSettings,
    /// Telling other servers.
    pub webhooks: WebhookSettings,
    /// Going out at all.
    pub outbound: OutboundSettings,
    /// Repositories that signed events rule.
    pub grasp: GraspSettings,
    /// Signed events.
    pub relay: RelaySettings,
}

/// How much can be said in issues, and how often.
#[derive(Debug, Clone)]
pub struct IssueSettings {
    /// Bytes of the text of an issue or a comment.
    pub body_bytes: usize,
    /// Comments one issue may have.
    pub comments_per_issue: i64,
    /// Labels one repository may have.
    pub labels: i64,
    /// Labels one issue may have.
    pub labels_per_issue: usize,
    /// People who may be responsible for one issue.
    pub assignees_per_issue: usize,
    /// Milestones one repository may have.
    pub milestones: i64,
    /// Issues that one account may open.
    pub created: Rate,
    /// Comments that one account may write.
    pub commented: Rate,
    /// Issues that one list looks through.
    pub scan: i64,
    /// Commits of one push that are read for what they close.
    pub keyword_commits: usize,
}

impl Default for IssueSettings {
    fn default() -> Self {
        Self {
            body_bytes: 64 << 10,
            comments_per_issue: 10_000,
            labels: 500,
            labels_per_issue: 100,
            assignees_per_issue: 10,
            milestones: 500,
            created: Rate { times: 100, window: HOUR },
            commented: Rate { times: 500, window: HOUR },
            scan: 50_000,
            keyword_commits: 250,
        }
    }
}

/// How other servers are told.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Hooks one repository may have.
    pub per_repo: i64,
    /// When deliveries are tried again and when not any more.
    pub schedule: Schedule,
    /// Hooks that are told something at once.
    pub at_once: usize,
    /// Deliveries that one hook sends before others get their turn.
    pub in_a_row: usize,
    /// How long deliveries are kept.
    pub retention: Duration,
    /// Refs of one push that are told.
    pub refs_per_push: usize,
    /// Commits of one ref that are told.
    pub commits: usize,
    /// Bytes of a payload with commits.
    pub payload_bytes: usize,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            per_repo: 20,
            schedule: Schedule::default(),
            at_once: 64,
            in_a_row: 50,
            retention: 30 * DAY,
            refs_per_push: 100,
            commits: 100,
            payload_bytes: 1 << 20,
        }
    }
}

/// Whom this server talks to on someone's behalf, and for how long.
#[derive(Debug, Clone, Default)]
pub struct OutboundSettings {
    /// What the guard lets through although it is not public.
    pub allow: AllowList,
    /// Time, size and number of conversations.
    pub limits: Limits,
}

/// How often something may be done in how long.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// So often.
    pub times: i64,
    /// In so long.
    pub window: Duration,
}

/// Logins, links and what one account may have.
#[derive(Debug, Clone)]
pub struct PeopleSettings {
    /// How long a login lasts that is not used.
    pub session_ttl: Duration,
    /// Logins one account may have at once; the one unused for longest ends.
    pub sessions_per_user: i64,
    /// Addresses one account may have.
    pub emails_per_user: i64,
    /// Old names that are kept for one account.
    pub old_names_per_user: i64,
    /// Access tokens one account may have.
    pub tokens_per_user: i64,
    /// Access tokens one account makes.
    pub tokens_made: Rate,
    /// SSH keys one account may have.
    pub keys_per_user: i64,
    /// Invitations that may wait to be accepted.
    pub open_invites: i64,
    /// How long an address can be verified.
    pub verify_ttl: Duration,
    /// How long a password can be reset.
    pub reset_ttl: Duration,
    /// How long an invitation can be accepted.
    pub invite_ttl: Duration,
    /// How long the first admin can be made.
    pub setup_ttl: Duration,
    /// What hashing a password costs.
    pub password_cost: Cost,
    /// Passwords that are hashed at once: each takes 19 MiB and a core.
    pub hashes_at_once: usize,
    /// Passwords that may wait for that.
    pub hashes_waiting: usize,
    /// Wrong passwords for one account from one address.
    pub login_per_account: Rate,
    /// Wrong logins from one address.
    pub login_per_ip: Rate,
    /// Wrong second factors for one account.
    pub second_factor: Rate,
    /// Sign-ups from one address.
    pub signup_per_ip: Rate,
    /// Resets asked for from one address.
    pub reset_per_ip: Rate,
    /// Resets asked for by one e-mail address.
    pub reset_per_email: Rate,
    /// Mails that one account can cause.
    pub mails_per_account: Rate,
}

impl Default for PeopleSettings {
    fn default() -> Self {
        let rate = |times, window| Rate { times, window };
        Self {
            session_ttl: 30 * DAY,
            sessions_per_user: 50,
            emails_per_user: 10,
            old_names_per_user: 5,
            tokens_per_user: 200,
            tokens_made: Rate { times: 100, window: HOUR },
            keys_per_user: 200,
            open_invites: 1000,
            verify_ttl: 3 * DAY,
            reset_ttl: HOUR,
            invite_ttl: 7 * DAY,
            setup_ttl: 7 * DAY,
            password_cost: Cost::default(),
            hashes_at_once: 4,
            hashes_waiting: 64,
            login_per_account: rate(10, 15 * MINUTE),
            login_per_ip: rate(50, 15 * MINUTE),
            second_factor: rate(10, 15 * MINUTE),
            signup_per_ip: rate(20, HOUR),
            reset_per_ip: rate(20, HOUR),
            reset_per_email: rate(3, HOUR),
            mails_per_account: rate(10, HOUR),
        }
    }
}

/// How mail is sent.
#[derive(Debug, Clone)]
pub struct MailSettings {
    /// `smtps://user:password@host`; `None`: mails become files in `outbox/`.
    pub smtp_url: Option<SmtpUrl>,
    /// Who they are from.
    pub from: String,
    /// How long handing one mail over may take.
    pub timeout: Duration,
}

impl Default for MailSettings {
    fn default() -> Self {
        Self { smtp_url: None, from: "Abide <abide@localhost>".into(), timeout: MINUTE }
    }
}

/// Where mail is handed over. It may hold a password, so it is never shown.
#[derive(Clone)]
pub struct SmtpUrl(pub String);

impl fmt::Debug for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmtpUrl(***)")
    }
}

/// How a repository's life goes on.
#[derive(Debug, Clone)]
pub struct LifecycleSettings {
    /// How long a deleted repository can be restored.
    pub grace: Duration,
    /// How long an offer to hand one over can be answered.
    pub transfer_ttl: Duration,
    /// How often one may be renamed in the window.
    pub rename_limit: usize,
    /// How long renames count.
    pub rename_window: Duration,
    /// How often expired offers and deleted repositories past their grace are looked for.
    pub sweep_interval: Duration,
}

impl Default for LifecycleSettings {
    fn default() -> Self {
        Self {
            grace: 7 * DAY,
            transfer_ttl: 7 * DAY,
            rename_limit: 5,
            rename_window: 30 * DAY,
            sweep_interval: 5 * MINUTE,
        }
    }
}

/// How often one account may change what it keeps an eye on.
#[derive(Debug, Clone)]
pub struct AttentionSettings {
    /// Stars given and taken back.
    pub stars: Rate,
    /// Choices of what to be told.
    pub watches: Rate,
    /// People followed and followed no more.
    pub follows: Rate,
    /// How often a consumer tries an event before it is set aside.
    pub event_tries: i64,
    /// How long events are kept once every consumer has taken them in.
    pub event_retention: Duration,
    /// One mail at most about one thread to one person in so long.
    pub mail_window: Duration,
    /// Mails that one account causes to one other by offering repositories and making them a collaborator.
    pub mails_to_one: Rate,
}

impl Default for AttentionSettings {
    fn default() -> Self {
        let rate = Rate { times: 100, window: HOUR };
        Self {
            stars: rate,
            watches: rate,
            follows: rate,
            event_tries: 5,
            event_retention: 400 * DAY,
            mail_window: 10 * MINUTE,
            mails_to_one: Rate { times: 5, window: HOUR },
        }
    }
}

/// How far looking into repositories goes.
#[derive(Debug, Clone)]
pub struct Browsing {
    /// Entries of one directory that are shown.
    pub entries: usize,
    /// Commits that a comparison lists.
    pub compare_commits: usize,
    /// Commits that one walk looks at.
    pub walk: usize,
    /// Commits that a walk looks at where many walks make one page.
    pub short_walk: usize,
    /// How long one request looks for the last change of each entry.
    pub last_commits_time: Duration,
    /// Walks and comparisons that run at once.
    pub heavy: usize,
    /// Those that run at once for one address or account.
    pub heavy_each: usize,
    /// Bytes of answers that are remembered.
    pub cache: u64,
    /// Repositories whose indexes are kept open.
    pub open_repos: usize,
}

impl Default for Browsing {
    fn default() -> Self {
        Self {
            entries: 20_000,
            compare_commits: 250,
            walk: 1_000_000,
            short_walk: 10_000,
            last_commits_time: Duration::from_secs(2),
            heavy: 4,
            heavy_each: 2,
            cache: 48 << 20,
            open_repos: 128,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            public_url: "http://127.0.0.1:7464".into(),
            ssh_url: "ssh://git@127.0.0.1:7465".into(),
            repos_per_user: 1000,
            repos_made: Rate { times: 500, window: HOUR },
            search_scan: 50_000,
            max_push_bytes: 4 << 30,
            max_push_commands: 50_000,
            idle_timeout: Duration::from_secs(60),
            min_rate: 1024,
            unpacked_bytes: 4 << 30,
            stranger_unpacked_bytes: 512 << 20,
            unpacked_ratio: 500,
            push_timeout: Duration::from_secs(6 * 3600),
            unpack_limit: 100,
            lease_wait: Duration::from_secs(30),
            lease_ttl: Duration::from_secs(30),
            drain_bytes: 64 << 20,
            ref_cache_refs: 500_000,
            min_free_percent: 5,
            stranger_free_percent: 15,
            job_workers: 2,
            poll_interval: Duration::from_secs(1),
            history: Duration::from_secs(30 * 86_400),
            drain_timeout: Duration::from_secs(30),
            lifecycle: LifecycleSettings::default(),
            attention: AttentionSettings::default(),
            browse: Browsing::default(),
            signup_mode: SignUpMode::Invite,
            people: PeopleSettings::default(),
            mail: MailSettings::default(),
            issues: IssueSettings::default(),
            webhooks: WebhookSettings::default(),
            outbound: OutboundSettings::default(),
            grasp: GraspSettings::default(),
            relay: RelaySettings::default(),
        }
    }
}
