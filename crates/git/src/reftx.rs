//! Ref transactions: all updates of a push or none.

use crate::child::Running;
use crate::durable::sync_all;
use crate::error::blocking;
use crate::{Git, GitError, Snapshot};
use abide_core::{Oid, RefName, RefUpdate};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

/// From this many refs on, we flush the ref files together. git flushes one after the other, at a millisecond or more
/// each.
const FLUSH_TOGETHER: usize = 32;

/// Additional time limit per ref.
const PER_REF: Duration = Duration::from_millis(5);

/// Reason why a ref cannot move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConflictKind {
    /// The ref is not at the old id that the client sent.
    #[error("the ref was updated by someone else; fetch and try again")]
    Moved,
    /// The client expected no ref of this name.
    #[error("the ref already exists; fetch and try again")]
    Exists,
    /// The ref to move or delete does not exist.
    #[error("the ref no longer exists; fetch and try again")]
    Gone,
    /// `a` and `a/b` cannot both be refs.
    #[error("the name conflicts with another ref (a and a/b cannot both exist); delete or rename that ref")]
    NameTaken,
    /// Another writer holds the lock of this ref.
    #[error("another process is updating the ref; try again in a moment")]
    Locked,
    /// git refuses this object for this ref.
    #[error("the object is missing or has the wrong type for this ref")]
    BadObject,
}

/// Failure of a ref transaction. No ref moved, except as noted.
#[derive(Debug, thiserror::Error)]
pub enum RefTxError {
    /// One ref conflicts; git names the first that it finds.
    #[error("{name}: {kind}")]
    Conflict { name: RefName, kind: ConflictKind },
    /// An internal failure. If it happened during commit, some or all refs may have moved: check with [`refs_match`].
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Moves all refs or none, if each is at the old id of its update. The caller holds the repository's lease.
///
/// We send `commit` only after git has locked and verified all refs. If this process dies before that, its git exits
/// without moving a ref.
pub async fn update_refs(git: &Git, repo_dir: &Path, updates: &[RefUpdate]) -> Result<(), RefTxError> {
    if updates.is_empty() {
        return Ok(());
    }
    let settings: &[_] = if updates.len() < FLUSH_TOGETHER { &[] } else { &[("core.fsync", "none")] };
    let running = git.call_with("update-ref", repo_dir, settings).args(["--no-deref", "--stdin", "-z"]).start()?;
    let count = u32::try_from(updates.len()).unwrap_or(u32::MAX);
    let limit = git.limits().quick.saturating_add(PER_REF.saturating_mul(count));
    let result = timeout(limit, transact(running, repo_dir, updates)).await;
    result.unwrap_or(Err(RefTxError::Git(GitError::TimedOut { what: "update-ref", after: limit })))
}

async fn transact(mut running: Running, repo_dir: &Path, updates: &[RefUpdate]) -> Result<(), RefTxError> {
    let mut stdin = running.stdin.take();
    let mut answers = BufReader::new(running.stdout.take().expect("stdout is piped")).lines();
    // If git stops reading, its stderr says why; it is read below.
    let _ = stdin.as_mut().expect("stdin is piped").write_all(&commands(updates)).await;
    let mut prepared = false;
    while let Ok(Some(line)) = answers.next_line().await {
        if line == "prepare: ok"
            && let Some(mut stdin) = stdin.take()
        {
            if updates.len() >= FLUSH_TOGETHER {
                flush_prepared(repo_dir, updates).await?;
            }
            prepared = true;
            let _ = stdin.write_all(b"commit\0").await;
        }
    }
    let status = running.wait().await.map_err(RefTxError::Git)?;
    match running.judge(status).await {
        Ok(()) if prepared => Ok(()),
        Ok(()) => Err(RefTxError::Git(GitError::Failed {
            what: "update-ref",
            status: status.to_string(),
            stderr: "the transaction was never prepared".to_owned(),
        })),
        // After `commit` was sent, a failure is no conflict: some refs may have moved.
        Err(GitError::Failed { what, status, stderr }) if !prepared => Err(match conflict(&stderr, updates) {
            Some((name, kind)) => RefTxError::Conflict { name, kind },
            None => RefTxError::Git(GitError::Failed { what, status, stderr }),
        }),
        Err(error) => Err(error.into()),
    }
}

/// Flushes the files that a prepared transaction has written and its commit only renames. If this fails, git exits
/// without
/// moving a ref.
async fn flush_prepared(repo_dir: &Path, updates: &[RefUpdate]) -> Result<(), GitError> {
    let of_ref = |update: &RefUpdate| repo_dir.join(format!("{}.lock", update.name));
    let mut files: Vec<PathBuf> = updates.iter().filter(|update| !update.is_delete()).map(of_ref).collect();
    // git rewrites `packed-refs` if it holds a deleted ref.
    files.extend(Some(repo_dir.join("packed-refs.new")).filter(|path| path.exists()));
    let repo = repo_dir.to_owned();
    blocking(move || sync_all(&files).map_err(GitError::io("flush the refs of", &repo))).await
}

/// The transaction up to `prepare`, in git's NUL-terminated format: without quoting, no value can escape its field.
fn commands(updates: &[RefUpdate]) -> Vec<u8> {
    let mut script = b"start\0".to_vec();
    for RefUpdate { name, old, new } in updates {
        let line = match new.is_zero() {
            true => format!("delete {name}\0{old}\0"),
            false => format!("update {name}\0{new}\0{old}\0"),
        };
        script.extend_from_slice(line.as_bytes());
    }
    script.extend_from_slice(b"prepare\0");
    script
}

/// Parses git's error message: the named ref and the kind of conflict.
fn conflict(stderr: &str, updates: &[RefUpdate]) -> Option<(RefName, ConflictKind)> {
    use ConflictKind as K;
    let kind = match stderr {
        text if text.contains("but expected") => K::Moved,
        text if text.contains("reference already exists") => K::Exists,
        text if text.contains("unable to resolve reference") || text.contains("reference is missing") => K::Gone,
        text if text.contains("' exists; cannot create '") || text.contains("at the same time") => K::NameTaken,
        text if text.contains("there is a non-empty directory") || text.contains("Is a directory") => K::NameTaken,
        text if text.contains(".lock'") || text.contains("packed-refs.new") => K::Locked,
        text if text.contains("nonexistent object") || text.contains("non-commit object") => K::BadObject,
        _ => return None,
    };
    let named = stderr.split('\'').skip(1).step_by(2);
    // Where git names several refs (`'a' exists; cannot create 'a/b'`), take the one in this push.
    let ours = named.filter_map(|name| updates.iter().find(|update| update.name.as_str() == name)).next();
    // Some messages contain only the path of a lock file; then report the first update.
    ours.or(updates.first()).map(|update| (update.name.clone(), kind))
}

/// Progress of an unfinished push's updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefsMatch {
    /// Every ref is at its new id.
    AllApplied,
    /// Every ref is at its old id.
    NoneApplied,
    /// Neither: another writer moved a ref, or the transaction was interrupted.
    Mixed,
}

