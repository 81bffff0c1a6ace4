//! Removes tags that the sanitiser would drop, before HTML is parsed.
//!
//! The HTML parser has special rules for SVG, MathML, scripts and forms, so one `<svg>` or `<script>` would make the
//! rest unclear to `tags.rs`. Safety does not depend on this step: the result is bounded by `tags.rs` and sanitised
//! like every other text.

use super::tags::{behind_bracket, comment, ends_name, find, read};
use std::borrow::Cow;

/// Elements that are removed with their content, if they are closed.
const WITH_CONTENT: [&[u8]; 5] = [b"iframe", b"noembed", b"noframes", b"script", b"style"];

/// Replacement of a tag. An empty comment, so that the texts around it cannot form a tag; no tag is shorter.
const GONE: &str = "<!>";

/// The text without tags of elements that are not kept.
pub(super) fn clear<'h>(html: &'h str, keeps: impl Fn(&str) -> bool) -> Cow<'h, str> {
    let mut pass = Pass { bytes: html.as_bytes(), unclosed: Vec::new() };
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(start) = find(pass.bytes, at, b'<') {
        let (end, name) = pass.piece(start);
        let keeps = name.is_none_or(|name| str::from_utf8(name).is_ok_and(|name| keeps(&name.to_ascii_lowercase())));
        at = end;
        if !keeps {
            at = name.map_or(end, |name| pass.behind_content(start, name, end));
            out.push_str(&html[copied..start]);
            out.push_str(GONE);
            copied = at;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(html);
    }
    out.push_str(&html[copied..]);
    Cow::Owned(out)
}

struct Pass<'h> {
    bytes: &'h [u8],
    /// Elements of [`WITH_CONTENT`] without an end tag in the rest of the text. Searching for it again would cost
    /// quadratic time.
    unclosed: Vec<&'static [u8]>,
}

impl<'h> Pass<'h> {
    /// End of a token that begins with `<`, and the element's name if it is a tag.
    fn piece(&self, start: usize) -> (usize, Option<&'h [u8]>) {
        let rest = &self.bytes[start + 1..];
        match rest {
            [b'!', b'-', b'-', ..] => (start + 4 + comment(&rest[3..]), None),
            [b'/', letter, ..] if letter.is_ascii_alphabetic() => self.tag(start + 2),
            [b'!' | b'?' | b'/', ..] => (behind_bracket(self.bytes, start + 2), None),
            [letter, ..] if letter.is_ascii_alphabetic() => self.tag(start + 1),
            _ => (start + 1, None),
        }
    }

    fn tag(&self, from: usize) -> (usize, Option<&'h [u8]>) {
        let (name, end, _) = read(self.bytes, from);
        (end, Some(name))
    }

    /// End of a removed tag and of the content that is removed with it.
    fn behind_content(&mut self, start: usize, name: &[u8], end: usize) -> usize {
        let is_end_tag = self.bytes.get(start + 1) == Some(&b'/');
        let Some(element) = WITH_CONTENT.into_iter().find(|element| element.eq_ignore_ascii_case(name)) else {
            return end;
        };
        if is_end_tag || self.unclosed.contains(&element) {
            return end;
        }
        let mut at = end;
        while let Some(next) = find(self.bytes, at, b'<') {
            // Attributes can reach to the end of the text, so they are read only after the right name; otherwise every
            // `</` would cost that.
            if is_end_tag_of(element, &self.bytes[next + 1..]) {
                return self.tag(next + 2).0;
            }
            at = next + 1;
        }
        self.unclosed.push(element);
        end
    }
}

/// Whether the bytes behind a `<` begin the end tag of an element.
fn is_end_tag_of(element: &[u8], rest: &[u8]) -> bool {
    let Some(([b'/'], rest)) = rest.split_at_checked(1) else { return false };
    let Some((name, rest)) = rest.split_at_checked(element.len()) else { return false };
    name.eq_ignore_ascii_case(element) && rest.first().is_none_or(ends_name)
}

