//! Checks whether a repository has every object that its refs need.

use crate::error::blocking;
use crate::{Git, GitError, Snapshot};
use abide_core::Oid;
use gix::ObjectId;
use gix::bstr::BString;
use gix::objs::{Find as _, Kind};
use gix::odb::Header;
use std::path::Path;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

/// Limit for fsck's list of missing objects, in bytes.
const LONGEST_LIST: u64 = 4 << 20;

/// Refs whose object is missing, with its id. Reads only the refs and one index entry per ref.
pub async fn missing_tips(repo_dir: &Path) -> Result<Vec<(BString, Oid)>, GitError> {
    let repo = repo_dir.to_owned();
    blocking(move || {
        let refs = Snapshot::read(&repo)?.refs;
        let tips: Vec<Oid> = refs.iter().map(|found| found.oid).collect();
        let here = present(&repo, &tips)?;
        let lacks = refs.into_iter().zip(here).filter(|(_, here)| !here);
        Ok(lacks.map(|(found, _)| (found.name, found.oid)).collect())
    })
    .await
}

/// Missing objects at the tips and one step behind them: the tips, targets of tags, and trees and parents of commits.
/// Reads one object per ref.
pub async fn missing_near_tips(repo_dir: &Path) -> Result<Vec<Oid>, GitError> {
    let repo = repo_dir.to_owned();
    blocking(move || {
        let tips: Vec<Oid> =
            Snapshot::read(&repo)?.refs.iter().flat_map(|found| [Some(found.oid), found.peeled]).flatten().collect();
        let objects = repo.join("objects");
        let store = gix::odb::at(objects.clone(), gix::hash::Kind::Sha1).map_err(GitError::io("open", &objects))?;
        let mut wanted = tips.clone();
        let mut buffer = Vec::new();
        for tip in &tips {
            let id = ObjectId::from_bytes_or_panic(tip.as_bytes());
            // Check the object type first, so large blobs are not read.
            let kind = store.try_header(&id).ok().flatten().map(|header| header.kind());
            if !matches!(kind, Some(Kind::Commit | Kind::Tag)) {
                continue;
            }
            match store.try_find(&id, &mut buffer) {
                Ok(Some(found)) => wanted.extend(linked(found.data)),
                // An unreadable object counts as missing.
                _ => return Ok(vec![*tip]),
            }
        }
        let here = present(&repo, &wanted)?;
        let mut missing: Vec<Oid> =
            wanted.into_iter().zip(here).filter(|(_, here)| !here).map(|(oid, _)| oid).collect();
        missing.sort_unstable();
        missing.dedup();
        Ok(missing)
    })
    .await
}

/// Object ids in the header of a commit or tag.
fn linked(object: &[u8]) -> impl Iterator<Item = Oid> {
    let head = object.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    head.filter_map(|line| {
        let named = [&b"tree "[..], b"parent ", b"object "].into_iter().find_map(|word| line.strip_prefix(word))?;
        str::from_utf8(named).ok()?.parse().ok()
    })
}

/// Whether each of these objects is in the repository. Blocks.
pub fn present(repo_dir: &Path, oids: &[Oid]) -> Result<Vec<bool>, GitError> {
    let objects = repo_dir.join("objects");
    let store = gix::odb::at(objects.clone(), gix::hash::Kind::Sha1).map_err(GitError::io("open", &objects))?;
    let has = |oid: &Oid| {
        let id = ObjectId::from_bytes_or_panic(oid.as_bytes());
        matches!(store.try_header(&id), Ok(Some(_)))
    };
    Ok(oids.iter().map(has).collect())
}

/// Walks everything reachable from the refs and returns the missing objects.
pub async fn missing_objects(git: &Git, repo_dir: &Path) -> Result<Vec<Oid>, GitError> {
    let _slot = git.heavy_slot().await?;
    let limit = git.limits().maintenance;
    let call =
        git.call("fsck", repo_dir).args(["--connectivity-only", "--no-dangling", "--no-progress", "--no-reflogs"]);
    let mut running = call.start()?;
    drop(running.stdin.take());
    let stdout = running.stdout.take().expect("stdout is piped");
    let walk = async {
        let mut listed = Vec::new();
        let read = stdout.take(LONGEST_LIST).read_to_end(&mut listed).await;
        read.map_err(GitError::io("walk", repo_dir))?;
        let status = running.wait().await?;
        let said = running.judge(status).await;
        let words = match &said {
            Err(GitError::Failed { stderr, .. }) => stderr.as_str(),
            _ => "",
        };
        let mut missing = named(&String::from_utf8_lossy(&listed), words);
        missing.sort_unstable();
        missing.dedup();
        // fsck failed without naming an object: a different error.
        if missing.is_empty() { said.map(|()| missing) } else { Ok(missing) }
    };
    timeout(limit, walk).await.unwrap_or(Err(GitError::TimedOut { what: "fsck", after: limit }))
}

/// Parses `missing blob <oid>` and `refs/heads/x: invalid sha1 pointer <oid>`.
fn named(listed: &str, words: &str) -> Vec<Oid> {
    let missing = listed.lines().filter_map(|line| line.strip_prefix("missing ")?.split(' ').nth(1)?.parse().ok());
    let pointers = words.lines().filter(|line| line.contains("invalid sha1 pointer"));
    missing.chain(pointers.filter_map(|line| line.rsplit(' ').next()?.parse().ok())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_objects_are_read_from_what_git_prints() {
        let (a, b) = ("1".repeat(40), "2".repeat(40));
        let listed =
            format!("broken link from  commit {b}\n              to  tree {a}\nmissing tree {a}\nmissing blob x\n");
        let words = format!("error: refs/heads/x: invalid sha1 pointer {b}\nnotice: No default references");
        assert_eq!(named(&listed, &words), [a.parse().unwrap(), b.parse().unwrap()]);
    }
}
