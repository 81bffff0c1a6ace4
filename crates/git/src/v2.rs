//! Parses the start of a version 2 request: `ls-refs` is answered here, everything else goes to git unchanged.

use crate::pktline::{PacketReader, peek_length};
use std::io;
use tokio::io::AsyncRead;

/// From this many prefixes on, git ignores them and lists all refs; so do we.
const TOO_MANY_PREFIXES: usize = 65_536;
/// Requests above this size are passed to git unparsed, because parsing would hold them in memory per client.
const MAX_REQUEST: usize = 128 * 1024;

/// The arguments of `ls-refs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LsRefs {
    /// Report the targets of symbolic refs.
    pub symrefs: bool,
    /// Report the targets of annotated tags.
    pub peel: bool,
    /// Report a HEAD whose branch does not exist yet.
    pub unborn: bool,
    /// Sorted name prefixes to list; empty means all refs.
    pub prefixes: Vec<Vec<u8>>,
}

impl LsRefs {
    /// Whether the request asks for this name.
    pub fn matches(&self, name: &[u8]) -> bool {
        // No prefix starts with another, so the only candidate is the greatest prefix not greater than the name.
        let after = self.prefixes.partition_point(|prefix| prefix.as_slice() <= name);
        self.prefixes.is_empty() || after > 0 && name.starts_with(&self.prefixes[after - 1])
    }

    fn finish(mut self) -> Self {
        if self.prefixes.len() >= TOO_MANY_PREFIXES {
            self.prefixes.clear();
        }
        self.prefixes.sort_unstable();
        self.prefixes.dedup_by(|longer, shorter| longer.starts_with(shorter));
        self
    }
}

/// Kind of a version 2 request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum V2Request {
    /// `ls-refs`, all of it read and taken.
    LsRefs(LsRefs),
    /// Any other request. Nothing is consumed: the reader still yields all of it, for `git upload-pack`.
    Other,
}

/// Reads until the kind of request is known.
pub async fn read_request<R: AsyncRead + Unpin>(reader: &mut PacketReader<R>) -> io::Result<V2Request> {
    let mut parser = Parser::default();
    loop {
        if let Some(request) = parser.advance(reader.buffered()) {
            if let V2Request::LsRefs(_) = request {
                reader.consume(parser.position);
            }
            return Ok(request);
        }
        if reader.fill().await? == 0 {
            return Ok(V2Request::Other);
        }
    }
}

/// Parses a request that is completely in memory.
pub fn parse_request(bytes: &[u8]) -> V2Request {
    Parser::default().advance(bytes).unwrap_or(V2Request::Other)
}

#[derive(Default)]
enum Section {
    #[default]
    Command,
    Capabilities,
    Arguments,
}

/// Parses a growing buffer, each byte once.
#[derive(Default)]
struct Parser {
    position: usize,
    section: Section,
    request: LsRefs,
}

impl Parser {
    /// The parsed request, or `None` if more input is needed. `buffer` is everything read so far.
    fn advance(&mut self, buffer: &[u8]) -> Option<V2Request> {
        loop {
            let rest = &buffer[self.position..];
            let length = match peek_length(rest) {
                Ok(Some(length)) => length,
                Ok(None) if buffer.len() < MAX_REQUEST => return None,
                _ => return Some(V2Request::Other),
            };
            if rest.len() < length {
                return (buffer.len() >= MAX_REQUEST).then_some(V2Request::Other);
            }
            self.position += length.max(4);
            let known = match length {
                0 => return Some(self.flush()),
                1 => self.delimiter(),
                2 => false,
                _ => self.line(&rest[4..length]),
            };
            if !known {
                return Some(V2Request::Other);
            }
        }
    }

    fn flush(&mut self) -> V2Request {
        match self.section {
            Section::Command => V2Request::Other,
            Section::Capabilities | Section::Arguments => V2Request::LsRefs(std::mem::take(&mut self.request).finish()),
        }
    }

    fn delimiter(&mut self) -> bool {
        let known = matches!(self.section, Section::Capabilities);
        self.section = Section::Arguments;
        known
    }

