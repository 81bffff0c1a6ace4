//! Where missing git data is looked for, and when next: for everybody who may see the repository, and for the operator.

use crate::emit::{AuditAction, Who, audit_account};
use crate::{Access, Caller, Fault, Forge};
use abide_macros::boxed;
use abide_store::StoreError;
use abide_store::sync::{domains, queue, relays, sources};
use serde_json::json;
use std::time::Duration;

pub use abide_store::sync::domains::Domain;
pub use abide_store::sync::queue::Entry;
pub use abide_store::sync::relays::Relay;
pub use abide_store::sync::sources::Source;

/// URLs of one identifier that are shown.
const SHOWN: i64 = 32;

/// Rest of a domain that the operator sends to rest.
const REST: Duration = Duration::from_secs(12 * 3_600);

/// Search for the git data of one identifier.
#[derive(Debug, Clone)]
pub struct Search {
    pub entry: Entry,
    /// Clone URLs that were tried, with the outcomes.
    pub sources: Vec<Source>,
}

/// Where the git data of an identifier is looked for; `None` if nothing is looked for.
#[boxed]
pub async fn of(forge: &Forge, identifier: &str) -> Result<Option<Search>, Fault> {
    let mut conn = forge.store().read().await?;
    let Some(entry) = queue::of_identifier(&mut conn, identifier).await? else { return Ok(None) };
    let sources = sources::of(&mut conn, entry.id, SHOWN).await?;
    Ok(Some(Search { entry, sources }))
}

/// Everything that the operator sees.
#[derive(Debug, Clone)]
pub struct Overview {
    pub queued: i64,
    pub running: i64,
    pub searches: Vec<Search>,
    pub domains: Vec<Domain>,
    pub relays: Vec<Relay>,
}

/// The first identifiers of the queue, domains and relays, so many of each.
#[boxed]
pub async fn overview(forge: &Forge, caller: &Caller, limit: i64) -> Result<Overview, Access> {
    caller.ensure_admin()?;
    Ok(read(forge, limit).await?)
}

async fn read(forge: &Forge, limit: i64) -> Result<Overview, Fault> {
    let mut conn = forge.store().read().await?;
    let (queued, running) = queue::counts(&mut conn).await?;
    let mut searches = Vec::new();
    for entry in queue::page(&mut conn, 0, limit).await? {
        let sources = sources::of(&mut conn, entry.id, SHOWN).await?;
        searches.push(Search { entry, sources });
    }
    let domains = domains::page(&mut conn, "", limit).await?;
    let relays = relays::page(&mut conn, "", limit).await?;
    Ok(Overview { queued, running, searches, domains, relays })
}

/// Action of a site admin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Try an identifier now.
    Try(i64),
    /// Remove an identifier from the queue; its next event queues it anew.
    Forget(i64),
    /// Let a domain rest.
    Rest(String),
    /// End the rest of a domain.
    Wake(String),
    /// Forget a domain and its failures.
    ForgetDomain(String),
    /// Connect to a relay now.
    TryRelay(String),
    /// Let a relay rest.
    RestRelay(String),
    /// Forget a relay, its failures and its refused events.
    ForgetRelay(String),
}

/// Carries out an action; `false` if its subject does not exist, or a task holds it now.
#[boxed]
pub async fn command(forge: &Forge, caller: &Caller, command: Command) -> Result<bool, Access> {
    caller.ensure_admin()?;
    let done: Result<bool, StoreError> = forge
        .store()
        .write((command, Who::from(caller)), |tx, (command, who)| {
            Box::pin(async move {
                let (done, details) = match command {
                    Command::Try(id) => (queue::hurry(tx, *id).await?, json!({ "action": "try", "entry": id })),
                    Command::Forget(id) => (queue::remove(tx, *id).await?, json!({ "action": "forget", "entry": id })),
                    Command::Rest(domain) => {
                        let reason = "an administrator lets it rest";
                        let done = domains::set_rest(tx, domain, Some((REST, reason))).await?;
                        (done, json!({ "action": "rest", "domain": domain }))
                    }
                    Command::Wake(domain) => {
                        (domains::set_rest(tx, domain, None).await?, json!({ "action": "wake", "domain": domain }))
                    }
                    Command::TryRelay(url) => (relays::hurry(tx, url).await?, json!({ "action": "try", "relay": url })),
                    Command::RestRelay(url) => {
                        let done = relays::rest(tx, url, REST, "an administrator lets it rest").await?;
                        (done, json!({ "action": "rest", "relay": url }))
                    }
                    Command::ForgetRelay(url) => {
                        (relays::forget(tx, url).await?, json!({ "action": "forget", "relay": url }))
                    }
                    Command::ForgetDomain(domain) => {
                        (domains::forget(tx, domain).await?, json!({ "action": "forget", "domain": domain }))
                    }
                };
                if done {
                    audit_account(tx, who, AuditAction::SyncManaged, details).await?;
                }
                Ok(done)
            })
        })
        .await;
    done.map_err(|error| Fault::from(error).into())
}

/// Sets the metrics of the queue.
pub(crate) async fn measure(forge: &Forge) -> Result<(), Fault> {
    let (queued, running) = queue::counts(&mut *forge.store().read().await?).await?;
    metrics::gauge!("abide_sync_queue").set(queued as f64);
    metrics::gauge!("abide_sync_running").set(running as f64);
    Ok(())
}
