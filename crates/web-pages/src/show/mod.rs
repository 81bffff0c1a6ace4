//! Formatting: times, sizes, bytes that may not be UTF-8, Markdown, source code, diffs.

pub(crate) mod agent;
mod budget;
pub(crate) mod code;
pub(crate) mod diff;
pub(crate) mod hook;
pub(crate) mod markdown;
pub(crate) mod patch;
mod render_pool;
pub(crate) mod rendered;
pub(crate) mod sentence;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod trail;
