//! Syntax highlighting of source code.
//!
//! A token gets at most one of nine classes, which the stylesheet colours for light and dark. Highlighting is bounded
//! in size and CPU time; text beyond a bound is plain.

use super::budget::Budget;
use super::text::escape_code_into;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// Files larger than this are shown plain.
const LARGEST: usize = 512 * 1024;
/// A line longer than this is shown plain, with all lines after it.
const LONGEST_LINE: usize = 5_000;
/// CPU time for highlighting one file.
const ALLOWED: Duration = Duration::from_millis(1_500);

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Scopes with their classes; the innermost listed scope counts.
static CLASSES: LazyLock<Vec<(Scope, &'static str)>> = LazyLock::new(|| {
    const LIST: [(&str, &str); 30] = [
        ("comment", "c"),
        ("punctuation.definition.comment", "c"),
        ("string", "s"),
        ("constant.character.escape", "m"),
        ("constant.numeric", "m"),
        ("constant.language", "m"),
        ("constant", "m"),
        ("storage.type", "k"),
        ("storage", "k"),
        ("keyword.operator", ""),
        ("keyword", "k"),
        ("entity.name.function", "f"),
        ("support.function", "f"),
        ("variable.function", "f"),
        ("entity.name.tag", "k"),
        ("entity.other.attribute-name", "t"),
        ("entity.name.section", "g"),
        ("entity.name", "t"),
        ("support.type", "t"),
        ("support.class", "t"),
        ("entity.other.inherited-class", "t"),
        ("support.macro", "f"),
        ("variable.language", "k"),
        ("variable.parameter", "v"),
        ("variable.other.readwrite", ""),
        ("markup.heading", "g"),
        ("markup.inserted", "s"),
        ("markup.deleted", "x"),
        ("markup.raw", "s"),
        ("invalid", "x"),
    ];
    let parsed = LIST.into_iter().filter_map(|(name, class)| Some((Scope::new(name).ok()?, class)));
    parsed.collect()
});

/// Number of lines.
pub(crate) fn count_lines(data: &[u8]) -> usize {
    let feeds = data.iter().filter(|&&byte| byte == b'\n').count();
    feeds + usize::from(data.last().is_some_and(|&byte| byte != b'\n'))
}

/// The lines of a file as HTML without line feeds. Tags are closed at the end of each line.
pub(crate) fn lines(name: &str, data: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(data);
    colour(syntax_for(name, &text), &text, &Budget::new(ALLOWED), Duration::ZERO)
}

/// A code block of a document, as HTML. Highlighting leaves `reserve` of the document's time for the rest.
pub(crate) fn snippet(language: Option<&str>, code: &str, budget: &Budget, reserve: Duration) -> String {
    let syntax = language.and_then(|token| budget.besides(|| &*SYNTAXES).find_syntax_by_token(token));
    let mut out = colour(syntax, code, budget, reserve).join("\n");
    if code.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn syntax_for(name: &str, text: &str) -> Option<&'static SyntaxReference> {
    let by_name = SYNTAXES.find_syntax_by_extension(name);
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    by_name
        .or_else(|| extension.and_then(|extension| SYNTAXES.find_syntax_by_extension(extension)))
        .or_else(|| SYNTAXES.find_syntax_by_first_line(text.lines().next()?))
}

fn colour(syntax: Option<&SyntaxReference>, text: &str, budget: &Budget, reserve: Duration) -> Vec<String> {
    let mut painter = match syntax {
        Some(syntax) if text.len() <= LARGEST => Some((ParseState::new(syntax), ScopeStack::new())),
        _ => None,
    };
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        let mut out = String::with_capacity(line.len() + 32);
        let painted = match &mut painter {
            Some((state, stack)) if line.len() <= LONGEST_LINE && budget.left() > reserve => {
                paint(state, stack, line, &mut out)
            }
            _ => false,
        };
        if !painted {
            // The following lines need this line's state, so they stay plain.
            painter = None;
            out.clear();
            escape_code_into(without_feed(line), &mut out);
        }
        lines.push(out);
    }
    lines
}

