//! Benchmarks of `abide bench`: speed of this binary on this machine, compared with a reference.
//!
//! A figure alone describes the machine, so every case alternates with its reference in the same run and is judged by
//! the ratio. Targets are goals, not tests: a missed one is shown, and the exit code is 0.
//!
//! `git/` compares the git roads with `git http-backend`, `store/` units of work with bare SQL, `web/` pages with the git
//! command line, `nostr/` the relay with bare signature checks. `lifecycle.rs` compares a large repository with an empty
//! one, `attention/` measures stars, notifications, webhooks and feeds. `report.rs` renders results, `samples.rs` sums them
//! up. The crate links the use cases for cases that run without a server; other cases start this binary.

mod attention;
mod common;
mod git;
mod lifecycle;
mod nostr;
mod report;
mod samples;
mod store;
mod web;

pub use report::Output;
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::Path;
use std::process::{Child, Output as Finished};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use tempfile::TempDir;

/// The benchmarks, as subcommands.
#[derive(clap::Subcommand)]
pub enum Action {
    /// Push, clone and list refs, compared with git http-backend behind nginx and fcgiwrap; memory, start-up time and size.
    Git(git::Args),
    /// Transactions and reads per second, compared with bare SQL; --database adds PostgreSQL.
    Store(store::Args),
    /// Rename, transfer, delete and restore: a repository of 1 GiB compared with an empty one, and with many writers.
    Lifecycle(lifecycle::Args),
    /// Stars compared with bare SQL, notification fan-out, webhook deliveries to a local receiver, and the home feed.
    Attention(attention::Args),
    /// Relay: event ingest compared with signature checks alone, queries, many subscriptions, memory.
    Nostr(nostr::Args),
    /// Pages: a large directory, a long history and many visitors, compared with the git command line.
    Web(web::Args),
}

/// Programs and servers that a benchmark may use.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Path of git.
    pub git: String,
    /// URL of a PostgreSQL server where databases may be created.
    pub database: Option<String>,
}

/// A benchmark that could not be carried out.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Runs a benchmark. Progress goes to standard error.
pub async fn run(machine: &Machine, action: Action) -> Result<Output, Failure> {
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build; only results of `cargo build --release` are meaningful");
    }
    match action {
        Action::Git(args) => git::run(machine, args).await,
        Action::Store(args) => store::run(machine, args).await,
        Action::Lifecycle(args) => lifecycle::run(machine, args).await,
        Action::Attention(args) => attention::run(machine, args).await,
        Action::Nostr(args) => nostr::run(machine, args).await,
        Action::Web(args) => web::run(machine, args).await,
    }
}

/// Whether a stop signal arrived. Long work checks it, so that its processes and files are removed.
#[derive(Clone, Default)]
struct Stop(Arc<Asked>);

#[derive(Default)]
struct Asked {
    stop: AtomicBool,
    /// The process group that a thread waits for; 0 if there is none.
    group: AtomicI32,
}

impl Stop {
    /// Installs the signal handlers for the life of the process.
    fn on_signals() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let watch = |kind| signal(kind).map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")));
        let (mut terminate, mut interrupt) = (watch(SignalKind::terminate())?, watch(SignalKind::interrupt())?);
        let stop = Self::default();
        let asked = stop.0.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            asked.stop.store(true, Ordering::SeqCst);
            if let Some(group) = Pid::from_raw(asked.group.load(Ordering::SeqCst)) {
                let _ = kill_process_group(group, Signal::TERM);
            }
        });
        Ok(stop)
    }

    fn check(&self) -> Result<(), Failure> {
        if self.0.stop.load(Ordering::SeqCst) { Err(Failure::failed("stopped before the end")) } else { Ok(()) }
    }

    /// Waits for a process that leads its own group, and ends that group at a stop signal.
    fn wait(&self, child: Child) -> std::io::Result<Finished> {
        self.0.group.store(child.id().cast_signed(), Ordering::SeqCst);
        let output = child.wait_with_output();
        self.0.group.store(0, Ordering::SeqCst);
        output
    }
}

/// A temporary directory, in `dir` if given.
fn temporary(dir: Option<&Path>) -> Result<TempDir, Failure> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("abide-bench-");
    let made = match dir {
        Some(dir) => builder.tempdir_in(dir),
        None => builder.tempdir(),
    };
    made.map_err(io("make a temporary directory"))
}

/// Turns an I/O error into a failure that names the operation.
fn io(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::failed(format!("cannot {what}: {error}"))
}
