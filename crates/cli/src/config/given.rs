//! Values of settings from the environment and the configuration file, as text.

use super::sections::declared;
use super::{Source, removed};
use crate::failure::Failure;
use abide_core::settings::Setting;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) type ReadFile<'a> = &'a dyn Fn(&Path) -> std::io::Result<String>;

/// Values from one or several sources.
#[derive(Default)]
pub(super) struct Given {
    texts: BTreeMap<&'static str, (String, Source)>,
    pub notices: Vec<String>,
}

impl Given {
    /// Value and source of a setting, if a source has it.
    pub(super) fn get(&self, setting: &Setting) -> Option<(&str, &Source)> {
        self.texts.get(setting.name).map(|(text, source)| (text.as_str(), source))
    }

    pub(super) fn set(&mut self, setting: &Setting, text: String, source: Source) {
        self.texts.insert(setting.name, (text, source));
    }

    /// Adds a source, which overrides earlier ones.
    pub(super) fn extend(&mut self, other: Given) {
        self.texts.extend(other.texts);
        self.notices.extend(other.notices);
    }

    /// Adds a value by name. A removed name becomes a notice, an unknown one fails.
    fn add(
        &mut self,
        name: &str,
        source: Source,
        text: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        if let Some(setting) = declared().iter().find(|setting| setting.name == name) {
            self.set(setting, text()?, source);
        } else if let Some(notice) = removed::notice(name, &source) {
            self.notices.push(notice);
        } else {
            return Err(unknown(name, &source));
        }
        Ok(())
    }
}

/// `ABIDE_SECTION__KEY`. Other names that start with `ABIDE_` and have a double underscore are mistakes.
pub(super) fn from_environment(environment: BTreeMap<String, String>) -> Result<Given, Failure> {
    let mut given = Given::default();
    for (name, value) in environment {
        let Some((section, key)) = name.strip_prefix("ABIDE_").and_then(|rest| rest.split_once("__")) else { continue };
        let setting = format!("{}.{}", section.to_lowercase(), key.to_lowercase());
        given.add(&setting, Source::Environment(name), || Ok(value))?;
    }
    Ok(given)
}

/// The file of `--config`, or `abide.toml` in the data directory if it exists.
pub(super) fn from_file(named: Option<&Path>, data: &Path, read: ReadFile<'_>) -> Result<Given, Failure> {
    let path = named.map_or_else(|| data.join("abide.toml"), Path::to_owned);
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => return Ok(Given::default()),
        Err(error) => return Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
    };
    let table: toml::Table =
        text.parse().map_err(|error| Failure::usage(format!("{} is not valid TOML: {error}", path.display())))?;
    let mut given = Given::default();
    for (section, entries) in table {
        let toml::Value::Table(entries) = entries else {
            return Err(Failure::usage(format!("{section} in {} is outside a [section]", path.display())));
        };
        for (key, entry) in entries {
            let name = format!("{section}.{key}");
            let text = || from_toml(&entry).map_err(|rule| Failure::usage(format!("{name}: {rule}")));
            given.add(&name, Source::File(path.clone()), text)?;
        }
    }
    Ok(given)
}

/// A TOML value as it would be written in the environment. Lists become comma-separated.
fn from_toml(value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Array(items) => Ok(items.iter().map(from_toml).collect::<Result<Vec<_>, _>>()?.join(",")),
        toml::Value::Table(_) | toml::Value::Datetime(_) => {
            Err("a setting must be a string, a number, a boolean or a list".into())
        }
    }
}

fn unknown(name: &str, source: &Source) -> Failure {
    let section = name.split('.').next().unwrap_or_default();
    let near = declared().iter().filter(|setting| setting.section() == section);
    let near: Vec<_> = near.map(|setting| setting.name).collect();
    let failure = Failure::usage(format!("unknown setting {name} ({source})"));
    match near.is_empty() {
        true => failure.hint("`abide config --all` lists all settings"),
        false => failure.hint(format!("settings in this section: {}", near.join(", "))),
    }
}
