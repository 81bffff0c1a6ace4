//! Paths on disk. They consist of ids and our own keys, never of text from outside.

use crate::durable::never_twice;
use abide_core::RepoId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The data directory and the paths below it.
#[derive(Clone, Debug)]
pub struct Layout {
    data: PathBuf,
    /// Key prefix of this process's drafts.
    owner: Arc<str>,
}

/// Content of `repos/`.
#[derive(Debug, Default)]
pub struct RepoDirs {
    pub repos: Vec<(RepoId, PathBuf)>,
    /// Directories of repositories under removal, or left by an interrupted removal, by id.
    pub graves: Vec<(RepoId, PathBuf)>,
    /// Drafts that earlier versions left after a crash.
    pub drafts: Vec<PathBuf>,
    /// Everything else, such as files placed by hand.
    pub strays: Vec<PathBuf>,
}

impl Layout {
    /// The layout below this data directory. Creates nothing. A relative path is made absolute, because git runs with
    /// another
    /// working directory.
    pub fn new(data: &Path) -> Self {
        Self { data: std::path::absolute(data).unwrap_or_else(|_| data.to_owned()), owner: "draft-".into() }
    }

    /// The same layout, with this key prefix for the drafts of this process. The sweep finds them by it after a crash.
    pub fn owned_by(self, prefix: &str) -> Self {
        Self { owner: prefix.into(), ..self }
    }

    /// A fresh path below `incoming/` for a directory under construction.
    pub(crate) fn draft(&self) -> PathBuf {
        self.incoming(&format!("{}{:016x}", self.owner, never_twice()))
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn repos(&self) -> PathBuf {
        self.data.join("repos")
    }

    /// A repository: `repos/{id & 0xff:02x}/{id}.git`. The low byte spreads them, so no directory grows too long.
    pub fn repo(&self, id: RepoId) -> PathBuf {
        self.data.join(format!("repos/{:02x}/{id}.git", id.get() & 0xff))
    }

    /// Path of a repository under removal: in the same shard, with a name that no repository has.
    pub fn grave(&self, id: RepoId) -> PathBuf {
        self.data.join(format!("repos/{:02x}/.{id}.git.gone", id.get() & 0xff))
    }

    /// The shared empty repository, read in place of repositories without git data.
    pub fn empty(&self) -> PathBuf {
        self.data.join("empty.git")
    }

    /// Directory where `doctor` moves unexpected files.
    pub fn quarantine(&self) -> PathBuf {
        self.data.join("quarantine")
    }

    pub fn incoming_root(&self) -> PathBuf {
        self.data.join("incoming")
    }

    /// Path of one incoming area. Callers that create or remove areas check the key.
    pub fn incoming(&self, key: &str) -> PathBuf {
        self.data.join("incoming").join(key)
    }

    /// Directory for the git runner's own files.
    pub(crate) fn runner(&self) -> PathBuf {
        self.data.join("git")
    }

    /// Every directory below `repos/`, for `doctor`: repositories by id, graves, drafts and strays.
    pub fn repo_dirs(&self) -> io::Result<RepoDirs> {
        let mut found = RepoDirs::default();
        for shard in entries(&self.repos())? {
            let Ok(children) = entries(&shard) else {
                found.strays.push(shard);
                continue;
            };
            for path in children {
                let id = file_name(&path).and_then(repo_id);
                let buried = file_name(&path).and_then(|name| repo_id(name.strip_prefix('.')?.strip_suffix(".gone")?));
                match (id, buried) {
                    (Some(id), _) if self.repo(id) == path => found.repos.push((id, path)),
                    (_, Some(id)) if self.grave(id) == path => found.graves.push((id, path)),
                    _ if file_name(&path).is_some_and(is_draft) => found.drafts.push(path),
                    _ => found.strays.push(path),
                }
            }
        }
        found.repos.sort();
        found.strays.sort();
        Ok(found)
    }
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// Matches `.7.git.new-…`.
fn is_draft(name: &str) -> bool {
    let id = name.strip_prefix('.').and_then(|rest| rest.split_once(".new-")).and_then(|(name, _)| repo_id(name));
    id.is_some()
}

fn repo_id(name: &str) -> Option<RepoId> {
    name.strip_suffix(".git")?.parse().ok()
}

/// Paths in a directory; empty if the directory does not exist.
pub(crate) fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_low_byte_of_the_id_chooses_the_shard() {
        let layout = Layout::new(Path::new("/data"));
        assert_eq!(layout.repo(RepoId::new(1)), Path::new("/data/repos/01/1.git"));
        assert_eq!(layout.repo(RepoId::new(0x1_02ff)), Path::new("/data/repos/ff/66303.git"));
    }

    #[test]
    fn what_does_not_belong_is_reported_apart() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        assert!(layout.repo_dirs().unwrap().repos.is_empty());
        let repos = ["01/1.git", "01/257.git", "02/1.git", "01/.1.tmp", "01/x.git", "01/01.git"];
        for path in repos.into_iter().chain(["01/.1.git.gone", "01/.2.git.gone", "01/.1.git.new-7-0"]) {
            std::fs::create_dir_all(layout.repos().join(path)).unwrap();
        }
        std::fs::write(layout.repos().join("note"), "").unwrap();
        let found = layout.repo_dirs().unwrap();
        assert_eq!(found.repos.iter().map(|(id, _)| id.get()).collect::<Vec<_>>(), [1, 257]);
        assert_eq!(
            found.graves.iter().map(|(id, _)| id.get()).collect::<Vec<_>>(),
            [1],
            "the other is another shard's"
        );
        assert_eq!(found.strays.len(), 6);
        assert_eq!(found.drafts, [layout.repos().join("01/.1.git.new-7-0")]);
    }
}
