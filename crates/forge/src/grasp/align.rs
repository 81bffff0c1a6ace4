//! Aligns a repository with signed events: objects, refs, HEAD, and the events that are served.
//!
//! A served repository uses the same path as every push. A waiting repository has no row yet, so nobody can see it
//! while its directory is built; the transaction that promotes it creates the row. The next attempt, or the sweep,
//! deletes a directory that a crash left behind.

use super::authority::BySignature;
use super::context::{GraspContext, Stage};
use super::promote::{self, Promotion};
use super::push::{Decision, Order, Plan, RepoCoordinate, View, decide_in};
use super::quota::{Paying, Strangers, Weighing, give_back, weigh};
use super::{arrived, attached};
use crate::context::standing::Standing;
use crate::disk::{Writer, ensure_room_for};
use crate::error::REVOKED;
use crate::git::push::apply::{self, Work};
use crate::git::push::{Verdicts, brought, incoming_key};
use crate::git::snapshots;
use crate::relay::{Relay, readable};
use crate::{Caller, Fault, Forge, lease};
use abide_core::{Oid, RefName, RepoId, failpoint};
use abide_git::{Client, Connected, GitError, Incoming, RefTxError, Snapshot, bare, reftx};
use abide_nostr::grasp::align::usual_head;
use abide_nostr::grasp::quota::REPOSITORY_BYTES;
use abide_nostr::{PublicKey, nip19};
use abide_store::StoreError;
use abide_store::accounts::user_keys;
use abide_store::leases::Lease;
use abide_store::repos::Repo;
use abide_store::repos::{self, pushes};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Wait of an event for a git slot while its sender waits for the answer and others for their turn. After it, the event
/// waits in purgatory and a job continues.
pub(super) const LANE_WAIT: Duration = Duration::from_secs(5);

/// Wait of such a job for a git slot. After it, the job is retried later, because jobs of other kinds need its runner.
pub(super) const JOB_WAIT: Duration = Duration::from_secs(30);

/// Default branch of a repository whose state does not name HEAD.
const MAIN: &str = "refs/heads/main";

/// Source of the objects.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time is moved along a push")]
pub(crate) enum Objects {
    Here,
    /// Just received, or kept beside the repository.
    Received(String, Connected),
    /// In another repository of this server.
    Of(RepoId, Vec<Oid>),
}

/// The repository to align, as its caller loaded it. A change since then is noticed under the lease.
#[derive(Debug, Clone)]
pub(crate) enum Home {
    Served(Box<Repo>),
    /// It waits in purgatory under this reserved id.
    Waiting(RepoId),
}

/// Result of an alignment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Aligned {
    /// Refs moved, or events are served now.
    Done,
    /// The repository was aligned already.
    Nothing,
    /// Not allowed, or no longer allowed; carries the reason.
    Refused(String),
}

/// The party that pushed the git data, for logs and push records.
#[derive(Debug, Clone)]
pub(crate) struct Bringer {
    pub transport: &'static str,
    pub ip: Option<IpAddr>,
    /// The client that is charged for git slots and rations.
    pub client: Client,
    pub paying: Paying,
    pub standing: Standing,
}

impl Bringer {
    /// This server itself.
    pub(crate) fn server() -> Self {
        Self::server_for(Client::SERVER)
    }

    /// This server, on behalf of the client whose event asks for the work.
    pub(crate) fn server_for(client: Client) -> Self {
        Self { transport: "server", ip: None, client, paying: Paying::WhenWeighed, standing: Standing::Anonymous }
    }

    /// The same party, with git data that was reserved before.
    pub(super) fn paying_from(self, reservation: &str) -> Self {
        Self { paying: Paying::Reserved(reservation.to_owned()), ..self }
    }
}

/// The signer of an event as a git client: an account, or a stranger identified by key and address.
pub(super) async fn client_of(forge: &Forge, key: &PublicKey, from: Option<IpAddr>) -> Result<Client, Fault> {
    let user = user_keys::by_npub(&mut *forge.store().read().await?, &nip19::npub(key)).await?;
    let account = user.filter(|user| user.name.is_some()).map(|user| user.id);
    Ok(Client::signer(from, account, key.to_bytes()))
}

/// Carries out an order. Once begun, it runs to its end even if the caller is cancelled.
pub(crate) async fn align(
    forge: &Forge,
    (coordinate, home): (&RepoCoordinate, Home),
    order: Order,
    objects: Objects,
    bringer: Bringer,
) -> Result<Aligned, Fault> {
    let task = run(forge.clone(), (coordinate.clone(), home), order, objects, bringer);
    let ended = forge.tasks().spawn(task).await;
    ended.map_err(|error| Fault::Internal(format!("an alignment's task ended early: {error}")))?
}

