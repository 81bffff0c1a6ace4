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
    /// At most the requested number of bytes; empty for a blob above 32 MiB.
    pub data: Vec<u8>,
    /// Size of the whole blob.
    pub size: u64,
    /// Whether `data` is incomplete.
    pub truncated: bool,
    /// Whether git treats it as binary. A blob too large to load counts as binary.
    pub binary: bool,
}

impl Reader {
    /// Loads a blob, at most `max` bytes of it.
    pub fn blob(&self, oid: Oid, max: usize) -> Result<Blob, ReadError> {
        let size = self.blob_size(oid)?;
        if size > LARGEST_OBJECT {
            return Ok(Blob { data: Vec::new(), size, truncated: true, binary: true });
        }
        let mut objects = self.objects();
        let whole = objects.blob(&id(oid))?;
        let data = whole[..whole.len().min(max)].to_vec();
        Ok(Blob { truncated: data.len() < whole.len(), binary: is_binary(whole), size, data })
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
