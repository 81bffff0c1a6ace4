//! Upper bound of an HTML parser's work for a text, found by one pass over its tags.
//!
//! The parser walks its open elements for many tags, reopens unclosed formatting in every paragraph, and compares each
//! attribute with those before it. So nested or unclosed markup costs quadratic time and memory. This pass reads tags
//! like the parser and may overestimate the open elements, but never underestimate them: an end tag counts only if it
//! closes the innermost element, or if its kind closes inner elements with an optional end tag.

/// Nested elements. Fifty quotes and a hundred lists with their items, the limit of Markdown here, are fewer.
const DEEPEST: usize = 300;
/// Reopened formatting elements, counted as if every tag reopened all of them.
const MOST_REOPENED: usize = 200_000;
/// Attributes of one tag.
const MOST_ATTRIBUTES: usize = 64;

/// Reason to keep a text from the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// One of the bounds is exceeded.
    TooMuch,
    /// The parser applies special rules to the rest.
    Unclear,
}

/// Elements without content.
const VOID: [&[u8]; 19] = [
    b"area",
    b"base",
    b"basefont",
    b"bgsound",
    b"br",
    b"col",
    b"embed",
    b"frame",
    b"hr",
    b"image",
    b"img",
    b"input",
    b"keygen",
    b"link",
    b"meta",
    b"param",
    b"source",
    b"track",
    b"wbr",
];
/// Elements that the parser reopens after another element closed them.
const FORMATTING: [&[u8]; 14] =
    [b"a", b"b", b"big", b"code", b"em", b"font", b"i", b"nobr", b"s", b"small", b"strike", b"strong", b"tt", b"u"];
/// Elements with an optional end tag before the end of a surrounding [`BLOCKS`] or [`TABLE`] element.
const LEFT_OUT: [&[u8]; 4] = [b"p", b"li", b"dd", b"dt"];
/// Elements whose end closes those of [`LEFT_OUT`] inside them. The end of any other element stops at those.
const BLOCKS: [&[u8]; 32] = [
    b"address",
    b"article",
    b"aside",
    b"blockquote",
    b"button",
    b"center",
    b"dd",
    b"details",
    b"dir",
    b"div",
    b"dl",
    b"dt",
    b"fieldset",
    b"figcaption",
    b"figure",
    b"footer",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"header",
    b"li",
    b"main",
    b"menu",
    b"nav",
    b"ol",
    b"p",
    b"section",
    b"summary",
    b"ul",
];
/// Elements of tables; the parser ignores them elsewhere.
const TABLE: [&[u8]; 9] = [b"td", b"th", b"tr", b"tbody", b"thead", b"tfoot", b"caption", b"colgroup", b"col"];
/// Elements whose content is text up to their end tag.
const RAW: [&[u8]; 9] =
    [b"iframe", b"noembed", b"noframes", b"noscript", b"script", b"style", b"textarea", b"title", b"xmp"];
/// Elements with special parsing rules.
const FOREIGN: [&[u8]; 5] = [b"svg", b"math", b"select", b"frameset", b"template"];

fn is_one_of(list: &[&[u8]], name: &[u8]) -> bool {
    list.iter().any(|listed| listed.eq_ignore_ascii_case(name))
}

/// Whether a text can be handed to the parser.
pub(super) fn check(html: &str) -> Result<(), Refused> {
    let mut scan = Scan { html: html.as_bytes(), ..Scan::default() };
    let mut at = 0;
    while let Some(next) = find(scan.html, at, b'<') {
        at = scan.tag(next)?;
    }
    Ok(())
}

#[derive(Default)]
struct Scan<'h> {
    html: &'h [u8],
    /// Names of the elements that may be open.
    open: Vec<&'h [u8]>,
    formatting: usize,
    reopened: usize,
    tables: usize,
    /// An element with special rules was open, so optional end tags no longer apply.
    foreign: bool,
}

impl<'h> Scan<'h> {
    /// Reads a token that begins with `<`; returns its end.
    fn tag(&mut self, start: usize) -> Result<usize, Refused> {
        let rest = &self.html[start + 1..];
        match rest {
            [b'!', b'-', b'-', ..] => Ok(start + 4 + comment(&rest[3..])),
            // CDATA: a comment in HTML, but text in SVG.
            [b'!', b'[', ..] if self.foreign => Err(Refused::Unclear),
            [b'!' | b'?', ..] => Ok(behind_bracket(self.html, start + 2)),
            [b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                let (name, end, _) = read(self.html, start + 2);
                self.count()?;
                self.close(name);
                Ok(end)
            }
            [b'/', ..] => Ok(behind_bracket(self.html, start + 2)),
            [letter, ..] if letter.is_ascii_alphabetic() => {
                let (name, end, attributes) = read(self.html, start + 1);
                if attributes > MOST_ATTRIBUTES {
                    return Err(Refused::TooMuch);
                }
                self.count()?;
                self.enter(name, end)
            }
            _ => Ok(start + 1),
        }
    }

