//! Errors of a form, by field.

use abide_core::InputError;

/// Errors by field; the empty name stands for the form as a whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct Errors(Vec<(&'static str, String)>);

impl Errors {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// The error at its field. If the form, whose `fields` these are, does not have it, the error names the field and
    /// belongs to the form as a whole.
    pub(crate) fn of(fields: &[&'static str], error: &impl InputError) -> Self {
        match error.field() {
            Some(field) if fields.contains(&field) => Self::at(field, &error.to_string()),
            _ => Self::at("", &error.with_field()),
        }
    }

    pub(crate) fn at(field: &'static str, rule: &str) -> Self {
        Self(vec![(field, super::problem::sentence(rule))])
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

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::account::ProfileField;

    #[test]
    fn an_error_is_shown_at_its_field_or_names_it_where_the_form_lacks_it() {
        let error = ProfileField::Bio.check("a\nb").expect_err("a control character");
        let errors = Errors::of(&["display_name", "bio"], &error);
        assert_eq!(errors.get("bio"), Some("Must be one line without control characters."));
        assert!(!errors.has(""));
        let errors = Errors::of(&["display_name"], &error);
        assert_eq!(errors.get(""), Some("Bio: must be one line without control characters."));
    }
}
