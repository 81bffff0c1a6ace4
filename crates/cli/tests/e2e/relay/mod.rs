//! The relay over real sockets: what it takes, what it answers, what it withstands.

mod durable;
mod frames;
mod library;
mod limits;
mod nodes;
mod publish;
pub mod reconcile;
mod subscribe;

use crate::beside::store_options;
use crate::support::builder;
use abide_core::time::SystemClock;
use abide_nostr::Event;
use abide_store::{Options, Store, StoreError, nostr_events};
use abide_testkit::{Engine, Key, Nostr, Server};
use std::sync::Arc;

/// A server with a repository that is announced and served, its owner's key and its address.
pub struct Scene {
    pub server: Server,
    pub owner: Key,
    pub repo: String,
    pub now: u64,
}

impl Scene {
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
    let options = Options { connections: 1, ..store_options(server) };
    let records: Vec<_> = events.iter().map(abide_forge::relay::to_record).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build();
    let runtime = runtime.expect("a runtime can be made");
    runtime.block_on(async {
        let store = Store::open(&options, Arc::new(SystemClock)).await.expect("the database opens");
        let written: Result<_, StoreError> =
            store.write(records, |tx, records| Box::pin(nostr_events::insert_many(tx, records))).await;
        written.expect("the events are stored");
        store.close().await;
    });
}
