//! The guard against a full disk: writes stop while there is still room to clean up.

use crate::{Fault, Forge};
use std::path::Path;

/// Fails if the disk that holds the data has less free space than the configuration asks for.
pub fn ensure_room(forge: &Forge) -> Result<(), Fault> {
    ensure_room_for(forge, 0)
}

/// Fails if the disk would have too little free space once it holds so many bytes more.
pub(crate) fn ensure_room_for(forge: &Forge, bytes: u64) -> Result<(), Fault> {
    match free_percent_less(forge.layout().data(), bytes) {
        Some(free_percent) if free_percent < forge.settings().min_free_percent => Err(Fault::DiskFull { free_percent }),
        _ => Ok(()),
    }
}

/// The share of the disk below `path` that is free to us; `None` if the system does not say.
pub fn free_percent(path: &Path) -> Option<u64> {
    free_percent_less(path, 0)
}

fn free_percent_less(path: &Path, bytes: u64) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    let left = stat.f_bavail.saturating_sub(bytes.div_ceil(stat.f_frsize.max(1)));
    (stat.f_blocks > 0).then(|| left.saturating_mul(100) / stat.f_blocks)
}
