//! The installation's secret: seals the audit chain and other secrets at rest. [`hash`]: the stored form of secrets that
//! clients get.

use abide_core::{Random, Redacted};
use sha2::{Digest as _, Sha256};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("cannot use {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The content is not 64 hexadecimal digits.
    #[error("{} must contain 64 hexadecimal digits; restore it from a backup", .0.display())]
    Malformed(PathBuf),
    /// Other users of the machine can read it.
    #[error("{} is readable by other users; run chmod 600 on it", .0.display())]
    Exposed(PathBuf),
}

/// Stored hash of a secret. The secret has 256 random bits, so a fast hash is enough.
pub(crate) fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Reads `<data>/secret.key`, or makes it (mode 0600) on first start.
pub fn load_or_create(data: &Path, random: &dyn Random) -> Result<Redacted<[u8; 32]>, SecretError> {
    let path = data.join("secret.key");
    match fs::read_to_string(&path) {
        Ok(text) => read(&path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(data, &path, random),
        Err(source) => Err(SecretError::Io { path, source }),
    }
}

fn read(path: &Path, text: &str) -> Result<Redacted<[u8; 32]>, SecretError> {
    let mode = fs::metadata(path).map_err(|source| SecretError::Io { path: path.into(), source })?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(SecretError::Exposed(path.into()));
    }
    let mut key = [0; 32];
    hex::decode_to_slice(text.trim(), &mut key).map_err(|_| SecretError::Malformed(path.into()))?;
    Ok(key.into())
}

/// Writes a draft and links it to its final name, so that two processes that start at once end with the same key.
fn create(data: &Path, path: &Path, random: &dyn Random) -> Result<Redacted<[u8; 32]>, SecretError> {
    let io = |source| SecretError::Io { path: path.into(), source };
    let mut key = [0; 32];
    random.fill(&mut key);
    let mut suffix = [0; 8];
    random.fill(&mut suffix);
    let draft = data.join(format!(".secret.key.{}", hex::encode(suffix)));
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft).map_err(io)?;
    file.write_all(format!("{}\n", hex::encode(key)).as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
    let linked = fs::hard_link(&draft, path);
    fs::remove_file(&draft).map_err(io)?;
    match linked {
        Ok(()) => {
            fs::File::open(data).and_then(|dir| dir.sync_all()).map_err(io)?;
            Ok(key.into())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let text = fs::read_to_string(path).map_err(io)?;
            read(path, &text)
        }
        Err(source) => Err(io(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OsRandom;

    #[test]
    fn the_key_is_made_once_with_mode_0600_and_read_back() {
        let data = tempfile::tempdir().unwrap();
        let first = load_or_create(data.path(), &OsRandom).unwrap();
        assert_eq!(load_or_create(data.path(), &OsRandom).unwrap(), first);
        let mode = fs::metadata(data.path().join("secret.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_damaged_is_refused() {
        let data = tempfile::tempdir().unwrap();
        load_or_create(data.path(), &OsRandom).unwrap();
        let path = data.path().join("secret.key");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(load_or_create(data.path(), &OsRandom), Err(SecretError::Exposed(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "short").unwrap();
        assert!(matches!(load_or_create(data.path(), &OsRandom), Err(SecretError::Malformed(_))));
    }
}
