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

fn visible(snapshot: &Snapshot) -> impl Iterator<Item = &Ref> {
    snapshot.refs.iter().filter(|found| !is_hidden(&found.name))
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

/// Advertisement for pushing clients: refs and our capabilities. Push has no protocol version 2; it gets version 0.
pub fn receive_pack(snapshot: &Snapshot, agent: &str, version: ProtocolVersion) -> Bytes {
    let mut out = Lines::new(version, snapshot.refs.len());
    let capabilities = format!("{RECEIVE_CAPABILITIES} agent={agent}");
    for found in visible(snapshot) {
        out.line(found.oid, &[&found.name], capabilities.as_bytes());
    }
    out.end(capabilities.as_bytes())
}

/// Advertisement for HTTP fetches with version 0 or 1: HEAD, refs and peeled tags with git's capabilities.
pub fn upload_pack(snapshot: &Snapshot, git: &UploadCapabilities, version: ProtocolVersion) -> Bytes {
    let mut out = Lines::new(version, snapshot.refs.len());
    let head = snapshot.head_oid();
    let mut capabilities = git.before_symref.to_vec();
    if let (Some(_), Some(target)) = (head, head_symref(snapshot)) {
        capabilities.extend_from_slice(b" symref=HEAD:");
        capabilities.extend_from_slice(target);
    }
    capabilities.extend_from_slice(&git.after_symref);
    if let Some(oid) = head {
        out.line(oid, &[b"HEAD"], &capabilities);
    }
    for found in visible(snapshot) {
        out.line(found.oid, &[&found.name], &capabilities);
        if let Some(peeled) = found.peeled {
            out.line(peeled, &[&found.name, b"^{}"], &capabilities);
        }
    }
    out.end(&capabilities)
}

/// Capability advertisement of a version 2 fetch; the same for every repository.
pub fn upload_pack_v2(git: &UploadCapabilities) -> Bytes {
    git.v2.clone()
}

/// Response to the version 2 command `ls-refs`.
pub fn ls_refs(snapshot: &Snapshot, request: &LsRefs) -> Bytes {
    let mut out = BytesMut::with_capacity(snapshot.refs.len().min(64 * 1024) * 64);
    if request.matches(b"HEAD") {
        put_head(&mut out, snapshot, request);
    }
    for found in visible(snapshot).filter(|found| request.matches(&found.name)) {
        let symref = found.symref.as_ref().map(|target| target.as_slice());
        put_listed(&mut out, request, found.oid, &found.name, symref, found.peeled);
    }
    put_flush(&mut out);
    out.freeze()
}

fn put_head(out: &mut BytesMut, snapshot: &Snapshot, request: &LsRefs) {
    let target = head_symref(snapshot);
    match (snapshot.head_oid(), target) {
        (Some(oid), target) => {
            let peeled = target.and_then(|target| snapshot.get(target)?.peeled);
            put_listed(out, request, oid, b"HEAD", target, peeled);
        }
        (None, Some(target)) if request.unborn && request.symrefs => {
            put_parts(out, &[b"unborn HEAD symref-target:", target, b"\n"]);
        }
        (None, _) => (),
    }
}

fn put_listed(out: &mut BytesMut, request: &LsRefs, oid: Oid, name: &[u8], symref: Option<&[u8]>, peeled: Option<Oid>) {
    let hex = hex(oid);
    let peeled_hex = peeled.filter(|_| request.peel).map(self::hex);
    let mut parts: [&[u8]; 8] = [&hex, b" ", name, b"", b"", b"", b"", b"\n"];
    if let Some(target) = symref.filter(|_| request.symrefs) {
        (parts[3], parts[4]) = (b" symref-target:", target);
    }
    if let Some(peeled) = &peeled_hex {
        (parts[5], parts[6]) = (b" peeled:", peeled);
    }
    put_parts(out, &parts);
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

/// Lines of a version 0 or 1 advertisement. The first line carries the capabilities.
struct Lines {
    out: BytesMut,
    first: bool,
}

impl Lines {
    fn new(version: ProtocolVersion, refs: usize) -> Self {
        let mut out = BytesMut::with_capacity(512 + refs * 72);
        if version == ProtocolVersion::V1 {
            put_data(&mut out, b"version 1\n");
        }
        Self { out, first: true }
    }

    fn line(&mut self, oid: Oid, name: &[&[u8]], capabilities: &[u8]) {
        let hex = hex(oid);
        let (zero, capabilities): (&[u8], _) = if self.first { (b"\0", capabilities) } else { (b"", &b""[..]) };
        self.first = false;
        let (name, suffix) = (name[0], name.get(1).copied().unwrap_or_default());
        put_parts(&mut self.out, &[&hex, b" ", name, suffix, zero, capabilities, b"\n"]);
    }

    /// Ends the list. An empty list gets a placeholder line, because the capabilities need a line.
    fn end(mut self, capabilities: &[u8]) -> Bytes {
        if self.first {
            self.line(Oid::ZERO, &[b"capabilities^{}"], capabilities);
        }
        put_flush(&mut self.out);
        self.out.freeze()
    }
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
    fn only_our_own_namespace_is_hidden() {
        assert!(is_hidden(b"refs/abide/keep") && is_hidden(b"refs/abide"));
        assert!(!is_hidden(b"refs/abideX") && !is_hidden(b"refs/heads/refs/abide/x"));
    }
}
