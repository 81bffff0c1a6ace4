//! First responses of a connection, encoded from a ref snapshot.
//!
//! The bytes equal git's own (tests compare them), but no git process starts and each snapshot can cache them.

use crate::environment::HIDDEN_REFS;
use crate::pktline::{put_data, put_flush, put_parts};
use crate::probe::UploadCapabilities;
use crate::snapshot::{Ref, Snapshot};
use crate::v2::LsRefs;
use abide_core::Oid;
use bytes::{Bytes, BytesMut};
use gix::bstr::ByteSlice as _;
use std::ops::Deref;

/// Capabilities offered to pushing clients. `push-cert` is not offered.
const RECEIVE_CAPABILITIES: &str = "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta \
                                    push-options object-format=sha1";

/// Wire protocol version requested by a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProtocolVersion {
    #[default]
    V0,
    /// Version 0 preceded by a `version 1` line.
    V1,
    /// Commands instead of a ref advertisement.
    V2,
}

impl ProtocolVersion {
    /// Parses a `Git-Protocol` header or `GIT_PROTOCOL` variable: the highest known version among its `version=N`
    /// parts.
    pub fn parse(text: &str) -> Self {
        text.split(':')
            .filter_map(|part| match part.strip_prefix("version=")? {
                "1" => Some(Self::V1),
                "2" => Some(Self::V2),
                _ => None,
            })
            .max()
            .unwrap_or_default()
    }

    /// Value for `GIT_PROTOCOL`: a constant of ours, never text from the client.
    pub fn as_env(self) -> Option<&'static str> {
        match self {
            Self::V0 => None,
            Self::V1 => Some("version=1"),
            Self::V2 => Some("version=2"),
        }
    }
}

