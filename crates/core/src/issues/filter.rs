//! Filters of issue lists: `is:open label:bug author:alice no:assignee sort:updated-desc crash`.
//!
//! A [`Filter`] is parsed from text and written back as text ([`std::fmt::Display`]), so that a page can link to the
//! same list with one change. A condition that cannot be satisfied is kept, so that the list is empty instead of a
//! different one.

use super::{Reason, State};
use crate::UserName;
use crate::qualifier::{self, UnknownQualifier};
use crate::words::words;
use std::fmt;

/// Most search words per filter; the store's statements have a parameter for each.
pub const MAX_WORDS: usize = 5;
/// Most labels per filter.
pub const MAX_LABELS: usize = 20;
/// Longest filter text, in characters.
pub const MAX_TEXT: usize = 512;

words! {
    /// Sort key of a list.
    Sort {
        /// Creation time.
        Created = "created",
        /// Time of the last change.
        Updated = "updated",
        /// Number of comments.
        Comments = "comments",
    }
}

/// Condition on an optional property of an issue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted<T> {
    /// No condition.
    #[default]
    Any,
    /// The property is absent.
    None,
    /// The property is present.
    Some,
    /// The property has this value.
    Is(T),
}

/// Conditions and order of an issue list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub state: Option<State>,
    /// Reason of the current state.
    pub reason: Option<Reason>,
    /// Issues must have all of these labels, in lower case.
    pub labels: Vec<String>,
    /// Only issues without labels.
    pub no_label: bool,
    pub author: Option<UserName>,
    /// Assignee by name, any assignee or none.
    pub assignee: Wanted<UserName>,
    /// Milestone by title, any milestone or none.
    pub milestone: Wanted<String>,
    /// Lower-case search words; all must match.
    pub words: Vec<String>,
    pub sort: Sort,
    /// Ascending order: least or oldest first.
    pub ascending: bool,
    /// A condition cannot be satisfied: the list is empty.
    pub impossible: bool,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            state: None,
            reason: None,
            labels: Vec::new(),
            no_label: false,
            author: None,
            assignee: Wanted::Any,
            milestone: Wanted::Any,
            words: Vec::new(),
            sort: Sort::Created,
            ascending: false,
            impossible: false,
        }
    }
}

/// Qualifiers of a list within one repository.
const QUALIFIERS: &[&str] = &["is", "state", "reason", "label", "author", "assignee", "milestone", "no", "sort"];

/// Rule that a filter breaks. Worded for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFilter {
    #[error("a filter must have at most {MAX_TEXT} characters")]
    TooLong,
    #[error("a filter must have at most {MAX_WORDS} search words")]
    TooManyWords,
    #[error("a filter must have at most {MAX_LABELS} labels")]
    TooManyLabels,
    #[error("repo: can be given only once")]
    SeveralRepos,
    #[error("{0}; put it in quotes to search for it as text")]
    Unknown(UnknownQualifier),
}

impl Filter {
    /// Parses a filter. If a single-valued qualifier is repeated, the last one counts.
    pub fn parse(text: &str) -> Result<Self, InvalidFilter> {
        Self::parse_with(text, QUALIFIERS, |name, value, filter| filter.qualify(name, value))
    }

