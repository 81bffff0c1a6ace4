//! MEMORY: storage on SQLite or PostgreSQL, with one SQL text for both.
//!
//! * [`Store`]: open, read, and write in units of work. [`writer`] is SQLite's single writer with group commit.
//! * One module per aggregate. Accounts: [`users`], [`emails`], [`user_redirects`], [`user_keys`], [`sessions`],
//!   [`links`], [`totp`], [`throttles`], [`tokens`], [`ssh_keys`]. Repositories: [`repos`], [`forks`], [`topics`],
//!   [`search`], [`collaborators`], [`redirects`], [`transfers`], [`purges`], [`pushes`]. Attention: [`stars`],
//!   [`watches`], [`follows`], [`feeds`], [`trending`]. Work: [`jobs`], [`leases`], and the two logs [`audit`] and
//!   [`events`] with their [`sequencer`] and [`consumers`].
//! * Notifications: [`notifications`] recipients, [`inbox`] lists, [`notification_mail`] mail.
//! * Issues: [`issues`], [`issue_list`], [`issue_search`], [`issue_people`], [`issue_timeline`], [`comments`],
//!   [`labels`], [`milestones`].
//! * Webhooks: [`webhooks`], [`deliveries`].
//! * The relay: [`nostr_events`] what is kept, [`nostr_query`] how it is found, [`nostr_relations`] what belongs to what,
//!   [`nostr_statuses`] how far threads are.
//! * `migrations/{sqlite,postgres}`: forward-only, in step, checked at start by [`migrate`].
//!
//! To add a statement: put it into the `statements!` block of its module, with `$1` parameters and SQL that both
//! engines understand; the tests prepare every one on both. To add a table: a migration of the same name in both
//! folders.
//!
//! Nothing here decides anything: rules are in `abide-core`, use cases in `abide-forge`.

pub mod audit;
pub mod collaborators;
pub mod comments;
mod conn;
pub mod consumers;
mod deadline;
pub mod deliveries;
pub mod emails;
mod error;
pub mod events;
pub mod feeds;
pub mod follows;
pub mod forks;
pub mod inbox;
pub mod issue_list;
pub mod issue_people;
pub mod issue_search;
pub mod issue_timeline;
pub mod issues;
pub mod jobs;
pub mod labels;
pub mod leases;
pub mod links;
pub mod lists;
pub mod migrate;
pub mod milestones;
pub mod nostr_deleted;
pub mod nostr_events;
pub mod nostr_news;
pub mod nostr_query;
pub mod nostr_relations;
pub mod nostr_repos;
pub mod nostr_statuses;
pub mod notification_mail;
pub mod notifications;
pub mod proposal_refs;
pub mod purgatory;
pub mod purgatory_attached;
pub mod purgatory_proposals;
pub mod purges;
pub mod pushes;
pub mod quotas;
pub mod redirects;
mod repo;
pub mod repos;
pub mod reservations;
pub mod retire;
pub mod search;
pub mod sequencer;
pub mod sessions;
mod sql;
pub mod ssh_keys;
pub mod stars;
mod store;
pub mod throttles;
pub mod tokens;
pub mod topics;
pub mod totp;
pub mod transfers;
pub mod trending;
pub mod user_keys;
pub mod user_merge;
pub mod user_redirects;
pub mod users;
mod value;
pub mod watches;
pub mod webhooks;
mod writer;

pub use conn::{Conn, Engine, Tx};
pub use error::StoreError;
pub use sql::{Sql, all_statements};
pub use store::{Options, ReadConn, Store, Unit};
pub use value::{Row, Value};
