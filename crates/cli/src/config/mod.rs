//! Settings: flag > environment > file > default, and always known where a value came from.
//!
//! `keys.rs` lists every setting, `value.rs` reads durations, sizes and lists.

mod keys;
mod value;

use crate::failure::Failure;
use abide_nostr::grasp::quota::Share;
use keys::{KEYS, Key};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Flags that every command takes.
#[derive(clap::Args, Debug, Default, Clone)]
pub(crate) struct Flags {
    /// Data directory [default: ./data].
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<String>,
    /// PostgreSQL URL [default: SQLite in the data directory].
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    /// Configuration file [default: abide.toml in the data directory].
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set on the way in by commands that have more flags of their own.
    #[arg(skip)]
    more: Vec<(&'static str, String)>,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Flag,
    Environment(String),
    File(PathBuf),
    Default,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Every setting with its value.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    values: BTreeMap<&'static str, (String, Source)>,
}

/// Reads all sources and checks every value.
pub(crate) fn load(flags: &Flags) -> Result<Config, Failure> {
    let environment = std::env::vars().filter(|(name, _)| name.starts_with("ABIDE_")).collect();
    build(flags, environment, &|path| std::fs::read_to_string(path))
}

type ReadFile<'a> = &'a dyn Fn(&Path) -> std::io::Result<String>;

fn build(flags: &Flags, environment: BTreeMap<String, String>, read: ReadFile<'_>) -> Result<Config, Failure> {
    let defaults = KEYS.iter().map(|key| (key.name, (key.default.to_owned(), Source::Default)));
    let mut config = Config { values: defaults.collect() };
    let environment = from_environment(environment)?;
    // Where the file is can itself be set by a flag or the environment.
    let data = flags.data.clone().or_else(|| environment.get("server.data").map(|(value, _)| value.clone()));
    let data = PathBuf::from(data.unwrap_or_else(|| config.text("server.data").to_owned()));
    config.values.extend(from_file(flags.config.as_deref(), &data, read)?);
    config.values.extend(environment);
    let named = [("server.data", &flags.data), ("server.database", &flags.database)];
    let given = named.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
    config.values.extend(given.chain(flags.more.clone()).map(|(name, value)| (name, (value, Source::Flag))));
    for key in KEYS {
        let (value, source) = &config.values[key.name];
        (key.check)(value).map_err(|rule| {
            let shown = key.shown(value);
            Failure::usage(format!("{} = {shown:?} ({source}) is not valid: {rule}", key.name)).hint(key.about)
        })?;
    }
    Ok(config)
}

/// `ABIDE_SECTION__KEY`. Other names that start with `ABIDE_` and have a double underscore are mistakes.
fn from_environment(
    environment: BTreeMap<String, String>,
) -> Result<BTreeMap<&'static str, (String, Source)>, Failure> {
    let mut values = BTreeMap::new();
    for (name, value) in environment {
        let Some((section, key)) = name.strip_prefix("ABIDE_").and_then(|rest| rest.split_once("__")) else { continue };
        let wanted = format!("{}.{}", section.to_lowercase(), key.to_lowercase());
        let key = find(&wanted).ok_or_else(|| unknown(&wanted, &Source::Environment(name.clone())))?;
        values.insert(key.name, (value, Source::Environment(name)));
    }
    Ok(values)
}

fn from_file(
    named: Option<&Path>,
    data: &Path,
    read: ReadFile<'_>,
) -> Result<BTreeMap<&'static str, (String, Source)>, Failure> {
    let path = named.map_or_else(|| data.join("abide.toml"), Path::to_owned);
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => return Ok(BTreeMap::new()),
        Err(error) => return Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
    };
    let table: toml::Table =
        text.parse().map_err(|error| Failure::usage(format!("{} is not valid TOML: {error}", path.display())))?;
    let mut values = BTreeMap::new();
    for (section, entries) in table {
        let toml::Value::Table(entries) = entries else {
            return Err(Failure::usage(format!("{section} in {} is outside a [section]", path.display())));
        };
        for (name, entry) in entries {
            let wanted = format!("{section}.{name}");
            let source = Source::File(path.clone());
            let key = find(&wanted).ok_or_else(|| unknown(&wanted, &source))?;
            values.insert(
                key.name,
                (value::from_toml(&entry).map_err(|rule| Failure::usage(format!("{wanted}: {rule}")))?, source),
            );
        }
    }
    Ok(values)
}

fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

fn unknown(name: &str, source: &Source) -> Failure {
    let section = name.split('.').next().unwrap_or_default();
    let near: Vec<_> = KEYS.iter().filter(|key| key.name.starts_with(section)).map(|key| key.name).collect();
    let failure = Failure::usage(format!("unknown setting {name} ({source})"));
    match near.is_empty() {
        true => failure.hint("`abide config` lists all settings"),
        false => failure.hint(format!("settings in this section: {}", near.join(", "))),
    }
}

impl Flags {
    /// Adds a flag that only one command has.
    pub(crate) fn with(mut self, name: &'static str, value: Option<String>) -> Self {
        self.more.extend(value.map(|value| (name, value)));
        self
    }
}

impl Config {
    /// Every setting in order: name, value, source, what it is for.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, String, &Source, &'static str)> {
        KEYS.iter().map(|key| {
            let (value, source) = &self.values[key.name];
            (key.name, key.shown(value), source, key.about)
        })
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        &self.values[name].0
    }

    pub(crate) fn is_default(&self, name: &str) -> bool {
        self.values[name].1 == Source::Default
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(self.text(name))
    }

    pub(crate) fn duration(&self, name: &str) -> Duration {
        value::duration(self.text(name)).expect("every value was checked when it was read")
    }

    pub(crate) fn bytes(&self, name: &str) -> u64 {
        value::bytes(self.text(name)).expect("every value was checked when it was read")
    }

    pub(crate) fn share(&self, name: &str) -> Share {
        value::share(self.text(name)).expect("every value was checked when it was read")
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        value::number(self.text(name)).expect("every value was checked when it was read")
    }

    pub(crate) fn list(&self, name: &str) -> impl Iterator<Item = &str> {
        value::list(self.text(name))
    }

    pub(crate) fn address(&self, name: &str) -> SocketAddr {
        self.text(name).parse().expect("every value was checked when it was read")
    }
}

#[cfg(test)]
mod tests;
