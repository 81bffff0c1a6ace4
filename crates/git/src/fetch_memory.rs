//! Memory of fetches: each reserves what its repository needs before git starts, and may use no more.
//!
//! `git pack-objects` keeps about 600 bytes per object that it sends, as long as the client reads. With a reachability
//! bitmap, it keeps next to nothing for a clone (measured with git 2.47: 232 MiB for 400,000 objects, 2 MiB with a
//! bitmap). Directories that contain each other add their sizes, a delta its own size and that of its base.

use crate::GitError;
use crate::error::blocking;
use crate::layout::entries;
use crate::runner::shares;
use crate::slots::{Client, Pool, PoolSlot};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Memory of any fetch. A fetch that needs no more takes no share of the sum: its slot bounds it.
const SMALL: u64 = 64 << 20;

/// Memory per object that a bitmap does not cover, and per object that one covers: shallow clones cannot use it.
const PER_OBJECT: u64 = 1024;
const PER_COVERED_OBJECT: u64 = 128;

/// Fetches from large repositories per client without an account.
const LARGE_EACH: usize = 1;

/// Repositories whose fetches needed more memory than was reserved.
const REMEMBERED: usize = 1000;

/// The sums of memory that fetches from large repositories may use.
#[derive(Debug)]
pub(crate) struct FetchMemory {
    /// Most for one fetch of an account, and for one of a client without an account.
    most: u64,
    strangers_most: u64,
    all: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    each_stranger: Pool,
    /// Doublings of the estimate.
    starved: Mutex<HashMap<PathBuf, u32>>,
}

/// Memory of one fetch, given back on drop.
#[derive(Debug)]
#[must_use = "dropping a share gives it back"]
pub(crate) struct FetchShare {
    pub memory: u64,
    _each: Option<PoolSlot>,
    _permits: Vec<OwnedSemaphorePermit>,
}

impl FetchMemory {
    /// `memory` is the sum over large fetches; clients without an account share three quarters of it, and one fetch of
    /// theirs may use half of it.
    pub fn new(memory: u64, fetches: usize) -> Self {
        let strangers = memory / 4 * 3;
        Self {
            most: memory,
            strangers_most: memory / 2,
            all: Arc::new(Semaphore::new(shares(memory) as usize)),
            strangers: Arc::new(Semaphore::new(shares(strangers) as usize)),
            each_stranger: Pool::new("fetches", fetches.max(2), LARGE_EACH),
            starved: Mutex::default(),
        }
    }

    /// Reserves memory for a fetch. A large one waits for its turn, in the order of arrival; small ones never wait.
    pub async fn take(&self, client: Client, repo: &Path, wait: Duration) -> Result<FetchShare, GitError> {
        let doublings = self.known().get(repo).copied().unwrap_or(0);
        let objects = repo.join("objects");
        let needed = blocking(move || needed(&objects).map_err(GitError::io("look into", &objects))).await?;
        let most = if client.is_stranger() { self.strangers_most } else { self.most };
        let memory = needed.max(SMALL).saturating_mul(1 << doublings).min(most.max(SMALL));
        if memory == SMALL {
            return Ok(FetchShare { memory, _each: None, _permits: Vec::new() });
        }
        let waiting = async {
            let stranger = client.is_stranger();
            let each = if stranger { Some(self.each_stranger.enter(client, wait).await?) } else { None };
            let mut permits = Vec::new();
            for sum in stranger.then_some(&self.strangers).into_iter().chain([&self.all]) {
                let share = sum.clone().acquire_many_owned(shares(memory)).await;
                permits.push(share.expect("these semaphores are never closed"));
            }
            Ok(FetchShare { memory, _each: each, _permits: permits })
        };
        timeout(wait, waiting).await.unwrap_or(Err(GitError::Busy { what: "fetches of large repositories" }))
    }

