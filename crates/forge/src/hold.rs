//! Holds in use: a claimed row is renewed while its work runs.

use abide_store::StoreError;
use std::time::Duration;

/// Renews a hold of this length until dropped; returns only if another runner has the row.
pub(crate) async fn keep<F>(length: Duration, renew: impl Fn() -> F)
where
    F: Future<Output = Result<bool, StoreError>>,
{
    loop {
        tokio::time::sleep(length / 3).await;
        match renew().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(%error, "cannot renew a hold; retrying"),
        }
    }
}
