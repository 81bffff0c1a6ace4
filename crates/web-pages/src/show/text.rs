//! Formatting of bytes from repositories, sizes, numbers and names.

use abide_core::names::shortened_key;
use std::borrow::Cow;

pub(crate) use abide_web::{url_path, url_segment};

/// Bytes as text: invalid UTF-8 is replaced, and deceptive characters are made visible.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.chars().any(is_treacherous) {
        return text.into_owned();
    }
    text.chars().map(|c| if is_treacherous(c) { '\u{FFFD}' } else { c }).collect()
}

/// Control characters, bidirectional overrides and characters of zero width.
pub(crate) fn is_treacherous(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{8}' | '\u{A}'..='\u{1F}' | '\u{7F}'..='\u{9F}'
        | '\u{61C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// Name of an account or a repository for people: keys shortened, nothing encoded.
pub(crate) fn readable(address: &str) -> String {
    match address.split_once('/') {
        None => shortened_key(address).into_owned(),
        Some((owner, name)) => {
            let name: Vec<u8> = percent_encoding::percent_decode_str(name).collect();
            format!("{}/{}", shortened_key(owner), shortened(&shown(&name), NAME))
        }
    }
}

/// Maximum length of names in lists.
const NAME: usize = 100;

/// A number of bytes with a unit.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return if bytes == 1 { "1 byte".into() } else { format!("{bytes} bytes") };
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value < 10.0 { format!("{value:.1} {}", UNITS[unit]) } else { format!("{value:.0} {}", UNITS[unit]) }
}

/// A number with thousands separators.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A counter of the database, with thousands separators.
pub(crate) fn tally(number: &i64) -> String {
    grouped(usize::try_from(*number).unwrap_or(0))
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Text, escaped for HTML.
pub(crate) fn escape_into(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// A line of a file for HTML. Deceptive characters are shown by their code point.
pub(crate) fn escape_code_into(text: &str, out: &mut String) {
    if !text.chars().any(is_treacherous) {
        return escape_into(text, out);
    }
    let mut buffer = [0; 4];
    for c in text.chars() {
        match c {
            '\r' => (),
            c if is_treacherous(c) => {
                out.push_str(&format!(
                    r#"<span class="odd-char" title="invisible character">U+{:04X}</span>"#,
                    c as u32
                ));
            }
            c => escape_into(c.encode_utf8(&mut buffer), out),
        }
    }
}

/// Letter of the avatar of users without a picture.
pub(crate) fn initial(name: &str) -> char {
    name.chars().find(|c| c.is_alphanumeric()).unwrap_or('·')
}

/// A file's name without its directories.
pub(crate) fn last_segment(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// The first characters of a text, with an ellipsis if there are more.
pub(crate) fn shortened(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_numbers_read_well() {
        assert_eq!(size(1), "1 byte");
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(10 << 20), "10 MiB");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(count(1, "file", "files"), "1 file");
    }

    #[test]
    fn nothing_in_a_name_can_break_out_of_an_address_or_turn_the_text_around() {
        assert_eq!(url_path(b"a b/\xff?#%\"<>'"), "a%20b/%FF%3F%23%25%22%3C%3E%27");
        assert_eq!(shown("evil\u{202e}gpj.exe".as_bytes()), "evil\u{fffd}gpj.exe");
        assert_eq!(shown(b"a\xffb\nc"), "a\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn invisible_characters_in_code_are_shown() {
        let mut out = String::new();
        escape_code_into("a\u{202e}<b>\r", &mut out);
        assert_eq!(out, r#"a<span class="odd-char" title="invisible character">U+202E</span>&lt;b&gt;"#);
    }
}
