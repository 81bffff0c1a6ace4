//! The relay: signed events arrive, are judged, stored and passed on.
//!
//! * [`Client`]: one connection, independent of the transport: text in, text out. `reading.rs` finds the stored events
//!   for its queries.
//! * `admit/`: one queue for all published events: duplicates, signatures on other threads, the rules, one commit for
//!   many events, and then the answers.
//! * `hub.rs`: subscriptions. Code that stores events calls [`Relay::publish`] after the commit; `tail.rs` finds the
//!   events that other nodes stored.
//! * `record.rs`: events as rows. `deleted.rs`: events that are not accepted again. `signers.rs`: the accounts behind
//!   keys. `door.rs`: limits of connections and events for one address. `expire.rs`: removal of expired events.

mod admit;
mod client;
pub(crate) mod deleted;
mod door;
mod expire;
mod hub;
mod reading;
mod record;
mod settings;
mod signers;
mod tail;

pub use client::{Client, Ended};
pub use door::TooMany;
pub(crate) use expire::expire;
pub use record::to_record;
pub(crate) use record::{from_record, named_by, readable};
pub use settings::RelaySettings;
pub(crate) use signers::{Signers, signer};

use crate::Forge;
use crate::grasp::GraspSettings;
use crate::grasp::quota::Strangers;
use abide_nostr::git::Service;
use abide_nostr::grasp::announcement::Announce;
use abide_nostr::info::{Limitation, RelayInfo, SUPPORTED_NIPS};
use abide_nostr::{Event, Limits};
use admit::Admissions;
use door::Door;
use hub::Hub;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// State shared by all connections.
pub struct Relay {
    settings: RelaySettings,
    limits: Arc<Limits>,
    service: Option<Service>,
    public_url: String,
    hub: Hub,
    door: Door,
    admissions: Admissions,
    pub(crate) strangers: Strangers,
    /// Database queries that run at once.
    reads: Semaphore,
}

impl Relay {
    pub(crate) fn new(settings: RelaySettings, public_url: &str) -> Self {
        let limits = Arc::new(settings.limits.clone());
        Self {
            service: Service::parse(public_url).ok(),
            public_url: public_url.to_owned(),
            hub: Hub::new(settings.outgoing, settings.remembered),
            door: Door::new(&settings),
            admissions: Admissions::new(&settings),
            strangers: Strangers::default(),
            reads: Semaphore::new(settings.reads.max(1)),
            limits,
            settings,
        }
    }

    /// The relay's settings.
    pub fn settings(&self) -> &RelaySettings {
        &self.settings
    }

    /// The limits of a connection.
    pub(crate) fn limits(&self) -> &Arc<Limits> {
        &self.limits
    }

    /// Passes events on to subscribers. Call it after the commit that stored them. An event that was passed on recently
    /// is not passed on again.
    pub(crate) fn publish(&self, events: &[Arc<Event>]) {
        self.hub.publish(events);
    }

    /// The relay information document (NIP-11).
    pub fn info(&self, grasp: &GraspSettings, version: &str) -> RelayInfo {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        RelayInfo {
            name: self.settings.name.clone(),
            description: self.settings.description.clone(),
            pubkey: text(&self.settings.pubkey),
            contact: text(&self.settings.contact),
            icon: None,
            supported_nips: SUPPORTED_NIPS.into(),
            supported_grasps: grasp.enabled.then(|| "GRASP-01".into()).into_iter().collect(),
            repo_acceptance_criteria: text(&self.settings.acceptance).unwrap_or_else(|| acceptance(grasp).into()),
            curation: text(&self.settings.curation).or_else(|| curation(grasp).map(str::to_owned)),
            // NIP-11 asks for a URL. The server's own URL tells which software runs there.
            software: self.public_url.clone(),
            version: version.to_owned(),
            limitation: Limitation::from(&*self.limits),
        }
    }
}

/// Default text about accepted repositories, if the operator has not set one.
fn acceptance(grasp: &GraspSettings) -> &'static str {
    if !grasp.enabled {
        return "No repositories are taken from nostr.";
    }
    match grasp.announce {
        Announce::Open => "Anyone may announce a repository that lists this server under clone and relays.",
        Announce::Linked => {
            "Keys that are linked to an account of this server may announce repositories that list it under clone and \
             relays. Log in on its site with the key and choose a username, or ask the operator for an account."
        }
        Announce::Off => {
            "Keys that the operator has chosen may announce repositories that list this server under clone and relays."
        }
    }
}

/// Default text about excluded content, if the operator has not set one.
fn curation(grasp: &GraspSettings) -> Option<&'static str> {
    (grasp.enabled && !grasp.deny.is_empty()).then_some("Some keys may not announce repositories here.")
}

/// Admits published events and follows the events of other nodes, until `stop` is cancelled and no work is left.
pub async fn run(forge: Forge, stop: CancellationToken) {
    tokio::join!(admit::run(&forge, &stop), tail::run(&forge, &stop));
}