/// Whether clients do not see this ref. Must match `uploadpack.hideRefs`.
pub fn is_hidden(name: &[u8]) -> bool {
    name.strip_prefix(HIDDEN_REFS.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Final target of HEAD, through one further symbolic ref, as git reports it.
fn head_symref(snapshot: &Snapshot) -> Option<&[u8]> {
    let target: &[u8] = snapshot.head_target()?;
    let further = snapshot.get(target).and_then(|found| found.symref.as_ref());
    Some(further.map_or(target, |name| name.as_slice()))
}

/// The `# service=git-…` head of a smart HTTP answer; version 2 has none.
pub fn service(name: &str) -> Bytes {
    let mut out = BytesMut::new();
    put_data(&mut out, format!("# service={name}\n").as_bytes());
    put_flush(&mut out);
    out.freeze()
}

/// Refs of pull requests that came by nostr. Anybody can have some made, and a push to one is judged by its event, whatever
/// the client saw there.
const PR_EVENTS: &[u8] = b"refs/nostr/";

/// The refs that a pushing client gets, with our capabilities and without refs of pull requests: a push to a branch lists
/// of no strangers' refs. There is no version 2 of pushing; it is answered as 0.
pub fn receive_pack<S: Deref<Target = Snapshot>>(snapshot: S, agent: &str, version: ProtocolVersion) -> Listed<S> {
    let capabilities = format!("{RECEIVE_CAPABILITIES} agent={agent}").into_bytes();
    Listed::new(snapshot, Form::Receive(Old { version, capabilities }))
}

/// Advertisement for fetches with version 0 or 1: HEAD, refs and peeled tags with git's capabilities for requests that
/// stand for themselves, or for a conversation.
pub fn upload_pack<S: Deref<Target = Snapshot>>(
    snapshot: S,
    git: &UploadCapabilities,
    version: ProtocolVersion,
    stateless: bool,
) -> Listed<S> {
    let mut capabilities = git.before_symref.to_vec();
    if let (Some(_), Some(target)) = (snapshot.head_oid(), head_symref(&snapshot)) {
        capabilities.extend_from_slice(b" symref=HEAD:");
        capabilities.extend_from_slice(target);
    }
    capabilities.extend_from_slice(&git.after_symref);
    if !stateless {
        // As in git, whose capabilities were asked for in the other form.
        capabilities = capabilities.replace(" no-done", "");
    }
    Listed::new(snapshot, Form::Upload(Old { version, capabilities }))
}

/// Capability advertisement of a version 2 fetch; the same for every repository.
pub fn upload_pack_v2(git: &UploadCapabilities) -> Bytes {
    git.v2.clone()
}

/// Response to the version 2 command `ls-refs`.
pub fn ls_refs<S: Deref<Target = Snapshot>>(snapshot: S, request: LsRefs) -> Listed<S> {
    Listed::new(snapshot, Form::LsRefs(request))
}

/// How much is made at a time.
const PIECE: usize = 64 * 1024;

/// An answer that lists refs, made piece by piece while it is sent: nobody holds more of it than one piece, and the
/// snapshot is shared.
#[derive(Debug)]
pub struct Listed<S> {
    snapshot: S,
    form: Form,
    at: At,
}

/// The form of a list.
#[derive(Debug)]
enum Form {
    Receive(Old),
    Upload(Old),
    LsRefs(LsRefs),
}

/// Versions 0 and 1: capabilities stand behind the first line, whichever it is.
#[derive(Debug)]
struct Old {
    version: ProtocolVersion,
    capabilities: Vec<u8>,
}

/// How far a list is made.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    begun: bool,
    /// Whether a line carries the capabilities already.
    capable: bool,
    next: usize,
    ended: bool,
}

/// Takes packets, or only their lengths.
trait Sink {
    fn packet(&mut self, parts: &[&[u8]]);
    fn flush(&mut self);
}

impl Sink for BytesMut {
    fn packet(&mut self, parts: &[&[u8]]) {
        put_parts(self, parts);
    }

    fn flush(&mut self) {
        put_flush(self);
    }
}

struct Length(u64);

impl Sink for Length {
    fn packet(&mut self, parts: &[&[u8]]) {
        self.0 += 4 + parts.iter().map(|part| part.len() as u64).sum::<u64>();
    }

    fn flush(&mut self) {
        self.0 += 4;
    }
}

impl<S: Deref<Target = Snapshot>> Listed<S> {
    fn new(snapshot: S, form: Form) -> Self {
        Self { snapshot, form, at: At::default() }
    }

    /// How many bytes are still to come. Makes none of them.
    pub fn size(&self) -> u64 {
        let (mut at, mut length) = (self.at, Length(0));
        while !at.ended {
            self.step(&mut at, &mut length);
        }
        length.0
    }

    /// All of it, for lists that are known to be short.
    pub fn into_bytes(self) -> Bytes {
        let (mut at, mut out) = (self.at, BytesMut::new());
        while !at.ended {
            self.step(&mut at, &mut out);
        }
        out.freeze()
    }

    /// Makes a little more.
    fn step(&self, at: &mut At, out: &mut impl Sink) {
        if !at.begun {
            at.begun = true;
            return self.begin(at, out);
        }
        match self.snapshot.refs.get(at.next) {
            Some(found) => {
                at.next += 1;
                if !is_hidden(&found.name) {
                    self.put(at, found, out);
                }
            }
            None => {
                at.ended = true;
                self.end(at, out);
            }
        }
    }

    fn begin(&self, at: &mut At, out: &mut impl Sink) {
        match &self.form {
            Form::Receive(old) => old.begin(out),
            Form::Upload(old) => {
                old.begin(out);
                if let Some(oid) = self.snapshot.head_oid() {
                    old.line(at, out, oid, &[b"HEAD"]);
                }
            }
            Form::LsRefs(request) if request.matches(b"HEAD") => put_head(out, &self.snapshot, request),
            Form::LsRefs(_) => {}
        }
    }

    fn put(&self, at: &mut At, found: &Ref, out: &mut impl Sink) {
        match &self.form {
            Form::Receive(_) if found.name.starts_with(PR_EVENTS) => {}
            Form::Receive(old) => old.line(at, out, found.oid, &[&found.name]),
            Form::Upload(old) => {
                old.line(at, out, found.oid, &[&found.name]);
                if let Some(peeled) = found.peeled {
                    old.line(at, out, peeled, &[&found.name, b"^{}"]);
                }
            }
            Form::LsRefs(request) if request.matches(&found.name) => {
                let symref = found.symref.as_ref().map(|target| target.as_slice());
                put_listed(out, request, found.oid, &found.name, symref, found.peeled);
            }
            Form::LsRefs(_) => {}
        }
    }

    /// Closes the list; an empty one of the old form still has to carry the capabilities.
    fn end(&self, at: &mut At, out: &mut impl Sink) {
        if let (Form::Receive(old) | Form::Upload(old), false) = (&self.form, at.capable) {
            old.line(at, out, Oid::ZERO, &[b"capabilities^{}"]);
        }
        out.flush();
    }
}

impl<S: Deref<Target = Snapshot>> Iterator for Listed<S> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut at = self.at;
        if at.ended {
            return None;
        }
        let mut out = BytesMut::new();
        while !at.ended && out.len() < PIECE {
            self.step(&mut at, &mut out);
        }
        self.at = at;
        Some(out.freeze())
    }
}

impl Old {
    fn begin(&self, out: &mut impl Sink) {
        if self.version == ProtocolVersion::V1 {
            out.packet(&[b"version 1\n"]);
        }
    }

