//! A process with its helpers, which are killed when it is dropped.

use crate::Failure;
use crate::io;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts the process in a group of its own, so that one signal reaches its helpers too. Standard error goes to the
    /// log file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self, Failure> {
        let program = command.get_program().to_string_lossy().into_owned();
        let file = std::fs::File::create(log).map_err(io("make a log"))?;
        let child = command.stdin(Stdio::null()).stderr(file).process_group(0).spawn();
        Ok(Self { child: child.map_err(io(format!("start {program}")))?, log: log.to_owned() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Last lines of standard error.
    pub(crate) fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.has_ended() {
            return;
        }
        let Some(group) = Pid::from_raw(self.child.id().cast_signed()) else { return };
        let _ = kill_process_group(group, Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < GRACE && !self.has_ended() {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !self.has_ended() {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Path of a program; Debian's directories for system programs are searched too.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).map(|dir| dir.join(program)).find(|file| file.is_file())
}
