//! FOR TESTS: everything a test needs around its subject.
//!
//! * [`Engine`], [`TestDatabase`]: a fresh SQLite directory or PostgreSQL database per test.
//! * [`postgres`]: direct queries to a database.
//! * [`sample_payload`]: a payload of each kind of domain event.
//! * [`TestClock`]: a clock controlled by the test.
//! * [`Server`]: a real `abide serve` process that can be killed and restarted.
//! * [`GitClient`], [`History`]: the real `git`, isolated from this machine's configuration; large repositories.
//! * [`http`]: requests with exact bytes.
//! * [`Nostr`], [`Key`]: a relay client over a real socket, and signing keys.
//! * [`connect_from`]: a connection from another loopback address, for an attacker beside an honest client.
//! * [`Peak`]: resident memory of a server and its git processes while something happens.
//! * [`eventually`]: waiting for a condition instead of sleeping.
//!
//! This crate depends only on `abide-core` and `abide-nostr`, because the tests of every other crate use it. A failure
//! panics with what was observed.

mod clock;
mod connect;
mod database;
mod events;
mod git;
mod history;
pub mod http;
mod idle;
mod memory;
mod nostr;
mod poll;
pub mod postgres;
mod process;
mod server;

pub use self::nostr::{Heard, Key, Nostr};
pub use clock::TestClock;
pub use connect::{ATTACKER, connect_from};
pub use database::{Engine, TestDatabase};
pub use events::sample_payload;
pub use git::GitClient;
pub use history::History;
pub use idle::Idle;
pub use memory::Peak;
pub use poll::eventually;
pub use server::{PASSWORD, Server, ServerBuilder};
