//! Checks whether repositories have all objects that their refs need, and finds missing ones elsewhere.

use super::{Depth, Findings};
use crate::blocking::blocking;
use crate::disk::{Writer, ensure_room_for};
use crate::git::push::incoming_key;
use crate::{Fault, Forge};
use abide_core::{Oid, RepoId};
use abide_git::{GitError, Incoming, integrity};
use abide_store::repos::{self, Repo};
use std::path::Path;

/// Repositories in the sample.
const SAMPLE: usize = 20;
/// Largest repository in the sample, in bytes.
const SMALL: i64 = 64 << 20;
const PAGE: i64 = 500;

/// Repositories to walk, sampled while rows are read.
pub(super) struct Walks {
    depth: Depth,
    seen: u64,
    chosen: Vec<Repo>,
    /// Repositories too large for the sample.
    large: Vec<Repo>,
}

/// Number of repositories by depth of the check.
pub(super) struct Looked {
    /// Walked completely.
    pub walked: u64,
    /// Checked only near the tips of their refs, because they are large.
    pub too_large: u64,
}

impl Walks {
    pub(super) fn new(depth: Depth) -> Self {
        Self { depth, seen: 0, chosen: Vec::new(), large: Vec::new() }
    }

    /// Offers a repository: each has the same chance to be in the sample.
    pub(super) fn offer(&mut self, forge: &Forge, repo: &Repo) {
        if self.depth == Depth::Deep {
            return self.chosen.push(repo.clone());
        }
        if repo.refs_generation == 0 {
            return;
        }
        if repo.size_bytes > SMALL {
            return self.large.push(repo.clone());
        }
        self.seen += 1;
        if self.chosen.len() < SAMPLE {
            return self.chosen.push(repo.clone());
        }
        let mut random = [0; 8];
        forge.random().fill(&mut random);
        let at = (u64::from_le_bytes(random) % self.seen) as usize;
        if let Some(slot) = self.chosen.get_mut(at) {
            *slot = repo.clone();
        }
    }

    /// Walks the chosen repositories, and checks the tips of the large ones.
    pub(super) async fn examine(self, forge: &Forge, findings: &mut Findings) -> Looked {
        let looked = Looked { walked: self.chosen.len() as u64, too_large: self.large.len() as u64 };
        for repo in self.chosen {
            let dir = forge.layout().repo(repo.id);
            let missing = integrity::missing_objects(forge.git(), &dir).await;
            judge(&repo, &dir, missing, findings);
        }
        for repo in self.large {
            let dir = forge.layout().repo(repo.id);
            let missing = integrity::missing_near_tips(&dir).await;
            judge(&repo, &dir, missing, findings);
        }
        looked
    }
}

/// Checks the object of each ref.
pub(super) async fn examine_tips(repo: &Repo, dir: &Path, findings: &mut Findings) {
    let missing = integrity::missing_tips(dir).await;
    let missing = missing.map(|missing| missing.into_iter().map(|(_, oid)| oid).collect());
    judge(repo, dir, missing, findings);
}

fn judge(repo: &Repo, dir: &Path, missing: Result<Vec<Oid>, GitError>, findings: &mut Findings) {
    match missing {
        Ok(missing) => report_missing(repo, &missing, findings),
        // The repository may be gone meanwhile.
        Err(_) if !dir.join("HEAD").exists() => {}
        Err(error) => findings.add("objects", format!("{} (id {}): {error}", repo.slug(), repo.id)),
    }
}

fn report_missing(repo: &Repo, missing: &[Oid], findings: &mut Findings) {
    let Some(first) = missing.first() else { return };
    let message = format!(
        "{} (id {}) lacks {} objects that its refs need, such as {first}; `abide doctor --deep --fix` looks for \
         them in its forks, and docs/operating.md explains how to restore them from a clone",
        repo.slug(),
        repo.id,
        missing.len()
    );
    if !findings.0.iter().any(|found| found.message == message) {
        findings.add("objects", message);
    }
}