    fn line(&self, at: &mut At, out: &mut impl Sink, oid: Oid, name: &[&[u8]]) {
        let (zero, capabilities): (&[u8], &[u8]) = if at.capable { (b"", b"") } else { (b"\0", &self.capabilities) };
        at.capable = true;
        let (name, suffix) = (name[0], name.get(1).copied().unwrap_or_default());
        out.packet(&[&hex(oid), b" ", name, suffix, zero, capabilities, b"\n"]);
    }
}

fn put_head(out: &mut impl Sink, snapshot: &Snapshot, request: &LsRefs) {
    let target = head_symref(snapshot);
    match (snapshot.head_oid(), target) {
        (Some(oid), target) => {
            let peeled = target.and_then(|target| snapshot.get(target)?.peeled);
            put_listed(out, request, oid, b"HEAD", target, peeled);
        }
        (None, Some(target)) if request.unborn && request.symrefs => {
            out.packet(&[b"unborn HEAD symref-target:", target, b"\n"]);
        }
        (None, _) => (),
    }
}

fn put_listed(
    out: &mut impl Sink,
    request: &LsRefs,
    oid: Oid,
    name: &[u8],
    symref: Option<&[u8]>,
    peeled: Option<Oid>,
) {
    let hex = hex(oid);
    let peeled_hex = peeled.filter(|_| request.peel).map(self::hex);
    let mut parts: [&[u8]; 8] = [&hex, b" ", name, b"", b"", b"", b"", b"\n"];
    if let Some(target) = symref.filter(|_| request.symrefs) {
        (parts[3], parts[4]) = (b" symref-target:", target);
    }
    if let Some(peeled) = &peeled_hex {
        (parts[5], parts[6]) = (b" peeled:", peeled);
    }
    out.packet(&parts);
}

fn hex(oid: Oid) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(oid.as_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_known_version_wins_and_nonsense_is_version_0() {
        for (text, version) in [
            ("", ProtocolVersion::V0),
            ("version=2", ProtocolVersion::V2),
            ("version=1:version=2", ProtocolVersion::V2),
            ("version=2:version=9:key=value", ProtocolVersion::V2),
            ("version=1", ProtocolVersion::V1),
            ("version=3", ProtocolVersion::V0),
            ("version=2\nGIT_X=1", ProtocolVersion::V0),
        ] {
            assert_eq!(ProtocolVersion::parse(text), version, "{text:?}");
        }
    }

    #[test]
    fn a_list_is_made_in_pieces_and_its_size_is_known_before() {
        let named = |number: u32| Ref {
            name: format!("refs/tags/{number:06}").into(),
            oid: Oid::from_bytes([7; 20]),
            peeled: number.is_multiple_of(3).then_some(Oid::from_bytes([8; 20])),
            symref: None,
        };
        let head = crate::snapshot::Head::Symbolic("refs/tags/000000".into());
        let many = Snapshot { refs: (0..5_000).map(named).collect(), head };
        let none = Snapshot::empty();
        let git = UploadCapabilities {
            before_symref: Bytes::from_static(b"multi_ack no-done"),
            after_symref: Bytes::from_static(b" agent=git/2"),
            v2: Bytes::new(),
        };
        let asks = LsRefs { symrefs: true, peel: true, unborn: true, prefixes: Vec::new() };
        for snapshot in [&many, &none] {
            let lists = || {
                let old = [ProtocolVersion::V0, ProtocolVersion::V1];
                let uploads = old.map(|version| upload_pack(snapshot, &git, version, version == ProtocolVersion::V0));
                let receives = old.map(|version| receive_pack(snapshot, "abide/1", version));
                uploads.into_iter().chain(receives).chain([ls_refs(snapshot, asks.clone())])
            };
            for (list, again) in lists().zip(lists()) {
                let size = list.size();
                let whole = again.into_bytes();
                assert_eq!(size, whole.len() as u64);
                let pieces: Vec<Bytes> = list.collect();
                assert!(pieces.iter().all(|piece| piece.len() < PIECE + 1024));
                assert_eq!(pieces.concat(), whole);
                assert!(whole.ends_with(b"0000"));
            }
        }
        let conversation = upload_pack(&many, &git, ProtocolVersion::V0, false).into_bytes();
        assert!(conversation.contains_str("multi_ack symref=HEAD:refs/tags/000000 agent=git/2"));
    }

    #[test]
    fn only_our_own_namespace_is_hidden() {
        assert!(is_hidden(b"refs/abide/keep") && is_hidden(b"refs/abide"));
        assert!(!is_hidden(b"refs/abideX") && !is_hidden(b"refs/heads/refs/abide/x"));
    }
}