/// Compares the refs with the old and new ids of the updates.
pub async fn refs_match(repo_dir: &Path, updates: &[RefUpdate]) -> Result<RefsMatch, GitError> {
    let snapshot = read(repo_dir).await?;
    let at = |update: &RefUpdate| at(&snapshot, update);
    Ok(if updates.iter().all(|update| at(update) == update.new) {
        RefsMatch::AllApplied
    } else if updates.iter().all(|update| at(update) == update.old) {
        RefsMatch::NoneApplied
    } else {
        RefsMatch::Mixed
    })
}

/// Unapplied updates in two lists: refs still at their old id, and refs at neither their old nor their new id.
pub async fn refs_left(repo_dir: &Path, updates: &[RefUpdate]) -> Result<(Vec<RefUpdate>, Vec<RefUpdate>), GitError> {
    let snapshot = read(repo_dir).await?;
    let open = updates.iter().filter(|update| at(&snapshot, update) != update.new).cloned();
    Ok(open.partition(|update| at(&snapshot, update) == update.old))
}

/// Whether this ref exists now.
pub async fn ref_exists(repo_dir: &Path, name: &RefName) -> Result<bool, GitError> {
    // Most refs are loose files; reading all refs is slow in a repository with many.
    if tokio::fs::metadata(repo_dir.join(name.as_str())).await.is_ok_and(|found| found.is_file()) {
        return Ok(true);
    }
    Ok(read(repo_dir).await?.get(name.as_str().as_bytes()).is_some())
}

async fn read(repo_dir: &Path) -> Result<Snapshot, GitError> {
    let repo = repo_dir.to_owned();
    blocking(move || Snapshot::read(&repo)).await
}

fn at(snapshot: &Snapshot, update: &RefUpdate) -> Oid {
    snapshot.get(update.name.as_str().as_bytes()).map_or(Oid::ZERO, |found| found.oid)
}