    /// The next fetch from this repository gets twice as much.
    pub fn starved(&self, repo: &Path) {
        let mut starved = self.known();
        if starved.len() >= REMEMBERED && !starved.contains_key(repo) {
            starved.clear();
        }
        let doublings = starved.entry(repo.to_owned()).or_default();
        *doublings = (*doublings + 1).min(16);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, u32>> {
        self.starved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory for sending all objects of an object directory. Blocks.
fn needed(objects: &Path) -> io::Result<u64> {
    let pack = objects.join("pack");
    let files = entries(&pack)?;
    let changed =
        |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let has_extension = |path: &Path, wanted: &str| path.extension().is_some_and(|extension| extension == wanted);
    let bitmap = files.iter().filter(|path| has_extension(path, "bitmap")).map(|path| changed(path)).max();
    let mut memory = SMALL / 2;
    for index in files.iter().filter(|path| has_extension(path, "idx")) {
        // A bitmap is written after the packs that it covers.
        let is_covered = bitmap.is_some_and(|bitmap| changed(index) <= bitmap);
        let per_object = if is_covered { PER_COVERED_OBJECT } else { PER_OBJECT };
        memory += per_object * u64::from(count(index)?);
    }
    // Ids are spread evenly over the 256 directories, so one of them shows the number of loose objects, as for `git gc`.
    let loose = 256 * entries(&objects.join("17"))?.len() as u64;
    Ok(memory + PER_OBJECT * loose)
}

/// Number of objects in a pack, from its index: the last entry of the fan-out table. 0 for one that maintenance removed.
fn count(index: &Path) -> io::Result<u32> {
    const HEADER: u64 = 8;
    let file = match File::open(index) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    let mut number = [0; 4];
    match file.read_exact_at(&mut number, HEADER + 255 * 4) {
        // git reports a damaged index when it reads it.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read.map(|()| u32::from_be_bytes(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::UserId;

    const SOON: Duration = Duration::from_secs(1);
    const SUM: u64 = 1 << 30;

    /// A repository with a pack of so many objects, and a bitmap or none.
    fn repo(objects: u32, bitmap: bool) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let pack = dir.path().join("objects/pack");
        std::fs::create_dir_all(&pack).unwrap();
        let index = [&[0; 8 + 255 * 4][..], &objects.to_be_bytes(), &[0; 100]].concat();
        std::fs::write(pack.join("pack-1.idx"), index).unwrap();
        if bitmap {
            std::fs::write(pack.join("multi-pack-index-1.bitmap"), "").unwrap();
        }
        dir
    }

    fn at(last: u8, account: Option<UserId>) -> Client {
        Client::new(Some([192, 0, 2, last].into()), account)
    }

    #[tokio::test(start_paused = true)]
    async fn large_fetches_of_strangers_share_a_sum_and_leave_room_to_others() {
        let (memory, large, small) = (FetchMemory::new(SUM, 32), repo(700_000, false), repo(1000, false));
        let take = |client, repo: &tempfile::TempDir| {
            let (memory, path) = (&memory, repo.path().to_owned());
            async move { memory.take(client, &path, SOON).await }
        };
        let first = take(at(1, None), &large).await.unwrap();
        assert_eq!(first.memory, SUM / 2, "one of a stranger has half of the sum at most");
        assert!(matches!(take(at(1, None), &large).await, Err(GitError::Busy { .. })), "one per client");
        assert!(
            matches!(take(at(2, None), &large).await, Err(GitError::Busy { .. })),
            "the sum of strangers is used up"
        );
        assert_eq!(take(at(2, None), &small).await.unwrap().memory, SMALL, "small ones do not wait");
        let middle = repo(150_000, false);
        drop((take(at(2, None), &middle).await.unwrap(), first));
        let account = take(at(1, Some(UserId::new(7))), &repo(3_000_000, false)).await.unwrap();
        assert_eq!(account.memory, SUM, "all of it for a single one of an account");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_bitmap_covers_needs_little_and_what_was_too_little_is_doubled() {
        let memory = FetchMemory::new(SUM, 32);
        let (plain, covered) = (repo(200_000, false), repo(200_000, true));
        let plain = memory.take(at(1, None), plain.path(), SOON).await.unwrap().memory;
        assert!(plain > 200 << 20 && plain < 256 << 20, "{plain}");
        let share = || async { memory.take(at(1, None), covered.path(), SOON).await.unwrap().memory };
        assert_eq!(share().await, SMALL);
        memory.starved(covered.path());
        assert_eq!(share().await, 2 * SMALL);
        (0..50).for_each(|_| memory.starved(covered.path()));
        assert_eq!(share().await, SUM / 2);
    }
}