    fn count(&mut self) -> Result<(), Refused> {
        self.reopened += self.formatting;
        if self.reopened > MOST_REOPENED { Err(Refused::TooMuch) } else { Ok(()) }
    }

    fn enter(&mut self, name: &'h [u8], end: usize) -> Result<usize, Refused> {
        self.foreign |= is_one_of(&FOREIGN, name);
        if is_one_of(&RAW, name) {
            // Inside SVG and MathML these are ordinary elements.
            return if self.foreign { Err(Refused::Unclear) } else { raw_end(self.html, end, name) };
        }
        if name.eq_ignore_ascii_case(b"plaintext") {
            return Err(Refused::Unclear);
        }
        if !self.foreign {
            if is_one_of(&VOID, name) || (self.tables == 0 && is_one_of(&TABLE, name)) {
                return Ok(end);
            }
            self.close_implied(name);
            self.close_paragraph(name);
        }
        self.open.push(name);
        self.formatting += usize::from(is_one_of(&FORMATTING, name));
        self.tables += usize::from(name.eq_ignore_ascii_case(b"table"));
        if self.open.len() > DEEPEST { Err(Refused::TooMuch) } else { Ok(end) }
    }

    /// Closes elements that a start tag ends implicitly.
    fn close_implied(&mut self, name: &[u8]) {
        // Elements that it closes, and elements that may be open inside them.
        let (ends, between): (&[&[u8]], &[&[u8]]) = match name.to_ascii_lowercase().as_slice() {
            b"p" => (&[b"p"], &[]),
            b"li" => (&[b"li"], &[b"p"]),
            b"dd" | b"dt" => (&[b"dd", b"dt"], &[b"p"]),
            b"td" | b"th" => (&[b"td", b"th"], &LEFT_OUT),
            b"tr" => (&[b"tr"], &[b"td", b"th", b"p", b"li", b"dd", b"dt"]),
            b"tbody" | b"thead" | b"tfoot" => {
                (&[b"tbody", b"thead", b"tfoot"], &[b"tr", b"td", b"th", b"p", b"li", b"dd", b"dt"])
            }
            _ => return,
        };
        if let Some(at) = self.innermost(|open| is_one_of(ends, open), |open| is_one_of(between, open)) {
            self.open.truncate(at);
        }
    }

    /// A block ends the paragraph before it.
    fn close_paragraph(&mut self, name: &[u8]) {
        if is_one_of(&BLOCKS, name) && self.open.last().is_some_and(|open| open.eq_ignore_ascii_case(b"p")) {
            self.open.pop();
        }
    }

    /// An end tag.
    fn close(&mut self, name: &[u8]) {
        let table = name.eq_ignore_ascii_case(b"table");
        let of_table = table || is_one_of(&TABLE, name);
        let is_block = is_one_of(&BLOCKS, name);
        let may_lie_inside = |open: &[u8]| match self.foreign {
            true => false,
            false if of_table => is_one_of(&TABLE, open) || is_one_of(&LEFT_OUT, open),
            false => is_block && is_one_of(&LEFT_OUT, open),
        };
        let Some(at) = self.innermost(|open| open.eq_ignore_ascii_case(name), may_lie_inside) else { return };
        self.open.truncate(at);
        self.formatting -= usize::from(is_one_of(&FORMATTING, name));
        self.tables -= usize::from(table);
    }

    /// Index of the innermost wanted element, if only elements of `between` are open inside it.
    fn innermost(&self, wanted: impl Fn(&[u8]) -> bool, between: impl Fn(&[u8]) -> bool) -> Option<usize> {
        for (at, open) in self.open.iter().enumerate().rev() {
            if wanted(open) {
                return Some(at);
            }
            if !between(open) {
                return None;
            }
        }
        None
    }
}

pub(super) fn behind_bracket(html: &[u8], from: usize) -> usize {
    find(html, from, b'>').map_or(html.len(), |end| end + 1)
}

/// Whether a byte ends the name of a tag.
pub(super) fn ends_name(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>')
}

/// Name, end and number of attributes of a tag.
pub(super) fn read(html: &[u8], from: usize) -> (&[u8], usize, usize) {
    let length = html[from..].iter().position(ends_name).unwrap_or(html.len() - from);
    let (end, attributes) = attributes(html, from + length);
    (&html[from..from + length], end, attributes)
}

pub(super) fn find(html: &[u8], from: usize, byte: u8) -> Option<usize> {
    html.get(from..)?.iter().position(|&found| found == byte).map(|at| from + at)
}

fn find_text(html: &[u8], text: &[u8]) -> Option<usize> {
    html.windows(text.len()).position(|window| window == text)
}

