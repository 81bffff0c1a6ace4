//! The server, with the real `git` and `ssh` in front of it.
#![allow(clippy::unwrap_used, reason = "a test has nobody else to tell")]

mod auth;
mod git;
mod hostile;
mod limits;
mod refusals;
mod world;
