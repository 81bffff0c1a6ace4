//! The real git, without system or user configuration.

use crate::Failure;
use crate::{Stop, io};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// URL of a repository, and the client's settings for access.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub url: String,
    /// Settings for git, e.g. the header with the token.
    pub settings: Vec<(&'static str, String)>,
}

pub(crate) struct Client {
    binary: PathBuf,
    home: PathBuf,
    stop: Stop,
}

impl Client {
    pub(crate) fn new(binary: &str, root: &Path, stop: Stop) -> Result<Self, Failure> {
        let home = root.join("home");
        std::fs::create_dir_all(&home).map_err(io("make a home for git"))?;
        Ok(Self { binary: binary.into(), home, stop })
    }

    pub(crate) fn version(&self) -> Result<String, Failure> {
        self.text(&self.home, &["version"])
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// A git command in a directory, with the settings of the remotes.
    pub(crate) fn command(&self, dir: &Path, settings: &[(&'static str, String)]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .current_dir(dir)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::null())
            .process_group(0);
        // The client's own disk work is not measured, so it does no maintenance while the clock runs.
        let fixed = [("gc.auto", "0"), ("maintenance.auto", "false"), ("core.fsync", "none")];
        let own = settings.iter().map(|(key, value)| (*key, value.as_str()));
        for (index, (key, value)) in fixed.into_iter().chain(own).enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{index}"), key).env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        command.env("GIT_CONFIG_COUNT", (fixed.len() + settings.len()).to_string());
        command
    }

    /// Runs git and returns what it printed, trimmed.
    pub(crate) fn text(&self, dir: &Path, args: &[&str]) -> Result<String, Failure> {
        let output = self.finish(self.command(dir, &[]).args(args).stdout(Stdio::piped()))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs git with a remote and returns the time; its output is discarded.
    pub(crate) fn time<A: AsRef<OsStr>>(&self, dir: &Path, remote: &Remote, args: &[A]) -> Result<Duration, Failure> {
        let mut command = self.command(dir, &remote.settings);
        command.args(args).stdout(Stdio::null());
        let start = Instant::now();
        self.finish(&mut command)?;
        Ok(start.elapsed())
    }

    /// Pushes all refs of a repository.
    pub(crate) fn push_all(&self, dir: &Path, remote: &Remote) -> Result<Duration, Failure> {
        self.time(dir, remote, &["push", "-q", &remote.url, "refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*"])
    }

    /// Makes a bare repository from a stream for `git fast-import`.
    pub(crate) fn import(
        &self,
        dir: &Path,
        write: &dyn Fn(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        std::fs::create_dir_all(dir).map_err(io("make a repository"))?;
        self.text(dir, &["init", "-q", "--bare", "--template=", "-b", "main", "."])?;
        // Random data does not compress, and compression would be the client's time.
        for (key, value) in [("core.compression", "0"), ("core.bigFileThreshold", "512k")] {
            self.text(dir, &["config", key, value])?;
        }
        let mut command = self.command(dir, &[]);
        command.args(["fast-import", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(io("start git fast-import"))?;
        let mut input = std::io::BufWriter::with_capacity(1 << 20, child.stdin.take().expect("stdin is piped"));
        let written = write(&mut input).and_then(|()| input.flush());
        drop(input);
        let output = self.stop.wait(child).map_err(io("wait for git fast-import"))?;
        self.stop.check()?;
        judge("git fast-import", &output)?;
        written.map_err(io("feed git fast-import"))
    }

    fn finish(&self, command: &mut Command) -> Result<Output, Failure> {
        let what =
            command.get_args().take(2).map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        let child = command.stderr(Stdio::piped()).spawn().map_err(io("start git"))?;
        let output = self.stop.wait(child).map_err(io("wait for git"))?;
        self.stop.check()?;
        judge(&format!("git {what}"), &output)?;
        Ok(output)
    }
}

/// A command that failed measures nothing.
pub(crate) fn judge(what: &str, output: &Output) -> Result<(), Failure> {
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Failure::failed(format!("{what} failed ({}): {}", output.status, stderr.trim())))
}
