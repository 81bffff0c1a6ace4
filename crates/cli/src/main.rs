//! THE BINARY: reads the command line and the configuration, builds the use cases, and runs one command.
//!
//! `config/` has every setting with the source of its value, `compose.rs` builds the use cases, `commands/` has a file
//! per command. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused, 5 the doctor found problems.

mod commands;
mod compose;
mod config;
mod failure;
mod metrics;
mod routes;
mod show;

use abide_core::failpoint;
use clap::{CommandFactory as _, Parser, Subcommand};
use config::Flags;
use failure::Failure;
use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;

/// glibc's allocator keeps the memory that a large rendering used for its thread; jemalloc gives it back within seconds.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed
  2  wrong usage or configuration
  3  not found
  4  refused by a rule
  5  doctor found problems";

/// Git hosting in one binary, where links never break.
#[derive(Parser)]
#[command(name = "abide", version, about, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server.
    Serve(commands::serve::Args),
    /// Print settings with their values, sources and descriptions.
    Config(commands::config::Args),
    /// Manage users.
    #[command(subcommand)]
    User(commands::user::Action),
    /// Manage access tokens.
    #[command(subcommand)]
    Token(commands::token::Action),
    /// Manage SSH public keys.
    #[command(subcommand)]
    SshKey(commands::ssh_key::Action),
    /// Manage repositories.
    #[command(subcommand)]
    Repo(commands::repo::Action),
    /// List, run and retry background jobs.
    #[command(subcommand)]
    Jobs(commands::jobs::Action),
    /// Show how far notifications and webhooks have read the event log, and retry or discard events that failed.
    #[command(subcommand)]
    Events(commands::events::Action),
    /// Check that database and disk agree, that no push is stuck and that the audit log is intact.
    Doctor(commands::doctor::Args),
    /// Measure this binary on this machine, compared with git, nginx, bare SQL or signature checks.
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Bench(commands::bench::Action),
    /// Print a shell completion script.
    Completions(commands::completions::Args),
    /// Print the man page, or write man pages for all commands.
    Man(commands::man::Args),
}

/// Stack of worker threads, as large as that of the main thread; the kernel allocates only used pages. In unoptimised
/// builds, a signed push over SSH can overflow tokio's default of 2 MiB.
const STACK: usize = 8 << 20;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Files of this process and its children are readable by their user only.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let runtime = match tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::failed(format!("cannot start: {error}")).exit(),
    };
    match runtime.block_on(run(cli)) {
        Ok(code) => code,
        Err(failure) => failure.exit(),
    }
}

async fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let flags = match &cli.command {
        Command::Serve(args) => args.add_to(cli.flags),
        // These commands run while packages are built, without a configuration.
        Command::Completions(args) => return done(commands::completions::run(Cli::command(), args)),
        Command::Man(args) => return done(commands::man::run(Cli::command(), args)),
        _ => cli.flags,
    };
    let config = config::load(&flags)?;
    // The server logs the notices itself.
    if !matches!(cli.command, Command::Serve(_)) {
        config.notices().iter().for_each(|notice| eprintln!("warning: {notice}"));
    }
    if let Ok(name) = std::env::var("ABIDE_FAILPOINT") {
        failpoint::arm(&name).map_err(|error| Failure::usage(error.to_string()))?;
    }
    if needs_data(&cli.command) {
        ensure_data(&config)?;
    }
    done(match cli.command {
        Command::Serve(_) => commands::serve::run(config).await,
        Command::Config(args) => commands::config::run(&config, &args),
        Command::User(action) => commands::user::run(&config, action).await,
        Command::Token(action) => commands::token::run(&config, action).await,
        Command::SshKey(action) => commands::ssh_key::run(&config, action).await,
        Command::Repo(action) => commands::repo::run(&config, action).await,
        Command::Jobs(action) => commands::jobs::run(&config, action).await,
        Command::Events(action) => commands::events::run(&config, action).await,
        #[cfg(feature = "bench")]
        Command::Bench(action) => commands::bench::run(&config, action).await,
        Command::Doctor(args) => return commands::doctor::run(&config, &args).await,
        Command::Completions(_) | Command::Man(_) => unreachable!("they ended before any setting was read"),
    })
}

/// Whether a command needs an existing data directory. The others create it.
fn needs_data(command: &Command) -> bool {
    match command {
        Command::User(action) => !action.begins(),
        Command::Token(_)
        | Command::SshKey(_)
        | Command::Repo(_)
        | Command::Jobs(_)
        | Command::Events(_)
        | Command::Doctor(_) => true,
        Command::Serve(_) | Command::Config(_) | Command::Completions(_) | Command::Man(_) => false,
        #[cfg(feature = "bench")]
        Command::Bench(_) => false,
    }
}

/// Fails if there is no data directory, so that a mistyped path does not create one.
fn ensure_data(config: &config::Config) -> Result<(), Failure> {
    let data = &config.settings.server.data;
    if data.is_dir() {
        return Ok(());
    }
    let message = format!("data directory {} does not exist", data.display());
    Err(Failure::not_found(message).hint("set it with --data DIR; `abide serve` creates a new one"))
}

fn done(result: Result<(), Failure>) -> Result<ExitCode, Failure> {
    result.map(|()| ExitCode::SUCCESS)
}
