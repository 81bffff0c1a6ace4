//! Links between one event and the served events.

use super::attached;
use crate::relay::named_by;
use crate::{Fault, Forge};
use abide_nostr::Event;
use abide_nostr::git::References;
use abide_nostr::grasp::event::{Relation, steps_beyond};
use abide_store::nostr::relations::{EventCoordinate, addresses, events, tagged};

/// Whether an event tags an event that belongs to a repository here, or is tagged by one, and the number of steps.
pub(super) async fn of(forge: &Forge, event: &Event) -> Result<(Relation, i64), Fault> {
    let references = References::of(event);
    let address =
        |c: &abide_nostr::git::Coordinate| -> EventCoordinate { (c.kind, c.author.to_bytes(), c.identifier.clone()) };
    let named: Vec<EventCoordinate> = references.coordinates.iter().map(address).collect();
    let ids: Vec<_> = references.ids.iter().map(|id| id.to_bytes()).collect();
    let kind = event.kind.as_u16();
    let mut conn = forge.store().read().await?;
    let by_address = addresses(&mut conn, &named).await?;
    let by_id = events(&mut conn, &ids).await?;
    let links = by_address.values().chain(by_id.values());
    if let Some(steps) = links.map(|link| steps_beyond(kind, link.steps, link.is_repo)).min() {
        return Ok((Relation::Tags, steps));
    }
    if let Some(steps) = tagged(&mut conn, &named_by(event)).await?.into_values().min() {
        return Ok((Relation::Tagged, steps_beyond(kind, steps, false)));
    }
    let waits = !attached::homes(&mut conn, &references).await?.is_empty();
    Ok((if waits { Relation::Waiting } else { Relation::None }, 0))
}
