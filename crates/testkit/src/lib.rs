//! FOR TESTS: what a test needs around the thing it tests.
//!
//! * [`Engine`], [`TestDatabase`]: a fresh SQLite directory or PostgreSQL database per test.
//! * [`TestClock`]: a clock that only the test turns.
//!
//! Only `abide-core` is known here, because the tests of every other crate use this one. Nothing here sleeps
//! and hopes; a failure panics with what was seen, since a test has nobody else to tell.

mod clock;
mod database;

pub use clock::TestClock;
pub use database::{Engine, TestDatabase};
