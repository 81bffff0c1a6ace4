//! `abide-git` against the real git: what we say must be what git says, and what we make must be what git accepts.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, like tests")]

mod advertising;
mod fetching;
mod maintaining;
mod parsing;
mod receiving;
mod refs;
mod repositories;
mod support;