#[cfg(test)]
mod tests {
    use super::super::tags::{Refused, check};
    use super::*;
    use proptest::prelude::*;

    fn kept(name: &str) -> bool {
        ["a", "b", "div", "img", "p", "table", "td"].contains(&name)
    }

    fn cleared(html: &str) -> String {
        clear(html, kept).replace(GONE, "")
    }

    #[test]
    fn unknown_tags_go_and_the_rest_stays() {
        for (html, expected) in [
            ("<p>a <b>b</b></p>", "<p>a <b>b</b></p>"),
            ("<svg viewBox=\"0 0 1 1\"><path d='>'/></svg><p>a", "<p>a"),
            ("<SVG/onload=x><p>a", "<p>a"),
            ("a<script>b<p></script>c", "ac"),
            ("a<script>b<!--<script></script>c", "ac"),
            ("a<style>b</STYLE x>c", "ac"),
            ("a<script>b", "ab"),
            ("a</script>b", "ab"),
            ("<iframe src=x>old browsers</iframe>a", "a"),
            ("<svg><title>a</title></svg>b", "ab"),
            ("<plaintext>a<p>b", "a<p>b"),
            ("<!-- <svg> -->a", "<!-- <svg> -->a"),
            ("<img alt=\"<svg>\">", "<img alt=\"<svg>\">"),
            ("a < b <3 </> <?x <svg> ?>", "a < b <3 </> <?x <svg> ?>"),
            ("<svg", ""),
            ("<p <svg>", "<p <svg>"),
        ] {
            assert_eq!(cleared(html), expected, "{html}");
        }
    }

    #[test]
    fn texts_around_a_dropped_tag_never_become_a_tag() {
        for html in ["<<svg>script>", "<<svg>/script>", "<<svg><svg>img src=x>", "<<script></script>!--"] {
            let left = clear(html, kept);
            assert_eq!(clear(&left, |name| panic!("{name} in {left}")), left, "{html}");
        }
    }

    #[test]
    fn cleared_markup_is_never_unclear_and_many_unclosed_elements_are_quick() {
        for html in [
            "<svg><title></svg><div></title>",
            "<select><textarea></select><div>",
            "<plaintext>",
            "<script><!--<script></script>",
            "<svg><![CDATA[</svg>]]>",
            "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
        ] {
            assert_eq!(check(&clear(html, kept)), Ok(()), "{html}");
        }
        for unit in ["<script>", "<style>a", "<svg>", "<iframe><noembed>"] {
            assert_eq!(check(&clear(&unit.repeat(60_000), kept)), Ok(()), "{unit}");
        }
        for unit in ["</a ", "</a", "</a x='", "</scrip ", "</script", "</noembed =", "<!--", "<a \""] {
            for element in WITH_CONTENT {
                let html = format!("<{}>{}", String::from_utf8_lossy(element), unit.repeat(120_000));
                clear(&html, kept);
            }
        }
        assert_eq!(check(&clear(&"<div>".repeat(1_000), kept)), Err(Refused::TooMuch), "bounds hold");
    }

    proptest! {
        #[test]
        fn whatever_is_cleared_is_clear_and_no_longer(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "<", ">", "/", "!", "--", "[CDATA[", "]]>", "\"", "'", "=", " ", "a", "svg", "script", "style", "p", "math",
                "title", "textarea", "select", "template", "plaintext", "<svg>", "</svg>", "<script>", "</script>", "<p>",
                "<!--", "-->", "<style>", "</style>", "<img ", "é", "\0",
            ]), 0..40),
        ) {
            let html: String = pieces.concat();
            let once = clear(&html, kept).into_owned();
            prop_assert!(once.len() <= html.len() + GONE.len());
            prop_assert_ne!(check(&once), Err(Refused::Unclear));
            let twice = clear(&once, kept);
            prop_assert_eq!(&*twice, &once);
        }
    }
}
