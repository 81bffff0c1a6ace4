//! Permissions of the data directory: no other user of the machine should have access. It holds secrets, private
//! repositories and the database.

use crate::{Fault, Forge};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Permission bits of the group and of others.
const OTHERS: u32 = 0o077;

/// A path that other users may read or change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wide {
    pub path: PathBuf,
    pub mode: u32,
}

impl Wide {
    pub(super) fn message(&self) -> String {
        format!(
            "{} has mode {:04o}, so other users of this machine can access it; `abide doctor --fix` restricts it",
            self.path.display(),
            self.mode
        )
    }
}

/// Checks the data directory and the files in it, whose modes persist in copies. Directories in it are checked only if
/// the data directory itself lets others in.
pub(super) fn examine(forge: &Forge) -> Result<Vec<Wide>, Fault> {
    let data = forge.layout().data();
    wide(data).map_err(|error| Fault::Internal(format!("cannot read {}: {error}", data.display())))
}

/// Removes the permissions of others; returns its actions, a line each.
pub(super) fn fix(forge: &Forge) -> Result<Vec<String>, Fault> {
    let narrowed = examine(forge)?.into_iter().map(|Wide { path, mode }| {
        let less = mode & !OTHERS;
        match std::fs::set_permissions(&path, Permissions::from_mode(less)) {
            Ok(()) => Ok(format!("changed mode of {} from {mode:04o} to {less:04o}", path.display())),
            Err(error) => Err(Fault::Internal(format!("cannot change mode of {}: {error}", path.display()))),
        }
    });
    narrowed.collect()
}

fn wide(data: &Path) -> io::Result<Vec<Wide>> {
    let mut found = Vec::from_iter(look(data)?);
    let open = !found.is_empty();
    for entry in std::fs::read_dir(data)? {
        let entry = entry?;
        if open || !entry.file_type()?.is_dir() {
            found.extend(look(&entry.path())?);
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Skips links, which have no mode of their own, and paths that are gone.
fn look(path: &Path) -> io::Result<Option<Wide>> {
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => return Ok(None),
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mode = meta.mode() & 0o7777;
    Ok((mode & OTHERS != 0).then(|| Wide { path: path.to_owned(), mode }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_others_may_do_is_found_and_links_are_not_followed() {
        let data = tempfile::tempdir().unwrap();
        let set = |name: &str, mode| {
            let path = data.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        set("secret.key", 0o600);
        let (key, toml) = (set("abide.db", 0o644), set("abide.toml", 0o610));
        std::os::unix::fs::symlink("/", data.path().join("link")).unwrap();
        std::fs::set_permissions(data.path(), Permissions::from_mode(0o755)).unwrap();
        let found: Vec<_> = wide(data.path()).unwrap().into_iter().map(|wide| (wide.path, wide.mode)).collect();
        assert_eq!(found, [(data.path().to_owned(), 0o755), (key, 0o644), (toml, 0o610)]);
        std::fs::create_dir(data.path().join("repos")).unwrap();
        std::fs::set_permissions(data.path().join("repos"), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(wide(data.path()).unwrap().len(), 4);
        std::fs::set_permissions(data.path(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(wide(data.path()).unwrap().len(), 2, "a directory below a closed one is closed");
    }
}
