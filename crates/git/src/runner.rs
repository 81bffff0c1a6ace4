//! The only slot that starts git processes.
//!
//! Arguments are fixed; refs and ids from outside go through stdin. `environment.rs` decides the environment,
//! `child.rs` the termination, this module the concurrency.

use crate::child::Running;
use crate::environment::Environment;
use crate::fetch_memory::{FetchMemory, FetchShare};
use crate::maintain::Owner;
use crate::probe::{self, UploadCapabilities};
use crate::ration::Ration;
use crate::slots::{Client, Pool, PoolSlot};
use crate::{GitError, Layout};
use abide_core::settings::value::TICK;
use abide_core::settings::{bytes, count, duration};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

/// Fetch requests spooled to disk at once: in all, and per address or account. Nearly all requests are smaller.
const LARGE_REQUESTS: usize = 64;
const LARGE_REQUESTS_EACH: usize = 8;

/// Refused pushes whose packs are read to their end at once: in all, and per address or account.
const DRAINS: usize = 16;
const DRAINS_EACH: usize = 4;

/// Memory of one maintenance process in a repository without an account. A repack of 300,000 objects fits.
const STRANGERS_MAINTENANCE: u64 = 512 << 20;

/// CPU time of one walk or copy for a client without an account.
const STRANGERS_TIME: Duration = Duration::from_secs(120);

/// CPU time of one history query of a client without an account.
const STRANGERS_READING: Duration = Duration::from_secs(20);

/// Private memory of one history query of an account. `git blame` holds two versions of a file of any size, although the
/// version that is shown has at most 1 MiB. Two of 200 MiB fit.
const READING_MEMORY: u64 = 512 << 20;

/// Private memory of one history query, and of one file download, of a client without an account. Four queries and four
/// downloads run at once, two per client.
const STRANGERS_READING_MEMORY: u64 = 128 << 20;

/// Private memory of one file download of an account. Files that are stored whole need a few MiB; one that is stored as a
/// delta needs its own size and that of its base.
const DOWNLOAD_MEMORY: u64 = 256 << 20;

/// Downloads of large files that are stored as deltas: in all, and per address or account. git holds each of them in
/// memory until the client has read it.
const HELD_FILES: usize = 4;
const HELD_FILES_EACH: usize = 2;

/// CPU time of one fetch by a client without an account.
const STRANGERS_FETCHING: Duration = Duration::from_secs(600);

/// Oldest supported git version.
const MINIMUM: (u32, u32) = (2, 39);

abide_core::settings! {
    /// Concurrency, time and memory limits of git processes. Whatever the limits, a quarter of each pool's slots stays
    /// free for other clients.
    #[derive(Clone, Debug)]
    pub struct GitLimits in "git" {
        /// Maximum concurrent fetches.
        [Common] fetches: usize = "32", count(1..);
        /// Maximum concurrent fetches per IP address or account.
        fetches_each: usize = "8", count(1..);
        /// Maximum pushes received concurrently.
        receives: usize = "128", count(1..);
        /// Maximum pushes received concurrently per IP address or account.
        receives_each: usize = "16", count(1..);
        /// Maximum pushes of accounts unpacked or checked concurrently.
        unpacks: usize = "4", count(1..);
        /// Time that a fetch, a push or a page of history waits for a free slot.
        queue: Duration = "30s", duration(TICK..);
        /// Memory limit of one git process, and of all processes together that unpack pushes of accounts.
        [Common] memory: u64 = "2GiB", bytes(..);
        /// Threads per git process.
        [Common] pack_threads as threads: usize = "2", count(1..);
    }
    with {
        /// Concurrent unpacks and checks for clients without an account, in a separate pool.
        stranger_unpacks: usize = 2;
        /// Concurrent maintenance runs and copies; bound by cores.
        heavy: usize = 4;
        /// Concurrent history queries (blame, path history).
        reads: usize = 4;
        /// Concurrent history queries per address or account.
        reads_each: usize = 2;
        /// Time limit of a short call (update-ref).
        quick: Duration = Duration::from_secs(60);
        /// Time limit for unpacking or checking a received push.
        check: Duration = Duration::from_secs(600);
        /// Time limit of one maintenance step.
        maintenance: Duration = Duration::from_secs(3600);
        /// Private memory of one process that works for a client without an account, in bytes.
        stranger_memory: u64 = 192 << 20;
    }
}

/// Pieces of packs that are looked through at once. Inflating one takes a processor for as long as a third of a second.
const SCANS: usize = 4;
/// The same for one address or account.
const SCANS_EACH: usize = 2;
/// The same for all who have no account: threads of this process have one priority, so there are few of them.
const STRANGER_SCANS: usize = 2;

