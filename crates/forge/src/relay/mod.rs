//! The relay: finds stored events and delivers new ones. [`crate::admit`] admits published events; it is above the
//! modules that decide about events.
//!
//! * `reading.rs`: queries of connections over stored events.
//! * `hub.rs`: all subscriptions. Code that stored events calls [`Relay::publish`] after the commit; `tail.rs` reads
//!   events of other nodes.
//! * `record.rs`: events as rows. `deleted.rs`: deleted events are not accepted again. `signers.rs`: the accounts behind
//!   keys. `connections.rs`: connections and events per address. `memory.rs`: bytes that connections may hold.

pub(crate) mod connections;
pub(crate) mod deleted;
pub(crate) mod hub;
pub(crate) mod memory;
pub(crate) mod reading;
mod record;
mod signers;
pub(crate) mod tail;
mod turns;

pub use connections::TooMany;
pub use record::to_record;
pub(crate) use record::{LITTLE, apart, bytes_of, from_record, named_by, readable};
pub(crate) use signers::{Signers, is_suspended, signer};

use crate::{Forge, GraspSettings, RelaySettings, Settings};
use abide_nostr::git::Service;
use abide_nostr::grasp::announcement::Announce;
use abide_nostr::info::{Limitation, RelayInfo, SUPPORTED_NIPS};
use abide_nostr::{Event, RelayLimits};
use connections::RelayAdmission;
use hub::Hub;
use memory::Memory;
use std::sync::Arc;
use turns::Turns;

/// State shared by all connections.
pub struct Relay {
    settings: RelaySettings,
    limits: Arc<RelayLimits>,
    pub(crate) service: Option<Service>,
    public_url: String,
    pub(crate) hub: Hub,
    pub(crate) admission: RelayAdmission,
    pub(crate) memory: Memory,
    turns: Turns,
}

impl Relay {
    /// The instance of this forge.
    pub fn of(forge: &Forge) -> &Self {
        forge.part()
    }

    pub(crate) fn new(settings: RelaySettings, public_url: &str) -> Self {
        let limits = Arc::new(settings.limits.clone());
        let memory = Memory::new();
        Self {
            service: Service::parse(public_url).ok(),
            public_url: public_url.to_owned(),
            hub: Hub::new(settings.outgoing, settings.remembered, memory.clone()),
            admission: RelayAdmission::new(&settings),
            memory,
            turns: Turns::new(settings.reads),
            limits,
            settings,
        }
    }

    /// The relay's settings.
    pub fn settings(&self) -> &RelaySettings {
        &self.settings
    }

    /// The limits of a connection.
    pub(crate) fn limits(&self) -> &Arc<RelayLimits> {
        &self.limits
    }

    /// Passes events on to subscribers. Call it after the commit that stored them. An event that was passed on recently
    /// is not passed on again.
    pub(crate) fn publish(&self, events: &[Arc<Event>]) {
        self.hub.publish(events);
    }

    /// The relay information document (NIP-11).
    pub fn info(&self, settings: &Settings, version: &str) -> RelayInfo {
        let grasp = &settings.grasp;
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        RelayInfo {
            name: self.settings.name.clone(),
            description: self.settings.description.clone(),
            pubkey: text(&self.settings.pubkey),
            contact: text(&self.settings.contact),
            icon: None,
            supported_nips: SUPPORTED_NIPS.into(),
            supported_grasps: grasp.enabled.then(|| "GRASP-01".into()).into_iter().collect(),
            repo_acceptance_criteria: text(&self.settings.acceptance).unwrap_or_else(|| acceptance(settings).into()),
            curation: text(&self.settings.curation).or_else(|| curation(grasp).map(str::to_owned)),
            // NIP-11 asks for a URL. The server's own URL identifies the software.
            software: self.public_url.clone(),
            version: version.to_owned(),
            limitation: Limitation::from(&*self.limits),
        }
    }
}

/// Default text about accepted repositories, if the operator has not set one.
fn acceptance(settings: &Settings) -> &'static str {
    if !settings.grasp.enabled {
        return "This server does not accept repositories over nostr.";
    }
    match settings.announce() {
        Announce::Open => "Anyone may announce a repository that lists this server in its clone and relays tags.",
        Announce::Linked => {
            "Keys linked to an account on this server may announce repositories that list it in their clone and \
             relays tags. Sign in on its site with the key and choose a username, or ask the operator for an account."
        }
        Announce::Off => {
            "Only keys chosen by the operator may announce repositories that list this server in their clone and relays tags."
        }
    }
}

/// Default text about excluded content, if the operator has not set one.
fn curation(grasp: &GraspSettings) -> Option<&'static str> {
    (grasp.enabled && !grasp.deny.is_empty()).then_some("Some keys are blocked from announcing repositories.")
}