/// Length of a comment after its `<!--`.
pub(super) fn comment(rest: &[u8]) -> usize {
    match rest {
        [b'>', ..] => 1,
        [b'-', b'>', ..] => 2,
        _ => {
            let ends = |at: usize| [b"-->".as_slice(), b"--!>"].into_iter().find(|end| rest[at..].starts_with(end));
            (0..rest.len()).find_map(|at| Some(at + ends(at)?.len())).unwrap_or(rest.len())
        }
    }
}

/// End of an element whose content is text.
fn raw_end(html: &[u8], from: usize, name: &[u8]) -> Result<usize, Refused> {
    let mut at = from;
    while let Some(next) = find(html, at, b'<') {
        at = next + 1;
        let Some([b'/', rest @ ..]) = html.get(at..) else { continue };
        if rest.get(name.len()).is_some_and(ends_name) && rest[..name.len()].eq_ignore_ascii_case(name) {
            // A script with a comment can continue after its end tag.
            let unclear = name.eq_ignore_ascii_case(b"script") && find_text(&html[from..next], b"<!--").is_some();
            return if unclear { Err(Refused::Unclear) } else { Ok(attributes(html, at + 1 + name.len()).0) };
        }
    }
    Ok(html.len())
}

/// Reads the attributes of a tag; returns its end and their number.
fn attributes(html: &[u8], from: usize) -> (usize, usize) {
    let mut at = from;
    let mut count = 0;
    let skip = |at: usize, ends: &dyn Fn(u8) -> bool| {
        html.get(at..).and_then(|rest| rest.iter().position(|&byte| ends(byte))).map_or(html.len(), |end| at + end)
    };
    loop {
        at = skip(at, &|byte| !byte.is_ascii_whitespace() && byte != b'/');
        match html.get(at) {
            None => return (html.len(), count),
            Some(b'>') => return (at + 1, count),
            // An equals sign here is the first letter of a name.
            Some(_) => at += 1,
        }
        count += 1;
        at = skip(at, &|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'='));
        let value = skip(at, &|byte| !byte.is_ascii_whitespace());
        if html.get(value) != Some(&b'=') {
            continue;
        }
        at = skip(value + 1, &|byte| !byte.is_ascii_whitespace());
        at = match html.get(at) {
            Some(&quote @ (b'"' | b'\'')) => skip(at + 1, &|byte| byte == quote) + 1,
            Some(b'>') => at,
            _ => skip(at, &|byte| byte.is_ascii_whitespace() || byte == b'>'),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_markup_passes_however_long_it_is() {
        for unit in [
            "<p>a <b>b</b> <i>c</i><br><img src=\"a\" alt='<b>'></p>",
            "<p>a<p>b",
            "<ul><li>a<li>b<p>c<li>d</ul>",
            "<table><tr><td>a<td>b<tr><td>c</table>",
            "<details><summary>a</summary><p>b</details>",
            "<!-- <div> --><hr>",
            "<!--><p>a</p>",
            "a < b > c </> <!doctype x> <?php ?>",
            "<a title=\"</a><div>\">x</a>",
            "<style>a > b { } <div></style><iframe src=x></iframe>",
            "<script>'<div>'</script>",
        ] {
            assert_eq!(check(&unit.repeat(1_500)), Ok(()), "{unit}");
        }
    }

    #[test]
    fn markup_that_costs_more_than_its_size_is_refused() {
        for unit in [
            "<div>",
            "<blockquote>",
            "<DIV>",
            "<div/>",
            "<div a=\">\">",
            "<b><div></b>",
            "<font a=1><p>x",
            "<a \" b><i><p>",
            "<em>",
            "<unknown>",
            "<table><td>",
            "<svg><source>",
            "<!--><div>",
            "<!-- --!><div>",
            "<div><!-- </div> -->",
            "<div a='</div>'>",
            "<title></title><div>",
            "<div><style></div></style>",
            "<div></ div>",
            "<div <div>",
            "<li><dt>",
            "<p><dt><li>",
            "<td><li><td><dt>",
            "<span><dt></span><span><li></span>",
            "<template><td>",
        ] {
            assert_eq!(check(&unit.repeat(10_000)), Err(Refused::TooMuch), "{unit}");
        }
        let attributes: String = (0..100).map(|at| format!(" a{at}")).collect();
        assert_eq!(check(&format!("<p{attributes}>")), Err(Refused::TooMuch));
    }

    #[test]
    fn markup_that_can_be_read_in_two_ways_is_not_handed_on() {
        for html in [
            "<svg><title></svg><div></title>",
            "<select><textarea></select><div>",
            "<plaintext>",
            "<script><!--<script></script>",
            "<svg><![CDATA[</svg>]]>",
        ] {
            assert_eq!(check(html), Err(Refused::Unclear), "{html}");
        }
    }

    #[test]
    fn unfinished_markup_ends_with_the_text() {
        for html in ["<", "</", "<a", "<a b", "<a b=", "<a b=\"", "<!--", "<!", "<script>", "<script></scr", "<a b='x"]
        {
            assert_eq!(check(html), Ok(()), "{html}");
        }
    }
}