/// Handle to the git binary. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Git(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    environment: Environment,
    limits: GitLimits,
    upload: OnceCell<UploadCapabilities>,
    /// Directory for git's home, probes and spool files.
    dir: PathBuf,
    fetches: Pool,
    receives: Pool,
    unpacks: Pool,
    stranger_unpacks: Pool,
    heavy: Pool,
    reads: Pool,
    files: Pool,
    held_files: Pool,
    requests: Pool,
    drains: Pool,
    scans: Pool,
    stranger_scans: Pool,
    memory: Arc<Semaphore>,
    fetch_memory: FetchMemory,
}

impl Git {
    /// Opens the binary and checks its version.
    pub async fn detect(binary: &Path, layout: &Layout, limits: GitLimits) -> Result<Self, GitError> {
        let git = Self::new(binary, layout, limits)?;
        git.version().await?;
        Ok(git)
    }

    /// Opens the binary without running it; creates its empty home.
    pub fn new(binary: &Path, layout: &Layout, limits: GitLimits) -> Result<Self, GitError> {
        let dir = layout.runner();
        let home = dir.join("home");
        std::fs::create_dir_all(&home).map_err(GitError::io("create", &home))?;
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        let binary = full_path(binary, &path);
        let environment = Environment { binary, home, path, pack_threads: limits.pack_threads };
        Ok(Self(Arc::new(Inner {
            environment,
            upload: OnceCell::new(),
            dir,
            fetches: Pool::new("fetches", limits.fetches, limits.fetches_each),
            receives: Pool::new("pushes", limits.receives, limits.receives_each),
            // At most half per client, so that one client's pushes do not block all others.
            unpacks: Pool::new("pushes", limits.unpacks, limits.unpacks.div_ceil(2)),
            stranger_unpacks: Pool::new("pushes", limits.stranger_unpacks, limits.stranger_unpacks.div_ceil(2)),
            heavy: Pool::new("maintenance", limits.heavy, limits.heavy),
            reads: Pool::new("history queries", limits.reads, limits.reads_each),
            files: Pool::new("downloads", limits.fetches, limits.fetches_each),
            held_files: Pool::new("downloads", HELD_FILES, HELD_FILES_EACH),
            requests: Pool::new("fetches", LARGE_REQUESTS, LARGE_REQUESTS_EACH),
            drains: Pool::new("refused pushes", DRAINS, DRAINS_EACH),
            scans: Pool::new("pushes", SCANS, SCANS_EACH),
            stranger_scans: Pool::new("pushes", STRANGER_SCANS, 1),
            memory: Arc::new(Semaphore::new(shares(limits.memory) as usize)),
            fetch_memory: FetchMemory::new(limits.memory, limits.fetches),
            limits,
        })))
    }

    /// The version, such as `2.47.3`; an error if it is too old.
    pub async fn version(&self) -> Result<String, GitError> {
        let environment = &self.0.environment;
        let call = Call::new(environment, "version", &environment.home, &[]);
        let output = call.run(&[], self.0.limits.quick).await?;
        let text = String::from_utf8_lossy(&output);
        match parse_version(&text) {
            Some((number, version)) if number >= MINIMUM => Ok(version.to_owned()),
            _ => Err(GitError::Version { found: text.trim().chars().take(100).collect() }),
        }
    }

    pub fn limits(&self) -> &GitLimits {
        &self.0.limits
    }

    /// Directory for temporary files.
    pub(crate) fn dir(&self) -> &Path {
        &self.0.dir
    }

    /// Fetch capabilities of this binary, probed on first use.
    pub async fn upload_capabilities(&self) -> Result<&UploadCapabilities, GitError> {
        let Inner { upload, environment, dir, limits, .. } = &*self.0;
        upload.get_or_try_init(|| probe::capabilities(environment, dir, limits.quick)).await
    }

