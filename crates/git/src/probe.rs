//! Capabilities that the git binary offers to fetching clients.
//!
//! We write the advertisement (from a [`Snapshot`](crate::Snapshot)), but git serves the fetch. So the capabilities
//! must be exactly those of this binary with our settings.

use crate::environment::Environment;
use crate::pktline::{Packet, decode};
use crate::runner::Call;
use crate::{GitError, ProtocolVersion, bare, durable};
use bytes::{Bytes, BytesMut};
use gix::bstr::ByteSlice;
use std::path::Path;
use std::time::Duration;

/// A ref that exists in the probe only.
const PROBE_REF: &str = "refs/heads/probe";
/// Id of the empty tree. git knows it without storing it, so the probe needs no objects.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Captured capabilities of `git upload-pack` for stateless (HTTP) clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadCapabilities {
    /// Versions 0 and 1: the text before and after `symref=…`.
    pub(crate) before_symref: Bytes,
    pub(crate) after_symref: Bytes,
    /// Version 2: the whole advertisement.
    pub(crate) v2: Bytes,
}

/// Runs the binary on a scratch repository below `dir`.
pub(crate) async fn capabilities(
    environment: &Environment,
    dir: &Path,
    limit: Duration,
) -> Result<UploadCapabilities, GitError> {
    let scratch = dir.join(format!("probe-{:016x}", durable::never_twice()));
    let made = durable::remove_tree(&scratch)
        .and_then(|()| bare::fill(&scratch, &format!("ref: {PROBE_REF}\n")))
        .and_then(|()| std::fs::write(scratch.join(PROBE_REF), format!("{EMPTY_TREE}\n")));
    made.map_err(GitError::io("create", &scratch))?;
    let asked = ask_both(environment, &scratch, limit).await;
    durable::remove_tree(&scratch).map_err(GitError::io("remove", &scratch))?;
    asked
}

async fn ask_both(environment: &Environment, scratch: &Path, limit: Duration) -> Result<UploadCapabilities, GitError> {
    let v0 = ask(environment, scratch, ProtocolVersion::V0, limit).await?;
    let (before_symref, after_symref) =
        split_v0(&v0).ok_or_else(|| GitError::Probe(String::from_utf8_lossy(&v0).into_owned()))?;
    let v2 = ask(environment, scratch, ProtocolVersion::V2, limit).await?;
    if !v2.starts_with(b"000eversion 2\n") || !v2.ends_with(b"0000") {
        return Err(GitError::Probe(String::from_utf8_lossy(&v2).into_owned()));
    }
    Ok(UploadCapabilities { before_symref, after_symref, v2: v2.into() })
}

async fn ask(
    environment: &Environment,
    scratch: &Path,
    version: ProtocolVersion,
    limit: Duration,
) -> Result<Vec<u8>, GitError> {
    let mut call = Call::new(environment, "upload-pack", scratch, &[]);
    if let Some(protocol) = version.as_env() {
        call = call.env("GIT_PROTOCOL", protocol);
    }
    call.args(["--strict", "--http-backend-info-refs", "."]).run(&[], limit).await
}

/// Splits the capabilities of the first line around `symref=`.
fn split_v0(advertisement: &[u8]) -> Option<(Bytes, Bytes)> {
    let mut buffer = BytesMut::from(advertisement);
    let Ok(Some(Packet::Data(line))) = decode(&mut buffer) else { return None };
    let (_, capabilities) = line.trim_ascii_end().split_once_str(b"\0")?;
    let (before, after) = capabilities.split_once_str(format!(" symref=HEAD:{PROBE_REF}").as_bytes())?;
    Some((Bytes::copy_from_slice(before), Bytes::copy_from_slice(after)))
}
