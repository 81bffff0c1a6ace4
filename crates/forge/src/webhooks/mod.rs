//! Webhooks: deliveries of a repository's events to other servers.
//!
//! [`create`], [`edit`], [`remove`] and [`show`] are for administrators of the repository; [`ask`] has manual deliveries.
//! `consumer.rs` turns events into deliveries (rows with a payload); `payload/` writes payloads in GitHub's shapes;
//! [`send`] sends deliveries, one at a time for each webhook, in order, until they arrive or have failed for good.

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
use uuid::Builder;

pub use abide_store::webhooks::Hook;
pub use abide_store::webhooks::deliveries::Delivery;
pub use choice::{Change, Secret};
pub(crate) use consumer::Webhooks;

/// Refusal of an operation on webhooks.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error("{field} {rule}")]
    Invalid { field: &'static str, rule: String },
    /// The repository has `webhooks.per_repo` webhooks.
    #[error("a repository can have at most {0} webhooks; delete one first")]
    TooMany(i64),
    /// An inactive webhook sends nothing, not even a ping.
    #[error("this webhook is inactive; activate it first")]
    Inactive,
    /// The repository has no webhook or delivery with this id.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The policy refused, or the server failed.
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

/// Id of a delivery that its receiver sees: a random UUID.
fn guid(forge: &Forge) -> String {
    let mut bytes = [0; 16];
    forge.random().fill(&mut bytes);
    uuid(bytes)
}

fn uuid(random: [u8; 16]) -> String {
    Builder::from_random_bytes(random).into_uuid().to_string()
}

/// Purpose under which `sealed` encrypts the secrets of webhooks.
const SECRET: &str = "webhook secrets";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_id_is_a_version_4_uuid_of_the_random_bytes() {
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let counted = std::array::from_fn(|index| index as u8 * 17);
        assert_eq!(uuid(counted), "00112233-4455-4677-8899-aabbccddeeff");
    }
}