/// Copies missing objects from related repositories that have them. Returns what was done, a line each. A repository that
/// cannot be looked through is named, and the others are mended.
pub(super) async fn mend(forge: &Forge, depth: Depth) -> Result<Vec<String>, Fault> {
    let mut done = Vec::new();
    let mut after = RepoId::new(0);
    loop {
        let page = repos::page(&mut *forge.store().read().await?, after, PAGE).await?;
        for repo in &page {
            after = repo.id;
            let dir = forge.layout().repo(repo.id);
            if !dir.join("HEAD").is_file() {
                continue;
            }
            match mend_if_suspect(forge, depth, repo, &dir).await {
                Ok(line) => done.extend(line),
                // It may have gone meanwhile.
                Err(_) if !dir.join("HEAD").exists() => {}
                Err(fault @ (Fault::Git(_) | Fault::DiskFull { .. })) => {
                    tracing::warn!(error = %fault, repo = repo.id.get(), "a repository could not be mended");
                    done.push(format!("left {} (id {}) as it is: {fault}", repo.slug(), repo.id));
                }
                Err(fault) => return Err(fault),
            }
        }
        if page.len() < PAGE as usize {
            return Ok(done);
        }
    }
}

async fn mend_if_suspect(forge: &Forge, depth: Depth, repo: &Repo, dir: &Path) -> Result<Option<String>, Fault> {
    match depth == Depth::Deep || !integrity::missing_tips(dir).await?.is_empty() {
        true => mend_one(forge, repo, dir).await,
        false => Ok(None),
    }
}

async fn mend_one(forge: &Forge, repo: &Repo, dir: &Path) -> Result<Option<String>, Fault> {
    let mut missing = integrity::missing_objects(forge.git(), dir).await?;
    let before = missing.len();
    if before == 0 {
        return Ok(None);
    }
    for source in relatives(forge, repo).await? {
        let from = forge.layout().repo(source);
        let (looked_at, wanted) = (from.clone(), missing.clone());
        let here = blocking("the search for objects", move || integrity::present(&looked_at, &wanted)).await;
        let Ok(Ok(here)) = here else { continue };
        let found: Vec<Oid> = missing.iter().zip(here).filter(|(_, here)| *here).map(|(oid, _)| *oid).collect();
        if found.is_empty() {
            continue;
        }
        match take_from(forge, &from, dir, &found).await {
            Ok(()) => {}
            Err(fault @ Fault::DiskFull { .. }) => return Err(fault),
            // The related repository is incomplete too; try the next one.
            Err(error) => {
                tracing::warn!(%error, from = source.get(), to = repo.id.get(), "missing objects could not be copied");
            }
        }
        missing = integrity::missing_objects(forge.git(), dir).await?;
        if missing.is_empty() {
            break;
        }
    }
    let found = before.saturating_sub(missing.len());
    Ok((found > 0).then(|| format!("found {found} missing objects of {} (id {}) in its forks", repo.slug(), repo.id)))
}

/// Copies objects and everything they reach from one repository to another, if the disk has room for them.
async fn take_from(forge: &Forge, from: &Path, dir: &Path, objects: &[Oid]) -> Result<(), Fault> {
    let area = Incoming::create_beside(forge.git(), forge.layout(), dir.to_owned(), &incoming_key(forge)).await?;
    let bytes = area.weigh(&[from.join("objects")], objects, &[]).await?;
    ensure_room_for(forge, Writer::Account, bytes)?;
    let copied = area.copied(from, objects).await?;
    copied.migrate(dir).await?;
    Ok(copied.discard().await?)
}

/// Repositories that probably share history: forks of each other, or the same identifier under several keys.
async fn relatives(forge: &Forge, repo: &Repo) -> Result<Vec<RepoId>, Fault> {
    let related = |other: &Repo| {
        other.fork_of == Some(repo.id)
            || repo.fork_of == Some(other.id)
            || repo.fork_of.is_some() && other.fork_of == repo.fork_of
            || repo.identifier.is_some() && other.identifier == repo.identifier
    };
    let mut found = Vec::new();
    let mut after = RepoId::new(0);
    loop {
        let page = repos::page(&mut *forge.store().read().await?, after, PAGE).await?;
        found.extend(page.iter().filter(|other| other.id != repo.id && related(other)).map(|other| other.id));
        after = page.last().map_or(after, |last| last.id);
        if page.len() < PAGE as usize {
            return Ok(found);
        }
    }
}
