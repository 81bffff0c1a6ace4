//! Declarations of settings: the name, type, default, bounds and help of a setting stand in one place.
//!
//! [`settings!`](crate::settings!) yields the struct that the code uses and the table that `abide config` prints. Each
//! crate declares the settings that it uses. The command line joins the sections, looks a text up for each setting and
//! fills the structs once; afterwards settings are fields, so a misspelt one does not compile.
//!
//! [`value`] has the kinds of values: durations, sizes, numbers, words.

mod declare;
pub mod value;

pub use value::{Allowed, bytes, count, duration, nonempty, text, truth, window, word};

/// One declared setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// `section.key`.
    pub name: &'static str,
    /// Default, in the form in which operators write it.
    pub default: &'static str,
    /// Properties that few settings have.
    pub marks: &'static [Mark],
    help: &'static str,
}

/// Property of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Many operators set it, so `abide config` shows it without `--all`.
    Common,
    /// A URL that may contain a password, which is never shown.
    Password,
}

impl Setting {
    /// Declares a setting; [`settings!`](crate::settings!) calls it.
    pub const fn new(name: &'static str, default: &'static str, marks: &'static [Mark], help: &'static str) -> Self {
        Self { name, default, marks, help }
    }

    /// One sentence: noun, unit, limit.
    pub fn help(&self) -> &'static str {
        // The text of a doc comment starts with the space after its slashes.
        self.help.trim()
    }

    /// Name of the section.
    pub fn section(&self) -> &'static str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// Whether the setting has a mark.
    pub fn has(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// The value without its password.
    pub fn shown(&self, value: &str) -> String {
        if self.has(Mark::Password) { value::without_password(value) } else { value.to_owned() }
    }
}

/// A text that is not a valid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    pub setting: &'static Setting,
    /// Rule that the text breaks, with the allowed range.
    pub rule: String,
}

/// Texts of settings.
pub trait Texts {
    /// Text that was given for the setting, or its default.
    fn of(&self, setting: &'static Setting) -> &str;
}

/// Every setting has its default.
#[derive(Debug, Clone, Copy)]
pub struct Defaults;

impl Texts for Defaults {
    fn of(&self, setting: &'static Setting) -> &str {
        setting.default
    }
}

/// A struct of settings, made by [`settings!`](crate::settings!).
pub trait Section: Sized {
    /// Settings of the struct itself, in order, without those of structs in it.
    const SETTINGS: &'static [Setting];

    /// Adds the settings of the struct and of structs in it, in order.
    fn declare(all: &mut Vec<&'static Setting>);

    /// Parses every setting. Fails at the first invalid text.
    fn read(texts: &dyn Texts) -> Result<Self, Invalid>;
}

/// Finds a setting at compile time: a name that is not declared does not compile.
pub const fn named<S: Section>(name: &str) -> &'static Setting {
    let mut at = 0;
    while at < S::SETTINGS.len() {
        if same(S::SETTINGS[at].name.as_bytes(), name.as_bytes()) {
            return &S::SETTINGS[at];
        }
        at += 1;
    }
    panic!("no setting of this section has this name")
}

/// `==` on slices is not available in constants.
const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests;