async fn run(
    forge: Forge,
    (coordinate, home): (RepoCoordinate, Home),
    order: Order,
    objects: Objects,
    bringer: Bringer,
) -> Result<Aligned, Fault> {
    // A released pull request does not search for others; the caller that released it does so once.
    let brings = matches!(order, Order::Push(_) | Order::State(_)).then(|| coordinate.clone());
    let aligned = match home {
        Home::Served(repo) => served(&forge, *repo, coordinate, order, objects, bringer).await,
        Home::Waiting(id) => first(&forge, id, coordinate, order, objects, bringer).await,
    };
    if let (Ok(Aligned::Done), Some(coordinate)) = (&aligned, brings) {
        arrived::release_after(&forge, &coordinate).await;
    }
    aligned
}

/// Aligns a repository that has a row: an ordinary push with another authority.
async fn served(
    forge: &Forge,
    repo: Repo,
    coordinate: RepoCoordinate,
    order: Order,
    objects: Objects,
    bringer: Bringer,
) -> Result<Aligned, Fault> {
    let (key, objects) = match objects {
        Objects::Here => (incoming_key(forge), None),
        Objects::Received(key, objects) => (key, Some(objects)),
        Objects::Of(source, _) if source == repo.id => (incoming_key(forge), None),
        Objects::Of(source, tips) => {
            let key = incoming_key(forge);
            match copy_between(forge, source, &repo, &key, &tips, bringer.client).await? {
                Some(incoming) => (key, Some(incoming.connect(&[]).await?.0)),
                None => return Ok(Aligned::Refused("the repository that has the objects is not whole".into())),
            }
        }
    };
    let updates = match &order {
        Order::Push(updates) => updates.clone(),
        _ => Vec::new(),
    };
    let work = Work {
        repo,
        caller: Caller { standing: bringer.standing.clone(), ..Caller::anonymous(bringer.ip) },
        transport: bringer.transport,
        key,
        objects,
        verdicts: Verdicts::of(updates, true),
        authority: Arc::new(BySignature {
            coordinate,
            order,
            bringer,
            after_push: forge.settings().grasp.expiry.after_push,
        }),
        reserved: None,
    };
    let done = apply::commit(forge.clone(), work).await?;
    Ok(match done.verdicts.refusal() {
        Some(reason) => Aligned::Refused(reason.to_owned()),
        None if done.moved => Aligned::Done,
        None => Aligned::Nothing,
    })
}

