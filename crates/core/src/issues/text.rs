//! What issues, comments, labels and milestones may say.

use std::fmt;
use std::str::FromStr;

/// How many characters a title may have.
pub const MAX_TITLE: usize = 256;
/// How many characters the name of a label may have.
pub const MAX_LABEL: usize = 50;
/// How many characters the description of a label may have.
pub const MAX_LABEL_ABOUT: usize = 100;
/// How many characters the description of a milestone may have.
pub const MAX_MILESTONE_ABOUT: usize = 1000;

/// Which rule a text breaks. Worded for the person who typed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidText {
    /// A title without a word, or with too many.
    #[error("a title must be one line of 1 to {MAX_TITLE} characters")]
    Title,
    /// Longer than this server takes.
    #[error("the text must have at most {0} bytes")]
    TooLong(usize),
    /// A comment without a word.
    #[error("the comment is empty")]
    Empty,
    /// Characters that nobody sees.
    #[error("the text contains control characters; remove them")]
    Control,
    /// The name of a label.
    #[error("a label name must be one line of 1 to {MAX_LABEL} characters")]
    Label,
    /// The colour of a label.
    #[error("a colour must have six hexadecimal digits, such as d73a4a")]
    Colour,
    /// A description.
    #[error("a description must be one line of at most {0} characters")]
    About(usize),
}

/// What an issue or a milestone is called: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title(String);

/// What a label is called: one line, in which case does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelName(String);

/// The colour of a label: six hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colour(String);

macro_rules! text {
    ($($name:ident),+) => {
        $(
            impl $name {
                /// The text.
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

/// Characters that change how the text around them is shown: whoever could use them could make one text look like
/// another.
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
    /// What two names of the same label have in common.
    pub fn folded(&self) -> String {
        self.0.to_lowercase()
    }
}

impl FromStr for Colour {
    type Err = InvalidText;

    /// With or without `#`, in any case.
    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let digits = text.trim().trim_start_matches('#');
        match digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            true => Ok(Self(digits.to_ascii_lowercase())),
            false => Err(InvalidText::Colour),
        }
    }
}

impl Default for Colour {
    /// What a label gets that nobody chose a colour for.
    fn default() -> Self {
        Self("ededed".into())
    }
}

/// The text of an issue or a comment, as it is stored: line ends are line feeds, and nothing in it is invisible.
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

/// The text of a comment, which says something.
pub fn comment(text: &str, most: usize) -> Result<String, InvalidText> {
    match body(text, most)? {
        text if text.trim().is_empty() => Err(InvalidText::Empty),
        text => Ok(text),
    }
}

/// A description in one line, which may be empty.
pub fn about(text: &str, most: usize) -> Result<String, InvalidText> {
    match text.trim() {
        "" => Ok(String::new()),
        text => one_line(text, most).ok_or(InvalidText::About(most)),
    }
}

/// The beginning of a text in one line, for logs and mails. The lines around a block of code say nothing in it.
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
