//! RULES: what Abide decides, without doing anything.
//!
//! Everything here is pure: no async, no I/O, no SQL. Time comes in as a value ([`Timestamp`]), and so does
//! everything else a decision needs. The use cases in `abide-forge` load, ask here, and write.
//!
//! * [`names`], [`refs`], [`oid`]: text from outside, parsed once at the edge into types that cannot be wrong.
//! * [`policy`]: who may do what. The only place that compares owners, roles, visibility or marks.
//! * [`admission`]: slots among concurrent work, per client and in all. [`patience`]: how long a slow client is waited for.
//! * [`account`]: who may sign up, what an account may say, what an admin may do to it.
//! * [`attention`]: how much someone is told, and whom they may follow. [`notify`]: who is told of what, and why.
//! * [`feed`]: what is told of events, and what is popular.
//! * [`lifecycle`]: which state a repository may move to, and why not. [`transfer`]: offers to hand one over.
//! * [`issues`]: what issues may say, what a text refers to, what a list is asked for.
//! * [`webhooks`]: what other servers are told, when it is tried again, and when not any more.
//! * [`push`]: which ref updates are acceptable before any object is looked at.
//! * [`scope`]: what an access token is good for. [`topics`], [`search`]: the words a repository is found by;
//!   [`qualifier`]: `name:value` in what is typed to find something.
//! * [`failpoint`]: the named places where a crash test may end the process.
//!
//! What is stored lives in `abide-store`, bytes in `abide-git`, use cases in `abide-forge`.

pub mod account;
pub mod admission;
pub mod attention;
pub mod failpoint;
pub mod feed;
pub mod ids;
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
pub mod refs;
pub mod repo;
pub mod scope;
pub mod search;
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
pub use names::{Handle, RepoName, UserName};
pub use oid::Oid;
pub use push::RefUpdate;
pub use random::Random;
pub use refs::RefName;
pub use time::{Clock, Timestamp};
pub use topics::Topic;