/// Copies the objects of these tips that `repo` lacks from `source`. The caller proves them complete. `None`: `source`
/// lacks objects too.
pub(super) async fn copy_between(
    forge: &Forge,
    source: RepoId,
    repo: &Repo,
    key: &str,
    tips: &[Oid],
    client: Client,
) -> Result<Option<Incoming>, Fault> {
    let refs = snapshots::read(forge, repo).await?;
    let known: Vec<Oid> = refs.refs.iter().map(|found| found.oid).collect();
    let incoming = Incoming::create(forge.git(), forge.layout(), repo.id, key).await?.of(client);
    let from = [forge.layout().repo(source).join("objects")];
    let copied = async {
        let bytes = incoming.weigh(&from, tips, &known).await?;
        ensure_room_for(forge, writer(client), bytes)?;
        Ok::<_, Fault>(incoming.fill(&from, tips, &known).await?)
    };
    match copied.await {
        Ok(()) => Ok(Some(incoming)),
        Err(Fault::Git(error @ (GitError::Failed { .. } | GitError::UsedUp { .. }))) => {
            tracing::warn!(source = source.get(), repo = repo.id.get(), %error, "objects could not be copied");
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// The share of the disk that copies for a client may use.
pub(super) fn writer(client: Client) -> Writer {
    if client.is_stranger() { Writer::Stranger } else { Writer::Account }
}

/// Aligns a waiting repository. If it was promoted meanwhile, it is aligned as what it is now.
async fn first(
    forge: &Forge,
    id: RepoId,
    coordinate: RepoCoordinate,
    order: Order,
    mut objects: Objects,
    bringer: Bringer,
) -> Result<Aligned, Fault> {
    let Some(lease) = lease::take_patiently(forge, &pushes::lease_name(id)).await? else {
        return Ok(Aligned::Refused("the repository is busy with another push; try again in a moment".into()));
    };
    let reservation = incoming_key(forge);
    let under = Under { lease: &lease, reservation: &reservation };
    let building = build(forge, id, &coordinate, &order, &mut objects, &bringer, under);
    let built = lease::keep(forge, &lease, building).await;
    if !matches!(built, Ok(Built::Aligned(Aligned::Done))) {
        give_back(forge, &reservation).await;
        if repos::by_id(&mut *forge.store().read().await?, id, None).await?.is_none() {
            bare::remove_repo(forge.layout(), id).await?;
        }
        lease::release(forge, lease).await?;
    }
    forge.lease_freed().notify_waiters();
    let aligned = match built {
        Ok(Built::Promoted(repo)) => return served(forge, *repo, coordinate, order, objects, bringer).await,
        Ok(Built::Aligned(aligned)) => Ok(aligned),
        Err(fault) => Err(fault),
    };
    if let Objects::Received(_, objects) = objects {
        forge.tasks().spawn(async move { drop(objects.discard().await) });
    }
    if let Ok(Aligned::Done) = aligned {
        // The sweep readmits the PR events that this call leaves.
        let readmitted = attached::readmit(forge, coordinate.owner.as_bytes(), &coordinate.identifier, LANE_WAIT).await;
        if let Err(fault) = readmitted {
            tracing::warn!(error = %fault, "cannot serve pull requests that waited for a repository; the sweep retries");
        }
    }
    aligned
}

/// Result of building a waiting repository.
enum Built {
    Aligned(Aligned),
    /// Another push has promoted the repository; nothing was done.
    Promoted(Box<Repo>),
}

impl Built {
    fn refused(reason: impl Into<String>) -> Self {
        Self::Aligned(Aligned::Refused(reason.into()))
    }
}

/// The lease and the reservation under which a new repository is built.
#[derive(Clone, Copy)]
struct Under<'a> {
    lease: &'a Lease,
    /// Id of the quota reservation.
    reservation: &'a str,
}

/// Builds the repository under its lease and promotes it.
async fn build(
    forge: &Forge,
    id: RepoId,
    coordinate: &RepoCoordinate,
    order: &Order,
    objects: &mut Objects,
    bringer: &Bringer,
    Under { lease, reservation }: Under<'_>,
) -> Result<Built, Fault> {
    let mut conn = forge.store().read().await?;
    let context =
        GraspContext::load(&forge.settings().grasp, &mut conn, &coordinate.identifier, coordinate.owner).await?;
    drop(conn);
    let Some(known) = context.of(coordinate.owner) else {
        return Ok(Built::refused("no announcement: it was withdrawn or has expired; publish it again"));
    };
    let entry = match &known.stage {
        Stage::Waiting(_, entry) => entry,
        Stage::Served(repo) => return Ok(Built::Promoted(repo.clone())),
        Stage::Beside => {
            return Ok(Built::refused("no announcement: it no longer lists this server; publish it again"));
        }
    };
    // Delete the directory of an earlier attempt: no client knows of it.
    bare::remove_repo(forge.layout(), id).await?;
    let object_dirs = match &*objects {
        Objects::Here => Vec::new(),
        Objects::Received(_, objects) => objects.area().map(Path::to_owned).into_iter().collect(),
        Objects::Of(source, _) => vec![forge.layout().repo(*source)],
    };
    let view = View::of(&Snapshot::empty(), object_dirs);
    let mut plan = match decide_in(forge, &context, coordinate, order, &view).await? {
        Decision::Go(plan) => plan,
        Decision::Nothing => return Ok(Built::Aligned(Aligned::Nothing)),
        Decision::Refuse(reason) => return Ok(Built::refused(reason)),
    };
    let Some(event) = readable(&entry.json) else {
        return Err(Fault::Internal("a waiting announcement cannot be read".into()));
    };
    if plan.state.is_none() {
        return Ok(Built::refused("no authorised state: publish a state (kind 30618) signed by a maintainer"));
    }
    let comes = plan.updates.iter().filter(|update| !update.is_delete()).map(|update| &update.name);
    let head = plan.signed.head().or_else(|| usual_head(comes)).unwrap_or_else(main_branch);
    bare::init_bare(forge.layout(), id, &head).await?;
    let dir = forge.layout().repo(id);
    if let Some(reason) = fill(forge, &dir, objects, &plan, bringer.client).await? {
        return Ok(Built::refused(reason));
    }
    let (owner, from, paying) = (coordinate.owner, bringer.ip, &bringer.paying);
    let (objects, more) = (dir.join("objects"), REPOSITORY_BYTES);
    let weighing = Weighing { objects, owner, from, paying, key: reservation, more };
    match weigh(forge, &mut plan.signed, weighing).await? {
        Ok(Some(reserved)) => {
            Strangers::of(forge).add(reserved);
            Strangers::of(forge).add_repo();
        }
        Ok(None) => {}
        Err(refusal) => return Ok(Built::refused(refusal.reason)),
    }
    if !bringer.standing.holds(forge).await? {
        return Ok(Built::refused(REVOKED));
    }
    match reftx::update_refs(forge.git(), &dir, &plan.updates).await {
        Ok(()) => {}
        Err(RefTxError::Conflict { name, kind }) => return Ok(Built::refused(format!("{name}: {kind}"))),
        Err(RefTxError::Git(error)) => return Err(error.into()),
    }
    failpoint::hit(failpoint::PROMOTE_BUILT);
    let promoted = promote(
        forge,
        Promotion {
            settings: forge.settings().grasp.clone(),
            entry: (**entry).clone(),
            id,
            announcement: known.announcement.clone(),
            beside: promote::waiting_beside(forge, &context, entry, event.pubkey).await?,
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
    );
    Ok(Built::Aligned(promoted.await?))
}

/// Moves objects into a new repository after proving that every ref is complete. Returns the reason if that fails.
async fn fill(
    forge: &Forge,
    dir: &Path,
    objects: &mut Objects,
    plan: &Plan,
    client: Client,
) -> Result<Option<String>, Fault> {
    if let Objects::Of(source, tips) = objects {
        let key = incoming_key(forge);
        let empty = bare::init_empty(forge.layout()).await?;
        let incoming = Incoming::create_beside(forge.git(), forge.layout(), empty, &key).await?.of(client);
        let from = forge.layout().repo(*source);
        let copied = async {
            let bytes = incoming.weigh(&[from.join("objects")], tips, &[]).await?;
            ensure_room_for(forge, writer(client), bytes)?;
            Ok::<_, Fault>(incoming.copied(&from, tips).await?)
        };
        match copied.await {
            Ok(copied) => *objects = Objects::Received(key, copied),
            Err(Fault::Git(error @ (GitError::Failed { .. } | GitError::UsedUp { .. }))) => {
                tracing::warn!(source = source.get(), %error, "objects could not be copied");
                return Ok(Some("the repository that has the objects is not whole, or too large to copy".into()));
            }
            Err(fault) => return Err(fault),
        }
    }
    let refused = match objects {
        Objects::Received(_, objects) if objects.holds_in(dir) => {
            let refused = objects.extend(&plan.updates).await?;
            if refused.is_empty() {
                objects.migrate(dir).await?;
            }
            refused
        }
        Objects::Received(..) => {
            return Ok(Some("the repository was announced again while you pushed; push again".into()));
        }
        _ => Connected::in_place(forge.git(), dir.to_owned()).of(client).extend(&plan.updates).await?,
    };
    Ok(refused.first().map(|tip| format!("{}: {}", tip.name, tip.reason)))
}

/// Writes the promotion and notifies subscribers.
async fn promote(forge: &Forge, promotion: Promotion) -> Result<Aligned, Fault> {
    let mut served = vec![promotion.event.clone()];
    served.extend(promotion.beside.iter().map(|(_, event)| event.clone()));
    served.extend(promotion.signed.events());
    let mut tries = 0;
    let promoted = loop {
        let written =
            forge.store().write(promotion.clone(), |tx, promotion| Box::pin(promote::write(tx, promotion))).await;
        match written {
            // Another transaction created the same account or took the name at the same moment; the next attempt uses
            // the next name.
            Err(Fault::Store(StoreError::Unique)) if tries < 5 => tries += 1,
            written => break written?,
        }
    };
    let Some(attached) = promoted else {
        let reason = "no announcement: it expired or was replaced while you pushed; publish it and push again";
        return Ok(Aligned::Refused(reason.into()));
    };
    served.extend(attached);
    failpoint::hit(failpoint::PROMOTE_COMMITTED);
    Relay::of(forge).publish(&served.into_iter().map(Arc::new).collect::<Vec<_>>());
    Ok(Aligned::Done)
}

fn main_branch() -> RefName {
    MAIN.parse().expect("a ref name of ours")
}
