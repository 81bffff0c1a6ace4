//! Environment and configuration of git processes: only our own variables and settings.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Namespace for our own refs; no fetch lists them.
pub(crate) const HIDDEN_REFS: &str = "refs/abide";

/// The git binary with the values of its environment.
#[derive(Debug)]
pub(crate) struct Environment {
    pub binary: PathBuf,
    /// An empty directory, so git finds no user configuration.
    pub home: PathBuf,
    pub path: OsString,
    pub pack_threads: usize,
}

impl Environment {
    /// A command for this repository with additional settings. The config file of a repository holds only its format
    /// version,
    /// so this function decides all of git's behaviour.
    pub fn command(&self, repo: &Path, extra: &[(&str, &str)]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .current_dir(repo)
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env("LC_ALL", "C")
            // The current directory. git resolves every ref and object path from here, and a short prefix is faster.
            .env("GIT_DIR", ".")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "false")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_ADVICE", "0");
        let threads = self.pack_threads.to_string();
        let settings = settings(&threads);
        let all = settings.iter().chain(extra);
        for (index, (key, value)) in all.enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{index}"), key);
            command.env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        command.env("GIT_CONFIG_COUNT", (settings.len() + extra.len()).to_string());
        command
    }
}

fn settings(threads: &str) -> [(&'static str, &str); 27] {
    [
        // File ownership is the operator's decision (volumes, containers). git executes nothing from a repository.
        ("safe.directory", "*"),
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("core.logAllRefUpdates", "false"),
        ("protocol.allow", "never"),
        // An acknowledged push survives power loss. That includes pack indexes: a torn index hides its pack.
        ("core.fsync", "committed,pack-metadata,reference"),
        ("core.filesRefLockTimeout", "1000"),
        // Large blobs are streamed instead of being held in memory.
        ("core.bigFileThreshold", "50m"),
        ("pack.threads", threads),
        ("pack.windowMemory", "64m"),
        ("pack.deltaCacheSize", "64m"),
        // Maintenance runs as our own job; git starts none.
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("receive.autogc", "false"),
        ("transfer.fsckObjects", "true"),
        ("uploadpack.allowFilter", "true"),
        // Only filters whose cost is bounded by the number of objects. Path-based filters cost one step per path, and
        // ten trees
        // that name each other have 10⁹ paths.
        ("uploadpackfilter.allow", "false"),
        ("uploadpackfilter.blob:none.allow", "true"),
        ("uploadpackfilter.blob:limit.allow", "true"),
        ("uploadpackfilter.tree.allow", "true"),
        ("uploadpackfilter.tree.maxDepth", "1"),
        ("uploadpackfilter.object:type.allow", "true"),
        ("uploadpack.allowAnySHA1InWant", "false"),
        ("uploadpack.allowTipSHA1InWant", "true"),
        ("uploadpack.allowReachableSHA1InWant", "true"),
        ("uploadpack.hideRefs", HIDDEN_REFS),
        ("lsrefs.unborn", "advertise"),
    ]
}
