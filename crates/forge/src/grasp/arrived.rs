//! Rechecks pull requests that wait for their commit after git data arrived in a repository that they name: the commit
//! can arrive with a branch or with another pull request.

use super::align::{Bringer, JOB_WAIT, LANE_WAIT, client_of};
use super::push::{RepoCoordinate, View};
use super::settle;
use super::spread::{self, Released, Source, holder, targets};
use crate::relay::is_suspended;
use crate::relay::readable;
use crate::{Fault, Forge};
use abide_core::Oid;
use abide_nostr::EventId;
use abide_nostr::git::PrEvent;
use abide_store::nostr::purgatory::prs as pr_events;
use abide_store::repos::Repo;
use abide_store::{StoreError, nostr};
use std::collections::{BTreeMap, HashSet};
use std::pin::Pin;
use std::time::Duration;

/// Waiting pull requests of one repository that one check reads, the latest. Their commits are looked up together in
/// this process, which costs less than one run of git. One key may have a tenth of this waiting.
const LOOKED_AT: i64 = 1_000;

/// Pull requests that a push releases before its report. Each takes several runs of git, and the pusher waits for them;
/// the job that settles the identifier continues with the others.
const RELEASED: usize = 20;

/// The caller of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// A push or a state, whose sender waits for the answer.
    Sender,
    /// The job that settles the identifier.
    Job,
}

impl By {
    /// Pull requests that one call releases. The job releases all of them: it could not queue itself again while it runs.
    fn at_most(self) -> usize {
        match self {
            Self::Sender => RELEASED,
            Self::Job => usize::MAX,
        }
    }

    /// Longest wait for a git slot. The slots belong to the authors of the pull requests, who may be strangers with all
    /// their slots in use.
    fn patience(self) -> Duration {
        match self {
            Self::Sender => LANE_WAIT,
            Self::Job => JOB_WAIT,
        }
    }
}

/// Serves the waiting pull requests whose commit this repository has by now: the job. A failure of one does not keep the
/// others back; the last fault is returned. If git is busy, the others are not tried, and the job is retried.
pub(super) async fn release(forge: &Forge, coordinate: &RepoCoordinate) -> Result<(), Fault> {
    release_all(forge, coordinate, By::Job).await
}

/// As [`release`], for a push or a state that is written and not yet answered. If git is busy, or if there are many pull
/// requests, a job continues.
///
/// Boxed, because an alignment calls this function, and a released pull request is an alignment in turn.
pub(crate) fn release_after<'a>(
    forge: &'a Forge,
    coordinate: &'a RepoCoordinate,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(async move {
        if let Err(fault) = release_all(forge, coordinate, By::Sender).await {
            tracing::warn!(error = %fault, identifier = coordinate.identifier, "cannot release waiting pull requests yet");
        }
    })
}

async fn release_all(forge: &Forge, coordinate: &RepoCoordinate, by: By) -> Result<(), Fault> {
    let mut conn = forge.store().read().await?;
    let owner = coordinate.owner.as_bytes();
    let (rows, _) = pr_events::of_repo(&mut conn, owner, &coordinate.identifier, LOOKED_AT).await?;
    let waiting: Vec<_> = rows.into_iter().filter(|row| row.pubkey.is_some()).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let repo = nostr::repos::by_coordinate(&mut conn, owner, &coordinate.identifier, None).await?;
    drop(conn);
    let Some(repo) = repo.filter(Repo::is_live) else { return Ok(()) };
    let view = View { refs: BTreeMap::new(), head: None, object_dirs: vec![forge.layout().repo(repo.id)] };
    let wanted: HashSet<Oid> = waiting.iter().map(|row| row.commit).collect();
    let here = view.present(wanted).await?;
    // In order of arrival, so that an update follows its pull request.
    let mut arrived = waiting.iter().rev().filter(|row| here.contains(&row.commit));
    let (mut served, mut busy, mut last) = (false, false, Ok(()));
    for row in arrived.by_ref().take(by.at_most()) {
        match release_one(forge, EventId::from_byte_array(row.event_id), by).await {
            Ok(done) => served |= done,
            Err(fault) => {
                busy = fault.is_busy();
                last = Err(fault);
            }
        }
        if busy {
            break;
        }
    }
    if by == By::Sender && (busy || served && arrived.next().is_some()) {
        let input = (coordinate.owner.to_bytes(), coordinate.identifier.clone());
        let queued: Result<(), StoreError> = forge
            .store()
            .write(input, |tx, (owner, identifier)| Box::pin(settle::enqueue_named(tx, owner, identifier)))
            .await;
        queued?;
    }
    last
}

/// Serves one, if a repository that it names has its commit with all that it reaches.
async fn release_one(forge: &Forge, id: EventId, by: By) -> Result<bool, Fault> {
    let half = pr_events::get(&mut *forge.store().read().await?, id.as_bytes()).await?;
    let Some((commit, event)) = half.and_then(|half| Some((half.commit, readable(half.json.as_deref()?)?))) else {
        return Ok(false);
    };
    let Ok(pr_event) = PrEvent::parse(&event) else { return Ok(false) };
    if is_suspended(forge, &event.pubkey).await? {
        return Ok(false);
    }
    let (targets, _) = targets(forge, &pr_event.repos).await?;
    let client = client_of(forge, &event.pubkey, None).await?.waiting_at_most(by.patience());
    let Some(origin) = holder(forge, &id, commit, &targets, client).await? else { return Ok(false) };
    let bringer = Bringer::server_for(client);
    let released = spread::release(forge, &event, commit, &Source::Repo(origin), targets, &bringer).await?;
    if released != Released::Done {
        tracing::info!(event = %id, ?released, "a pull request whose commit came still waits");
    }
    Ok(released == Released::Done)
}
