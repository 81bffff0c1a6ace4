//! Operator commands for consumers: status, and retry or drop of events set aside.

use super::Shared;
use crate::emit::{AuditAction, Who, audit_account};
use crate::{Access, By, Fault, Forge};
use abide_macros::boxed;
use abide_store::{StoreError, Tx, consumers, events};
use serde_json::json;

pub use abide_store::consumers::{Failure, Progress};

/// Decision about an event that was set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// Process it again.
    Retry,
    /// Discard it.
    Drop,
}

/// Reason why an event stays set aside.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// This version has no consumer with that name.
    #[error("unknown consumer {0:?}; `abide events status` lists all consumers")]
    NoConsumer(String),
    /// It was not set aside, or is already settled.
    #[error("event {seq} is not a failed event of {consumer}; `abide events failures` lists failed events")]
    NotSetAside { consumer: String, seq: i64 },
    #[error("the event failed again: {0}")]
    Again(String),
    /// The caller lacks permission, or an internal failure.
    #[error(transparent)]
    Access(#[from] Access),
}

impl From<StoreError> for SettleError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

/// State of each consumer.
#[boxed]
pub async fn status(forge: &Forge, _: &By) -> Result<Vec<Progress>, Fault> {
    Ok(consumers::all(&mut *forge.store().read().await?).await?)
}

/// Events set aside before a log position, latest first.
#[boxed]
pub async fn failures(forge: &Forge, _: &By, before: i64, limit: i64) -> Result<Vec<Failure>, Fault> {
    Ok(consumers::failures(&mut *forge.store().read().await?, before, limit).await?)
}

/// Settles an event that was set aside.
#[boxed]
pub async fn settle(
    forge: &Forge,
    by: &By,
    consumers: &[Shared],
    (name, seq): (&str, i64),
    how: Settle,
) -> Result<(), SettleError> {
    let consumer = consumers.iter().find(|consumer| consumer.name() == name);
    let consumer = consumer.cloned().ok_or_else(|| SettleError::NoConsumer(name.to_owned()))?;
    let unit = Unit { consumer, forge: forge.clone(), seq, how, who: Who::from(by) };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

struct Unit {
    consumer: Shared,
    forge: Forge,
    seq: i64,
    how: Settle,
    who: Who,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<(), SettleError> {
    let (name, seq) = (unit.consumer.name(), unit.seq);
    if !consumers::settle(tx, name, seq).await? {
        return Err(SettleError::NotSetAside { consumer: name.to_owned(), seq });
    }
    if unit.how == Settle::Retry
        && let Some(event) = events::at(tx, seq).await?
    {
        let taken_in = unit.consumer.apply(tx, &unit.forge, &event).await;
        taken_in.map_err(|error| SettleError::Again(error.to_string()))?;
    }
    let action = match unit.how {
        Settle::Retry => AuditAction::EventRetried,
        Settle::Drop => AuditAction::EventDropped,
    };
    audit_account(tx, &unit.who, action, json!({ "consumer": name, "seq": seq })).await?;
    Ok(())
}
