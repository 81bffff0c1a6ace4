//! Annotated tags.

use super::commit::{LONGEST_MESSAGE, cut, line, split_signature};
use super::objects::id;
use super::{ObjectKind, ReadError, Reader, Signature};
use abide_core::Oid;
use gix::bstr::{BString, ByteSlice};

/// Starts of signatures in messages.
const SIGNATURES: [&str; 3] = ["-----BEGIN PGP ", "-----BEGIN SSH ", "-----BEGIN SIGNED "];

/// An annotated tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagObject {
    pub oid: Oid,
    /// Name in the tag object; the ref may have another name.
    pub name: BString,
    /// Target object, possibly another tag.
    pub target: Oid,
    pub target_kind: ObjectKind,
    /// Absent in old tags.
    pub tagger: Option<Signature>,
    /// The message, with a signature if there is one; the beginning of a long one.
    pub message: BString,
    /// Whether it carries a signature; nothing verifies it.
    pub signed: bool,
}

impl Reader {
    /// Reads an annotated tag; any other object is `NotFound`.
    pub fn tag(&self, oid: Oid) -> Result<TagObject, ReadError> {
        let mut objects = self.objects();
        let data = objects.tag(&id(oid))?;
        parse(oid, data).ok_or_else(|| self.broken(format!("tag {oid} does not parse")))
    }
}

/// As lenient as for commits: only the target must be valid.
fn parse(oid: Oid, data: &[u8]) -> Option<TagObject> {
    let (first, rest) = line(data);
    let target = Oid::from_hex(first.strip_prefix(b"object ")?).ok()?;
    let (second, mut rest) = line(rest);
    let target_kind = match second.strip_prefix(b"type ")? {
        b"commit" => ObjectKind::Commit,
        b"tree" => ObjectKind::Tree,
        b"blob" => ObjectKind::Blob,
        b"tag" => ObjectKind::Tag,
        _ => return None,
    };
    let (mut name, mut tagger) = (BString::default(), None);
    while !rest.is_empty() {
        let (header, after) = line(rest);
        rest = after;
        match header.split_once_str(" ") {
            _ if header.is_empty() => break,
            Some((b"tag", value)) => name = value.into(),
            Some((b"tagger", value)) => {
                let (name, email, time, offset) = split_signature(value);
                tagger = Some(Signature { name: name.into(), email: email.into(), time, offset });
            }
            _ => (),
        }
    }
    let signed = SIGNATURES.iter().any(|begin| rest.contains_str(begin));
    Some(TagObject { oid, name, target, target_kind, tagger, message: cut(rest, LONGEST_MESSAGE).into(), signed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tag_is_taken_apart() {
        let target = "1".repeat(40);
        let text = format!("object {target}\ntype tree\ntag v1\ntagger A <a@b> 17 +0100\n\nOne\n-----BEGIN SSH SIG");
        let tag = parse(Oid::ZERO, text.as_bytes()).unwrap();
        assert_eq!((tag.name.to_string(), tag.target_kind, tag.signed), ("v1".into(), ObjectKind::Tree, true));
        assert_eq!(tag.tagger.map(|tagger| (tagger.time, tagger.offset)), Some((17, 3600)));
        let old = parse(Oid::ZERO, format!("object {target}\ntype commit\ntag v0\n\n").as_bytes()).unwrap();
        assert_eq!((old.tagger, old.message.len(), old.signed), (None, 0, false));
        assert_eq!(parse(Oid::ZERO, format!("object {target}\ntype note\n").as_bytes()), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(data: Vec<u8>) {
            let _ = parse(Oid::ZERO, &data);
        }
    }
}
