//! A push to a repository that signed events rule.

use super::conversation::{Client, Rest, Stopped, Taking, take_pack};
use super::{Target, Ticket, Verdicts, incoming_key};
use crate::git::snapshots::{self, Refs};
use crate::grasp::align::{Aligned, Bringer, Objects, align};
use crate::grasp::aside::{self, Kept};
use crate::grasp::push::{Coordinate, Decision, Order, View, decide, raise};
use crate::grasp::settle::settle_others;
use crate::grasp::spread;
use crate::{Fault, Forge};
use abide_core::{Oid, RepoId, failpoint};
use abide_git::report::{RefResult, sideband_message};
use abide_git::{Incoming, PacketReader, PushRequest, ReceiveLimits, bare};
use abide_nostr::EventId;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::AsyncRead;

/// How often what allows a push is kept from expiring while its pack arrives.
const RAISE_EVERY: Duration = Duration::from_secs(60);

/// Judges, receives, judges again under the lease, and makes every repository follow that the same state rules.
pub(super) async fn run<R>(
    forge: &Forge,
    ticket: Ticket,
    request: &PushRequest,
    reader: &mut PacketReader<R>,
    limits: &ReceiveLimits,
    client: &Client,
) -> Result<(Vec<RefResult>, Rest), Stopped>
where
    R: AsyncRead + Unpin + Send,
{
    let unread = |fault: Fault| Stopped::fault(&fault, Rest::Unread);
    let Target::Signed { coordinate, id, repo } = &ticket.target else {
        return Err(unread(Fault::Internal("a push came to the wrong door".into())));
    };
    let place = Place { coordinate, id: *id, ip: ticket.caller.ip, transport: ticket.transport.as_str() };
    let mut verdicts = Verdicts::of(request.updates.clone(), true);
    let order = Order::Push(request.updates.clone());
    let (refs, dir) = match repo {
        Some(repo) => (snapshots::read(forge, repo).await.map_err(unread)?, forge.layout().repo(repo.id)),
        None => (Refs::nothing(), bare::init_empty(forge.layout()).await.map_err(|error| unread(error.into()))?),
    };
    let decision = decide(forge, coordinate, &order, &View::of(&refs, vec![dir.clone()])).await.map_err(unread)?;
    let (state, aside) = match decision {
        Decision::Refuse(reason) => {
            verdicts.refuse_all(&reason);
            return Ok((verdicts.results(), Rest::Unread));
        }
        Decision::Nothing => return Ok((verdicts.results(), Rest::Unread)),
        Decision::Go(plan) => (plan.waits, None),
        Decision::Aside(event, commit) => (None, Some((event, commit))),
    };
    let limits = match within_budget(forge, &place, limits, aside.is_some()).await.map_err(unread)? {
        Some(limits) => limits,
        None => {
            let reason = "too many commits wait for their events here; publish the event first, then push";
            verdicts.refuse_all(reason);
            return Ok((verdicts.results(), Rest::Unread));
        }
    };
    if let Some(state) = state {
        raise(forge, coordinate, state).await.map_err(unread)?;
    }
    let key = incoming_key(forge);
    let incoming = match request.needs_pack() {
        true => {
            let taking =
                Taking { dir, key: &key, caller: &ticket.caller, transport: ticket.transport, limits: &limits, client };
            tokio::select! {
                taken = take_pack(forge, taking, reader, &mut verdicts) => Some(taken?),
                fault = keep_raising(forge, coordinate, state) => return Err(unread(fault)),
            }
        }
        false => None,
    };
    if verdicts.none_left() {
        return Ok((verdicts.results(), Rest::Read));
    }
    failpoint::hit(failpoint::PUSH_CONNECTED);
    let read = |fault: Fault| Stopped::fault(&fault, Rest::Read);
    let aligned = match aside {
        None => {
            let objects = incoming.map_or(Objects::Here, |incoming| Objects::Received(key, incoming));
            client.waiting_for(follow(forge, &place, order, objects)).await
        }
        Some((event, commit)) => keep_aside(forge, &place, client, order, incoming, event, commit).await,
    };
    if let Aligned::Refused(reason) = aligned.map_err(read)? {
        verdicts.refuse_all(&reason);
    }
    Ok((verdicts.results(), Rest::Read))
}

/// Where it goes and who brings it.
struct Place<'a> {
    coordinate: &'a Coordinate,
    id: RepoId,
    ip: Option<IpAddr>,
    transport: &'static str,
}

impl Place<'_> {
    fn bringer(&self) -> Bringer {
        Bringer { transport: self.transport, ip: self.ip }
    }
}

/// What nobody has signed for yet may take only so much room. `None` if there is none left.
async fn within_budget(
    forge: &Forge,
    place: &Place<'_>,
    limits: &ReceiveLimits,
    unsigned: bool,
) -> Result<Option<ReceiveLimits>, Fault> {
    if !unsigned {
        return Ok(Some(limits.clone()));
    }
    let left = aside::budget(forge, place.ip).await?;
    Ok(left.map(|left| ReceiveLimits { pack_bytes: limits.pack_bytes.min(left), ..limits.clone() }))
}

/// Keeps what allows the push from expiring for as long as this is polled. Comes back only if the machine fails.
async fn keep_raising(forge: &Forge, coordinate: &Coordinate, state: Option<EventId>) -> Fault {
    let Some(state) = state else { return std::future::pending().await };
    loop {
        tokio::time::sleep(RAISE_EVERY).await;
        if let Err(fault) = raise(forge, coordinate, state).await {
            return fault;
        }
    }
}

/// Makes the repository follow, and every other that the same state rules or the same proposal is for.
async fn follow(forge: &Forge, place: &Place<'_>, order: Order, objects: Objects) -> Result<Aligned, Fault> {
    let proposals = order.proposals();
    let aligned = align(forge, place.coordinate, order, objects, place.bringer()).await?;
    if aligned == Aligned::Done {
        settle_others(forge, &place.coordinate.identifier, place.coordinate.owner).await?;
        for proposal in proposals {
            spread::give(forge, &proposal).await?;
        }
    }
    Ok(aligned)
}

/// Keeps a commit until its event comes.
async fn keep_aside(
    forge: &Forge,
    place: &Place<'_>,
    client: &Client,
    order: Order,
    incoming: Option<Incoming>,
    event: EventId,
    commit: Oid,
) -> Result<Aligned, Fault> {
    let Some(incoming) = incoming else {
        return Ok(Aligned::Refused("unknown event: nothing was pushed that could wait for it".into()));
    };
    match aside::keep(forge, event, commit, (place.id, place.coordinate), incoming, place.ip).await? {
        Kept::Waiting => {
            if client.capabilities.side_band_64k {
                client
                    .send(sideband_message("awaiting PR event: the commit is served once its event is published"))
                    .await;
            }
            Ok(Aligned::Nothing)
        }
        // It came while this was received: the usual way is open now.
        Kept::Known(key) => {
            let dir: PathBuf = forge.layout().repo(place.id);
            let incoming = Incoming::reopen(forge.git(), forge.layout(), dir, &key)?;
            follow(forge, place, order, Objects::Received(key, incoming)).await
        }
    }
}