    /// A call of `git <what>` in this repository.
    pub(crate) fn call(&self, what: &'static str, repo: &Path) -> Call<'_> {
        self.call_with(what, repo, &[])
    }

    /// As [`Git::call`], with additional settings.
    pub(crate) fn call_with(&self, what: &'static str, repo: &Path, settings: &[(&str, &str)]) -> Call<'_> {
        Call::new(&self.0.environment, what, repo, settings).ration(self.ration())
    }

    /// Default limits of a process.
    pub(crate) fn ration(&self) -> Ration {
        Ration { memory: self.0.limits.memory, processor: self.0.limits.maintenance, yields: false }
    }

    /// Limits of a process that walks or packs objects for a client.
    pub(crate) fn ration_of(&self, client: Client) -> Ration {
        let limits = &self.0.limits;
        match client.is_stranger() {
            true => {
                let processor = limits.check.min(STRANGERS_TIME);
                Ration { memory: limits.stranger_memory, processor, yields: true }
            }
            false => self.ration(),
        }
    }

    /// Limits of a process that answers a history query.
    fn read_ration(&self, client: Client) -> Ration {
        let limits = &self.0.limits;
        let yields = client.is_stranger();
        let processor = if yields { STRANGERS_READING } else { limits.quick };
        let memory = if yields { self.strangers_reading_memory() } else { READING_MEMORY.min(limits.memory) };
        Ration { memory, processor: processor.min(limits.quick), yields }
    }

    /// Limits of a process that sends a file.
    pub(crate) fn download_ration(&self, client: Client) -> Ration {
        let (own, yields) = (self.ration(), client.is_stranger());
        let memory = if yields { self.strangers_reading_memory() } else { DOWNLOAD_MEMORY.min(own.memory) };
        let processor = if yields { own.processor.min(STRANGERS_FETCHING) } else { own.processor };
        Ration { memory, processor, yields }
    }

    fn strangers_reading_memory(&self) -> u64 {
        STRANGERS_READING_MEMORY.min(self.0.limits.stranger_memory)
    }

    /// Limits of a process that serves a fetch. Memory is that of its share (`fetch_share`): a large repository needs
    /// much, and public repositories are mostly cloned without an account.
    pub(crate) fn fetch_ration(&self, client: Client, memory: u64) -> Ration {
        let (own, yields) = (self.ration(), client.is_stranger());
        let processor = if yields { own.processor.min(STRANGERS_FETCHING) } else { own.processor };
        Ration { memory, processor, yields }
    }

    /// Limits of maintenance. A repository without an account yields to the work of others.
    pub(crate) fn maintenance_ration(&self, owner: Owner) -> Ration {
        let limits = &self.0.limits;
        match owner {
            Owner::Account => self.ration(),
            Owner::Stranger => {
                let memory = STRANGERS_MAINTENANCE.min(limits.memory);
                Ration { memory, processor: limits.maintenance.min(STRANGERS_FETCHING), yields: true }
            }
        }
    }

    /// Memory for a fetch from this repository, reserved until the share is dropped.
    pub(crate) async fn fetch_share(&self, client: Client, repo: &Path) -> Result<FetchShare, GitError> {
        self.0.fetch_memory.take(client, repo, self.0.limits.queue).await
    }

    /// Notes that a fetch from this repository ended for want of memory.
    pub(crate) fn fetch_starved(&self, repo: &Path) {
        self.0.fetch_memory.starved(repo);
    }

    /// Takes a fetch slot.
    pub(crate) async fn fetch_slot(&self, client: Client) -> Result<PoolSlot, GitError> {
        self.0.fetches.enter(client, self.0.limits.queue).await
    }

    /// Takes a slot for a request spooled to disk.
    pub(crate) async fn request_slot(&self, client: Client) -> Result<PoolSlot, GitError> {
        self.0.requests.enter(client, self.0.limits.queue).await
    }

    /// Takes a download slot.
    pub(crate) async fn file_slot(&self, client: Client) -> Result<PoolSlot, GitError> {
        self.0.files.enter(client, self.0.limits.queue).await
    }

    /// Takes a slot for a file that git holds in memory while the client reads it.
    pub(crate) async fn held_file_slot(&self, client: Client) -> Result<PoolSlot, GitError> {
        self.0.held_files.enter(client, self.0.limits.queue).await
    }

    /// Takes a slot for an arriving push.
    pub async fn receive_slot(&self, client: Client) -> Result<PoolSlot, GitError> {
        self.0.receives.enter(client, self.0.limits.queue).await
    }

    /// Takes a slot for reading the rest of a refused push.
    pub async fn drain_slot(&self, client: Client) -> Result<PoolSlot, GitError> {
        self.0.drains.enter(client, self.0.limits.queue).await
    }

    /// A slot among the packs that are looked through, for one piece: a client that sends slowly holds none meanwhile.
    pub(crate) async fn scan_slot(&self, client: Client) -> Result<PoolSlot, GitError> {
        let pool = if client.is_stranger() { &self.0.stranger_scans } else { &self.0.scans };
        pool.enter(client, self.0.limits.check).await
    }

    /// Takes a slot to unpack or check a push. The client has sent everything, so the wait may be long.
    pub(crate) async fn unpack_slot(&self, client: Client) -> Result<PoolSlot, GitError> {
        let pool = if client.is_stranger() { &self.0.stranger_unpacks } else { &self.0.unpacks };
        pool.enter(client, client.patience(self.0.limits.check)).await
    }

    /// Reserves part of the memory shared by the unpacks of accounts. Clients without an account are limited by their
    /// slots.
    pub(crate) async fn memory_share(
        &self,
        client: Client,
        bytes: u64,
    ) -> Result<Option<OwnedSemaphorePermit>, GitError> {
        if client.is_stranger() {
            return Ok(None);
        }
        let units = shares(bytes).min(shares(self.0.limits.memory));
        let share = self.0.memory.clone().acquire_many_owned(units);
        match tokio::time::timeout(self.0.limits.check, share).await {
            Ok(share) => Ok(Some(share.expect("these semaphores are never closed"))),
            Err(_) => Err(GitError::Busy { what: "pushes" }),
        }
    }

    /// Takes a slot for a history query.
    pub(crate) async fn reading(&self, client: Client) -> Result<Reading<'_>, GitError> {
        let slot = self.0.reads.enter(client, self.0.limits.queue).await?;
        Ok(Reading { git: self, ration: self.read_ration(client), _slot: slot })
    }

    /// Takes a maintenance slot.
    pub(crate) async fn heavy_slot(&self) -> Result<PoolSlot, GitError> {
        self.0.heavy.enter(Client::SERVER, self.0.limits.queue).await
    }
}

/// A slot for a history query, with the limits of the processes that run in it.
pub(crate) struct Reading<'g> {
    git: &'g Git,
    ration: Ration,
    _slot: PoolSlot,
}

