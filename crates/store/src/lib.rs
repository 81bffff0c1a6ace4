//! MEMORY: storage on SQLite or PostgreSQL, with one SQL text for both.
//!
//! * [`Store`]: open, read, and write in units of work. [`writer`] is SQLite's single writer with group commit.
//! * One folder per area, one module per aggregate: [`accounts`], [`repos`], [`issues`], [`attention`] (stars, watches,
//!   feeds, notifications), [`webhooks`], [`nostr`] (events, purgatory, quotas), [`sync`] (fetching from other
//!   servers).
//! * Work: [`jobs`], [`leases`], [`throttles`], and the two logs [`audit`] and [`events`] with their [`sequencer`] and
//!   [`consumers`].
//! * `migrations/{sqlite,postgres}`: forward-only, in step, checked at start by [`migrate`].
//!
//! To add a statement: put it into the `statements!` block of its module, with `$1` parameters and SQL that both
//! engines understand; the tests prepare every one on both. To add a table: a migration of the same name in both
//! folders.
//!
//! Nothing here decides anything: rules are in `abide-core`, use cases in `abide-forge`.

pub mod accounts;
pub mod attention;
pub mod audit;
mod conn;
pub mod consumers;
mod deadline;
mod error;
pub mod events;
mod holds;
pub mod issues;
pub mod jobs;
pub mod leases;
pub mod migrate;
pub mod nostr;
pub mod repos;
pub mod sequencer;
mod sql;
mod store;
pub mod sync;
pub mod throttles;
mod value;
pub mod webhooks;
mod writer;

pub use conn::{Conn, Engine, Tx};
pub use error::StoreError;
pub use sql::{Sql, all_statements};
pub use store::{Options, ReadConn, Store, Unit};
pub use value::{Row, Value};
