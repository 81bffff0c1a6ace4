//! ROAD: git over SSH, with our own SSH server. A key authenticates an account; only `git-upload-pack` and
//! `git-receive-pack` can be run.
//!
//! * [`serve`] accepts connections until it is stopped (`server.rs`, `connection_slots.rs`); `connection.rs` is one connection's
//!   lifetime, `handler.rs` its answers to SSH requests, `stream.rs` a socket that can be cut.
//! * `command.rs` parses the client's command; `session.rs` runs it, `conversation.rs` handles fetch and push,
//!   `channel.rs` their bytes, `pace.rs` their speed.
//! * [`load_or_create_host_key`]: the server's identity. `algorithms.rs`: its algorithms.
//!
//! `abide-forge` decides permissions; nothing here knows a repository's path.
//!
//! Two facts about russh shape the code. It hands a channel's messages over through a bounded queue and waits when that
//! is full, so an unread channel would block its whole connection, timers included: one of our tasks reads every
//! channel from its opening to its end. And a running connection cannot be aborted from outside: `stream.rs` makes its
//! socket fail instead.

mod algorithms;
mod channel;
mod command;
mod connection;
mod connection_slots;
mod conversation;
mod error;
mod handler;
mod host_key;
mod options;
mod pace;
mod server;
mod session;
mod stream;

pub use command::{Command, CommandError, Service};
pub use error::SshError;
pub use host_key::{PrivateKey, fingerprint, load_or_create_host_key};
pub use options::Options;
pub use server::serve;
