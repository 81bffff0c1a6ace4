//! The page that lists the consequences of an action before it is done. It works without a script: a link leads to the
//! question, the question's form does it, and both the form and "Cancel" lead back to where the link was.
//!
//! The question is shown among the settings (`settings::ask`), in the administration (`admin::ask`), among a repository's
//! settings (`repo/settings/ask.rs`) and on its other pages (`repo/issues/ask.rs`); the macro `question` draws it in all.

/// A question, and the form that answers it.
#[derive(Default)]
pub(crate) struct Question {
    pub title: String,
    /// The thing in question, as it is called or as it begins; empty if the title says it.
    pub about: String,
    pub consequences: Vec<String>,
    /// The address that takes the answer.
    pub action: String,
    pub button: String,
    /// Where "Cancel" leads.
    pub back: String,
    pub fields: Vec<Field>,
    pub hidden: Vec<(&'static str, String)>,
    /// Whether the answer needs the password of the person who is logged in.
    pub password: bool,
    pub harm: Harm,
}

/// How the question looks.
#[derive(Default, PartialEq, Eq)]
pub(crate) enum Harm {
    #[default]
    Danger,
    None,
}

impl Question {
    pub(crate) fn is_danger(&self) -> bool {
        self.harm == Harm::Danger
    }
}

/// A text that has to be typed.
pub(crate) struct Field {
    pub name: &'static str,
    pub label: String,
    pub hint: &'static str,
    pub typed: String,
}

/// Consequences that are the same each time.
pub(crate) fn lines<const N: usize>(lines: [&str; N]) -> Vec<String> {
    lines.map(str::to_owned).to_vec()
}
