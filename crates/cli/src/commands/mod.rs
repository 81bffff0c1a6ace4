//! A file per command.

#[cfg(feature = "bench")]
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod jobs;
pub(crate) mod man;
pub(crate) mod repo;
mod secret;
pub(crate) mod serve;
pub(crate) mod ssh_key;
pub(crate) mod token;
pub(crate) mod user;

use crate::compose::{self, Part};
use crate::config::Config;
use crate::failure::Failure;
use abide_forge::Forge;
use abide_forge::accounts::{self, User};
use std::io::{ErrorKind, Read as _, Write as _};

/// Builds the use cases, runs a command with them and closes them properly.
async fn with_forge<T>(config: &Config, run: impl AsyncFnOnce(&Forge) -> Result<T, Failure>) -> Result<T, Failure> {
    let forge = compose::forge(config, Part::Command).await?;
    let done = run(&forge).await;
    // Number the events of this command now, in case no server runs to do it.
    if let Err(error) = abide_forge::sequencer::catch_up(&forge).await {
        eprintln!("note: the logs will be numbered later: {error}");
    }
    forge.close().await;
    done
}

/// The account of that name.
async fn user(forge: &Forge, name: &str) -> Result<User, Failure> {
    let missing = || Failure::not_found(format!("user {name} not found")).hint("`abide user list` shows all users");
    let parsed = name.parse().map_err(|_| missing())?;
    accounts::find(forge, &parsed).await?.ok_or_else(missing)
}

/// Reads standard input up to a limit, without the final line break.
fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .take(64 * 1024)
        .read_to_string(&mut text)
        .map_err(|error| Failure::failed(format!("cannot read standard input: {error}")))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Prints bytes. A closed pipe, such as to `head`, is no error.
fn to_stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
