//! Qualifiers in search texts: `label:bug`, `topic:git`.

use std::fmt;

/// Longest text before a colon that counts as a qualifier name.
const LONGEST_NAME: usize = 32;

/// An unknown qualifier. Worded for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownQualifier {
    /// Its name, in lower case.
    pub name: String,
    /// Names of the known qualifiers.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownQualifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}:`")).collect();
        write!(f, "`{}:` is not a filter; known filters are {}", self.name, known.join(", "))
    }
}

/// Lower-case qualifier name of `name:value`. Other text with a colon is no qualifier: `std::vec`,
/// `https://example.org`, `10:30`, or a word that ends in a colon.
pub fn meant(name: &str, value: &str) -> Option<String> {
    let named = !name.is_empty() && name.len() <= LONGEST_NAME;
    let letters = name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    (named && letters && !value.is_empty() && !value.starts_with([':', '/', '\\'])).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualifiers_are_told_apart_from_text_with_a_colon() {
        for (name, value) in [("foo", "bar"), ("Label", "x"), ("-label", "bug"), ("in", "name,body")] {
            assert_eq!(meant(name, value), Some(name.to_ascii_lowercase()), "{name}:{value}");
        }
        let long = "a".repeat(33);
        for (name, value) in [
            ("std", ":vec"),
            ("https", "//x"),
            ("c", "\\x"),
            ("10", "30"),
            ("error", ""),
            ("", "x"),
            ("ä", "x"),
            (&long, "x"),
        ] {
            assert_eq!(meant(name, value), None, "{name}:{value}");
        }
    }

    #[test]
    fn the_message_names_the_qualifier_and_what_there_is() {
        let unknown = UnknownQualifier { name: "foo".into(), known: &["topic", "user"] };
        assert_eq!(unknown.to_string(), "`foo:` is not a filter; known filters are `topic:`, `user:`");
    }
}
