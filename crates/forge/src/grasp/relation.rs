//! How one event is linked to what is served here.

use crate::relay::named_by;
use crate::{Fault, Forge};
use abide_nostr::Event;
use abide_nostr::git::References;
use abide_nostr::grasp::event::Relation;
use abide_store::nostr_relations::{repos, roots, tagged};

/// Whether an event tags a repository, issue, patch or pull request that is served, or is tagged by one.
pub(super) async fn of(forge: &Forge, event: &Event) -> Result<Relation, Fault> {
    let references = References::of(event);
    let named: Vec<_> = references.repos().map(|repo| (repo.author.to_bytes(), repo.identifier.clone())).collect();
    let ids: Vec<_> = references.ids.iter().map(|id| id.to_bytes()).collect();
    let mut conn = forge.store().read().await?;
    if !repos(&mut conn, &named).await?.is_empty() || !roots(&mut conn, &ids).await?.is_empty() {
        return Ok(Relation::Tags);
    }
    let found = !tagged(&mut conn, &named_by(event)).await?.is_empty();
    Ok(if found { Relation::Tagged } else { Relation::None })
}