    /// As [`Filter::parse`], with a custom qualifier handler. It returns `false` for an unknown qualifier; `known` are
    /// the names for the error message.
    pub(super) fn parse_with(
        text: &str,
        known: &'static [&'static str],
        mut qualify: impl FnMut(&str, &str, &mut Self) -> bool,
    ) -> Result<Self, InvalidFilter> {
        if text.chars().count() > MAX_TEXT {
            return Err(InvalidFilter::TooLong);
        }
        let mut filter = Self::default();
        for token in tokens(text) {
            match token.qualifier {
                Some(name) if qualify(&name.to_ascii_lowercase(), &token.value, &mut filter) => {}
                Some(name) if qualifier::meant(&name, &token.value).is_some() => {
                    let name = name.to_ascii_lowercase();
                    return Err(InvalidFilter::Unknown(UnknownQualifier { name, known }));
                }
                Some(name) => filter.words.push(format!("{name}:{}", token.value).to_lowercase()),
                None if token.value.is_empty() => {}
                None => filter.words.push(token.value.to_lowercase()),
            }
        }
        if filter.words.len() > MAX_WORDS {
            return Err(InvalidFilter::TooManyWords);
        }
        if filter.labels.len() > MAX_LABELS {
            return Err(InvalidFilter::TooManyLabels);
        }
        Ok(filter)
    }

    /// Applies a qualifier; `false` if the name is unknown.
    pub(super) fn qualify(&mut self, name: &str, value: &str) -> bool {
        match name {
            "is" | "state" if value == "issue" => {}
            "is" | "state" => match value.parse() {
                Ok(state) => self.state = Some(state),
                Err(_) => self.impossible = true,
            },
            "reason" => match value.replace(['-', ' '], "_").parse() {
                Ok(reason) => self.reason = Some(reason),
                Err(_) => self.impossible = true,
            },
            "label" => self.only_label(value),
            "author" => self.only_author(value),
            "assignee" => self.only_assignee(value),
            "milestone" => self.only_milestone(value),
            "no" => match value {
                "label" => self.no_label = true,
                "assignee" => self.assignee = Wanted::None,
                "milestone" => self.milestone = Wanted::None,
                _ => self.impossible = true,
            },
            "sort" => self.order(value),
            _ => return false,
        }
        true
    }

    /// Restricts the list to a label. A name that no label can have makes the list empty.
    pub fn only_label(&mut self, name: &str) {
        let folded = name.trim().to_lowercase();
        if folded.contains(char::is_control) {
            return self.impossible = true;
        }
        if !self.labels.contains(&folded) {
            self.labels.push(folded);
        }
    }

    /// Restricts the list to an author. An invalid name makes the list empty.
    pub fn only_author(&mut self, name: &str) {
        match name.trim_start_matches('@').parse() {
            Ok(author) => self.author = Some(author),
            Err(_) => self.impossible = true,
        }
    }

    /// Restricts the list to an assignee; `*` means any and `none` nobody.
    pub fn only_assignee(&mut self, name: &str) {
        let name = name.trim().trim_start_matches('@').to_lowercase();
        self.assignee = match name.as_str() {
            "*" => Wanted::Some,
            "none" => Wanted::None,
            name => match name.parse() {
                Ok(name) => Wanted::Is(name),
                Err(_) => return self.impossible = true,
            },
        };
    }

    /// Restricts the list to a milestone title; `*` means any and `none` none.
    pub fn only_milestone(&mut self, title: &str) {
        let title = title.trim().to_lowercase();
        self.milestone = match title.as_str() {
            "*" => Wanted::Some,
            "none" => Wanted::None,
            _ => Wanted::Is(title),
        };
    }

    /// Parses `created-asc`, `updated-desc`, `comments`; ignores anything else.
    fn order(&mut self, text: &str) {
        let (sort, direction) = text.split_once('-').unwrap_or((text, "desc"));
        if let Ok(sort) = sort.parse()
            && ["asc", "desc"].contains(&direction)
        {
            (self.sort, self.ascending) = (sort, direction == "asc");
        }
    }

    /// The same filter with another state.
    pub fn in_state(&self, state: State) -> Self {
        // A reason belongs to one state.
        let reason = self.reason.filter(|reason| reason.fits(state));
        Self { state: Some(state), reason, ..self.clone() }
    }

    /// Whether only state and order are set.
    pub fn is_plain(&self) -> bool {
        let plain = Self { state: self.state, sort: self.sort, ascending: self.ascending, ..Self::default() };
        *self == plain
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.state.map(|state| format!("is:{state}")));
        parts.extend(self.reason.map(|reason| format!("reason:{reason}")));
        parts.extend(self.author.iter().map(|author| format!("author:{author}")));
        match &self.assignee {
            Wanted::Any => {}
            Wanted::None => parts.push("no:assignee".into()),
            Wanted::Some => parts.push("assignee:*".into()),
            Wanted::Is(name) => parts.push(format!("assignee:{name}")),
        }
        parts.extend(self.labels.iter().map(|label| format!("label:{}", quoted(label))));
        if self.no_label {
            parts.push("no:label".into());
        }
        match &self.milestone {
            Wanted::Any => {}
            Wanted::None => parts.push("no:milestone".into()),
            Wanted::Some => parts.push("milestone:*".into()),
            Wanted::Is(title) => parts.push(format!("milestone:{}", quoted(title))),
        }
        if (self.sort, self.ascending) != (Sort::Created, false) {
            parts.push(format!("sort:{}-{}", self.sort, if self.ascending { "asc" } else { "desc" }));
        }
        if self.impossible {
            parts.push("no:way".into());
        }
        parts.extend(self.words.iter().map(|word| quoted(word)));
        f.write_str(&parts.join(" "))
    }
}

/// Quotes a value if it contains a space or colon, or is a reserved word.
fn quoted(value: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | ':');
    let reserved = value.is_empty() || value == "*" || value == "none";
    if !reserved && value.chars().all(plain) { value.to_owned() } else { format!("\"{}\"", value.replace('"', "")) }
}

struct Token {
    qualifier: Option<String>,
    value: String,
}

