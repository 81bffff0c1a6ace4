//! Work that blocks its thread: reading disks, hashing, parsing large texts.

use crate::Fault;

/// Runs work on the blocking pool. The work continues if the caller is dropped; a panic in it becomes a fault.
pub(crate) async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Fault::Internal(format!("{what} was interrupted: {error}")))
}
