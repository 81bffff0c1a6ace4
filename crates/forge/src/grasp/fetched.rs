//! Git data that was fetched from another server enters a repository as a push does.

use super::align::{Aligned, Bringer, JOB_WAIT, Objects, align, client_of};
use super::arrived;
use super::needs::{Need, Wanted};
use super::push::{Order, Waits, present_in, raise};
use super::quota::Payer;
use super::settle::settle_after;
use super::spread::{self, Released, Source};
use crate::git::push::incoming_key;
use crate::git::snapshots;
use crate::{Fault, Forge};
use abide_core::{Oid, failpoint};
use abide_git::{Client, Incoming, ReceiveLimits};
use abide_nostr::git::PrEvent;
use std::collections::HashSet;
use std::time::Duration;

/// Name of this road in the log of pushes.
const TRANSPORT: &str = "sync";

/// Objects that were fetched for one event, beside the repository that receives them. Removed when dropped.
pub(crate) struct Quarantine {
    incoming: Incoming,
    key: String,
}

/// Result of taking fetched objects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The event is served.
    Done,
    /// Objects are still missing.
    Incomplete,
    /// The repository or the rules refuse them.
    Refused(String),
}

impl Quarantine {
    /// An empty one for an event, with the work counted for its author.
    pub(crate) async fn new(forge: &Forge, need: &Need) -> Result<Self, Fault> {
        let key = incoming_key(forge);
        let client = client(forge, need).await?;
        let incoming = Incoming::create_beside(forge.git(), forge.layout(), need.dir.clone(), &key).await?.of(client);
        Ok(Self { incoming, key })
    }

    /// The area that packs are received into.
    pub(crate) fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    /// The objects of an event that are neither in its repository nor here.
    pub(crate) async fn missing(&self, need: &Need) -> Result<Vec<Oid>, Fault> {
        let wanted: HashSet<Oid> = need.missing.iter().copied().collect();
        let area = self.incoming.objects();
        let dirs = vec![need.dir.clone(), area.parent().unwrap_or(&area).to_owned()];
        let here = present_in(dirs, wanted).await?;
        Ok(need.missing.iter().copied().filter(|oid| !here.contains(oid)).collect())
    }

    /// Gives the objects to the repository, if nothing is missing. The rules are asked again under the repository's lease,
    /// so nothing enters a repository that was deleted meanwhile.
    pub(crate) async fn take(self, forge: &Forge, need: &Need) -> Result<Taken, Fault> {
        if !self.missing(need).await?.is_empty() {
            return Ok(Taken::Incomplete);
        }
        failpoint::hit(failpoint::SYNC_FETCHED);
        let client = client(forge, need).await?;
        let bringer = Bringer { transport: TRANSPORT, ..Bringer::server_for(client) };
        match &need.wanted {
            Wanted::State(event, _) => {
                let (objects, refused) = self.incoming.connect(&need.wanted.tips()).await?;
                if let Some(tip) = refused.first() {
                    return Ok(Taken::Refused(format!("{}: {}", tip.name, tip.reason)));
                }
                let site = (&need.coordinate, need.home.clone());
                let order = Order::State(event.clone());
                let aligned = align(forge, site, order, Objects::Received(self.key, objects), bringer).await?;
                if let Aligned::Refused(reason) = aligned {
                    return Ok(Taken::Refused(reason));
                }
                settle_after(forge, &need.coordinate.identifier, event.pubkey, client).await;
                Ok(Taken::Done)
            }
            Wanted::PrEvent(event, commit) => {
                let Ok(pr_event) = PrEvent::parse(event) else {
                    return Ok(Taken::Refused("the pull request cannot be read".into()));
                };
                let (targets, _) = spread::targets(forge, &pr_event.repos).await?;
                let source = Source::Area(self.key.clone(), Some(need.repo));
                let released = spread::release(forge, event, *commit, &source, targets, &bringer).await?;
                // The area has to stay until here.
                drop(self.incoming);
                Ok(match released {
                    Released::Done => {
                        arrived::release_after(forge, &need.coordinate).await;
                        Taken::Done
                    }
                    Released::Incomplete => Taken::Incomplete,
                    Released::Refused(refusal) => Taken::Refused(refusal.reason.into_owned()),
                })
            }
        }
    }
}

async fn client(forge: &Forge, need: &Need) -> Result<Client, Fault> {
    Ok(client_of(forge, &need.wanted.event().pubkey, None).await?.waiting_at_most(JOB_WAIT))
}

/// Limits of a pack for an event: those of a push by the same party, the room in its quota, and `sync.max_pack`. `Err`: the
/// quota has no room.
pub(crate) async fn limits(forge: &Forge, need: &Need) -> Result<Result<ReceiveLimits, String>, Fault> {
    let settings = forge.settings();
    let payer = match &need.wanted {
        Wanted::State(..) => need.coordinate.owner,
        Wanted::PrEvent(event, _) => event.pubkey,
    };
    let room = match Payer::load(forge, Some(payer), None).await?.room(forge).await? {
        Ok(room) => room.unwrap_or(u64::MAX),
        Err(refusal) => return Ok(Err(refusal.reason.into_owned())),
    };
    let is_stranger = client(forge, need).await?.is_stranger();
    Ok(Ok(ReceiveLimits {
        pack_bytes: settings.sync.max_pack.min(settings.git.max_push).min(room),
        unpacked_bytes: if is_stranger { settings.git.stranger_unpacked } else { settings.git.unpacked },
        unpacked_ratio: settings.git.unpacked_ratio,
        idle: settings.sync.idle_timeout,
        stream_ends: true,
        unpack_limit: settings.git.unpack_limit,
        ..ReceiveLimits::default()
    }))
}

/// Complete commits of the receiving repository, so that the other server sends only what is new.
pub(crate) async fn haves(forge: &Forge, need: &Need) -> Result<Vec<Oid>, Fault> {
    let super::align::Home::Served(repo) = &need.home else { return Ok(Vec::new()) };
    let refs = snapshots::read(forge, repo).await?;
    let mut seen = HashSet::new();
    Ok(refs.refs.iter().map(|found| found.oid).filter(|oid| seen.insert(*oid)).collect())
}

/// Keeps the waiting event and its announcement from expiring while this is polled; returns only on a failure.
pub(crate) async fn keep_waiting(forge: &Forge, need: &Need) -> Fault {
    let id = need.wanted.event().id;
    let waits = match &need.wanted {
        Wanted::State(..) => Waits { state: Some(id), pr_events: Vec::new(), announcement: true },
        Wanted::PrEvent(..) => Waits { state: None, pr_events: vec![id], announcement: false },
    };
    loop {
        if let Err(fault) = raise(forge, &need.coordinate, &waits).await {
            return fault;
        }
        tokio::time::sleep(every(forge)).await;
    }
}

fn every(forge: &Forge) -> Duration {
    forge.settings().grasp.expiry.raise_every()
}
