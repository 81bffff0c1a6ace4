//! Use of `git` over HTTP and over SSH, on SQLite and on PostgreSQL.
//!
//! [`setup`] is what each story starts from; the other modules are the stories. Every scenario runs on both roads and
//! both engines, the central ones in all four combinations.

mod addresses;
mod attacks;
mod bad_packs;
mod behind_a_proxy;
pub mod bombs;
mod concurrency;
mod fetching;
mod first_push;
mod lifecycle;
mod many_refs;
mod missing_objects;
mod packs;
pub mod raw;
mod ref_names;
mod revoked;
mod rewriting;
mod roles;
mod setup;
mod several_refs;
mod tags;
mod versions;
