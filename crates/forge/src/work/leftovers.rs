//! Removes incoming areas whose process is gone: of pushes, of forks, and of first commits.

use crate::grasp::aside;
use crate::repos::fork;
use crate::{Fault, Forge};
use abide_git::incoming;
use std::time::Duration;

/// Removes the incoming areas of earlier processes of this node. Runs before this process receives anything.
pub(crate) async fn remove_leftovers(forge: &Forge) -> Result<u64, Fault> {
    let mine = forge.node().incoming_prefix();
    remove_areas(forge, |key, _| key.starts_with(&mine)).await
}

/// Removes incoming areas unused for so long that their process must be gone.
pub async fn sweep_incoming(forge: &Forge, older_than: Duration) -> Result<u64, Fault> {
    // Areas that wait for an event have their own sweep.
    remove_areas(forge, |key, age| !aside::is_aside(key) && age.is_some_and(|age| age > older_than)).await
}

async fn remove_areas(forge: &Forge, doomed: impl Fn(&str, Option<Duration>) -> bool) -> Result<u64, Fault> {
    let mut removed = 0;
    for key in incoming::list_incoming(forge.layout())? {
        let path = forge.layout().incoming(&key);
        let age = path.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        if doomed(&key, age) {
            fork::abandon(forge, &key).await?;
            incoming::remove_incoming(forge.layout(), &key).await?;
            removed += 1;
        }
    }
    Ok(removed)
}
