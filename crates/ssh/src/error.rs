//! Why the SSH server does not run. What goes wrong with one connection ends that connection and is logged.

use std::io;
use std::path::PathBuf;

/// Why the SSH server does not run.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// An option makes no sense.
    #[error("{0}")]
    Option(String),
    /// The host key cannot be read or written.
    #[error("cannot use the SSH host key {}: {source}", path.display())]
    HostKeyFile {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The host key is not one we can use.
    #[error(
        "{} must contain an ed25519 private key without passphrase, as written by ssh-keygen -t ed25519 ({detail}); restore \
         it from a backup, or move it away to get another one (clients will then warn that the host key changed)",
        path.display()
    )]
    HostKeyDamaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// Others can read the host key.
    #[error("{} is readable by other users; run chmod 600 on it", .0.display())]
    HostKeyExposed(PathBuf),
}
