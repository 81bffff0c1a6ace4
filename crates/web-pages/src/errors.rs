//! Errors of a form, by field.

/// Errors by field; the empty name stands for the form as a whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct Errors(Vec<(&'static str, String)>);

impl Errors {
    /// Nothing is.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// One thing is. Use cases say `field: what`; a field that the form does not have becomes the form's own.
    pub(crate) fn of(fields: &[&'static str], error: &impl ToString) -> Self {
        let message = error.to_string();
        let named = message.split_once(": ").and_then(|(prefix, what)| {
            let field = fields.iter().find(|field| **field == prefix)?;
            Some((*field, what))
        });
        match named {
            Some((field, what)) => Self::at(field, what),
            None => Self::at("", &message),
        }
    }

    /// One thing is, at a field that is known.
    pub(crate) fn at(field: &'static str, what: &str) -> Self {
        Self(vec![(field, super::problem::sentence(what))])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == field).map(|(_, what)| what.as_str())
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.get(field).is_some()
    }
}
