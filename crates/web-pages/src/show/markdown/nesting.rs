//! Nesting depth of a text's blocks, found before it is parsed.
//!
//! A line of 60,000 `>` is as many nested quotes, and the renderer walks from each of them to the outermost one. List
//! markers count too: the parser reads the rest of the line for each.

/// Block markers that one line may have before its text.
const MOST_MARKERS: usize = 50;

/// Columns before the first marker of a line. An indented marker nests inside the lists of the lines above, two columns
/// or more for each, and the parser walks all open lists for every later line.
const DEEPEST_INDENT: usize = 300;

/// Whether every line of a text stays within [`MOST_MARKERS`] and [`DEEPEST_INDENT`].
pub(super) fn is_shallow(text: &str) -> bool {
    text.split(['\n', '\r']).all(|line| {
        let markers = markers(line.as_bytes());
        markers <= MOST_MARKERS && (markers == 0 || indent(line.as_bytes()) <= DEEPEST_INDENT)
    })
}

/// The columns of white space at the start of a line; a tab reaches the next multiple of four.
fn indent(line: &[u8]) -> usize {
    line.iter().take_while(|byte| byte.is_ascii_whitespace()).fold(0, |columns, byte| match byte {
        b'\t' => columns / 4 * 4 + 4,
        _ => columns + 1,
    })
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

/// Text behind the marker that it begins with.
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
    fn depth_that_grows_line_by_line_is_seen_by_the_indentation() {
        let grown: String = (0..10).map(|line| format!("{}{}a\n", " ".repeat(100 * line), "- ".repeat(50))).collect();
        assert!(!is_shallow(&grown));
        assert!(!is_shallow(&format!("{}- a", "\t".repeat(DEEPEST_INDENT / 4 + 1))));
        assert!(is_shallow(&format!("{}- a", " ".repeat(DEEPEST_INDENT))));
        assert!(is_shallow(&" ".repeat(10_000)), "white space alone opens nothing");
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