impl Reading<'_> {
    /// A call of `git <what>` in this repository, which must read no input.
    ///
    /// git reads its settings before anything else, here from its input: that is empty, but ends only after the kernel has
    /// the limits. Without it, git could load a large file before they are set.
    pub(crate) fn call(&self, what: &'static str, repo: &Path) -> Call<'_> {
        self.git.call(what, repo).env("GIT_CONFIG_GLOBAL", "/dev/stdin").ration(self.ration)
    }

    /// Time limit of one call.
    pub(crate) fn limit(&self) -> Duration {
        self.git.0.limits.quick
    }
}

/// Memory is reserved in units of 1 MiB.
pub(crate) fn shares(bytes: u64) -> u32 {
    u32::try_from(bytes >> 20).unwrap_or(u32::MAX).clamp(1, 1 << 28)
}

/// Builder of one git call.
pub(crate) struct Call<'a> {
    environment: &'a Environment,
    what: &'static str,
    command: Command,
    ration: Ration,
    input: Option<File>,
}

impl<'a> Call<'a> {
    pub fn new(environment: &'a Environment, what: &'static str, repo: &Path, settings: &[(&str, &str)]) -> Self {
        let mut command = environment.command(repo, settings);
        command.arg(what);
        let ration = Ration { memory: u64::MAX, processor: Duration::from_secs(60), yields: false };
        Self { environment, what, command, ration, input: None }
    }

    /// Sets the kernel limits.
    pub fn ration(mut self, ration: Ration) -> Self {
        self.ration = ration;
        self
    }

    /// Sets a file as stdin, read from its current position, instead of a pipe.
    pub fn input(mut self, file: File) -> Self {
        self.input = Some(file);
        self
    }

    pub fn args<I: IntoIterator<Item: AsRef<std::ffi::OsStr>>>(mut self, args: I) -> Self {
        self.command.args(args);
        self
    }

    pub fn env(mut self, key: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    pub fn start(self) -> Result<Running, GitError> {
        self.start_watched(|_| ())
    }

    /// Starts the process; `watch` gets each chunk of stderr as it arrives.
    pub fn start_watched(self, watch: impl FnMut(&[u8]) + Send + 'static) -> Result<Running, GitError> {
        Running::start(self.what, &self.environment.binary, self.command, (self.ration, self.input), watch)
    }

    /// Runs the process to its end with this input; returns its (small) output.
    pub async fn run(self, input: &[u8], limit: Duration) -> Result<Vec<u8>, GitError> {
        self.start()?.exchange(input, limit).await
    }
}

/// Full path of a program, or its name if it is not on PATH.
///
/// Every push starts several processes. A full path saves the search through PATH each time. It also lets the standard
/// library spawn without copying our page tables, which it does for a bare name with a custom PATH.
fn full_path(program: &Path, path: &OsStr) -> PathBuf {
    if program.components().count() > 1 {
        return std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
    }
    let runs = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).map(|dir| dir.join(program)).find(runs).unwrap_or_else(|| program.to_owned())
}

