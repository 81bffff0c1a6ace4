//! Start-up errors of the SSH server. An error of one connection ends that connection and is logged.

use std::io;
use std::path::PathBuf;

/// Reason why the SSH server does not start.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// The host key cannot be read or written.
    #[error("cannot use the SSH host key {}: {source}", path.display())]
    HostKeyFile { path: PathBuf, source: io::Error },
    /// The file holds no usable host key.
    #[error(
        "{} must contain an ed25519 private key without passphrase, as written by ssh-keygen -t ed25519 ({detail}); restore \
         it from a backup, or move it away to get another one (clients will then warn that the host key changed)",
        path.display()
    )]
    HostKeyDamaged { path: PathBuf, detail: String },
    /// Other users can read the host key.
    #[error("{} is readable by other users; run chmod 600 on it", .0.display())]
    HostKeyExposed(PathBuf),
}
