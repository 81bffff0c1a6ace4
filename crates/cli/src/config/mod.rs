//! Settings: flag > environment > file > default, each with the source of its value.
//!
//! Settings are declared with `abide_core::settings!` in the crates that use them. `sections.rs` joins them, `given.rs`
//! reads the environment and the file, `removed.rs` lists former settings. After [`load`], settings are typed fields.

mod given;
mod removed;
mod sections;

use crate::failure::Failure;
use abide_core::settings::{Mark, Section as _, Setting, Texts};
use given::{Given, ReadFile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sections::{DATA, DATABASE, declared};
pub(crate) use sections::{LISTEN, LogFormat, PUBLIC_URL, SSH_LISTEN, Settings};

/// Heading of the flags that every command takes, so that help lists them after the command's own.
const COMMON: &str = "Global options";

/// Flags that every command takes.
#[derive(clap::Args, Debug, Default, Clone)]
pub(crate) struct Flags {
    /// Data directory [default: ./data].
    #[arg(long, global = true, value_name = "DIR", help_heading = COMMON)]
    data: Option<String>,
    /// PostgreSQL URL [default: SQLite in the data directory].
    #[arg(long, global = true, value_name = "URL", help_heading = COMMON)]
    database: Option<String>,
    /// Configuration file [default: abide.toml in the data directory].
    #[arg(long, global = true, value_name = "FILE", help_heading = COMMON)]
    config: Option<PathBuf>,
    /// Flags that only one command has.
    #[arg(skip)]
    more: Vec<(&'static Setting, String)>,
}

impl Flags {
    /// Adds a flag that only one command has.
    pub(crate) fn with(mut self, setting: &'static Setting, value: Option<String>) -> Self {
        self.more.extend(value.map(|value| (setting, value)));
        self
    }
}

/// Source of a value.
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

/// The configuration.
pub(crate) struct Config {
    pub settings: Settings,
    given: Given,
}

/// A setting as `abide config` shows it.
pub(crate) struct Shown<'a> {
    pub name: &'static str,
    pub value: String,
    pub source: &'a Source,
    pub help: &'static str,
    /// Whether it is shown without `--all`: common, or set by the operator.
    pub common: bool,
}

/// Reads all sources and checks every value.
pub(crate) fn load(flags: &Flags) -> Result<Config, Failure> {
    let environment = std::env::vars().filter(|(name, _)| name.starts_with("ABIDE_")).collect();
    build(flags, environment, &|path| std::fs::read_to_string(path))
}

fn build(flags: &Flags, environment: BTreeMap<String, String>, read: ReadFile<'_>) -> Result<Config, Failure> {
    let environment = given::from_environment(environment)?;
    // The data directory, which has the file, can itself be set by a flag or the environment.
    let data = flags.data.as_deref().or_else(|| environment.get(DATA).map(|(text, _)| text)).unwrap_or(DATA.default);
    let mut given = given::from_file(flags.config.as_deref(), Path::new(data), read)?;
    given.extend(environment);
    let everywhere = [(DATA, &flags.data), (DATABASE, &flags.database)];
    let everywhere = everywhere.into_iter().filter_map(|(setting, value)| Some((setting, value.clone()?)));
    for (setting, value) in everywhere.chain(flags.more.clone()) {
        given.set(setting, value, Source::Flag);
    }
    let settings = Settings::read(&given).map_err(|invalid| {
        let (setting, rule) = (invalid.setting, invalid.rule);
        let (value, source) = given.get(setting).unwrap_or((setting.default, &Source::Default));
        let shown = setting.shown(value);
        Failure::usage(format!("{} = {shown:?} ({source}) is not valid: {rule}", setting.name)).hint(setting.help())
    })?;
    Ok(Config { settings, given })
}

impl Texts for Given {
    fn of(&self, setting: &'static Setting) -> &str {
        self.get(setting).map_or(setting.default, |(text, _)| text)
    }
}

impl Config {
    /// Every setting in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = Shown<'_>> {
        declared().iter().map(|setting| {
            let (value, source) = self.given.get(setting).unwrap_or((setting.default, &Source::Default));
            Shown {
                name: setting.name,
                value: setting.shown(value),
                source,
                help: setting.help(),
                common: setting.has(Mark::Common) || *source != Source::Default,
            }
        })
    }

    /// Whether the operator set a setting.
    pub(crate) fn is_given(&self, setting: &Setting) -> bool {
        self.given.get(setting).is_some()
    }

    /// Notices about settings that earlier versions had: their values are ignored.
    pub(crate) fn notices(&self) -> &[String] {
        &self.given.notices
    }
}

#[cfg(test)]
mod tests;
