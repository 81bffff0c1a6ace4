//! Confirmation page that lists the consequences of an action. It needs no script: a link opens the question, its form
//! performs the action, and the form and "Cancel" lead back to the page of the link.
//!
//! The question is shown among the settings (`settings::ask`), in the administration (`admin::ask`), among a repository's
//! settings (`repo/settings/ask.rs`) and on its other pages (`repo/issues/ask.rs`); the macro `question` draws it in all.

/// A question, and the form that answers it.
#[derive(Default)]
pub(crate) struct Question {
    pub title: String,
    /// Name or first characters of the object; empty if the title names it.
    pub about: String,
    pub consequences: Vec<String>,
    /// URL of the form.
    pub action: String,
    pub button: String,
    pub back: String,
    pub fields: Vec<Field>,
    pub hidden: Vec<(&'static str, String)>,
    /// Whether the form asks for the visitor's password.
    pub password: bool,
    pub harm: Harm,
}

/// Severity, which decides the look of the question.
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

/// A field that the visitor must fill in.
pub(crate) struct Field {
    pub name: &'static str,
    pub label: String,
    pub hint: &'static str,
    pub typed: String,
}

/// Consequences with fixed texts.
pub(crate) fn lines<const N: usize>(lines: [&str; N]) -> Vec<String> {
    lines.map(str::to_owned).to_vec()
}
