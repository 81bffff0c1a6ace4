//! Webhooks: deliveries of a repository's events to other servers.
//!
//! [`create`], [`edit`], [`remove`] and [`show`] are for those who administer one; [`ask`] sends something by hand.
//! `consumer.rs` turns events into deliveries, rows that hold what will be sent; `payload/` writes it in GitHub's words;
//! [`send`] hands deliveries over, one at a time for each hook, in order, until they arrive or are given up.

pub mod ask;
mod choice;
mod consumer;
pub mod create;
pub mod edit;
mod payload;
pub mod remove;
pub mod send;
pub mod show;

use crate::{Access, Fault, Forge};
use abide_store::StoreError;

pub use abide_store::webhooks::Hook;
pub use abide_store::webhooks::deliveries::Delivery;
pub use choice::{Change, Secret};
pub(crate) use consumer::Webhooks;

/// Why something about a webhook was not done.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// A field is invalid.
    #[error("{field} {rule}")]
    Invalid {
        /// Which field.
        field: &'static str,
        rule: String,
    },
    /// The repository has as many as it may.
    #[error("a repository can have at most {0} webhooks; delete one first")]
    TooMany(i64),
    /// It sends nothing at all.
    #[error("this webhook is inactive; activate it first")]
    Inactive,
    /// There is no such thing in this repository.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The caller may not, or the machine failed.
    #[error(transparent)]
    Access(#[from] Access),
}

impl From<StoreError> for HookError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

impl From<Fault> for HookError {
    fn from(fault: Fault) -> Self {
        Self::Access(fault.into())
    }
}

/// An id that a receiver knows one delivery by: a random UUID.
fn guid(forge: &Forge) -> String {
    let mut bytes = [0; 16];
    forge.random().fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::encode(bytes);
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

/// Purpose under which secrets of webhooks are sealed.
const SECRET: &str = "webhook secrets";
