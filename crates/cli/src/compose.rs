//! The composition root: builds the use cases from the configuration.

use crate::config::Config;
use crate::failure::Failure;
use abide_core::Random as _;
use abide_core::time::SystemClock;
use abide_forge::accounts::password::Cost;
use abide_forge::{Forge, LoginSettings, Node, OsRandom, Settings, secret};
use abide_git::{Git, GitError, Layout};
use abide_store::{Options, Store};
use std::path::Path;
use std::sync::Arc;

/// Role of a process among those that share its database.
pub(crate) enum Part {
    /// A server, with the addresses that it listens on.
    Server {
        public_url: String,
        /// Prefix of SSH clone URLs.
        ssh_url: String,
    },
    /// A command that uses the same data as the servers.
    Command,
}

/// Creates the data directory if needed, and builds the use cases on it.
pub(crate) async fn forge(config: &Config, part: Part) -> Result<Forge, Failure> {
    let data = config.settings.server.data.clone();
    let server = matches!(part, Part::Server { .. });
    prepare(&data, server)?;
    let data =
        data.canonicalize().map_err(|error| Failure::failed(format!("cannot use {}: {error}", data.display())))?;
    let run = random_hex();
    let node = match server {
        true => Node::server(&data, &config.settings.server.node, &run)
            .map_err(|error| Failure::refused(error.to_string()))?,
        false => Node::command(&run),
    };
    let key = secret::load_or_create(&data, &OsRandom).map_err(|error| Failure::failed(error.to_string()))?;
    let layout = Layout::new(&data);
    let unusable = |error: GitError| Failure::failed(error.to_string());
    let program = Path::new(&config.settings.program.binary);
    let git = Git::new(program, &layout, config.settings.git.clone()).map_err(unusable)?;
    if server {
        git.version().await.map_err(unusable)?;
    }
    let store = Store::open(&store_options(config, &data), Arc::new(SystemClock))
        .await
        .map_err(|error| Failure::failed(error.to_string()))?;
    let settings = settings(config, part);
    Ok(Forge::new(store, git, layout, Arc::new(OsRandom), settings, node, key))
}

/// Only a server or the first command creates a data directory; other commands use an existing one.
fn prepare(data: &Path, server: bool) -> Result<(), Failure> {
    let fresh = !data.exists();
    std::fs::create_dir_all(data)
        .map_err(|error| Failure::failed(format!("cannot create the data directory {}: {error}", data.display())))?;
    if fresh && !server {
        eprintln!("note: created data directory {}; use --data to choose another", data.display());
    }
    for part in ["repos", "incoming"] {
        let path = data.join(part);
        std::fs::create_dir_all(&path)
            .map_err(|error| Failure::failed(format!("cannot create {}: {error}", path.display())))?;
    }
    Ok(())
}

fn random_hex() -> String {
    let mut bytes = [0; 8];
    OsRandom.fill(&mut bytes);
    hex::encode(bytes)
}

/// URL and limits of the database.
fn store_options(config: &Config, data: &Path) -> Options {
    let url = config.settings.server.database.clone();
    Options { url, sqlite_file: data.join("abide.db"), ..config.settings.database.clone() }
}

fn settings(config: &Config, part: Part) -> Settings {
    let settings = config.settings.forge.clone();
    let (public_url, ssh_url) = match part {
        Part::Server { public_url, ssh_url } => (public_url, ssh_url),
        Part::Command => (config.settings.server.public_url.clone(), settings.ssh_url.clone()),
    };
    let login = LoginSettings { password_cost: password_cost(), ..settings.login.clone() };
    Settings { public_url, ssh_url, drain_timeout: config.settings.server.drain, login, ..settings }
}

/// Only development builds, which the tests run, can lower the cost of password hashes.
fn password_cost() -> Cost {
    let cheap = cfg!(debug_assertions) && std::env::var_os("ABIDE_TEST_CHEAP_PASSWORDS").is_some();
    if cheap { Cost::Least } else { Cost::Full }
}
