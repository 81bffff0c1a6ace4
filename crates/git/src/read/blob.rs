//! Contents of files.

use super::objects::{LARGEST_OBJECT, id};
use super::{ReadError, Reader};
use abide_core::Oid;
use gix::objs::Kind;

/// Bytes in which git looks for a NUL to detect a binary file.
const BINARY_WINDOW: usize = 8000;

/// Content of a file, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// All of it, or nothing of a blob that is larger than was asked for.
    pub data: Vec<u8>,
    /// Size of the whole blob.
    pub size: u64,
    /// Whether it is larger than was asked for.
    pub truncated: bool,
    /// Whether git would call it binary. Unknown, and `false`, of a blob that is too large.
    pub binary: bool,
}

impl Reader {
    /// Loads a blob of at most `max` bytes. A larger one is not read: objects come out of a pack whole, so even their
    /// beginning would take all of their size in memory.
    pub fn blob(&self, oid: Oid, max: usize) -> Result<Blob, ReadError> {
        let size = self.blob_size(oid)?;
        if size > LARGEST_OBJECT.min(max as u64) {
            return Ok(Blob { data: Vec::new(), size, truncated: true, binary: false });
        }
        let data = self.objects().blob(&id(oid))?.to_vec();
        Ok(Blob { truncated: false, binary: is_binary(&data), size, data })
    }

    /// Size of a blob, from its header.
    pub fn blob_size(&self, oid: Oid) -> Result<u64, ReadError> {
        match self.objects().header(&id(oid))? {
            (Kind::Blob, size) => Ok(size),
            _ => Err(ReadError::NotAFile),
        }
    }
}

/// Whether git treats this content as binary.
pub(super) fn is_binary(data: &[u8]) -> bool {
    data[..data.len().min(BINARY_WINDOW)].contains(&0)
}
