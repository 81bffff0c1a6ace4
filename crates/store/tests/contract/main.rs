//! Contract of the store, on both engines.
//!
//! Everything that is promised for both runs on both (`#[values(Engine::Sqlite, Engine::Postgres)]`); what only one
//! engine has, such as SQLite's group commit or PostgreSQL's deadlocks, says so in its module.
#![allow(clippy::unwrap_used, reason = "a test has nobody else to tell")]

mod accounts;
mod attention;
mod audit_chain;
mod cascades;
mod conflicts;
mod deadlines;
mod discovery;
mod disk_full;
mod errors;
mod feeds;
mod group_commit;
mod issues;
mod jobs;
mod leases;
mod logins;
mod migrations;
mod nostr;
mod notifications;
mod people;
mod plans;
mod purgatory;
mod pushes;
mod quotas;
mod relays;
mod repos;
mod sequencer;
mod statements;
mod support;
mod sync;
mod units;
mod upgrades;
mod webhooks;
