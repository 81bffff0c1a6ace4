//! Proving that database and disk agree, that no push is stuck and that nobody touched the audit log.

use crate::repos::fork;
use crate::{Fault, Forge};
use abide_core::{PushId, RepoId};
use abide_git::locks;
use abide_store::audit::{self, ChainReport};
use abide_store::repos::Repo;
use abide_store::{events, leases, pushes, repos};
use std::collections::HashSet;
use std::path::PathBuf;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which check found it.
    pub check: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
}

/// What the doctor saw.
#[derive(Debug, Clone)]
pub struct Report {
    /// Everything that is wrong; empty means healthy.
    pub findings: Vec<Finding>,
    /// Repositories looked at.
    pub repos: u64,
    /// The audit chain.
    pub chain: ChainReport,
    /// Events that have no place yet.
    pub events_unnumbered: i64,
    /// Pushes that are running at this moment, under a lease.
    pub pushes_running: i64,
}

/// Looks at everything.
pub async fn examine(forge: &Forge) -> Result<Report, Fault> {
    let mut findings = Vec::new();
    let mut add = |check, message| findings.push(Finding { check, message });

    let known = examine_repos(forge, &mut add).await?;
    examine_directories(forge, &known, &mut add).await?;
    examine_pushes(forge, &mut add).await?;

    let mut conn = forge.store().read().await?;
    let chain = audit::verify(&mut conn, forge.key()).await?;
    if let Some(place) = chain.broken_at {
        add("audit chain", format!("the seal at place {place} does not fit: a row was altered or removed"));
    }
    let events_unnumbered = events::count_unnumbered(&mut conn).await?;
    let pushes_running = pushes::count_running(&mut conn).await?;
    Ok(Report { findings, repos: known.len() as u64, chain, events_unnumbered, pushes_running })
}

/// Every row has its directory; refs are at rest and no lock is left unless a push is running.
async fn examine_repos(forge: &Forge, add: &mut impl FnMut(&'static str, String)) -> Result<HashSet<RepoId>, Fault> {
    const PAGE: i64 = 500;
    let mut known = HashSet::new();
    let mut after = RepoId::new(0);
    loop {
        let page = repos::page(&mut *forge.store().read().await?, after, PAGE).await?;
        for repo in &page {
            after = repo.id;
            known.insert(repo.id);
            let dir = forge.layout().repo(repo.id);
            if !dir.join("HEAD").is_file() {
                add("directory", format!("{} (id {}) has no repository at {}", repo.slug(), repo.id, dir.display()));
                continue;
            }
            let locks = locks::stale_locks(&dir)?;
            if (repo.refs_generation % 2 != 0 || !locks.is_empty()) && at_rest(forge, repo).await? {
                examine_motion(repo, &locks, add);
            }
        }
        if page.len() < PAGE as usize {
            return Ok(known);
        }
    }
}

/// Whether nobody is at work on the refs: no push is running, nobody holds the lease, and nothing has moved since the
/// row was read.
async fn at_rest(forge: &Forge, repo: &Repo) -> Result<bool, Fault> {
    let mut conn = forge.store().read().await?;
    let running = pushes::running_of(&mut conn, repo.id).await?;
    let holder = leases::holder(&mut conn, &pushes::lease_name(repo.id), forge.clock().now()).await?;
    let generation = repos::generation(&mut conn, repo.id).await?;
    Ok(running.is_empty() && holder.is_none() && generation == Some(repo.refs_generation))
}

fn examine_motion(repo: &Repo, locks: &[PathBuf], add: &mut impl FnMut(&'static str, String)) {
    if repo.refs_generation % 2 != 0 {
        let what = "is marked as moving, but no push is running; push to it or run `abide jobs run push:reconcile`";
        add("generation", format!("{} (id {}) {what}", repo.slug(), repo.id));
    }
    for lock in locks.iter().filter(|lock| lock.exists()) {
        add("lock", format!("{} was left by a writer that is gone", lock.display()));
    }
}

/// Every directory has its row, and nothing else lies among them.
async fn examine_directories(
    forge: &Forge,
    known: &HashSet<RepoId>,
    add: &mut impl FnMut(&'static str, String),
) -> Result<(), Fault> {
    let dirs =
        forge.layout().repo_dirs().map_err(|error| Fault::Internal(format!("cannot list repositories: {error}")))?;
    for (id, path) in dirs.repos {
        if !known.contains(&id) && !came_meanwhile(forge, id).await? {
            add("orphan", format!("{} belongs to no repository", path.display()));
        }
    }
    for path in dirs.strays {
        add("stray", format!("{} does not belong among the repositories", path.display()));
    }
    Ok(())
}

/// Whether a directory's row was written after the rows were read, or is about to be.
async fn came_meanwhile(forge: &Forge, id: RepoId) -> Result<bool, Fault> {
    Ok(fork::under_way(forge, id)? || repos::by_id(&mut *forge.store().read().await?, id, None).await?.is_some())
}

/// No push is left running by a dead process.
async fn examine_pushes(forge: &Forge, add: &mut impl FnMut(&'static str, String)) -> Result<(), Fault> {
    let now = forge.clock().now();
    let mut conn = forge.store().read().await?;
    for push in pushes::orphaned(&mut conn, now, PushId::new(0), 1000).await? {
        let what = "was left running by a process that is gone; run `abide jobs run push:reconcile`";
        add("push", format!("push {} to repository {} {what}", push.id, push.repo_id));
    }
    Ok(())
}
