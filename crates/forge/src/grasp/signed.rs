//! Events that a push takes out of purgatory. They are written beside the push's intent, so that recovery after a crash
//! ends the push in the same way.

use super::{id, left, seconds, settle, spread};
use crate::relay::deleted::is_deleted;
use crate::relay::{from_record, signer, to_record};
use crate::{GraspSettings, threads};
use abide_core::RefName;
use abide_nostr::event::to_json;
use abide_nostr::git::PrEvent;
use abide_nostr::{Event, PublicKey, Rank, kinds};
use abide_store::nostr::events::Kept;
use abide_store::nostr::{self, purgatory, quotas, reservations};
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx};
use serde::{Deserialize, Serialize};

/// The signed events that allow a push, and their effects apart from refs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signed {
    /// The state that the refs follow.
    state: Option<String>,
    /// PR events whose commits the push contains.
    pr_events: Vec<String>,
    /// The branch that HEAD names from now on.
    head: Option<String>,
    /// Bytes of git data of the push.
    #[serde(default)]
    bytes: u64,
    /// The network that is charged for the bytes; none for accounts.
    #[serde(default)]
    network: Option<String>,
    /// The reservation that the bytes are taken from.
    #[serde(default)]
    reservation: Option<String>,
}

impl Signed {
    /// Records the bytes of git data, the network that is charged, and the reservation.
    pub(crate) fn weigh(&mut self, bytes: u64, network: Option<String>, reservation: Option<String>) {
        (self.bytes, self.network, self.reservation) = (bytes, network, reservation);
    }

    /// The key that is charged for the git data: the repository's owner if a state brings it, otherwise the PR event's
    /// author.
    pub(crate) fn payer(&self, owner: PublicKey) -> Option<PublicKey> {
        match &self.state {
            Some(_) => Some(owner),
            None => self.events().first().map(|event| event.pubkey),
        }
    }

    /// Sets the state that the refs follow.
    pub(super) fn follow(&mut self, state: &Event, head: Option<&RefName>) {
        self.state = Some(to_json(state));
        self.head = head.map(|name| name.as_str().to_owned());
    }

    /// Adds a PR event whose commit the push contains.
    pub(super) fn release(&mut self, pr_event: &Event) {
        self.pr_events.push(to_json(pr_event));
    }

    /// The new branch of HEAD, if HEAD changes.
    pub(super) fn head(&self) -> Option<RefName> {
        self.head.as_deref()?.parse().ok()
    }

    pub(crate) fn encode(&self) -> String {
        serde_json::to_string(self).expect("strings are always JSON")
    }

    pub(crate) fn decode(text: &str) -> Result<Self, StoreError> {
        serde_json::from_str(text)
            .map_err(|error| StoreError::Unreadable { column: "signed", reason: error.to_string() })
    }

    /// The events, for subscribers.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.state.iter().chain(&self.pr_events).filter_map(|json| read(json).ok()).collect()
    }
}

fn read(json: &str) -> Result<Event, StoreError> {
    from_record(json).map_err(|error| StoreError::Unreadable { column: "signed", reason: error.to_string() })
}

/// Serves the events of a push whose refs moved, in the transaction that ends the push.
pub(crate) async fn finish(tx: &mut Tx, settings: &GraspSettings, repo: &Repo, signed: &str) -> Result<(), StoreError> {
    let signed = Signed::decode(signed)?;
    if let Some(json) = &signed.state {
        serve_state(tx, &read(json)?).await?;
        settle::enqueue(tx, repo.id).await?;
    }
    for json in &signed.pr_events {
        serve_pr_event(tx, settings, repo, &read(json)?).await?;
    }
    charge(tx, repo, &signed).await?;
    if let Some(head) = signed.head.as_deref().and_then(|name| name.parse::<RefName>().ok())
        && head != repo.default_branch
    {
        repos::set_about(tx, repo.id, &repo.description, &head).await?;
    }
    Ok(())
}

/// Charges the payer for the git data of a push.
async fn charge(tx: &mut Tx, repo: &Repo, signed: &Signed) -> Result<(), StoreError> {
    let bytes = i64::try_from(signed.bytes).unwrap_or(i64::MAX);
    if let Some(id) = &signed.reservation {
        reservations::spend(tx, id, bytes).await?;
    }
    if bytes == 0 {
        return Ok(());
    }
    if signed.state.is_some() {
        quotas::charge_repo(tx, repo.id, bytes).await?;
    } else if let Some(json) = signed.pr_events.first() {
        quotas::charge_pr_event(tx, &id(&read(json)?.id), bytes).await?;
    }
    let added = signed.network.iter().map(|network| (network.clone(), bytes)).collect();
    quotas::add_addresses(tx, added).await
}

/// Stores a PR event whose commit arrived. If its author deleted it in the meantime, a job removes its refs again.
async fn serve_pr_event(tx: &mut Tx, settings: &GraspSettings, repo: &Repo, event: &Event) -> Result<(), StoreError> {
    let deleted = is_deleted(tx, event).await?;
    if !deleted && nostr::events::insert(tx, &to_record(event)).await? == Kept::New {
        threads::emit::served(tx, settings, [event]).await?;
    }
    if !deleted && signer(tx, event.pubkey).await?.is_stranger() {
        nostr::pr_refs::add(tx, repo.id, &id(&event.id), &event.pubkey.to_bytes()).await?;
    }
    if purgatory::prs::take(tx, &id(&event.id)).await?.is_some() {
        left("proposal", "promotion");
    }
    if let Ok(pr_event) = PrEvent::parse(event)
        && (deleted || pr_event.repos.len() > 1)
    {
        spread::enqueue(tx, event, &pr_event).await?;
    }
    Ok(())
}

/// Stores a state, and removes the older waiting states of the same author.
pub(super) async fn serve_state(tx: &mut Tx, event: &Event) -> Result<(), StoreError> {
    debug_assert_eq!(event.kind.as_u16(), kinds::STATE);
    nostr::events::insert(tx, &to_record(event)).await?;
    if purgatory::take_state(tx, &id(&event.id)).await? {
        left("state", "promotion");
    }
    let slot = abide_nostr::event::slot(event).map(|slot| slot.identifier).unwrap_or_default();
    let rank = Rank::of(event);
    for older in purgatory::states_until(tx, &event.pubkey.to_bytes(), &slot, seconds(event)).await? {
        let (older_id, at) = older;
        let older_rank =
            Rank { created_at: u64::try_from(at).unwrap_or(0), id: abide_nostr::EventId::from_byte_array(older_id) };
        if older_rank < rank && purgatory::take_state(tx, &older_id).await? {
            left("state", "replacement");
        }
    }
    Ok(())
}
