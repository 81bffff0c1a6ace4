//! Mentions and references in a text: `@name`, `#12`, `owner/repo#12`, and closing keywords.
//!
//! In Markdown, code and comments are ignored. The number of results is limited; otherwise a list of names could notify
//! everyone.

use crate::{RepoName, UserName};

/// Most mentioned users, and most referenced issues, per text.
pub const MAX_FOUND: usize = 50;

/// A referenced issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Another repository; `None` for the repository of the text.
    pub repo: Option<(UserName, RepoName)>,
    pub number: i64,
    /// Whether a closing keyword precedes it.
    pub closes: bool,
}

/// Distinct references of a text, in order of appearance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub people: Vec<UserName>,
    pub issues: Vec<Reference>,
}

/// A reference at its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `@name`.
    Person(UserName),
    /// `#12` or `owner/repo#12`.
    Issue(Option<(UserName, RepoName)>, i64),
}

/// Closing keywords, the same as on GitHub.
const CLOSING: &[&str] = &["close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved"];

/// References of a Markdown text.
pub fn in_markdown(text: &str) -> Found {
    collect(&prose(text))
}

/// References of a plain text, such as a commit message.
pub fn in_text(text: &str) -> Found {
    collect(text)
}

fn collect(text: &str) -> Found {
    let mut found = Found::default();
    for (start, _, mark) in marks(text) {
        match mark {
            Mark::Person(name) => {
                if found.people.len() < MAX_FOUND && !found.people.contains(&name) {
                    found.people.push(name);
                }
            }
            Mark::Issue(repo, number) => {
                let closes = closing_word_before(&text[..start]);
                let seen = found.issues.iter_mut().find(|seen| seen.repo == repo && seen.number == number);
                if let Some(seen) = seen {
                    seen.closes |= closes;
                } else if found.issues.len() < MAX_FOUND {
                    found.issues.push(Reference { repo, number, closes });
                }
            }
        }
    }
    found
}

/// Whether a text ends with a closing keyword, an optional colon and white space.
fn closing_word_before(text: &str) -> bool {
    let rest = text.trim_end_matches([' ', '\t']);
    if rest.len() == text.len() {
        return false;
    }
    let rest = rest.strip_suffix(':').unwrap_or(rest);
    let last_other = rest.char_indices().rev().find(|(_, c)| !c.is_ascii_alphabetic());
    let start = last_other.map_or(0, |(at, c)| at + c.len_utf8());
    let before = rest[..start].chars().next_back();
    let word = rest[start..].to_ascii_lowercase();
    before.is_none_or(|c| !is_word(c) && c != '-') && CLOSING.contains(&word.as_str())
}