/// Highlights one line; `false` if that fails.
fn paint(state: &mut ParseState, stack: &mut ScopeStack, line: &str, out: &mut String) -> bool {
    let Ok(operations) = state.parse_line(line, &SYNTAXES) else { return false };
    let end = without_feed(line).len();
    let mut at = 0;
    let mut open = "";
    for (next, operation) in operations.iter().map(|(at, operation)| (*at, Some(operation))).chain([(line.len(), None)])
    {
        let piece = line.get(at..next.min(end)).unwrap_or_default();
        if !piece.is_empty() {
            let class = if piece.trim().is_empty() { open } else { class_of(stack) };
            if class != open {
                if !open.is_empty() {
                    out.push_str("</span>");
                }
                if !class.is_empty() {
                    let _ = write!(out, "<span class=\"{class}\">");
                }
                open = class;
            }
            escape_code_into(piece, out);
        }
        at = at.max(next.min(end));
        if let Some(operation) = operation
            && stack.apply(operation).is_err()
        {
            return false;
        }
    }
    if !open.is_empty() {
        out.push_str("</span>");
    }
    true
}

fn class_of(stack: &ScopeStack) -> &'static str {
    let innermost_first = stack.as_slice().iter().rev();
    let mut found = innermost_first.filter_map(|scope| CLASSES.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)));
    found.next().map_or("", |(_, class)| class)
}

fn without_feed(line: &str) -> &str {
    line.trim_end_matches(['\n', '\r'])
}

/// Lines as a table with numbers that can be linked to.
pub(crate) fn table(lines: &[String]) -> String {
    let size: usize = lines.iter().map(|line| line.len() + 90).sum();
    let mut out = String::with_capacity(size + 200);
    out.push_str(r#"<div class="code-wrap" tabindex="0" role="region" aria-label="File content"><table class="code" data-lines><tbody>"#);
    for (at, line) in lines.iter().enumerate() {
        let number = at + 1;
        let _ = writeln!(
            out,
            "<tr id=\"L{number}\"><td class=\"n\"><a href=\"#L{number}\">{number}</a></td><td class=\"l\">{line}</td></tr>"
        );
    }
    out.push_str("</tbody></table></div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_coloured_and_everything_in_it_escaped() {
        let lines = lines("a.rs", b"// <b>\nfn main() { let s = \"</td>\"; }\n");
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], "<span class=\"c\">// &lt;b&gt;</span>");
        assert!(lines[1].contains("<span class=\"k\">fn </span>"), "{}", lines[1]);
        assert!(lines[1].contains("&lt;/td&gt;"), "{}", lines[1]);
    }

    #[test]
    fn a_comment_over_several_lines_is_one_in_each() {
        let lines = lines("a.c", b"/* one\ntwo */ int x;");
        assert_eq!(lines[0], "<span class=\"c\">/* one</span>");
        assert!(lines[1].starts_with("<span class=\"c\">two */ </span>"), "{}", lines[1]);
    }

    #[test]
    fn without_colours_nothing_is_lost() {
        assert_eq!(lines("x.unknown", b"a\n\nb\xff\r\n"), ["a", "", "b\u{fffd}"]);
        let long = format!("fn {}\nfn b() {{}}\n", "a".repeat(LONGEST_LINE));
        assert_eq!(lines("a.rs", long.as_bytes())[1], "fn b() {}");
        assert_eq!(count_lines(b""), 0);
        assert_eq!(count_lines(b"a\nb"), 2);
        assert_eq!(count_lines(b"a\nb\n"), 2);
    }

    #[test]
    fn every_class_is_in_the_stylesheet() {
        let css = include_str!("../../assets/abide.css");
        for (_, class) in CLASSES.iter().filter(|(_, class)| !class.is_empty()) {
            assert!(css.contains(&format!("\n.{class} {{")), ".{class}");
        }
        assert_eq!(CLASSES.len(), 30, "a scope did not parse");
    }
}
