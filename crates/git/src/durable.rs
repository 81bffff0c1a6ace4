//! Writes that survive power loss.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files flushed concurrently: the filesystem merges concurrent flushes into one journal commit.
const PARALLEL_FLUSHES: usize = 8;

/// Creates a file that must not exist yet. Its content is durable on return; its name needs [`sync_dir`].
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Flushes the entries of a directory.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Flushes files or directories, several at a time.
pub(crate) fn sync_all(paths: &[PathBuf]) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    let flush = || -> io::Result<()> {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            File::open(path)?.sync_all()?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..paths.len().min(PARALLEL_FLUSHES)).map(|_| scope.spawn(flush)).collect();
        let mine = flush();
        helpers.into_iter().fold(mine, |result, helper| result.and(helper.join().expect("flushing does not panic")))
    })
}

/// Removes a directory tree; a missing one is no error.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// A number unique among processes and tasks. Random, because process ids repeat (each container has a 1).
pub(crate) fn never_twice() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    static COUNTER: AtomicUsize = AtomicUsize::new(0);
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_usize(COUNTER.fetch_add(1, Ordering::Relaxed));
    hasher.finish()
}