    /// Parses a line; `false` for anything that git must handle, including its errors.
    fn line(&mut self, data: &[u8]) -> bool {
        let line = data.strip_suffix(b"\n").unwrap_or(data);
        match self.section {
            Section::Command => {
                self.section = Section::Capabilities;
                line == b"command=ls-refs"
            }
            Section::Capabilities => line == b"object-format=sha1" || line.starts_with(b"agent="),
            Section::Arguments => self.argument(line),
        }
    }

    fn argument(&mut self, line: &[u8]) -> bool {
        match line {
            b"symrefs" => self.request.symrefs = true,
            b"peel" => self.request.peel = true,
            b"unborn" => self.request.unborn = true,
            _ => match line.strip_prefix(b"ref-prefix ") {
                Some(prefix) => self.request.prefixes.push(prefix.to_vec()),
                None => return false,
            },
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pktline::{put_data, put_delim, put_flush};
    use bytes::BytesMut;
    use proptest::prelude::*;

    fn request(head: &[&str], arguments: &[&str]) -> BytesMut {
        let mut wire = BytesMut::new();
        head.iter().for_each(|line| put_data(&mut wire, line.as_bytes()));
        put_delim(&mut wire);
        arguments.iter().for_each(|line| put_data(&mut wire, line.as_bytes()));
        put_flush(&mut wire);
        wire
    }

    #[tokio::test]
    async fn ls_refs_is_understood() {
        let wire = request(
            &["command=ls-refs\n", "agent=git/2.47.3", "object-format=sha1"],
            &["peel\n", "symrefs\n", "unborn\n", "ref-prefix refs/tags/\n", "ref-prefix HEAD\n"],
        );
        let expected = LsRefs {
            symrefs: true,
            peel: true,
            unborn: true,
            prefixes: vec![b"HEAD".to_vec(), b"refs/tags/".to_vec()],
        };
        assert_eq!(read_request(&mut PacketReader::new(&wire[..])).await.unwrap(), V2Request::LsRefs(expected));
    }

    #[tokio::test]
    async fn everything_else_is_handed_on_untouched() {
        use tokio::io::AsyncReadExt;
        for wire in [
            request(&["command=fetch"], &["want x"]),
            request(&["command=ls-refs", "object-format=sha256"], &[]),
            request(&["command=ls-refs"], &["no-such-argument"]),
            BytesMut::from(&b"0000"[..]),
            BytesMut::from(&b"0014command=ls-r"[..]),
            BytesMut::from(&b"zzzz"[..]),
        ] {
            let mut reader = PacketReader::new(&wire[..]);
            assert_eq!(read_request(&mut reader).await.unwrap(), V2Request::Other);
            let mut rest = Vec::new();
            reader.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, wire);
        }
    }

    #[test]
    fn too_many_prefixes_are_ignored_as_git_does() {
        let many = LsRefs { prefixes: vec![b"x".to_vec(); TOO_MANY_PREFIXES], ..LsRefs::default() };
        assert!(many.finish().matches(b"refs/heads/a"));
        let fewer = LsRefs { prefixes: vec![b"x".to_vec(); TOO_MANY_PREFIXES - 1], ..LsRefs::default() };
        assert!(!fewer.finish().matches(b"refs/heads/a"));
    }

    proptest! {
        #[test]
        fn a_name_matches_as_if_each_prefix_were_tried(
            prefixes in proptest::collection::vec("[ab/]{0,4}", 0..8),
            name in "[ab/]{0,6}",
        ) {
            let bytes: Vec<Vec<u8>> = prefixes.iter().map(|prefix| prefix.clone().into_bytes()).collect();
            let request = LsRefs { prefixes: bytes, ..LsRefs::default() }.finish();
            let naive = prefixes.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix));
            prop_assert_eq!(request.matches(name.as_bytes()), naive);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            parse_request(&bytes);
        }

        #[test]
        fn the_verdict_does_not_depend_on_how_the_bytes_arrive(
            arguments in proptest::collection::vec("(peel|symrefs|unborn|ref-prefix [a-z/]{0,9}|bogus)", 0..5),
            step in 1..40usize,
        ) {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let wire = request(&["command=ls-refs"], &arguments);
            let mut parser = Parser::default();
            let pieces = (0..wire.len()).step_by(step).chain([wire.len()]);
            let slow = pieces.map(|end| parser.advance(&wire[..end])).find_map(|verdict| verdict);
            prop_assert_eq!(slow.unwrap_or(V2Request::Other), parse_request(&wire));
        }
    }
}
