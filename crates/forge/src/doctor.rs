//! Checks that database and disk agree, that no push is stuck and that the audit log is intact. Repairs only what loses
//! nothing: unexpected files are moved to the quarantine, never removed.

mod modes;
mod objects;

use crate::git::reconcile;
use crate::repos::{create, fork};
use crate::{Fault, Forge, disk};
use abide_core::{PushId, RepoId};
use abide_git::{bare, locks};
use abide_macros::boxed;
use abide_store::attention::{stars, watches};
use abide_store::audit::{self, ChainReport};
use abide_store::nostr::purgatory;
use abide_store::repos::Repo;
use abide_store::repos::{self, purges, pushes, redirects, transfers};
use abide_store::{Tx, events, leases};
use objects::{Looked, Walks};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Depth of the object check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// Checks the object of every ref, and walks a sample of repositories up to 64 MiB.
    #[default]
    Sample,
    /// Walks everything reachable from every ref.
    Deep,
}

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub check: &'static str,
    /// The problem and the next step.
    pub message: String,
    /// Path of an unexpected file.
    pub path: Option<PathBuf>,
}

/// Findings so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, check: &'static str, message: String) {
        self.0.push(Finding { check, message, path: None });
    }

    fn add_path(&mut self, check: &'static str, path: PathBuf, what: &str) {
        let message = format!("{} {what}; `abide doctor --fix` moves it to quarantine", path.display());
        self.0.push(Finding { check, message, path: Some(path) });
    }
}

/// Result of an examination.
#[derive(Debug, Clone)]
pub struct Report {
    /// Every problem; empty means healthy.
    pub findings: Vec<Finding>,
    pub repos: u64,
    /// Repositories walked completely.
    pub walked: u64,
    /// Repositories too large for a walk without [`Depth::Deep`]: only the tips of their refs were checked.
    pub too_large: u64,
    pub chain: ChainReport,
    /// Events without a log position.
    pub events_unnumbered: i64,
    /// Pushes running now, under a lease.
    pub pushes_running: i64,
    /// Purged repositories whose directories the next sweep removes.
    pub purges_waiting: i64,
    /// Writes that are refused because the disk is nearly full.
    pub disk: Option<String>,
}

/// Permissions of the data directory that let other users of the machine in, a line each.
pub fn wide_modes(forge: &Forge) -> Result<Vec<String>, Fault> {
    Ok(modes::examine(forge)?.iter().map(modes::Wide::message).collect())
}

/// Examines everything, with a sample of objects.
#[boxed]
pub async fn examine(forge: &Forge) -> Result<Report, Fault> {
    examine_to(forge, Depth::Sample).await
}

/// Examines everything, to this depth.
#[boxed]
pub async fn examine_to(forge: &Forge, depth: Depth) -> Result<Report, Fault> {
    let mut findings = Findings::default();
    if let Err(error) = forge.git().version().await {
        findings.add("git", error.to_string());
    }
    for wide in modes::examine(forge)? {
        findings.add("mode", wide.message());
    }
    let mut walks = Walks::new(depth);
    let known = examine_repos(forge, &mut walks, &mut findings).await?;
    let Looked { walked, too_large } = walks.examine(forge, &mut findings).await;
    examine_directories(forge, &known, &mut findings).await?;
    examine_pushes(forge, &mut findings).await?;
    examine_names(forge, &mut findings).await?;
    for (id, what) in miscounted(forge).await? {
        let message = format!("the {what} count of repository {id} is wrong; `abide doctor --fix` recounts it");
        findings.add("counter", message);
    }

    let mut conn = forge.store().read_at_length().await?;
    let chain = audit::verify(&mut conn, forge.key().expose()).await?;
    if let Some(position) = chain.broken_at {
        findings.add(
            "audit chain",
            format!("the hash at position {position} does not match: a row was changed or removed"),
        );
    }
    let events_unnumbered = events::count_unnumbered(&mut conn).await?;
    let pushes_running = pushes::count_running(&mut conn).await?;
    let purges_waiting = purges::count(&mut conn).await?;
    let (findings, repos) = (findings.0, known.len() as u64);
    let disk = disk::notice(forge);
    Ok(Report { findings, repos, walked, too_large, chain, events_unnumbered, pushes_running, purges_waiting, disk })
}

