//! The gate against real sockets.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, like tests")]

mod posting;
mod sockets;
mod streams;
mod support;
