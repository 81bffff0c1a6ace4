//! The guard against a full disk: writes stop while there is still room to clean up.

use crate::{Fault, Forge};
use std::path::Path;

/// Fails if the disk that holds the data has less free space than the configuration asks for.
pub fn ensure_room(forge: &Forge) -> Result<(), Fault> {
    let free_percent = free_percent(forge.layout().data());
    match free_percent {
        Some(free_percent) if free_percent < forge.settings().min_free_percent => Err(Fault::DiskFull { free_percent }),
        _ => Ok(()),
    }
}

/// The share of the disk below `path` that is free to us; `None` if the system does not say.
pub fn free_percent(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(100) / stat.f_blocks)
}
