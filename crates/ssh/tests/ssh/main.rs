//! The SSH server with the real `git` and `ssh` as clients.
#![allow(clippy::unwrap_used, reason = "a test has nobody else to tell")]

mod auth;
mod git;
mod hostile;
mod limits;
mod refusals;
mod world;