/// Parses `git version 2.47.3 (Apple Git-154)`.
fn parse_version(text: &str) -> Option<((u32, u32), &str)> {
    let version = text.strip_prefix("git version ")?.split_whitespace().next()?;
    let mut numbers = version.split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    Some(((major, minor), version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_the_first_program_of_that_name_on_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| dir.path().join(name));
        for (slot, mode) in [(&first, 0o644), (&second, 0o755)] {
            std::fs::create_dir(slot).unwrap();
            std::fs::write(slot.join("git"), "").unwrap();
            std::fs::set_permissions(slot.join("git"), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([&first, &second]).unwrap();
        assert_eq!(full_path(Path::new("git"), &path), second.join("git"), "the first cannot be run");
        assert_eq!(full_path(Path::new("hub"), &path), Path::new("hub"));
        assert_eq!(full_path(Path::new("/opt/git"), &path), Path::new("/opt/git"));
    }

    #[tokio::test]
    async fn work_for_the_event_of_a_stranger_takes_the_slots_and_the_ration_of_strangers() {
        let dir = tempfile::tempdir().unwrap();
        let limits = GitLimits {
            unpacks: 1,
            stranger_unpacks: 1,
            check: Duration::from_millis(200),
            stranger_memory: 7 << 20,
            ..GitLimits::default()
        };
        let git = Git::new(Path::new("git"), &Layout::new(dir.path()), limits).unwrap();
        let (stranger, other) = (Client::signer(None, None, [1; 32]), Client::signer(None, None, [2; 32]));
        let account = Client::signer(None, Some(abide_core::UserId::new(7)), [3; 32]);
        assert_eq!((git.ration_of(stranger).memory, git.ration_of(account).memory), (7 << 20, git.limits().memory));
        for (client, yields) in [(stranger, true), (account, false), (Client::SERVER, false)] {
            let (read, fetch) = (git.read_ration(client), git.fetch_ration(client, 9 << 20));
            assert_eq!((read.yields, fetch.yields), (yields, yields));
            let memory = if yields { 7 << 20 } else { READING_MEMORY };
            assert_eq!((read.memory, fetch.memory), (memory, 9 << 20));
            let download = git.download_ration(client);
            assert_eq!((download.yields, download.memory < READING_MEMORY), (yields, true));
            assert_eq!(
                (read.processor < git.limits().quick, fetch.processor < git.limits().maintenance),
                (yields, yields)
            );
        }
        let held = git.unpack_slot(stranger).await.unwrap();
        drop(git.unpack_slot(account).await.unwrap());
        drop(git.unpack_slot(Client::SERVER).await.unwrap());
        assert!(matches!(git.unpack_slot(other).await, Err(GitError::Busy { .. })), "few in all");
        let hurried = other.waiting_at_most(Duration::ZERO);
        assert!(matches!(git.unpack_slot(hurried).await, Err(GitError::Busy { .. })), "it does not wait");
        assert_eq!(hurried.patience(Duration::from_secs(9)), Duration::ZERO);
        assert_eq!(other.patience(Duration::from_secs(9)), Duration::from_secs(9));
        drop(held);
        drop(git.unpack_slot(other).await.unwrap());
    }

    #[tokio::test]
    async fn packs_of_one_stranger_are_looked_through_one_piece_at_a_time_and_those_of_others_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let limits = GitLimits { check: Duration::from_millis(200), ..GitLimits::default() };
        let git = Git::new(Path::new("git"), &Layout::new(dir.path()), limits).unwrap();
        let at = |last: u8, account| Client::new(Some([192, 0, 2, last].into()), account);
        let held = git.scan_slot(at(1, None)).await.unwrap();
        assert!(matches!(git.scan_slot(at(1, None)).await, Err(GitError::Busy { .. })));
        drop(git.scan_slot(at(2, None)).await.unwrap());
        drop(git.scan_slot(at(1, Some(abide_core::UserId::new(7)))).await.unwrap());
        drop(held);
        drop(git.scan_slot(at(1, None)).await.unwrap());
    }

    #[test]
    fn versions_of_all_vendors_are_read() {
        assert_eq!(parse_version("git version 2.47.3\n"), Some(((2, 47), "2.47.3")));
        assert_eq!(parse_version("git version 2.39.5 (Apple Git-154)\n"), Some(((2, 39), "2.39.5")));
        assert_eq!(parse_version("git version 2.50.0.windows.1"), Some(((2, 50), "2.50.0.windows.1")));
        for other in ["", "git version", "git version x.y", "hub version 2.1"] {
            assert_eq!(parse_version(other), None, "{other:?}");
        }
    }
}
