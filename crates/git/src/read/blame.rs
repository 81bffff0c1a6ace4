//! Last commit of each line of a file, from one `git blame`.

use super::path_log::addressable;
use super::{ReadError, Reader};
use crate::error::blocking;
use crate::{Client, Git};
use abide_core::Oid;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Largest file to blame.
const LARGEST: u64 = 1024 * 1024;

/// Consecutive lines from the same commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlameRange {
    pub commit: Oid,
    /// First line, counted from 1.
    pub start: u32,
    /// Number of lines.
    pub lines: u32,
}

impl Reader {
    /// Last commit of each line of a text file, in line order. Bounded by the runner's limits. Cacheable forever: the
    /// arguments determine the result.
    pub async fn blame(
        &self,
        git: &Git,
        client: Client,
        start: Oid,
        path: &[u8],
    ) -> Result<Vec<BlameRange>, ReadError> {
        let path = addressable(path)?;
        let (reader, owned) = (self.clone(), path.to_vec());
        let entry = blocking(move || reader.entry(start, &owned)).await?;
        match entry.size {
            None => return Err(ReadError::NotAFile),
            Some(size) if size > LARGEST => return Err(ReadError::TooFar),
            Some(_) => (),
        }
        let reading = git.reading(client).await?;
        let output = reading
            .call("blame", self.repo_dir())
            .args(["--incremental", &start.to_string(), "--"])
            .args([OsStr::from_bytes(path)])
            .run(&[], reading.limit())
            .await?;
        let mut ranges: Vec<_> = output.split(|&byte| byte == b'\n').filter_map(parse_range).collect();
        ranges.sort_by_key(|range| range.start);
        Ok(ranges)
    }
}

/// Parses `<oid> <original line> <final line> <count>`; the other output lines repeat the commit's headers.
fn parse_range(line: &[u8]) -> Option<BlameRange> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let commit = words.next()?.parse().ok()?;
    let numbers: Vec<u32> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    let &[_, start, lines] = numbers.as_slice() else { return None };
    Some(BlameRange { commit, start, lines })
}
