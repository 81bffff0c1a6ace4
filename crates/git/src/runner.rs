//! The only place that starts a git process.
//!
//! Arguments are fixed; refs and ids from outside go through stdin. What git sees is decided in `environment.rs`, how
//! it ends in `child.rs`, how many run at once here.

use crate::child::Running;
use crate::environment::Environment;
use crate::probe::{self, UploadCapabilities};
use crate::{GitError, Layout};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

/// The earliest git that has all we call.
const MINIMUM: (u32, u32) = (2, 39);

/// How much git may do at once, and for how long.
#[derive(Clone, Debug)]
pub struct GitLimits {
    /// Fetches at once. Each may hold a pack-objects process.
    pub fetches: usize,
    /// Packs being received at once. The clients set the pace, so this is generous.
    pub receives: usize,
    /// Connectivity checks and maintenance runs at once: these are bound by cores.
    pub heavy: usize,
    /// How long one waits for a place before hearing that the server is busy.
    pub queue: Duration,
    /// Limit of a short call (update-ref).
    pub quick: Duration,
    /// Limit of resolving or checking what a push brought, once all of it is here.
    pub check: Duration,
    /// Limit of one maintenance step.
    pub maintenance: Duration,
    /// Threads of one pack-objects or index-pack process.
    pub pack_threads: usize,
}

impl Default for GitLimits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            fetches: 16 * cores,
            receives: 16 * cores,
            heavy: 2 * cores,
            queue: Duration::from_secs(30),
            quick: Duration::from_secs(60),
            check: Duration::from_secs(600),
            maintenance: Duration::from_secs(3600),
            pack_threads: cores.min(4),
        }
    }
}

/// The git binary, ready to be called. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Git(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    environment: Environment,
    limits: GitLimits,
    upload: OnceCell<UploadCapabilities>,
    /// Where it has its home, and is asked what it offers.
    dir: PathBuf,
    fetches: Arc<Semaphore>,
    receives: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
}

impl Git {
    /// A binary that does what we ask of it: its version is checked.
    pub async fn detect(binary: &Path, layout: &Layout, limits: GitLimits) -> Result<Self, GitError> {
        let git = Self::new(binary, layout, limits)?;
        git.version().await?;
        Ok(git)
    }

    /// A binary that is not asked anything yet, with an empty home.
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
            fetches: Arc::new(Semaphore::new(limits.fetches)),
            receives: Arc::new(Semaphore::new(limits.receives)),
            heavy: Arc::new(Semaphore::new(limits.heavy)),
            limits,
        })))
    }

    /// The version, such as `2.47.3`; refused if it is too old for us.
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

    /// The limits it was made with.
    pub fn limits(&self) -> &GitLimits {
        &self.0.limits
    }

    /// What this binary offers to fetching clients. It is asked once, when somebody wants to know.
    pub async fn upload_capabilities(&self) -> Result<&UploadCapabilities, GitError> {
        let Inner { upload, environment, dir, limits, .. } = &*self.0;
        upload.get_or_try_init(|| probe::capabilities(environment, dir, limits.quick)).await
    }

    /// A call of `git <what>` in this repository.
    pub(crate) fn call(&self, what: &'static str, repo: &Path) -> Call<'_> {
        Call::new(&self.0.environment, what, repo, &[])
    }

    /// The same with additional settings.
    pub(crate) fn call_with(&self, what: &'static str, repo: &Path, settings: &[(&str, &str)]) -> Call<'_> {
        Call::new(&self.0.environment, what, repo, settings)
    }

    /// A place among the fetches.
    pub(crate) async fn fetch_place(&self) -> Result<OwnedSemaphorePermit, GitError> {
        self.place(&self.0.fetches, "fetches").await
    }

    /// A place among the receivers of packs.
    pub(crate) async fn receive_place(&self) -> Result<OwnedSemaphorePermit, GitError> {
        self.place(&self.0.receives, "pushes").await
    }

    /// A place among what is bound by cores.
    pub(crate) async fn heavy_place(&self) -> Result<OwnedSemaphorePermit, GitError> {
        self.place(&self.0.heavy, "checks").await
    }

    async fn place(&self, places: &Arc<Semaphore>, what: &'static str) -> Result<OwnedSemaphorePermit, GitError> {
        match tokio::time::timeout(self.0.limits.queue, places.clone().acquire_owned()).await {
            Ok(permit) => Ok(permit.expect("these semaphores are never closed")),
            Err(_) => Err(GitError::Busy { what }),
        }
    }
}

/// One call, being put together.
pub(crate) struct Call<'a> {
    environment: &'a Environment,
    what: &'static str,
    command: Command,
}

impl<'a> Call<'a> {
    pub fn new(environment: &'a Environment, what: &'static str, repo: &Path, settings: &[(&str, &str)]) -> Self {
        let mut command = environment.command(repo, settings);
        command.arg(what);
        Self { environment, what, command }
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

    /// Starts it; `watch` sees each piece of stderr as it comes.
    pub fn start_watched(self, watch: impl FnMut(&[u8]) + Send + 'static) -> Result<Running, GitError> {
        Running::start(self.what, &self.environment.binary, self.command, watch)
    }

    /// Runs it to its end with this input; returns its (small) output.
    pub async fn run(self, input: &[u8], limit: Duration) -> Result<Vec<u8>, GitError> {
        self.start()?.exchange(input, limit).await
    }
}

/// The file that a program's name stands for, or the name itself if there is none.
///
/// Every push starts several processes. With a full path nobody has to look through PATH each time, and the standard
/// library starts the process without a copy of our page tables, which it makes for a name and a PATH of its own.
fn full_path(program: &Path, path: &OsStr) -> PathBuf {
    if program.components().count() > 1 {
        return std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
    }
    let runs = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).map(|dir| dir.join(program)).find(runs).unwrap_or_else(|| program.to_owned())
}

/// Reads `git version 2.47.3 (Apple Git-154)`.
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
        for (place, mode) in [(&first, 0o644), (&second, 0o755)] {
            std::fs::create_dir(place).unwrap();
            std::fs::write(place.join("git"), "").unwrap();
            std::fs::set_permissions(place.join("git"), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([&first, &second]).unwrap();
        assert_eq!(full_path(Path::new("git"), &path), second.join("git"), "the first cannot be run");
        assert_eq!(full_path(Path::new("hub"), &path), Path::new("hub"));
        assert_eq!(full_path(Path::new("/opt/git"), &path), Path::new("/opt/git"));
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
