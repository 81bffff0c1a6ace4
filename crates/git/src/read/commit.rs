//! Commits.

use super::objects::{Objects, id};
use super::{ReadError, Reader};
use abide_core::Oid;
use gix::bstr::{BString, ByteSlice};

/// Author, committer or tagger, with the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub name: BString,
    /// Address as stored; it need not be valid.
    pub email: BString,
    /// Unix time in seconds; zero if absent.
    pub time: i64,
    /// Offset from UTC in seconds.
    pub offset: i32,
}

/// A commit. Latin-1 text with an `encoding` header is converted to UTF-8; other text is as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub oid: Oid,
    /// Root tree.
    pub tree: Oid,
    pub parents: Vec<Oid>,
    pub author: Signature,
    pub committer: Signature,
    /// First paragraph of the message, joined to one line.
    pub subject: BString,
    /// Rest of the message.
    pub body: BString,
    /// Whether it carries a signature; nothing verifies it.
    pub signed: bool,
}

/// Longest message read, in bytes.
pub(super) const LONGEST_MESSAGE: usize = 1 << 20;
/// Longest message read where many commits are held at once.
const LONGEST_OF_MANY: usize = 16 << 10;

/// Bytes of a name or an address that are read.
const LONGEST_NAME: usize = 1 << 10;

/// The beginning of a text, up to a character's end.
pub(super) fn cut(message: &[u8], longest: usize) -> &[u8] {
    let Some(beginning) = message.get(..longest) else { return message };
    let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
    match message.get(longest) {
        Some(next) if is_inside(next) => {
            let end = beginning.iter().rposition(|byte| !is_inside(byte)).unwrap_or(longest);
            &beginning[..end]
        }
        _ => beginning,
    }
}

impl Reader {
    /// Reads a commit.
    pub fn commit(&self, oid: Oid) -> Result<Commit, ReadError> {
        self.objects().parsed_commit(oid, LONGEST_MESSAGE)
    }

    /// Reads one commit of many that are held at once: long messages are cut.
    pub fn short_commit(&self, oid: Oid) -> Result<Commit, ReadError> {
        self.objects().parsed_commit(oid, LONGEST_OF_MANY)
    }

    /// Reads several commits, in this order. Truncates long messages, because many are held at once.
    pub fn commits(&self, oids: &[Oid]) -> Result<Vec<Commit>, ReadError> {
        let mut objects = self.objects();
        oids.iter().map(|&oid| objects.parsed_commit(oid, LONGEST_OF_MANY)).collect()
    }
}

impl Objects<'_> {
    fn parsed_commit(&mut self, oid: Oid, longest: usize) -> Result<Commit, ReadError> {
        let reader = self.reader();
        let data = self.commit(&id(oid))?;
        let headers = Headers::parse(data).ok_or_else(|| reader.broken(format!("commit {oid} does not parse")))?;
        let latin = is_latin(headers.encoding);
        let (subject, body) = split_message(cut(headers.message, longest));
        let signature = |raw: &[u8]| {
            let (name, email, time, offset) = split_signature(raw);
            let short = |text| decoded(cut(text, LONGEST_NAME), latin);
            Signature { name: short(name), email: short(email), time, offset }
        };
        Ok(Commit {
            oid,
            tree: headers.tree,
            parents: headers.parents,
            author: signature(headers.author),
            committer: signature(headers.committer),
            subject: decoded(&subject, latin),
            body: decoded(body, latin),
            signed: headers.signed,
        })
    }
}

/// Parsed headers of a commit. More lenient than gix, which refuses commits by old tools that a push may bring: only
/// the
/// tree and the parents must be valid.
pub(super) struct Headers<'a> {
    pub tree: Oid,
    pub parents: Vec<Oid>,
    author: &'a [u8],
    committer: &'a [u8],
    encoding: &'a [u8],
    signed: bool,
    message: &'a [u8],
}

impl<'a> Headers<'a> {
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (first, mut rest) = line(data);
        let tree = Oid::from_hex(first.strip_prefix(b"tree ")?).ok()?;
        let parents = Vec::new();
        let mut headers =
            Self { tree, parents, author: b"", committer: b"", encoding: b"", signed: false, message: b"" };
        while !rest.is_empty() {
            let (header, after) = line(rest);
            rest = after;
            if header.is_empty() {
                break;
            }
            let (key, value) = header.split_once_str(" ").unwrap_or((header, b""));
            match key {
                b"parent" => headers.parents.push(Oid::from_hex(value).ok()?),
                b"author" => headers.author = value,
                b"committer" => headers.committer = value,
                b"encoding" => headers.encoding = value,
                b"gpgsig" | b"gpgsig-sha256" => headers.signed = true,
                _ => (),
            }
        }
        headers.message = rest;
        Some(headers)
    }

    /// Committer time, git's sort order.
    pub fn time(&self) -> i64 {
        split_signature(self.committer).2
    }
}

