//! Lists of refs on their way to a client.

use super::snapshots::Refs;
use abide_core::admission::{ByteBudget, Bytes as Taken, Network};
use abide_git::advertise::Listed;
use abide_git::{Client, GitError};
use bytes::Bytes;
use std::sync::LazyLock;

/// Lists up to here are made at once and hold no snapshot.
const SHORT: u64 = 64 << 10;
/// Bytes of longer lists that clients of one network have not taken to their end. A single list may be longer.
const EACH: u64 = 32 << 20;
/// The same for all networks together.
const ALL: u64 = 96 << 20;

/// One for the process, because the memory is one.
static HELD: LazyLock<ByteBudget<Option<Network>>> = LazyLock::new(|| ByteBudget::new(ALL, EACH));

/// A list of refs, piece by piece. A long one holds the snapshot that it is made of, which others share.
pub enum RefList {
    /// All of it, until it was taken.
    Whole(Option<Bytes>),
    /// The rest of it.
    Pieces(Box<Listed<Refs>>),
}

impl RefList {
    pub(super) fn of(list: Listed<Refs>) -> Self {
        match list.size() <= SHORT {
            true => Self::Whole(Some(list.into_bytes())),
            false => Self::Pieces(Box::new(list)),
        }
    }

    /// How many bytes are still to come.
    pub fn size(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Self::Pieces(list) => list.size(),
        }
    }

    /// Counts a long list for as long as its client takes to read it. For roads that do not count answers themselves.
    pub fn hold(&self, client: Client) -> Result<Option<Taken<Option<Network>>>, GitError> {
        match self {
            Self::Whole(_) => Ok(None),
            Self::Pieces(list) => {
                let taken = HELD.take(client.network(), list.size());
                taken.map(Some).ok_or(GitError::Busy { what: "lists of refs that were not read yet" })
            }
        }
    }
}

impl Iterator for RefList {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Whole(bytes) => bytes.take(),
            Self::Pieces(list) => list.next(),
        }
    }
}
