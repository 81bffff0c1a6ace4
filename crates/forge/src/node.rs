//! This process, one of several that may share a database.
//!
//! One server at a time has a node name (a file lock in the data directory). A server that starts under a name knows that
//! leases and jobs held under it belong to a process that is gone, and need not wait for their expiry.

use sha2::{Digest as _, Sha256};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A running process and its name.
#[derive(Debug, Clone)]
pub struct Node {
    holder: String,
    prefix: Option<String>,
    /// Unlocked by the kernel when the process ends, however it ends.
    _lock: Option<Arc<File>>,
}

/// The node's name cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Another server has it.
    #[error(
        "another Abide server already uses {}; stop it, or give this one its own --data directory \
         (several nodes on one shared directory need different node names)", .0.display()
    )]
    Taken(PathBuf),
    /// The lock file cannot be used.
    #[error("cannot lock {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl Node {
    /// A server: takes the name, or fails if another server has it.
    pub fn server(data: &Path, name: &str, run: &str) -> Result<Self, NodeError> {
        let path = data.join(format!("node-{name}.lock"));
        let io = |source| NodeError::Io { path: path.clone(), source };
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(NodeError::Taken(path)),
            Err(TryLockError::Error(source)) => return Err(NodeError::Io { path, source }),
        }
        let prefix = format!("server:{name}:");
        Ok(Self { holder: format!("{prefix}{run}"), prefix: Some(prefix), _lock: Some(Arc::new(lock)) })
    }

    /// A command that runs beside the servers.
    pub fn command(run: &str) -> Self {
        Self { holder: format!("command:{run}"), prefix: None, _lock: None }
    }

    /// Holder name of this process in leases and jobs.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Name prefix of the incoming areas of this node's pushes, so that the next process with its name knows which
    /// are left over. A hash, because a name may be longer than a key.
    pub(crate) fn incoming_prefix(&self) -> String {
        let name = self.prefix.as_deref().unwrap_or(&self.holder);
        let digest = Sha256::digest(name.as_bytes());
        format!("push-{}-", hex::encode(&digest[..6]))
    }

    /// Prefix of the holder names of all processes with this node name; `None` for a command.
    pub(crate) fn earlier_runs(&self) -> Option<&str> {
        self.prefix.as_deref()
    }
}
