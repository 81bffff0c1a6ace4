//! FOR TESTS: what a test needs around the thing it tests.
//!
//! * [`Engine`], [`TestDatabase`]: a fresh SQLite directory or PostgreSQL database per test.
//! * [`postgres`]: asking a database directly.
//! * [`TestClock`]: a clock that only the test turns.
//! * [`Server`]: a real `abide serve` process that can be killed and started again.
//! * [`GitClient`], [`History`]: the real `git`, kept away from this machine's configuration; big repositories.
//! * [`http`]: requests down to the exact bytes.
//! * [`Nostr`], [`Key`]: a client of the relay over a real socket, and keys that sign.
//! * [`connect_from`]: a connection from another loopback address, for an attacker beside an honest client.
//! * [`eventually`]: waiting for a condition instead of sleeping.
//!
//! Only `abide-core` and `abide-nostr` are known here, because the tests of every other crate use this one. A failure panics with
//! what was seen: a test has nobody else to tell.

mod clock;
mod connect;
mod database;
mod git;
mod history;
pub mod http;
mod idle;
mod nostr;
mod poll;
pub mod postgres;
mod process;
mod server;

pub use self::nostr::{Heard, Key, Nostr};
pub use clock::TestClock;
pub use connect::{ATTACKER, connect_from};
pub use database::{Engine, TestDatabase};
pub use git::GitClient;
pub use history::History;
pub use idle::Idle;
pub use poll::eventually;
pub use server::{PASSWORD, Server, ServerBuilder};
