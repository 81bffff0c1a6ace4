//! The server, with the real `git` and `ssh` in front of it.

mod auth;
mod git;
mod hostile;
mod limits;
mod refusals;
mod world;
