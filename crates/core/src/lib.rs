//! RULES: what Abide decides, without side effects.
//!
//! Everything here is pure: no async, no I/O, no SQL. Time and every other input of a decision are arguments
//! ([`Timestamp`]). Use cases in `abide-forge` load data, ask here, and write.
//!
//! * [`names`], [`refs`], [`oid`]: text from outside, parsed once at the edge into validated types.
//! * [`policy`]: permissions. The only place that compares owners, roles, visibility or marks.
//! * [`admission`]: slots for concurrent work, per client and in total. [`patience`]: minimum rate of slow clients.
//! * [`account`]: sign-up, profile texts, actions of admins on accounts.
//! * [`attention`]: watch levels and follows. [`notify`]: notification recipients and reasons.
//! * [`event`]: domain events, their stored payloads and subjects. [`audit`]: actions of the audit log.
//! * [`feed`]: events in feeds, and trending repositories.
//! * [`input`]: the field that an error belongs to.
//! * [`lifecycle`]: state transitions of a repository and their refusals. [`transfer`]: transfer offers.
//! * [`issues`]: issue texts, references in a text, list filters.
//! * [`webhooks`]: webhook payloads, retries and suspension.
//! * [`push`]: ref updates of a push, judged before any object is read.
//! * [`scope`]: scopes of access tokens. [`topics`], [`search`]: repository topics and search terms; [`qualifier`]:
//!   `name:value` in search texts.
//! * [`sync`]: when git data is fetched from other servers. [`settings`]: declarations of settings, with their types,
//!   defaults, bounds and help.
//! * [`redacted`]: secret values that are not shown. [`failpoint`]: named points where a crash test aborts the process.
//!
//! Storage is in `abide-store`, bytes in `abide-git`, use cases in `abide-forge`.

pub mod account;
pub mod admission;
pub mod attention;
pub mod audit;
pub mod event;
pub mod failpoint;
pub mod feed;
pub mod ids;
pub mod input;
pub mod issues;
pub mod lifecycle;
pub mod names;
pub mod notify;
pub mod oid;
pub mod patience;
pub mod policy;
pub mod push;
pub mod qualifier;
pub mod random;
pub mod redacted;
pub mod refs;
pub mod repo;
pub mod scope;
pub mod search;
pub mod settings;
pub mod sync;
pub mod time;
pub mod topics;
pub mod transfer;
pub mod webhooks;
pub mod words;

pub use attention::WatchLevel;
pub use ids::{
    CommentId, DeliveryId, HookId, IssueId, LabelId, MilestoneId, PushId, RedirectId, RepoId, ThreadId, TransferId,
    UserId,
};
pub use input::InputError;
pub use names::{Handle, RepoName, UserName};
pub use oid::Oid;
pub use push::RefUpdate;
pub use random::Random;
pub use redacted::Redacted;
pub use refs::RefName;
pub use time::{Clock, Timestamp};
pub use topics::Topic;
