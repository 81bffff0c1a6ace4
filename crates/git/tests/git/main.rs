//! `abide-git` against the real git: our answers must equal git's, and git must accept what we write.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, like tests")]

mod advertising;
mod connecting;
mod fetching;
mod hostile_sources;
mod maintaining;
mod parsing;
mod read_addresses;
mod read_diffs;
mod read_histories;
mod read_last_commits;
mod read_objects;
mod read_paths;
mod read_support;
mod receiving;
mod refs;
mod repositories;
mod source_support;
mod sources;
mod support;
mod writing;
