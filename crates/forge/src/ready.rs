//! Readiness of this process, and gauges of its work.

use crate::jobs::manage;
use crate::{Fault, Forge, disk};
use abide_macros::boxed;
use abide_store::events;
use abide_store::repos::pushes;

/// Fails if the database does not answer or the disk is nearly full.
#[boxed]
pub async fn check(forge: &Forge) -> Result<(), Fault> {
    pushes::count_running(&mut *forge.store().read().await?).await?;
    disk::ensure_room(forge, disk::Writer::Account)
}

/// Sets the gauges that are read from the database.
#[boxed]
pub async fn gauge(forge: &Forge) -> Result<(), Fault> {
    let mut conn = forge.store().read().await?;
    metrics::gauge!("abide_pushes_running").set(pushes::count_running(&mut conn).await? as f64);
    metrics::gauge!("abide_events_unnumbered").set(events::count_unnumbered(&mut conn).await? as f64);
    drop(conn);
    for (state, count) in manage::by_state(forge).await? {
        metrics::gauge!("abide_jobs", "state" => state).set(count as f64);
    }
    if let Some(free) = disk::free_percent(forge.layout().data()) {
        metrics::gauge!("abide_disk_free_percent").set(free as f64);
    }
    Ok(())
}
