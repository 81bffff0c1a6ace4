//! Text rules of issues, comments, labels and milestones.

use std::fmt;
use std::str::FromStr;

/// Longest title, in characters.
pub const MAX_TITLE: usize = 256;
/// Longest label name, in characters.
pub const MAX_LABEL: usize = 50;
/// Longest label description, in characters.
pub const MAX_LABEL_ABOUT: usize = 100;
/// Longest milestone description, in characters.
pub const MAX_MILESTONE_ABOUT: usize = 1000;

/// Rule that a text breaks. Worded for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidText {
    /// An empty or overlong title.
    #[error("a title must be one line of 1 to {MAX_TITLE} characters")]
    Title,
    /// Over the size limit of this server.
    #[error("the text must have at most {0} bytes")]
    TooLong(usize),
    /// An empty comment.
    #[error("the comment is empty")]
    Empty,
    /// Control characters.
    #[error("the text contains control characters; remove them")]
    Control,
    /// An invalid label name.
    #[error("a label name must be one line of 1 to {MAX_LABEL} characters")]
    Label,
    /// An invalid label colour.
    #[error("a colour must have six hexadecimal digits, such as d73a4a")]
    Colour,
    /// An invalid description.
    #[error("a description must be one line of at most {0} characters")]
    About(usize),
}

/// Title of an issue or a milestone: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title(String);

/// Name of a label: one line, case-insensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelName(String);

/// Colour of a label: six hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colour(String);

macro_rules! text {
    ($($name:ident),+) => {
        $(
            impl $name {
                pub fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(&self.0)
                }
            }
        )+
    };
}
text!(Title, LabelName, Colour);

/// Bidirectional control characters, which can make one text look like another.
fn deceives(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn one_line(text: &str, most: usize) -> Option<String> {
    let text = text.trim();
    let plain = !text.chars().any(|c| c.is_control() || deceives(c) || matches!(c, '\u{2028}' | '\u{2029}'));
    (plain && !text.is_empty() && text.chars().count() <= most).then(|| text.to_owned())
}

impl FromStr for Title {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        one_line(text, MAX_TITLE).map(Self).ok_or(InvalidText::Title)
    }
}

impl FromStr for LabelName {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        one_line(text, MAX_LABEL).map(Self).ok_or(InvalidText::Label)
    }
}

impl LabelName {
    /// The name in lower case; labels with equal folded names are the same.
    pub fn folded(&self) -> String {
        self.0.to_lowercase()
    }
}

impl FromStr for Colour {
    type Err = InvalidText;

    /// Accepts an optional `#` and any letter case.
    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let digits = text.trim().trim_start_matches('#');
        match digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            true => Ok(Self(digits.to_ascii_lowercase())),
            false => Err(InvalidText::Colour),
        }
    }
}

impl Default for Colour {
    /// Colour of a label without a chosen colour.
    fn default() -> Self {
        Self("ededed".into())
    }
}

/// Text of an issue or a comment as stored: with line feeds as line ends, and without invisible characters.
pub fn body(text: &str, most: usize) -> Result<String, InvalidText> {
    if text.len() > most {
        return Err(InvalidText::TooLong(most));
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err(InvalidText::Control);
    }
    Ok(text)
}

/// Text of a comment, which must not be empty.
pub fn comment(text: &str, most: usize) -> Result<String, InvalidText> {
    match body(text, most)? {
        text if text.trim().is_empty() => Err(InvalidText::Empty),
        text => Ok(text),
    }
}

/// A one-line description, which may be empty.
pub fn about(text: &str, most: usize) -> Result<String, InvalidText> {
    match text.trim() {
        "" => Ok(String::new()),
        text => one_line(text, most).ok_or(InvalidText::About(most)),
    }
}

/// Start of a text on one line, for logs and mails. Skips the fence lines of code blocks.
pub fn excerpt(text: &str, characters: usize) -> String {
    let fence = |line: &&str| ["```", "~~~"].iter().any(|mark| line.trim_start().starts_with(mark));
    let mut short = String::new();
    for word in text.lines().filter(|line| !fence(line)).flat_map(str::split_whitespace) {
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
        if short.chars().nth(characters).is_some() {
            let kept: String = short.chars().take(characters).collect();
            return format!("{kept}…");
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_excerpt_leaves_the_fences_of_code_out() {
        assert_eq!(excerpt("Like this:\n\n```rust\nsum(&[])\n  ```\nor so", 80), "Like this: sum(&[]) or so");
    }
    use rstest::rstest;

    #[rstest]
    #[case("", false)]
    #[case(" \t ", false)]
    #[case(" Crash on start ", true)]
    #[case("two\nlines", false)]
    #[case("bell\u{7}", false)]
    #[case("turned \u{202e}round", false)]
    #[case("<script>alert(1)</script>", true)]
    fn titles_are_one_visible_line(#[case] text: &str, #[case] fine: bool) {
        assert_eq!(text.parse::<Title>().is_ok(), fine);
        assert_eq!(text.parse::<LabelName>().is_ok(), fine);
    }

    #[test]
    fn lengths_are_counted_in_characters() {
        assert!("ä".repeat(256).parse::<Title>().is_ok());
        assert_eq!("ä".repeat(257).parse::<Title>(), Err(InvalidText::Title));
        assert!("ä".repeat(50).parse::<LabelName>().is_ok());
        assert_eq!("ä".repeat(51).parse::<LabelName>(), Err(InvalidText::Label));
        assert_eq!(about(&"x".repeat(101), 100), Err(InvalidText::About(100)));
        assert_eq!(about("  ", 100), Ok(String::new()));
    }

    #[test]
    fn colours_are_six_digits() {
        assert_eq!("#D73A4A".parse::<Colour>().unwrap().as_str(), "d73a4a");
        for bad in ["", "fff", "d73a4", "d73a4ag", "rebecca", "1234567", "url(x)"] {
            assert_eq!(bad.parse::<Colour>(), Err(InvalidText::Colour), "{bad}");
        }
    }

    #[test]
    fn bodies_have_line_feeds_and_no_invisible_characters() {
        assert_eq!(body("a\r\nb\rc\n\td", 100).unwrap(), "a\nb\nc\n\td");
        assert_eq!(body("a\0b", 100), Err(InvalidText::Control));
        assert_eq!(body("\u{1b}[31m", 100), Err(InvalidText::Control));
        assert_eq!(body("ää", 3), Err(InvalidText::TooLong(3)));
        assert_eq!(body("", 3), Ok(String::new()));
        assert_eq!(comment(" \n ", 100), Err(InvalidText::Empty));
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_accepted_again_and_stays_the_same(text: String) {
            if let Ok(title) = text.parse::<Title>() {
                prop_assert_eq!(title.as_str().parse::<Title>(), Ok(title.clone()));
            }
            if let Ok(text) = body(&text, 1000) {
                prop_assert_eq!(body(&text, 1000), Ok(text.clone()));
            }
        }

        #[test]
        fn an_excerpt_is_one_short_line(text: String, most in 1..80_usize) {
            let short = excerpt(&text, most);
            prop_assert!(short.chars().count() <= most + 1 && !short.contains('\n'));
        }
    }
}