/// The first line without its newline, and the rest.
pub(super) fn line(data: &[u8]) -> (&[u8], &[u8]) {
    data.split_once_str("\n").unwrap_or((data, b""))
}

/// Name, address, time and offset of `Name <address> 1700000000 +0100`; missing parts are empty or zero.
pub(super) fn split_signature(raw: &[u8]) -> (&[u8], &[u8], i64, i32) {
    let Some((name, rest)) = raw.split_once_str("<") else { return (raw.trim(), b"", 0, 0) };
    let email = rest.split_once_str(">").map_or(rest, |(email, _)| email);
    let when = raw.rsplit_once_str(">").map_or(&b""[..], |(_, when)| when);
    let mut words = when.to_str().unwrap_or_default().split_ascii_whitespace();
    let time = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    (name.trim(), email.trim(), time, words.next().and_then(offset).unwrap_or(0))
}

/// Converts `+hhmm` to seconds.
fn offset(word: &str) -> Option<i32> {
    let (sign, digits) = match word.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let number: i32 = digits.parse().ok().filter(|number| (0..=9999).contains(number))?;
    Some(sign * (number / 100 * 3600 + number % 100 * 60))
}

fn is_latin(encoding: &[u8]) -> bool {
    ["iso-8859-1", "iso8859-1", "latin1", "latin-1"].iter().any(|name| encoding.eq_ignore_ascii_case(name.as_bytes()))
}

fn decoded(text: &[u8], latin: bool) -> BString {
    if latin { text.iter().map(|&byte| char::from(byte)).collect::<String>().into() } else { text.into() }
}

/// Subject and body, as in git's `%s` and `%b`.
fn split_message(message: &[u8]) -> (BString, &[u8]) {
    let blank = |line: &&[u8]| line.trim_ascii().is_empty();
    let lines = || message.lines_with_terminator();
    let before: usize = lines().take_while(blank).map(<[u8]>::len).sum();
    let paragraph = || message[before..].lines_with_terminator().take_while(|line| !blank(line));
    let subject = paragraph().map(<[u8]>::trim_ascii_end).collect::<Vec<_>>().join(&b' ');
    let rest = &message[before + paragraph().map(<[u8]>::len).sum::<usize>()..];
    let between: usize = rest.lines_with_terminator().take_while(blank).map(<[u8]>::len).sum();
    (subject.into(), &rest[between..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_paragraph_is_the_subject() {
        let split = |text: &str| {
            let (subject, body) = split_message(text.as_bytes());
            (subject.to_string(), String::from_utf8(body.to_vec()).unwrap())
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(split("one\n"), pair("one", ""));
        assert_eq!(split("\n\none\ntwo\n\n\nbody\n\nmore\n"), pair("one two", "body\n\nmore\n"));
        assert_eq!(split("one\r\n\r\nbody"), pair("one", "body"));
        assert_eq!(split(""), pair("", ""));
        assert_eq!(split("\n \n"), pair("", ""));
    }

    #[test]
    fn signatures_are_read_as_far_as_they_go() {
        let read = |text: &'static str| split_signature(text.as_bytes());
        assert_eq!(read("A B <a@b> 17 +0130"), (&b"A B"[..], &b"a@b"[..], 17, 5400));
        assert_eq!(read("A <a> b <c> 17 -1200"), (&b"A"[..], &b"a"[..], 17, -43_200));
        assert_eq!(read("A<a>17"), (&b"A"[..], &b"a"[..], 17, 0));
        assert_eq!(read("A"), (&b"A"[..], &b""[..], 0, 0));
        assert_eq!(read("<> 99999999999999999999 +99999"), (&b""[..], &b""[..], 0, 0));
        assert_eq!(read("A <a 17 +0000"), (&b"A"[..], &b"a 17 +0000"[..], 0, 0));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(data: Vec<u8>, tail: Vec<u8>) {
            let _ = Headers::parse(&data);
            let mut text = b"tree 0000000000000000000000000000000000000000\nauthor ".to_vec();
            text.extend_from_slice(&tail);
            let headers = Headers::parse(&text);
            let _ = split_message(&data);
            let _ = split_signature(&data);
            prop_assert!(headers.is_some() || tail.contains_str("parent"));
        }
    }
}
