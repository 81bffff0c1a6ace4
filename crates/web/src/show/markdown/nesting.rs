//! How deeply blocks of a text nest, told before it is parsed.
//!
//! A line of sixty thousand `>` is as many quotes inside each other, and what handles markup walks from each of them to
//! the outermost one. List markers are counted too: the parser reads the rest of the line for each of them.

/// Block markers that one line may have before its text.
const MOST_MARKERS: usize = 50;

/// Whether every line of a text stays within [`MOST_MARKERS`].
pub(super) fn is_shallow(text: &str) -> bool {
    text.split(['\n', '\r']).all(|line| markers(line.as_bytes()) <= MOST_MARKERS)
}

/// The markers of quotes, list items and footnotes at the start of a line.
fn markers(line: &[u8]) -> usize {
    let mut found = 0;
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        let Some(after) = after_marker(rest) else { return found };
        rest = after;
        found += 1;
    }
}

/// What follows the marker that a text begins with.
fn after_marker(text: &[u8]) -> Option<&[u8]> {
    let begins = |rest: &[u8]| rest.first().is_none_or(u8::is_ascii_whitespace);
    match text {
        [b'>', rest @ ..] => Some(rest),
        [b'-' | b'+' | b'*', rest @ ..] if begins(rest) => Some(rest),
        [b'0'..=b'9', ..] => {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let rest = text.get(digits + 1..).filter(|_| matches!(text.get(digits), Some(b'.' | b')')))?;
            begins(rest).then_some(rest)
        }
        [b'[', b'^', rest @ ..] => {
            let end = rest.iter().position(|&byte| byte == b']')?;
            rest[end + 1..].strip_prefix(b":")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_marker_counts_wherever_it_stands_on_the_line() {
        for (line, count) in [
            ("", 0),
            ("text > - 1.", 0),
            ("> a", 1),
            (">>> a", 3),
            ("> > > a", 3),
            ("- + * a", 3),
            ("1. 2) 3. a", 3),
            ("1.a", 0),
            ("-a", 0),
            ("  > - 1. [^a]: > x", 5),
            ("[^a] b", 0),
            ("[a]: b", 0),
            ("-", 1),
        ] {
            assert_eq!(markers(line.as_bytes()), count, "{line}");
        }
    }

    #[test]
    fn only_a_line_with_too_many_markers_is_deep() {
        assert!(is_shallow(&"> a\n".repeat(10_000)), "many lines are not depth");
        assert!(is_shallow(&"> ".repeat(MOST_MARKERS)));
        assert!(is_shallow(&"- ".repeat(39)), "a rule across a page");
        for unit in [">", "> ", "- ", "1. ", "> - ", "[^a]: "] {
            let deep = unit.repeat(MOST_MARKERS + 1);
            assert!(!is_shallow(&deep), "{unit}");
            assert!(!is_shallow(&format!("a\r{deep}\r\nb")), "{unit}");
        }
    }
}