/// Splits at white space outside quotes. Unquoted text before the first colon of a word is its qualifier.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut token = Token { qualifier: None, value: String::new() };
    let (mut quoted, mut begun, mut was_quoted) = (false, false, false);
    let ended = |token: &mut Token| std::mem::replace(token, Token { qualifier: None, value: String::new() });
    for c in text.chars() {
        match c {
            '"' => (quoted, begun, was_quoted) = (!quoted, true, true),
            c if !quoted && (c.is_whitespace() || c.is_control()) => {
                if begun {
                    tokens.push(ended(&mut token));
                }
                (begun, was_quoted) = (false, false);
            }
            ':' if !was_quoted && token.qualifier.is_none() && !token.value.is_empty() => {
                token.qualifier = Some(std::mem::take(&mut token.value));
            }
            c if c.is_control() => token.value.push(' '),
            c => {
                begun = true;
                token.value.push(c);
            }
        }
    }
    if begun {
        tokens.push(token);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn everything_that_can_be_asked_for_is_understood() {
        let text = "is:open Label:X label:Bug label:\"good first issue\" author:@Alice assignee:bob milestone:\"v 1\" \
                    sort:updated-asc Crash \"is:open\" std::vec";
        let filter = Filter::parse(text).unwrap();
        let expected = Filter {
            state: Some(State::Open),
            labels: vec!["x".into(), "bug".into(), "good first issue".into()],
            author: Some("alice".parse().unwrap()),
            assignee: Wanted::Is("bob".parse().unwrap()),
            milestone: Wanted::Is("v 1".into()),
            words: vec!["crash".into(), "is:open".into(), "std::vec".into()],
            sort: Sort::Updated,
            ascending: true,
            ..Filter::default()
        };
        assert_eq!(filter, expected);
        let none = Filter::parse("no:label no:assignee no:milestone is:closed reason:\"not planned\"").unwrap();
        assert!(none.no_label && none.assignee == Wanted::None && none.milestone == Wanted::None);
        assert_eq!((none.state, none.reason), (Some(State::Closed), Some(Reason::NotPlanned)));
        assert_eq!(Filter::parse("assignee:* milestone:*").unwrap().milestone, Wanted::Some);
        let folded = Filter::parse("assignee:@None milestone:\" * \"").unwrap();
        assert_eq!((folded.assignee, folded.milestone), (Wanted::None, Wanted::Some));
        assert_eq!(Filter::parse("").unwrap(), Filter::default());
    }

    #[test]
    fn what_nothing_can_satisfy_finds_nothing() {
        for text in ["is:merged", "author:", "author:a/b", "assignee:-", "no:way", "reason:because", "state:"] {
            assert!(Filter::parse(text).unwrap().impossible, "{text}");
        }
        assert!(!Filter::parse("is:issue sort:backwards").unwrap().impossible);
        let mut odd = Filter::default();
        odd.only_label("a\nb");
        assert!(odd.impossible && odd.labels.is_empty());
    }

    #[test]
    fn a_qualifier_that_does_not_exist_is_named() {
        let refused = Filter::parse("is:open Foo:bar").unwrap_err();
        let known = "`is:`, `state:`, `reason:`, `label:`, `author:`, `assignee:`, `milestone:`, `no:`, `sort:`";
        let hint = "put it in quotes to search for it as text";
        assert_eq!(refused.to_string(), format!("`foo:` is not a filter; known filters are {known}; {hint}"));
        assert!(Filter::parse("-label:bug").is_err(), "a minus is not understood, so it is not ignored either");
        for text in ["\"foo:bar\"", "https://a.example", "error: 10:30", "x::y"] {
            assert!(Filter::parse(text).is_ok(), "{text}");
        }
        for known in QUALIFIERS {
            assert!(Filter::parse(&format!("{known}:open")).is_ok(), "{known}");
        }
    }

    #[test]
    fn long_filters_are_refused() {
        assert_eq!(Filter::parse(&"a".repeat(513)), Err(InvalidFilter::TooLong));
        assert_eq!(Filter::parse("a b c d e f"), Err(InvalidFilter::TooManyWords));
        let labels: String = (0..21).map(|number| format!("label:{number} ")).collect();
        assert_eq!(Filter::parse(&labels), Err(InvalidFilter::TooManyLabels));
    }

    #[test]
    fn another_state_keeps_the_rest_but_a_reason_that_does_not_fit() {
        let filter = Filter::parse("is:closed reason:completed label:bug x").unwrap().in_state(State::Open);
        assert_eq!(filter.to_string(), "is:open label:bug x");
        assert!(Filter::parse("is:open sort:comments").unwrap().is_plain());
        assert!(!filter.is_plain());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(text in "((is|label|author|assignee|milestone|no|sort|x)?:?\"?([a-zA-Z*@ \\-äÉ:]{0,8}|@?[nN]one)\"? ?){0,6}") {
            if let Ok(filter) = Filter::parse(&text) {
                let again = Filter::parse(&filter.to_string());
                prop_assert_eq!(again, Ok(filter.clone()), "{}", filter);
            }
        }

        #[test]
        fn arbitrary_text_never_panics_and_stays_bounded(text: String) {
            if let Ok(filter) = Filter::parse(&text) {
                prop_assert!(filter.words.len() <= MAX_WORDS && filter.labels.len() <= MAX_LABELS);
            }
        }
    }
}
