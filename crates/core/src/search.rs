//! What someone looks for: words, and the qualifiers `topic:` and `user:` among them.

use crate::UserName;
use crate::qualifier::{self, UnknownQualifier};
use crate::topics::Topic;
use crate::words::words;

/// How many words one search may have; the store's statements have a place for each.
pub const MAX_WORDS: usize = 5;
/// The longest text that is looked at.
pub const MAX_TEXT: usize = 256;

words! {
    /// In which order results come.
    Sort {
        /// What fits best comes first: the name itself, then names that begin with it, then names that have it.
        BestMatch = "best",
        /// What changed last comes first.
        Updated = "updated",
        /// By name.
        Name = "name",
        /// What most people star comes first.
        Stars = "stars",
    }
}

/// A search, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Lower-case words, each of which has to be found.
    pub words: Vec<String>,
    /// Only repositories that have this topic.
    pub topic: Option<Topic>,
    /// Only repositories of this owner.
    pub owner: Option<UserName>,
    /// A qualifier that nothing can satisfy was given: the result is empty.
    pub impossible: bool,
}

/// The qualifiers of a search.
const QUALIFIERS: &[&str] = &["topic", "user", "owner", "org"];

/// Which rule a search breaks. Worded for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSearch {
    /// Too long.
    #[error("a search must have at most {MAX_TEXT} characters")]
    TooLong,
    /// Too many words.
    #[error("a search must have at most {MAX_WORDS} words")]
    TooManyWords,
    /// A qualifier that does not exist.
    #[error("{0}")]
    Unknown(UnknownQualifier),
}

impl Terms {
    /// Reads what was typed. A qualifier may be given once; the last one counts.
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

    /// Narrows the search to a topic; what is no topic, no repository has.
    pub fn only_topic(&mut self, text: &str) {
        match text.parse() {
            Ok(topic) => self.topic = Some(topic),
            Err(_) => self.impossible = true,
        }
    }

    /// Narrows the search to an owner; what is no name, nobody has.
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
