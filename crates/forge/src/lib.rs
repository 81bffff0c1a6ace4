//! USE CASES: a verb per file. Each loads what it needs, asks a rule in `abide-core`, and writes state, audit row and
//! domain event in one transaction.
//!
//! * [`Forge`]: what every use case works with. [`Caller`]: who asks, and from where.
//! * [`accounts`]: signing up and logging in, users, tokens, keys, and who someone is. [`mail`]: sending mails.
//! * [`repos`]: finding, creating, changing, sharing. [`browse`]: looking into a repository, for pages and the API.
//! * [`attention`]: stars, watches, follows. [`notify`]: notifications, in the inbox and by mail.
//! * [`issues`]: what is to be done, and what is said about it.
//! * [`webhooks`]: deliveries to other servers.
//! * [`git`]: fetch and push, one path behind every road, and what puts a crashed push right.
//! * [`grasp`]: repositories that signed events rule, and what waits in purgatory. [`sync`]: fetches the missing half from
//!   other servers.
//! * [`jobs`]: work that is done later, and the clock that queues it. [`sequencer`]: gives the logs their order.
//! * [`consumers`]: what acts on the log of events. [`feeds`]: what people read of it.
//! * [`relay`]: signed events, found and passed on. [`admit`]: connections to it, and admission of what they publish.
//! * [`doctor`]: proves that database and disk agree.
//!
//! Modules import each other in one direction; `./test lint` checks that. From the bottom up, each line may import from
//! the lines before it:
//!
//! 1. `settings`, `error`, `node`, `secret`, `queues`, `hold` (a claimed row is renewed); `context` with [`Forge`] and
//!    [`Caller`]; `throttle`, `blocking` (work on the blocking pool), `lease` (a lease is taken, renewed, released)
//! 2. `disk`, `sealed`, `emit`, `open` (from an address through the policy to a repository), `sequencer`, [`relay`]
//! 3. [`jobs`], `consumer`, [`feeds`], [`attention`], `circle` (the maintainers of a signed repository); [`mail`], [`git`],
//!    [`ready`]
//! 4. [`browse`]; [`issues`], [`threads`]; [`grasp`], [`webhooks`]
//! 5. [`repos`], [`admit`], then [`sync`]; [`accounts`], [`notify`], [`doctor`]
//! 6. `work` (the handler of each kind of job), [`consumers`] (their list)
//! 7. `compose` (makes the forge with the state of every module), [`start`]
//!
//! Roads (`abide-web`, `abide-ssh`, the command line) translate to and from these; they never call the store or git.

pub mod accounts;
pub mod admit;
pub mod attention;
mod blocking;
pub mod browse;
mod circle;
mod compose;
mod consumer;
pub mod consumers;
mod context;
pub mod disk;
pub mod doctor;
mod emit;
mod error;
pub mod feeds;
pub mod git;
pub mod grasp;
mod hold;
pub mod issues;
pub mod jobs;
mod lease;
pub mod mail;
mod node;
pub mod notify;
pub mod open;
pub mod queues;
pub mod ready;
pub mod relay;
pub mod repos;
mod sealed;
pub mod secret;
pub mod sequencer;
mod settings;
pub mod start;
pub mod sync;
pub mod threads;
mod throttle;
pub mod webhooks;
mod work;

pub use abide_core::webhooks::Schedule;
pub use abide_git::GitError;
pub use abide_nostr::RelayLimits;
pub use abide_nostr::grasp::{caps::Caps, expiry::Expiry, maintainers::Bounds};
pub use abide_outbound::{AllowList, OutboundLimits};
pub use context::{Caller, Forge, OsRandom};
pub use error::{Access, Fault};
pub use node::{Node, NodeError};
pub use settings::{
    AccountSettings, AttentionSettings, Browsing, DiskSettings, GraspSettings, IssueSettings, JobSettings,
    LifecycleSettings, LoginSettings, MailSettings, OutboundSettings, PushSettings, Rate, RelaySettings, RepoSettings,
    ResetSettings, SessionSettings, Settings, SignUpSettings, SmtpUrl, SyncSettings, WebhookSettings,
};
