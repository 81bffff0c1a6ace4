//! The only module with rules for repository topics.

use std::fmt;
use std::str::FromStr;

/// Most topics per repository.
pub const MAX_TOPICS: usize = 20;

/// A topic: 1–50 of `a–z 0–9 -`, lower case, starting with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(String);

/// Rule that a topic or a list of topics breaks. Worded for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTopics {
    #[error("a topic must have 1 to 50 characters")]
    Length,
    #[error("a topic may contain only letters a–z, digits and hyphens")]
    Alphabet,
    #[error("a topic must start with a letter or digit")]
    Start,
    #[error("a repository can have at most {MAX_TOPICS} topics")]
    TooMany,
}

impl FromStr for Topic {
    type Err = InvalidTopics;

    /// Ignores case and surrounding white space.
    fn from_str(text: &str) -> Result<Self, InvalidTopics> {
        let topic = text.trim().to_ascii_lowercase();
        if !(1..=50).contains(&topic.len()) {
            return Err(InvalidTopics::Length);
        }
        if !topic.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            return Err(InvalidTopics::Alphabet);
        }
        if topic.starts_with('-') {
            return Err(InvalidTopics::Start);
        }
        Ok(Self(topic))
    }
}

impl Topic {
    /// Wraps a topic from the database, which holds only valid ones.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Topics of a repository, in the order typed, without duplicates.
pub fn topics<T: AsRef<str>>(typed: &[T]) -> Result<Vec<Topic>, InvalidTopics> {
    let mut topics = Vec::new();
    for text in typed {
        let topic = text.as_ref().parse()?;
        if !topics.contains(&topic) {
            topics.push(topic);
        }
        // Checked within the loop, so that a very long list costs no more than one entry too many.
        if topics.len() > MAX_TOPICS {
            return Err(InvalidTopics::TooMany);
        }
    }
    Ok(topics)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::nothing("", InvalidTopics::Length)]
    #[case::space(" ", InvalidTopics::Length)]
    #[case::underscore("a_b", InvalidTopics::Alphabet)]
    #[case::two_words("two words", InvalidTopics::Alphabet)]
    #[case::other_letters("für", InvalidTopics::Alphabet)]
    #[case::hyphen_first("-a", InvalidTopics::Start)]
    fn refused_topics_say_which_rule_they_break(#[case] text: &str, #[case] rule: InvalidTopics) {
        assert_eq!(text.parse::<Topic>(), Err(rule));
    }

    #[test]
    fn the_longest_topic_has_fifty_characters() {
        assert!("a".repeat(50).parse::<Topic>().is_ok());
        assert_eq!("a".repeat(51).parse::<Topic>(), Err(InvalidTopics::Length));
    }

    #[test]
    fn a_set_keeps_its_order_and_drops_what_is_there_twice() {
        let words: Vec<String> =
            topics(&["rust", "Git", " rust ", "3d"]).unwrap().iter().map(Topic::to_string).collect();
        assert_eq!(words, ["rust", "git", "3d"]);
    }

    #[test]
    fn twenty_are_enough() {
        let many = |count: usize| (0..count).map(|number| format!("t{number}")).collect::<Vec<_>>();
        assert_eq!(topics(&many(20)).unwrap().len(), 20);
        assert_eq!(topics(&many(21)), Err(InvalidTopics::TooMany));
        assert_eq!(topics(&["a"; 100]).unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn what_is_accepted_reads_back_and_keeps_the_rule(text: String) {
            if let Ok(topic) = text.parse::<Topic>() {
                prop_assert_eq!(topic.as_str().parse::<Topic>(), Ok(topic.clone()));
                prop_assert!(topic.as_str().bytes().all(|b| b"abcdefghijklmnopqrstuvwxyz0123456789-".contains(&b)));
            }
        }
    }
}
