//! A directory below `incoming/` that its last owner removes.

use crate::durable::remove_tree;
use crate::error::blocking;
use crate::{GitError, Layout};
use std::path::{Path, PathBuf};

/// A scratch directory outside the repositories. Dropping it removes it; after a crash the sweep does.
#[derive(Debug)]
pub(crate) struct Area {
    dir: PathBuf,
    removed: bool,
}

impl Area {
    /// The area with this key. The key is checked so that it cannot form another path. Creates nothing.
    pub fn new(layout: &Layout, key: &str) -> Result<Self, GitError> {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if key.is_empty() || key.len() > 64 || !key.bytes().all(fine) {
            return Err(GitError::InvalidKey(key.to_owned()));
        }
        Ok(Self { dir: layout.incoming(key), removed: false })
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Keeps the directory when this is dropped.
    pub fn leave(&mut self) {
        self.removed = true;
    }

    /// Removes the directory tree.
    pub async fn remove(mut self) -> Result<(), GitError> {
        self.removed = true;
        let dir = self.dir.clone();
        blocking(move || remove_tree(&dir).map_err(GitError::io("remove", &dir))).await
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if self.removed {
            return;
        }
        let dir = std::mem::take(&mut self.dir);
        let remove = move || {
            // A git process that is about to exit may still write here; the sweep removes the rest later.
            if let Err(error) = remove_tree(&dir) {
                tracing::info!(dir = %dir.display(), %error, "cannot remove an incoming area; the sweep removes it");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_could_be_paths_are_refused() {
        let layout = Layout::new(Path::new("/data"));
        let mut fine = Area::new(&layout, "push-17_a").unwrap();
        assert_eq!(fine.path(), Path::new("/data/incoming/push-17_a"));
        fine.removed = true;
        for key in ["", "..", "a/b", "a.b", "ü", "a\0", &"a".repeat(65)] {
            assert!(matches!(Area::new(&layout, key), Err(GitError::InvalidKey(_))), "{key:?}");
        }
    }
}