/// All references of a text without code, with their byte ranges.
pub fn marks(text: &str) -> Vec<(usize, usize, Mark)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find(['@', '#']) {
        let sign = at + next;
        at = sign + 1;
        let mark = if text.as_bytes()[sign] == b'@' { person(text, sign) } else { issue(text, sign) };
        if let Some((start, end, mark)) = mark {
            found.push((start, end, mark));
            at = end;
        }
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Parses `@name` at this byte: not within a word, an address or a path.
fn person(text: &str, sign: usize) -> Option<(usize, usize, Mark)> {
    let before = text[..sign].chars().next_back();
    if before.is_some_and(|c| is_word(c) || matches!(c, '/' | '@' | '.' | '-' | '\\' | ':' | '+')) {
        return None;
    }
    let rest = &text.as_bytes()[sign + 1..];
    let long = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    // A dash may follow a name.
    let name = text[sign + 1..sign + 1 + long].trim_end_matches('-');
    let end = sign + 1 + name.len();
    // An email address or a path such as @scope/package is no mention.
    if text[end..].chars().next().is_some_and(|c| is_word(c) || matches!(c, '@' | '/')) {
        return None;
    }
    Some((sign, end, Mark::Person(name.parse().ok()?)))
}

/// Parses `#12` or `owner/repo#12` with the `#` at this byte.
fn issue(text: &str, sign: usize) -> Option<(usize, usize, Mark)> {
    let digits = text.as_bytes()[sign + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let end = sign + 1 + digits;
    let number: i64 = text[sign + 1..end].parse().ok().filter(|&number| number > 0)?;
    if text.as_bytes()[sign + 1] == b'0' || text[end..].chars().next().is_some_and(is_word) {
        return None;
    }
    let slug_len = text.as_bytes()[..sign].iter().rev().take_while(|&&byte| is_name(byte) || byte == b'/').count();
    let start = sign - slug_len;
    let before = text[..start].chars().next_back();
    if before.is_some_and(|c| is_word(c) || matches!(c, '&' | '#' | '@' | '\\' | ':')) {
        return None;
    }
    if slug_len == 0 {
        return Some((sign, end, Mark::Issue(None, number)));
    }
    let (owner, name) = text[start..sign].split_once('/')?;
    Some((start, end, Mark::Issue(Some((owner.parse().ok()?, name.parse().ok()?)), number)))
}

/// Markdown text with code and comments replaced by spaces.
pub fn prose(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut paragraph = String::new();
    let mut fence: Option<(u8, usize)> = None;
    let (mut blank_before, mut in_list, mut in_code) = (true, false, false);
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches('\n');
        let unindented = content.trim_start_matches([' ', '\t']);
        let indented = content.starts_with('\t') || content.len() - unindented.len() >= 4;
        if let Some((sign, length)) = fence {
            let run = run_of(unindented, sign);
            if run >= length && unindented[run..].trim().is_empty() {
                fence = None;
            }
            blank(&mut prose, line);
            continue;
        }
        let opens = [b'`', b'~'].into_iter().map(|sign| (sign, run_of(unindented, sign))).find(|&(sign, run)| {
            run >= 3 && !(sign == b'`' && unindented[run..].contains('`')) && (!indented || in_list)
        });
        if unindented.is_empty() {
            flush(&mut prose, &mut paragraph);
            prose.push_str(line);
            blank_before = true;
            continue;
        }
        if let Some(opened) = opens {
            flush(&mut prose, &mut paragraph);
            fence = Some(opened);
            blank(&mut prose, line);
            continue;
        }
        // Indented text within a list belongs to an item.
        if indented && !in_list && (blank_before || in_code) {
            in_code = true;
            blank(&mut prose, line);
            continue;
        }
        in_code = false;
        if begins_item(unindented) {
            in_list = true;
        } else if blank_before && !indented && content.len() == unindented.len() {
            in_list = false;
        }
        blank_before = false;
        paragraph.push_str(line);
    }
    flush(&mut prose, &mut paragraph);
    without_comments(&prose)
}

fn run_of(text: &str, sign: u8) -> usize {
    text.bytes().take_while(|&byte| byte == sign).count()
}

fn begins_item(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = if (1..=9).contains(&digits) {
        text[digits..].strip_prefix(['.', ')'])
    } else {
        text.strip_prefix(['-', '*', '+'])
    };
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn blank(out: &mut String, text: &str) {
    out.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
}

/// Appends a paragraph with its code spans blanked: a run of backticks ends at the next run of equal length.
fn flush(out: &mut String, paragraph: &mut String) {
    let mut rest = paragraph.as_str();
    while let Some(start) = rest.find('`') {
        let run = run_of(&rest[start..], b'`');
        let escaped = rest[..start].bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1;
        out.push_str(&rest[..start]);
        let (ticks, behind) = rest[start..].split_at(run);
        let closing = if escaped { None } else { closing_run(behind, run) };
        match closing {
            Some(end) => {
                blank(out, ticks);
                blank(out, &behind[..end]);
                rest = &behind[end..];
            }
            None => {
                out.push_str(ticks);
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    paragraph.clear();
}

/// End of the next run of exactly this many backticks.
fn closing_run(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(next) = text[at..].find('`') {
        let start = at + next;
        let run = run_of(&text[start..], b'`');
        at = start + run;
        if run == length {
            return Some(at);
        }
    }
    None
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        let end = rest[start + 4..].find("-->").map_or(rest.len(), |end| start + 4 + end + 3);
        out.push_str(&rest[..start]);
        blank(&mut out, &rest[start..end]);
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
