//! What a git process sees: our environment variables and our configuration, nobody else's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Refs below this are ours; no fetch lists them.
pub(crate) const HIDDEN_REFS: &str = "refs/abide";

/// The binary and the surroundings in which it runs.
#[derive(Debug)]
pub(crate) struct Environment {
    pub binary: PathBuf,
    /// An empty directory: whatever git looks for at home, it finds nothing.
    pub home: PathBuf,
    pub path: OsString,
    pub pack_threads: usize,
}

impl Environment {
    /// A command for this repository with these additional settings. Repositories hold no configuration beyond their
    /// format, so all that decides behaviour is in this function.
    pub fn command(&self, repo: &Path, extra: &[(&str, &str)]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .current_dir(repo)
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env("LC_ALL", "C")
            // Where it stands: git walks every path of a ref and an object from here.
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
        // Ownership is the operator's business (volumes, containers), and nothing in a repository is executed.
        ("safe.directory", "*"),
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("core.logAllRefUpdates", "false"),
        ("protocol.allow", "never"),
        // An acknowledged push survives a loss of power. The index of a pack counts: a torn one hides the pack.
        ("core.fsync", "committed,pack-metadata,reference"),
        ("core.filesRefLockTimeout", "1000"),
        // Large blobs are streamed instead of being held in memory.
        ("core.bigFileThreshold", "50m"),
        ("pack.threads", threads),
        ("pack.windowMemory", "64m"),
        ("pack.deltaCacheSize", "64m"),
        // Maintenance is a job of ours; git starts none by itself.
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("receive.autogc", "false"),
        ("transfer.fsckObjects", "true"),
        ("uploadpack.allowFilter", "true"),
        // Only those whose work is bounded by the number of objects: a filter that looks at paths takes as long as there are
        // paths, and ten trees that name each other have a thousand million of them.
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
