//! The guard against a full disk: writes stop while there is still room to clean up. Whoever has no account is refused
//! earlier, so that strangers cannot take the room that accounts need.

use crate::{Caller, Fault, Forge};
use std::path::Path;

/// Who wants to write, as far as the guard is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// An account, or the server in the name of one.
    Account,
    /// Anybody else: a key that no account is linked to, a push that only signed events allow.
    Stranger,
}

impl Writer {
    /// The class of a caller.
    pub fn of(caller: &Caller) -> Self {
        match caller.actor {
            abide_core::policy::Actor::Anonymous => Self::Stranger,
            _ => Self::Account,
        }
    }
}

/// Fails if the disk that holds the data has less free space than must stay free for this class.
pub fn ensure_room(forge: &Forge, writer: Writer) -> Result<(), Fault> {
    ensure_room_for(forge, writer, 0)
}

/// Fails if the disk would have too little free space once it holds so many bytes more.
pub fn ensure_room_for(forge: &Forge, writer: Writer, bytes: u64) -> Result<(), Fault> {
    let settings = forge.settings();
    let reserve = match writer {
        Writer::Account => settings.min_free_percent,
        Writer::Stranger => settings.min_free_percent.max(settings.stranger_free_percent),
    };
    match free_percent_less(forge.layout().data(), bytes) {
        Some(free_percent) if free_percent < reserve => Err(Fault::DiskFull { free_percent, reserve }),
        _ => Ok(()),
    }
}

/// The share of the disk below `path` that is free to us; `None` if the system does not say.
pub fn free_percent(path: &Path) -> Option<u64> {
    free_percent_less(path, 0)
}

/// The disk below a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disk {
    pub bytes: u64,
    pub free_percent: u64,
}

/// Its size and the share of it that is free to us; `None` if the system does not say.
pub(crate) fn measure(path: &Path) -> Option<Disk> {
    let stat = rustix::fs::statvfs(path).ok()?;
    let free_percent = stat.f_bavail.saturating_mul(100).checked_div(stat.f_blocks)?;
    Some(Disk { bytes: stat.f_blocks.saturating_mul(stat.f_frsize), free_percent })
}

fn free_percent_less(path: &Path, bytes: u64) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    let left = stat.f_bavail.saturating_sub(bytes.div_ceil(stat.f_frsize.max(1)));
    (stat.f_blocks > 0).then(|| left.saturating_mul(100) / stat.f_blocks)
}
