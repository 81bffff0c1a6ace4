//! Whether a repository has all that its refs need.

use crate::error::blocking;
use crate::{Git, GitError, Snapshot};
use abide_core::Oid;
use gix::ObjectId;
use gix::bstr::BString;
use gix::odb::Header;
use std::path::Path;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

/// No list of missing objects is read further than this.
const LONGEST_LIST: u64 = 4 << 20;

/// Refs whose object is not there, with the object. Reads no more than the refs and an index entry for each.
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

/// Which of these objects a repository has. Blocks.
pub fn present(repo_dir: &Path, oids: &[Oid]) -> Result<Vec<bool>, GitError> {
    let objects = repo_dir.join("objects");
    let store = gix::odb::at(objects.clone(), gix::hash::Kind::Sha1).map_err(GitError::io("open", &objects))?;
    let has = |oid: &Oid| {
        let id = ObjectId::from_bytes_or_panic(oid.as_bytes());
        matches!(store.try_header(&id), Ok(Some(_)))
    };
    Ok(oids.iter().map(has).collect())
}

/// Walks everything that the refs reach and tells which objects are not there.
pub async fn missing_objects(git: &Git, repo_dir: &Path) -> Result<Vec<Oid>, GitError> {
    let _place = git.heavy_place().await?;
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
        // A failure that names no object is one of another kind.
        if missing.is_empty() { said.map(|()| missing) } else { Ok(missing) }
    };
    timeout(limit, walk).await.unwrap_or(Err(GitError::TimedOut { what: "fsck", after: limit }))
}

/// Reads `missing blob <oid>` and `refs/heads/x: invalid sha1 pointer <oid>`.
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
