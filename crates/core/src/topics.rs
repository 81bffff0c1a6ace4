//! The one module that owns the rules for topics: the words a repository can be found by.

use std::fmt;
use std::str::FromStr;

/// How many topics a repository may have.
pub const MAX_TOPICS: usize = 20;

/// A topic: 1–50 of `a–z 0–9 -`, lower case, starting with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(String);

/// Which rule a topic, or the set of them, breaks. Worded for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTopics {
    /// Nothing, or too much.
    #[error("a topic must have 1 to 50 characters")]
    Length,
    /// A character outside the alphabet.
    #[error("a topic may contain only letters a–z, digits and hyphens")]
    Alphabet,
    /// A bad first character.
    #[error("a topic must start with a letter or digit")]
    Start,
    /// Too many of them.
    #[error("a repository can have at most {MAX_TOPICS} topics")]
    TooMany,
}

impl FromStr for Topic {
    type Err = InvalidTopics;

    /// Case and surrounding space do not count.
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
    /// Wraps what the database holds, which was checked when it was written.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The topics of a repository, in the order in which they were typed; one that is there twice counts once.
pub fn topics<T: AsRef<str>>(typed: &[T]) -> Result<Vec<Topic>, InvalidTopics> {
    let mut topics = Vec::new();
    for text in typed {
        let topic = text.as_ref().parse()?;
        if !topics.contains(&topic) {
            topics.push(topic);
        }
        // Within the loop: a list of any length costs no more than one that is too long by one.
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
