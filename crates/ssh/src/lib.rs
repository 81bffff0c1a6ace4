//! ROAD: git over SSH, with an SSH server of our own. A key says who someone is; `git-upload-pack` and
//! `git-receive-pack` are all that can be run.
//!
//! * [`serve`] takes connections until it is told to stop (`server.rs`, `gate.rs`); `connection.rs` is one connection's
//!   life, `handler.rs` its answers to SSH, `stream.rs` the way to cut it.
//! * `command.rs` reads what a client wants to run; `session.rs` is one such run, `conversation.rs` fetch and push in it,
//!   `channel.rs` its bytes, `pace.rs` their speed.
//! * [`load_or_create_host_key`]: who this server is. `algorithms.rs`: what it speaks.
//!
//! What may be fetched and pushed is decided in `abide-forge`; nothing here knows a repository's path.
//!
//! Two facts about russh shape the code. It hands a channel's messages over through a bounded queue and waits when that
//! is full, so a channel nobody reads would hold up its whole connection, timers included: from the moment it is opened
//! until its end, a task of ours reads every channel. And a running connection cannot be aborted from outside: `stream.rs`
//! makes its socket fail instead.

mod algorithms;
mod channel;
mod command;
mod connection;
mod conversation;
mod error;
mod gate;
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