/// Repairs what it can. Returns its actions, a line each.
#[boxed]
pub async fn fix(forge: &Forge) -> Result<Vec<String>, Fault> {
    fix_to(forge, Depth::Sample).await
}

/// As [`fix`], with this depth of the object check.
#[boxed]
pub async fn fix_to(forge: &Forge, depth: Depth) -> Result<Vec<String>, Fault> {
    let mut done = modes::fix(forge)?;
    let pushes = reconcile::all(forge).await?;
    if pushes > 0 {
        done.push(format!("finished or rolled back {pushes} interrupted pushes"));
    }
    let directories = create::heal_directories(forge).await?;
    if directories > 0 {
        done.push(format!("created {directories} missing directories of empty repositories"));
    }
    done.extend(objects::mend(forge, depth).await?);
    let counters = miscounted(forge).await?;
    for &(id, what) in &counters {
        forge.store().write(id, |tx, &id| Box::pin(recount(tx, id))).await?;
        done.push(format!("recounted the {what} of repository {id}"));
    }
    for path in examine(forge).await?.findings.into_iter().filter_map(|found| found.path) {
        if let Some(moved) = set_aside(forge, &path)? {
            done.push(format!("moved {} to {}", path.display(), moved.display()));
        }
    }
    Ok(done)
}

/// Moves a path to the quarantine; `None` if it is already gone.
fn set_aside(forge: &Forge, path: &Path) -> Result<Option<PathBuf>, Fault> {
    let layout = forge.layout();
    let below = path.strip_prefix(layout.data()).unwrap_or(path).to_string_lossy().replace('/', "_");
    let target = layout.quarantine().join(format!("{}-{below}", forge.clock().now().micros()));
    let moved = std::fs::create_dir_all(layout.quarantine()).and_then(|()| std::fs::rename(path, &target));
    match moved {
        Ok(()) => Ok(Some(target)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::Internal(format!("cannot move {}: {error}", path.display()))),
    }
}

/// Checks that every row has its directory, and that refs are at rest without locks unless a push is running.
async fn examine_repos(forge: &Forge, walks: &mut Walks, findings: &mut Findings) -> Result<HashSet<RepoId>, Fault> {
    const PAGE: i64 = 500;
    let mut known = HashSet::new();
    let mut after = RepoId::new(0);
    loop {
        let page = repos::page(&mut *forge.store().read_at_length().await?, after, PAGE).await?;
        for repo in &page {
            after = repo.id;
            known.insert(repo.id);
            let dir = forge.layout().repo(repo.id);
            if !dir.join("HEAD").is_file() {
                if repos::by_id(&mut *forge.store().read_at_length().await?, repo.id, None).await?.is_some() {
                    let what = format!("{} (id {}) has no git repository at {}", repo.slug(), repo.id, dir.display());
                    findings.add("directory", what);
                }
                continue;
            }
            objects::examine_tips(repo, &dir, findings).await;
            walks.offer(forge, repo);
            let locks = locks::stale_locks(&dir)?;
            if (repo.refs_generation % 2 != 0 || !locks.is_empty()) && at_rest(forge, repo).await? {
                examine_motion(repo, &locks, findings);
            }
        }
        if page.len() < PAGE as usize {
            return Ok(known);
        }
    }
}

/// Whether no writer works on the refs: no push is running, nobody holds the lease, and nothing has moved since the row
/// was read.
async fn at_rest(forge: &Forge, repo: &Repo) -> Result<bool, Fault> {
    let mut conn = forge.store().read_at_length().await?;
    let running = pushes::running_of(&mut conn, repo.id).await?;
    let holder = leases::holder(&mut conn, &pushes::lease_name(repo.id), forge.clock().now()).await?;
    let now = repos::ref_state(&mut conn, repo.id).await?;
    Ok(running.is_empty() && holder.is_none() && now == Some(repo.ref_state()))
}

