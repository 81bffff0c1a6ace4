//! Errors of input: the field is data, and the text states only the rule.

use std::fmt::Display;

/// An error that may belong to a field of the input.
pub trait InputError: Display {
    /// Name of the field that breaks a rule, as forms and the API call it.
    fn field(&self) -> Option<&'static str>;

    /// `field: rule`, for a road that has one line of text and no form; the bare text if no field is wrong.
    fn with_field(&self) -> String {
        match self.field() {
            Some(field) => format!("{field}: {self}"),
            None => self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    struct Wrong(Option<&'static str>);

    impl fmt::Display for Wrong {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("is taken")
        }
    }

    impl InputError for Wrong {
        fn field(&self) -> Option<&'static str> {
            self.0
        }
    }

    #[test]
    fn a_line_of_text_names_the_field_before_the_rule() {
        assert_eq!(Wrong(Some("name")).with_field(), "name: is taken");
        assert_eq!(Wrong(None).with_field(), "is taken");
    }
}
