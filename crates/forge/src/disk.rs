//! The guard against a full disk: writes stop while there is still room to clean up. Writers without an account are
//! refused earlier, so that strangers cannot take the room that accounts need.

use crate::{Caller, DiskSettings, Fault, Forge};
use std::path::Path;

/// Class of a writer, which decides how much free space must stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// An account, or the server in the name of one.
    Account,
    /// A key that no account is linked to, or a push that only signed events allow.
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

/// Free disk space that a writer must leave, in percent, and the setting that says so.
pub(crate) fn reserve(settings: &DiskSettings, writer: Writer) -> (&'static str, u64) {
    match writer {
        Writer::Stranger if settings.stranger_free_percent > settings.min_free_percent => {
            ("server.stranger_free_percent", settings.stranger_free_percent)
        }
        Writer::Stranger | Writer::Account => ("server.min_free_percent", settings.min_free_percent),
    }
}

/// Fails if the disk that holds the data has less free space than must stay free for this class.
pub fn ensure_room(forge: &Forge, writer: Writer) -> Result<(), Fault> {
    ensure_room_for(forge, writer, 0)
}

/// Fails if the disk would have too little free space once it holds so many bytes more.
pub fn ensure_room_for(forge: &Forge, writer: Writer, bytes: u64) -> Result<(), Fault> {
    let (setting, reserve) = reserve(&forge.settings().disk, writer);
    match free_percent_less(forge.layout().data(), bytes) {
        Some(free_percent) if free_percent < reserve => Err(Fault::DiskFull { free_percent, reserve, setting }),
        _ => Ok(()),
    }
}

/// Writes that are refused because the disk is nearly full, for the operator; `None` if none are.
pub fn notice(forge: &Forge) -> Option<String> {
    let free = free_percent(forge.layout().data())?;
    let refused = |writer| {
        let (setting, reserve) = reserve(&forge.settings().disk, writer);
        (free < reserve).then_some((setting, reserve))
    };
    let (who, (setting, reserve)) = match (refused(Writer::Account), refused(Writer::Stranger)) {
        (Some(reserve), _) => ("all writes are", reserve),
        (None, Some(reserve)) => ("writes of clients without an account are", reserve),
        (None, None) => return None,
    };
    Some(format!("{who} refused: {free}% of the disk's blocks or inodes are free, and {setting} reserves {reserve}%"))
}

/// Free share of the disk below `path`, of blocks or inodes, whichever is scarcer; `None` if the system does not report it.
pub fn free_percent(path: &Path) -> Option<u64> {
    free_percent_less(path, 0)
}

/// The disk below a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disk {
    pub bytes: u64,
    pub free_percent: u64,
}

/// Its size and free share; `None` if the system does not report them.
pub(crate) fn measure(path: &Path) -> Option<Disk> {
    let free = Free::look(path)?;
    Some(Disk { bytes: free.blocks.saturating_mul(free.block), free_percent: free.percent_less(0)? })
}

fn free_percent_less(path: &Path, bytes: u64) -> Option<u64> {
    Free::look(path)?.percent_less(bytes)
}

/// Blocks and inodes of a file system: all, and those free for this user.
#[derive(Debug, Clone, Copy)]
struct Free {
    block: u64,
    blocks: u64,
    free_blocks: u64,
    /// Zero where the file system makes inodes as they are needed.
    inodes: u64,
    free_inodes: u64,
}

impl Free {
    fn look(path: &Path) -> Option<Self> {
        let stat = rustix::fs::statvfs(path).ok()?;
        Some(Self {
            block: stat.f_frsize,
            blocks: stat.f_blocks,
            free_blocks: stat.f_bavail,
            inodes: stat.f_files,
            free_inodes: stat.f_favail,
        })
    }

    /// Free share in hundredths after so many more bytes are written: of blocks, or of inodes if fewer of those are left.
    /// A disk without free inodes takes no file; small repositories use inodes up first.
    fn percent_less(&self, bytes: u64) -> Option<u64> {
        let left = self.free_blocks.saturating_sub(bytes.div_ceil(self.block.max(1)));
        let of_blocks = left.saturating_mul(100).checked_div(self.blocks)?;
        let of_inodes = self.free_inodes.saturating_mul(100).checked_div(self.inodes);
        Some(of_inodes.map_or(of_blocks, |of_inodes| of_blocks.min(of_inodes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Free = Free { block: 4096, blocks: 1_000, free_blocks: 500, inodes: 1_000, free_inodes: 800 };

    #[test]
    fn the_scarcer_of_blocks_and_inodes_counts() {
        assert_eq!(HALF.percent_less(0), Some(50));
        assert_eq!(Free { free_inodes: 40, ..HALF }.percent_less(0), Some(4), "room without inodes is no room");
        assert_eq!(Free { free_inodes: 0, ..HALF }.percent_less(0), Some(0));
        assert_eq!(Free { free_blocks: 30, ..HALF }.percent_less(0), Some(3));
        assert_eq!(HALF.percent_less(100 * 4096), Some(40), "what is about to be written counts");
        assert_eq!(HALF.percent_less(u64::MAX), Some(0));
    }

    #[test]
    fn a_file_system_without_a_number_of_inodes_is_judged_by_its_blocks() {
        assert_eq!(Free { inodes: 0, free_inodes: 0, ..HALF }.percent_less(0), Some(50));
        assert_eq!(Free { blocks: 0, free_blocks: 0, ..HALF }.percent_less(0), None);
    }

    #[test]
    fn the_disk_of_this_machine_says_something() {
        assert!(free_percent(Path::new(".")).is_some_and(|percent| percent <= 100));
    }
}
