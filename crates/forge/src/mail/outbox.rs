//! Mails as files, for sites without a mail server: the operator reads or forwards them.

use abide_core::Timestamp;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const ENDING: &str = ".eml";

/// Outbox folder below the data directory.
pub(super) fn folder(data: &Path) -> PathBuf {
    data.join("outbox")
}

/// Writes a mail atomically and durably. Writing the same one again replaces it. Only the owner can read it: a mail may
/// contain a password reset link.
pub(super) fn write(folder: &Path, at: Timestamp, id: i64, mail: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let name = format!("{}-{id}{ENDING}", stamp(at));
    let draft = folder.join(format!(".{name}.draft"));
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
    file.write_all(mail)?;
    file.sync_all()?;
    fs::rename(&draft, folder.join(name))?;
    File::open(folder)?.sync_all()
}

/// Removes mails that were queued before an instant; returns their number.
pub(super) fn prune(folder: &Path, before: Timestamp) -> io::Result<u64> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let oldest = stamp(before);
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let ours = name.to_str().filter(|name| name.ends_with(ENDING)).and_then(|name| name.split_once('-'));
        if ours.is_some_and(|(at, _)| at.len() == oldest.len() && at < oldest.as_str()) {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// A timestamp that sorts as text: `20261115T063000Z`.
fn stamp(at: Timestamp) -> String {
    at.to_string().replace(['-', ':'], "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    #[test]
    fn a_mail_is_written_once_for_its_owner_only_and_goes_when_it_is_old() {
        let data = tempfile::tempdir().unwrap();
        let folder = folder(data.path());
        let at = Timestamp::from_micros(1_767_225_600_000_000);
        assert_eq!(prune(&folder, at).unwrap(), 0, "there is no folder yet");
        write(&folder, at, 7, b"first").unwrap();
        write(&folder, at, 7, b"again").unwrap();
        let file = folder.join("20260101T000000Z-7.eml");
        assert_eq!(fs::read(&file).unwrap(), b"again");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(folder.join("notes-1.eml"), "of the operator's").unwrap();

        assert_eq!(prune(&folder, at).unwrap(), 0);
        assert_eq!(prune(&folder, at.plus(Duration::from_secs(1))).unwrap(), 1);
        let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes-1.eml"], "no draft is left, and what is not ours stays");
    }
}
