//! Makes a repository what signed events say: its objects, its refs, its HEAD, and what is served of it.
//!
//! A served repository goes the way of every push. A waiting one has no row yet, so nothing of it can be seen while it is
//! put together: its directory is made, and the transaction that promotes it is the first to know of it. What a crash
//! leaves in that directory is thrown away by the next try, or by the sweep.

use super::promote::{self, Promotion};
use super::push::{Coordinate, Decision, Order, Plan, View, decide};
use super::scene::{Place, Scene};
use crate::git::push::commit::{self, Work};
use crate::git::push::{Verdicts, brought, incoming_key};
use crate::relay::readable;
use crate::{Caller, Fault, Forge};
use abide_core::{Oid, RefName, RefUpdate, RepoId, failpoint};
use abide_git::copy::copy_objects;
use abide_git::{Incoming, RefTxError, Snapshot, bare, reftx};
use abide_nostr::grasp::align::Plan as Alignment;
use abide_store::leases::{self, Lease};
use abide_store::{StoreError, nostr_repos, purgatory, pushes, repos};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The branch of a repository whose state says nothing of HEAD.
const MAIN: &str = "refs/heads/main";

/// Where the objects come from.
#[derive(Debug)]
pub(crate) enum Objects {
    /// They are in the repository already.
    Here,
    /// They have just been received.
    Received(String, Incoming),
    /// Another repository here has them.
    Of(RepoId, Vec<Oid>),
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Aligned {
    /// Refs moved, or events were served.
    Done,
    /// It was so already.
    Nothing,
    /// It is not allowed, or not any more.
    Refused(String),
}

/// Whoever brings something, as far as logs and pushes name them.
#[derive(Debug, Clone)]
pub(crate) struct Bringer {
    pub transport: &'static str,
    pub ip: Option<std::net::IpAddr>,
}

impl Bringer {
    /// This server itself.
    pub(crate) fn server() -> Self {
        Self { transport: "server", ip: None }
    }
}

/// Carries an order out. Once begun it runs to its end, whatever becomes of the caller.
pub(crate) async fn align(
    forge: &Forge,
    coordinate: &Coordinate,
    order: Order,
    objects: Objects,
    bringer: Bringer,
) -> Result<Aligned, Fault> {
    let task = run(forge.clone(), coordinate.clone(), order, objects, bringer);
    let ended = forge.tasks().spawn(task).await;
    ended.map_err(|error| Fault::Internal(format!("an alignment's task ended early: {error}")))?
}

async fn run(
    forge: Forge,
    coordinate: Coordinate,
    order: Order,
    objects: Objects,
    bringer: Bringer,
) -> Result<Aligned, Fault> {
    let (owner, identifier) = (coordinate.owner.as_bytes(), &coordinate.identifier);
    let mut conn = forge.store().read().await?;
    let repo = nostr_repos::by_coordinate(&mut conn, owner, identifier, None).await?;
    let waiting = purgatory::announcement(&mut conn, owner, identifier).await?.and_then(|entry| entry.repo_id);
    drop(conn);
    match (repo.filter(|repo| repo.deleted_at.is_none()), waiting) {
        (Some(repo), _) => served(&forge, repo.id, coordinate, order, objects, bringer).await,
        (None, Some(id)) => first(&forge, id, coordinate, order, objects, bringer).await,
        (None, None) => Ok(Aligned::Refused("no announcement: the repository is not announced here".into())),
    }
}

/// A repository that has its row: an ordinary push, with another authority.
async fn served(
    forge: &Forge,
    repo: RepoId,
    coordinate: Coordinate,
    order: Order,
    objects: Objects,
    bringer: Bringer,
) -> Result<Aligned, Fault> {
    let (key, incoming) = match objects {
        Objects::Here => (incoming_key(forge), None),
        Objects::Received(key, incoming) => (key, Some(incoming)),
        Objects::Of(source, tips) => {
            let key = incoming_key(forge);
            let incoming = Incoming::create(forge.git(), forge.layout(), repo, &key).await?;
            if source != repo {
                copy_objects(forge.git(), &forge.layout().repo(source), &incoming.objects(), &tips).await?;
            }
            (key, Some(incoming))
        }
    };
    let updates = match &order {
        Order::Push(updates) => updates.clone(),
        _ => Vec::new(),
    };
    let work = Work {
        repo,
        caller: Caller::anonymous(bringer.ip),
        transport: bringer.transport,
        key,
        incoming,
        verdicts: Verdicts::of(updates, true),
        signed: Some((coordinate, order)),
    };
    let done = commit::commit(forge.clone(), work).await?;
    Ok(match done.verdicts.refusal() {
        Some(reason) => Aligned::Refused(reason.to_owned()),
        None if done.moved => Aligned::Done,
        None => Aligned::Nothing,
    })
}

/// A repository that waits.
async fn first(
    forge: &Forge,
    id: RepoId,
    coordinate: Coordinate,
    order: Order,
    objects: Objects,
    bringer: Bringer,
) -> Result<Aligned, Fault> {
    let lease = match take_lease(forge, id).await? {
        Some(lease) => lease,
        None => return Ok(Aligned::Refused("the repository is busy with another push; try again in a moment".into())),
    };
    let built = tokio::select! {
        built = build(forge, id, &coordinate, &order, &objects, &bringer, &lease) => built,
        lost = commit::heartbeat(forge, &lease) => Err(lost),
    };
    if !matches!(built, Ok(Aligned::Done)) {
        if repos::by_id(&mut *forge.store().read().await?, id, None).await?.is_none() {
            bare::remove_repo(forge.layout(), id).await?;
        }
        commit::release(forge, Some(lease)).await?;
    }
    forge.lease_freed().notify_waiters();
    if let Objects::Received(_, incoming) = objects {
        forge.tasks().spawn(async move { drop(incoming.discard().await) });
    }
    built
}

async fn take_lease(forge: &Forge, id: RepoId) -> Result<Option<Lease>, Fault> {
    let deadline = tokio::time::Instant::now() + forge.settings().lease_wait;
    loop {
        let input = (pushes::lease_name(id), forge.node().holder().to_owned(), forge.settings().lease_ttl);
        let taken: Result<Option<Lease>, StoreError> =
            forge.store().write(input, |tx, (name, holder, ttl)| Box::pin(leases::take(tx, name, holder, *ttl))).await;
        match taken? {
            Some(lease) => return Ok(Some(lease)),
            None if tokio::time::Instant::now() >= deadline => return Ok(None),
            None => {
                tokio::select! {
                    () = forge.lease_freed().notified() => {}
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
        }
    }
}

/// Puts the repository together under its lease, and promotes it.
async fn build(
    forge: &Forge,
    id: RepoId,
    coordinate: &Coordinate,
    order: &Order,
    objects: &Objects,
    bringer: &Bringer,
    lease: &Lease,
) -> Result<Aligned, Fault> {
    let mut conn = forge.store().read().await?;
    let scene = Scene::load(&forge.settings().grasp, &mut conn, &coordinate.identifier, coordinate.owner).await?;
    drop(conn);
    let Some(known) = scene.of(coordinate.owner) else {
        return Ok(Aligned::Refused("no announcement: it was withdrawn or has expired; publish it again".into()));
    };
    let Place::Waiting(_, entry) = &known.place else {
        // Somebody else was faster and it is served by now.
        return Ok(Aligned::Nothing);
    };
    // What an earlier try left behind is of no use: nobody was told of it.
    bare::remove_repo(forge.layout(), id).await?;
    let places = match objects {
        Objects::Here => Vec::new(),
        Objects::Received(_, incoming) => vec![area(incoming)],
        Objects::Of(source, _) => vec![forge.layout().repo(*source)],
    };
    let plan = match decide(forge, coordinate, order, &View::of(&Snapshot::empty(), places)).await? {
        Decision::Go(plan) => plan,
        Decision::Nothing | Decision::Aside(..) => return Ok(Aligned::Nothing),
        Decision::Refuse(reason) => return Ok(Aligned::Refused(reason)),
    };
    let Some(event) = readable(&entry.json) else {
        return Err(Fault::Internal("a waiting announcement cannot be read".into()));
    };
    if plan.state.is_none() {
        return Ok(Aligned::Refused("no authorised state: publish a state (kind 30618) signed by a maintainer".into()));
    }
    let head = plan.signed.head().or_else(|| first_branch(&plan)).unwrap_or_else(main_branch);
    bare::init_bare(forge.layout(), id, &head).await?;
    let dir = forge.layout().repo(id);
    match objects {
        Objects::Here => {}
        Objects::Received(_, incoming) => incoming.migrate_into(&dir).await?,
        Objects::Of(source, tips) => {
            copy_objects(forge.git(), &forge.layout().repo(*source), &dir.join("objects"), tips).await?;
        }
    }
    match reftx::update_refs(forge.git(), &dir, &plan.updates).await {
        Ok(()) => {}
        Err(RefTxError::Conflict { name, kind }) => return Ok(Aligned::Refused(format!("{name}: {kind}"))),
        Err(RefTxError::Git(error)) => return Err(error.into()),
    }
    failpoint::hit(failpoint::PROMOTE_BUILT);
    promote(
        forge,
        Promotion {
            entry: (**entry).clone(),
            id,
            announcement: known.announcement.clone(),
            beside: promote::waiting_beside(forge, &scene, entry, event.pubkey).await?,
            event,
            lease: lease.clone(),
            transport: bringer.transport,
            brought: brought(dir, &head, &plan.updates).await,
            updates: plan.updates,
            head,
            signed: plan.signed,
            actor: plan.actor,
            ip: bringer.ip.map(|ip| ip.to_string()),
        },
    )
    .await
}

/// Writes it down, and tells those who listen.
async fn promote(forge: &Forge, promotion: Promotion) -> Result<Aligned, Fault> {
    let mut served = vec![promotion.event.clone()];
    served.extend(promotion.beside.iter().map(|(_, event)| event.clone()));
    served.extend(promotion.signed.events());
    let mut tries = 0;
    let promoted = loop {
        let written =
            forge.store().write(promotion.clone(), |tx, promotion| Box::pin(promote::write(tx, promotion))).await;
        match written {
            // Another one made the same account, or took the name, at the same moment: there is a next name.
            Err(Fault::Store(StoreError::Unique)) if tries < 5 => tries += 1,
            written => break written?,
        }
    };
    if !promoted {
        let reason = "no announcement: it has expired or was replaced while you pushed; publish it and push again";
        return Ok(Aligned::Refused(reason.into()));
    }
    failpoint::hit(failpoint::PROMOTE_COMMITTED);
    forge.relay().publish(&served.into_iter().map(Arc::new).collect::<Vec<_>>());
    Ok(Aligned::Done)
}

/// The directory whose `objects` were received.
pub(crate) fn area(incoming: &Incoming) -> PathBuf {
    incoming.objects().parent().map(PathBuf::from).unwrap_or_default()
}

fn first_branch(plan: &Plan) -> Option<RefName> {
    let branches = plan.updates.iter().filter(|update| !update.is_delete() && update.name.as_branch().is_some());
    let mut names: Vec<&RefName> = branches.map(|update| &update.name).collect();
    names.sort();
    let usual = |name: &&&RefName| matches!(name.as_str(), "refs/heads/main" | "refs/heads/master");
    names.iter().find(usual).or(names.first()).map(|name| (*name).clone())
}

fn main_branch() -> RefName {
    MAIN.parse().expect("a ref name of ours")
}

/// The transactions that a list of updates takes: git does not take a ref away and make one of a name below it in one.
pub(crate) fn steps(updates: &[RefUpdate]) -> Vec<Vec<RefUpdate>> {
    let (deletes, sets): (Vec<_>, Vec<_>) = updates.iter().cloned().partition(RefUpdate::is_delete);
    let both = Alignment { deletes, sets, head: None };
    if both.in_two_steps() { vec![both.deletes, both.sets] } else { vec![updates.to_vec()] }
}