fn examine_motion(repo: &Repo, locks: &[PathBuf], findings: &mut Findings) {
    if repo.refs_generation % 2 != 0 {
        let what =
            "has refs marked as changing, but no push is running; push to it or run `abide jobs run push:reconcile`";
        findings.add("generation", format!("{} (id {}) {what}", repo.slug(), repo.id));
    }
    for lock in locks.iter().filter(|lock| lock.exists()) {
        findings.add_path("lock", lock.clone(), "was left behind by a process that has ended");
    }
}

/// Checks that every directory has its row, and that there are no other files.
async fn examine_directories(forge: &Forge, known: &HashSet<RepoId>, findings: &mut Findings) -> Result<(), Fault> {
    let dirs =
        forge.layout().repo_dirs().map_err(|error| Fault::Internal(format!("cannot list repositories: {error}")))?;
    for (id, path) in dirs.repos {
        if !known.contains(&id) && !comes_or_goes(forge, id).await? {
            findings.add_path("orphan", path, "belongs to no repository");
        }
    }
    for (id, path) in dirs.graves {
        if !purges::known(&mut *forge.store().read_at_length().await?, id).await? && path.exists() {
            findings.add_path("stray", path, "is left over from a permanently deleted repository");
        }
    }
    for path in dirs.drafts.into_iter().filter(|path| bare::is_abandoned(path)) {
        findings.add_path(
            "stray",
            path,
            "is an incomplete repository; run `abide jobs run push:reconcile` to remove it",
        );
    }
    for path in dirs.strays.into_iter().filter(|path| path.exists()) {
        findings.add_path("stray", path, "does not belong in the repositories directory");
    }
    Ok(())
}

/// Whether a directory's row was written after the rows were read, or is about to be, or the directory is about to be
/// removed after its row.
async fn comes_or_goes(forge: &Forge, id: RepoId) -> Result<bool, Fault> {
    let mut conn = forge.store().read_at_length().await?;
    Ok(fork::under_way(forge, id)?
        || purges::known(&mut conn, id).await?
        || purgatory::reserves(&mut conn, id).await?
        || repos::by_id(&mut conn, id, None).await?.is_some()
        || !forge.layout().repo(id).exists())
}

/// Checks that no redirect leads to the repository that has the name, and that no deleted repository is on offer.
async fn examine_names(forge: &Forge, findings: &mut Findings) -> Result<(), Fault> {
    const MANY: i64 = 1000;
    let mut conn = forge.store().read_at_length().await?;
    for id in redirects::idle(&mut conn, MANY).await? {
        findings.add("old name", format!("redirect {id} points to a repository that already has this name"));
    }
    for id in transfers::of_deleted(&mut conn, MANY).await? {
        findings.add("offer", format!("transfer offer {id} is pending, but its repository is deleted"));
    }
    Ok(())
}

/// Repositories with wrong star or watcher counters.
async fn miscounted(forge: &Forge) -> Result<Vec<(RepoId, &'static str)>, Fault> {
    const MANY: i64 = 1000;
    let mut conn = forge.store().read_at_length().await?;
    let starred = stars::miscounted(&mut conn, MANY).await?.into_iter().map(|id| (id, "stars"));
    let watched = watches::miscounted(&mut conn, MANY).await?.into_iter().map(|id| (id, "watchers"));
    Ok(starred.chain(watched).collect())
}

async fn recount(tx: &mut Tx, id: RepoId) -> Result<(), Fault> {
    if repos::lock(tx, id, None).await?.is_some() {
        stars::recount(tx, id).await?;
        watches::recount(tx, id).await?;
    }
    Ok(())
}

/// Checks that no dead process left a push running.
async fn examine_pushes(forge: &Forge, findings: &mut Findings) -> Result<(), Fault> {
    let now = forge.clock().now();
    let mut conn = forge.store().read_at_length().await?;
    for push in pushes::orphaned(&mut conn, now, PushId::new(0), 1000).await? {
        let what = "was interrupted: its process has ended; run `abide jobs run push:reconcile`";
        findings.add("push", format!("push {} to repository {} {what}", push.id, push.repo_id));
    }
    Ok(())
}
