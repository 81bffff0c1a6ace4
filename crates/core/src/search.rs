//! Repository search terms: words, and the qualifiers `topic:` and `user:`.

use crate::UserName;
use crate::qualifier::{self, UnknownQualifier};
use crate::topics::Topic;
use crate::words::words;

/// Most words per search; the store's statements have a parameter for each.
pub const MAX_WORDS: usize = 5;
/// Longest search text, in characters.
pub const MAX_TEXT: usize = 256;

words! {
    /// Order of results.
    Sort {
        /// Best match first: the exact name, then name prefixes, then names that contain it.
        BestMatch = "best",
        /// Most recently updated first.
        Updated = "updated",
        Name = "name",
        /// Most starred first.
        Stars = "stars",
    }
}

/// A parsed search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Lower-case words; all must match.
    pub words: Vec<String>,
    pub topic: Option<Topic>,
    pub owner: Option<UserName>,
    /// A qualifier cannot be satisfied: the result is empty.
    pub impossible: bool,
}

/// Qualifiers of a search.
const QUALIFIERS: &[&str] = &["topic", "user", "owner", "org"];

/// Rule that a search breaks. Worded for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSearch {
    #[error("a search must have at most {MAX_TEXT} characters")]
    TooLong,
    #[error("a search must have at most {MAX_WORDS} words")]
    TooManyWords,
    #[error("{0}")]
    Unknown(UnknownQualifier),
}

impl Terms {
    /// Parses a search. If a qualifier is repeated, the last one counts.
    pub fn parse(text: &str) -> Result<Self, InvalidSearch> {
        if text.chars().count() > MAX_TEXT {
            return Err(InvalidSearch::TooLong);
        }
        let mut terms = Self::default();
        for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once(':').unwrap_or_default();
            match (name.to_ascii_lowercase().as_str(), qualifier::meant(name, value)) {
                ("topic", _) => terms.only_topic(value),
                ("user" | "owner" | "org", _) => terms.only_owner(value),
                (_, Some(name)) => {
                    return Err(InvalidSearch::Unknown(UnknownQualifier { name, known: QUALIFIERS }));
                }
                (_, None) => terms.words.push(word.to_lowercase()),
            }
        }
        if terms.words.len() > MAX_WORDS { Err(InvalidSearch::TooManyWords) } else { Ok(terms) }
    }

    /// Restricts the search to a topic. An invalid topic makes the result empty.
    pub fn only_topic(&mut self, text: &str) {
        match text.parse() {
            Ok(topic) => self.topic = Some(topic),
            Err(_) => self.impossible = true,
        }
    }

    /// Restricts the search to an owner. An invalid name makes the result empty.
    pub fn only_owner(&mut self, text: &str) {
        match text.parse() {
            Ok(owner) => self.owner = Some(owner),
            Err(_) => self.impossible = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_and_qualifiers_are_told_apart() {
        let terms = Terms::parse("  Git topic:Forge\tUser:Alice std::vec ").unwrap();
        assert_eq!(terms.words, ["git", "std::vec"]);
        assert_eq!(terms.topic, Some("forge".parse().unwrap()));
        assert_eq!(terms.owner, Some("alice".parse().unwrap()));
        assert!(!terms.impossible);
        assert_eq!(Terms::parse("").unwrap(), Terms::default());
    }

    #[test]
    fn a_qualifier_that_nothing_can_satisfy_finds_nothing() {
        for text in ["topic:", "topic:a_b", "user:", "user:-", "user:a/b"] {
            assert!(Terms::parse(text).unwrap().impossible, "{text}");
        }
    }

    #[test]
    fn a_qualifier_that_does_not_exist_is_named() {
        let refused = Terms::parse("git Language:rust").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`language:` is not a filter; known filters are `topic:`, `user:`, `owner:`, `org:`"
        );
        assert_eq!(Terms::parse("https://a.example error: 10:30").unwrap().words.len(), 3);
        for known in QUALIFIERS {
            assert!(Terms::parse(&format!("{known}:git")).is_ok(), "{known}");
        }
    }

    #[test]
    fn long_searches_are_refused() {
        assert_eq!(Terms::parse(&"a".repeat(257)), Err(InvalidSearch::TooLong));
        assert_eq!(Terms::parse("a b c d e f"), Err(InvalidSearch::TooManyWords));
        assert_eq!(Terms::parse("a b c d e topic:f").unwrap().words.len(), 5);
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics_and_stays_bounded(text: String) {
            if let Ok(terms) = Terms::parse(&text) {
                prop_assert!(terms.words.len() <= MAX_WORDS);
            }
        }
    }
}
