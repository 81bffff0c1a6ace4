//! All consumers of the event log. The framework is [`mod@crate::consumer`].

use crate::consumer::follow;
use crate::notify::Notifications;
use crate::webhooks::Webhooks;
use crate::{Fault, Forge};
use abide_macros::boxed;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use crate::consumer::{Consumer, Shared, catch_up_with, manage, register};

/// Every consumer of this version.
pub fn all() -> Vec<Shared> {
    vec![Arc::new(Notifications), Arc::new(Webhooks)]
}

/// Runs every consumer until stopped.
#[boxed]
pub async fn run(forge: Forge, stop: CancellationToken) {
    let mut tasks = JoinSet::new();
    for consumer in all() {
        tasks.spawn(follow(forge.clone(), consumer, stop.clone()));
    }
    while tasks.join_next().await.is_some() {}
}

/// Numbers events and lets every consumer process the log. For commands and tests without a server.
#[boxed]
pub async fn catch_up(forge: &Forge) -> Result<(), Fault> {
    catch_up_with(forge, &all()).await
}
