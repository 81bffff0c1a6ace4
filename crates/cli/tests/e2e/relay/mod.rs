//! The relay over real sockets: what it takes, what it answers, what it withstands.

mod durable;
mod frames;
mod library;
mod limits;
mod nodes;
mod publish;
mod quotas;
pub mod reconcile;
mod subscribe;

use crate::beside::with_store;
use crate::support::builder;
use abide_nostr::Event;
use abide_store::{StoreError, nostr};
use abide_testkit::{Engine, Key, Nostr, Server};

/// A server with a repository that is announced and served, its owner's key and its address.
pub struct Setup {
    pub server: Server,
    pub owner: Key,
    pub repo: String,
    pub now: u64,
}

impl Setup {
    pub fn new(engine: Engine) -> Self {
        Self::with(engine, &[])
    }

    /// With settings, by the names of their variables.
    pub fn with(engine: Engine, settings: &[(&str, &str)]) -> Self {
        let builder = settings.iter().fold(builder(engine), |builder, (name, value)| builder.env(name, value));
        let server = builder.start();
        let owner = Key::new(1);
        let now = Key::now();
        store(&server, &[owner.announcement(now, "project", &server.url())]);
        Self { repo: owner.coordinate("project"), server, owner, now }
    }

    pub fn connect(&self) -> Nostr {
        Nostr::connect(&self.server.url())
    }

    /// An issue about the repository.
    pub fn issue(&self, author: u32, text: &str) -> Event {
        Key::new(author).event(self.now, 1621, &[&["a", &self.repo]], text)
    }
}

/// Stores events without asking any rule, as if they had been promoted.
pub fn store(server: &Server, events: &[Event]) {
    let records: Vec<_> = events.iter().map(abide_forge::relay::to_record).collect();
    let written: Result<_, StoreError> = with_store(server, async |store| {
        store.write(records, |tx, records| Box::pin(nostr::events::insert_many(tx, records))).await
    });
    written.expect("the events are stored");
}
