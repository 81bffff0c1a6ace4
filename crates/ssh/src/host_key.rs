//! The server's host key: an ed25519 key that is created once and kept.

use crate::SshError;
use abide_core::Random;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::{Ed25519Keypair, KeypairData};
use russh::keys::{Algorithm, HashAlg};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

pub use russh::keys::PrivateKey;

/// Reads the host key, or creates it (mode 0600, OpenSSH format) on first start.
pub fn load_or_create_host_key(path: &Path, random: &dyn Random) -> Result<PrivateKey, SshError> {
    match fs::read_to_string(path) {
        Ok(text) => read(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path, random),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(damaged(path, "it is not text")),
        Err(source) => Err(SshError::HostKeyFile { path: path.into(), source }),
    }
}

/// Fingerprint of a host key, as OpenSSH prints it: `SHA256:…`.
pub fn fingerprint(key: &PrivateKey) -> String {
    key.public_key().fingerprint(HashAlg::Sha256).to_string()
}

fn read(path: &Path, text: &str) -> Result<PrivateKey, SshError> {
    let metadata = fs::metadata(path).map_err(|source| SshError::HostKeyFile { path: path.into(), source })?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(SshError::HostKeyExposed(path.into()));
    }
    let key = PrivateKey::from_openssh(text).map_err(|error| damaged(path, &error.to_string()))?;
    if key.is_encrypted() {
        return Err(damaged(path, "it has a passphrase"));
    }
    match key.algorithm() {
        Algorithm::Ed25519 => Ok(key),
        other => Err(damaged(path, &format!("it is {other}"))),
    }
}

fn damaged(path: &Path, detail: &str) -> SshError {
    SshError::HostKeyDamaged { path: path.into(), detail: detail.to_owned() }
}

/// Writes the key to a temporary file and hard-links it, so that two processes starting at once agree on one key.
fn create(path: &Path, random: &dyn Random) -> Result<PrivateKey, SshError> {
    let io = |source| SshError::HostKeyFile { path: path.into(), source };
    let mut seed = [0; 32];
    random.fill(&mut seed);
    let pair = KeypairData::from(Ed25519Keypair::from_seed(&seed));
    let key = PrivateKey::new(pair, "abide").map_err(|error| io(io::Error::other(error)))?;
    let text = key.to_openssh(LineEnding::LF).map_err(|error| io(io::Error::other(error)))?;

    let mut suffix = [0; 8];
    random.fill(&mut suffix);
    let folder = folder_of(path);
    let draft = folder.join(format!(".ssh_host_key.{}", hex::encode(suffix)));
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft).map_err(io)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft).map_err(io)?;
    match linked {
        Ok(()) => {
            fs::File::open(&folder).and_then(|folder| folder.sync_all()).map_err(io)?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(path, &fs::read_to_string(path).map_err(io)?)
        }
        Err(source) => Err(io(source)),
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_forge::OsRandom;
    use std::process::Command;

    fn keygen(args: &[&str]) -> String {
        let output = Command::new("ssh-keygen").args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn the_key_is_made_once_with_mode_0600_and_read_back() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("ssh_host_ed25519_key");
        let first = load_or_create_host_key(&path, &OsRandom).unwrap();
        let again = load_or_create_host_key(&path, &OsRandom).unwrap();
        assert_eq!(first.public_key(), again.public_key());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(data.path()).unwrap().count(), 1, "no draft is left");

        let other = load_or_create_host_key(&data.path().join("another"), &OsRandom).unwrap();
        assert_ne!(fingerprint(&first), fingerprint(&other));
    }

    #[test]
    fn openssh_reads_the_key_and_sees_the_same_fingerprint() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("key");
        let key = load_or_create_host_key(&path, &OsRandom).unwrap();
        let public = keygen(&["-y", "-f", path.to_str().unwrap()]);
        assert!(public.starts_with("ssh-ed25519 "), "{public}");
        fs::write(data.path().join("key.pub"), public).unwrap();
        let printed = keygen(&["-l", "-f", data.path().join("key.pub").to_str().unwrap()]);
        assert!(printed.contains(&fingerprint(&key)), "{printed}");
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("key");
        load_or_create_host_key(&path, &OsRandom).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(load_or_create_host_key(&path, &OsRandom), Err(SshError::HostKeyExposed(_))));
    }

    #[test]
    fn a_damaged_key_is_refused_and_left_as_it_is() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("key");
        load_or_create_host_key(&path, &OsRandom).unwrap();
        let good = fs::read(&path).unwrap();
        let mut flipped = good.clone();
        flipped[150] = if flipped[150] == b'A' { b'B' } else { b'A' };
        for bad in [&b""[..], b"short", b"\xff\xfe", &good[..good.len() / 2], &flipped] {
            fs::write(&path, bad).unwrap();
            let refused = load_or_create_host_key(&path, &OsRandom);
            assert!(matches!(refused, Err(SshError::HostKeyDamaged { .. })), "{bad:?} gave {refused:?}");
            assert_eq!(fs::read(&path).unwrap(), bad);
        }
    }

    #[test]
    fn only_an_ed25519_key_without_passphrase_will_do() {
        let data = tempfile::tempdir().unwrap();
        for (name, kind, passphrase) in [("locked", "ed25519", "secret"), ("ecdsa", "ecdsa", "")] {
            let path = data.path().join(name);
            keygen(&["-q", "-t", kind, "-N", passphrase, "-f", path.to_str().unwrap()]);
            let refused = load_or_create_host_key(&path, &OsRandom);
            assert!(matches!(refused, Err(SshError::HostKeyDamaged { .. })), "{name} gave {refused:?}");
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let data = tempfile::tempdir().unwrap();
        let refused = load_or_create_host_key(&data.path().join("missing/key"), &OsRandom).unwrap_err();
        assert!(refused.to_string().contains("missing/key"), "{refused}");
    }
}
