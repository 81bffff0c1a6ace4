//! Which commit last touched each line of a file, by one `git blame`.

use super::path_log::addressable;
use super::{ReadError, Reader};
use crate::error::blocking;
use crate::{Client, Git};
use abide_core::Oid;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The largest file that is looked at.
const LARGEST: u64 = 1024 * 1024;

/// Lines that follow each other and came with the same commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlameRange {
    /// The commit.
    pub commit: Oid,
    /// The first of the lines, from one.
    pub start: u32,
    /// How many they are.
    pub lines: u32,
}

impl Reader {
    /// Who last touched each line of a text file, in the order of the lines. Bounded by the runner's limits; worth
    /// caching by its arguments, which determine the answer for ever.
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
        let _place = git.read_place(client).await?;
        let output = git
            .call("blame", self.repo_dir())
            .ration(git.read_ration())
            .args(["--incremental", &start.to_string(), "--"])
            .args([OsStr::from_bytes(path)])
            .run(&[], git.limits().quick)
            .await?;
        let mut ranges: Vec<_> = output.split(|&byte| byte == b'\n').filter_map(parse_range).collect();
        ranges.sort_by_key(|range| range.start);
        Ok(ranges)
    }
}

/// Reads `<oid> <original line> <final line> <count>`; the other lines tell what the commit itself tells.
fn parse_range(line: &[u8]) -> Option<BlameRange> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let commit = words.next()?.parse().ok()?;
    let numbers: Vec<u32> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    let &[_, start, lines] = numbers.as_slice() else { return None };
    Some(BlameRange { commit, start, lines })
}
