//! A git child process that ends when its owner is dropped.

use crate::GitError;
use crate::ration::{Ration, used_up};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Bytes of stderr kept, from the end.
const STDERR_KEPT: usize = 8 * 1024;
/// Time between SIGTERM and SIGKILL, for git to remove lock files and temporary packs.
const GRACE: Duration = Duration::from_secs(5);
/// Time to read the rest of stderr after the process has ended: a grandchild may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Limit for output collected in memory.
const OUTPUT_KEPT: u64 = 16 * 1024 * 1024;

/// A process with its pipes. Dropping it sends SIGTERM, then SIGKILL after [`GRACE`].
#[derive(Debug)]
pub(crate) struct Running {
    what: &'static str,
    guard: Guard,
    stderr: JoinHandle<Vec<u8>>,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
}

impl Running {
    /// Starts a process in its own process group under a resource ration. Its stdin is a pipe, or the given file.
    /// `watch` gets
    /// each chunk of stderr as it arrives.
    pub fn start(
        what: &'static str,
        binary: &Path,
        command: Command,
        (ration, input): (Ration, Option<File>),
        watch: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<Self, GitError> {
        let start = |source| GitError::Start { binary: binary.to_owned(), source };
        let (mut child, feed) = spawn(command, ration, input).map_err(start)?;
        if let Some(feed) = feed {
            tokio::task::spawn_blocking(|| feed.run());
        }
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let stderr = tokio::spawn(keep_tail(stderr.expect("stderr is piped"), watch));
        Ok(Self { what, guard: Guard(Some(child)), stderr, stdin, stdout })
    }

    /// Waits for exit without closing a pipe. Cancel-safe; may be called again.
    pub async fn wait(&mut self) -> Result<ExitStatus, GitError> {
        let child = self.guard.0.as_mut().expect("the guard is emptied only by drop");
        child.wait().await.map_err(|source| GitError::Failed {
            what: self.what,
            status: "not waitable".to_owned(),
            stderr: source.to_string(),
        })
    }

    /// Tail of stderr. Call after the process has ended.
    pub async fn last_words(&mut self) -> String {
        match timeout(LAST_WORDS, &mut self.stderr).await {
            Ok(Ok(tail)) => String::from_utf8_lossy(&tail).trim().to_owned(),
            _ => String::new(),
        }
    }

    /// Maps the exit status to a result; an error carries the tail of stderr.
    pub async fn judge(&mut self, status: ExitStatus) -> Result<(), GitError> {
        if status.success() {
            return Ok(());
        }
        let stderr = self.last_words().await;
        let status = status.to_string();
        match used_up(&status, &stderr) {
            Some(of) => Err(GitError::UsedUp { what: self.what, of }),
            None => Err(GitError::Failed { what: self.what, status, stderr }),
        }
    }

    /// Writes the input, collects the (small) output and waits for success, within the time limit.
    pub async fn exchange(mut self, input: &[u8], limit: Duration) -> Result<Vec<u8>, GitError> {
        let mut stdin = self.stdin.take().expect("stdin is piped");
        let stdout = self.stdout.take().expect("stdout is piped");
        let what = self.what;
        let work = async {
            let mut output = Vec::new();
            let write = async {
                // The process may stop reading early; its exit status decides whether that was an error.
                let _ = stdin.write_all(input).await;
                drop(stdin);
            };
            let mut bounded = stdout.take(OUTPUT_KEPT + 1);
            let (_, read) = tokio::join!(write, bounded.read_to_end(&mut output));
            let failed = |status: &str, stderr| GitError::Failed { what, status: status.to_owned(), stderr };
            read.map_err(|source| failed("unreadable", source.to_string()))?;
            if output.len() as u64 > OUTPUT_KEPT {
                // The process would wait for its output to be read until the limit of time.
                return Err(failed("ended", format!("its output is larger than {OUTPUT_KEPT} bytes")));
            }
            let status = self.wait().await?;
            self.judge(status).await?;
            Ok(output)
        };
        timeout(limit, work).await.unwrap_or(Err(GitError::TimedOut { what, after: limit }))
    }
}

/// Starts a process and sets its limits. Without unsafe code, limits can be set only after the process has started.
/// So the input goes through a pipe that stays empty until then; a process given the file itself could read at once.
fn spawn(mut command: Command, ration: Ration, input: Option<File>) -> io::Result<(Child, Option<Feed>)> {
    let feed = match input {
        None => {
            command.stdin(Stdio::piped());
            None
        }
        Some(file) => {
            let (reader, writer) = io::pipe()?;
            command.stdin(reader);
            Some(Feed { file, writer })
        }
    };
    // A process group of its own: one signal reaches helper processes too, and Ctrl-C for the server does not.
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        ration.apply(pid);
    }
    Ok((child, feed))
}

/// A file to copy into the stdin of a process.
struct Feed {
    file: File,
    writer: io::PipeWriter,
}

impl Feed {
    /// Copies the whole file. Stops early if the process ends; its exit status decides whether that was an error.
    fn run(mut self) {
        let _ = io::copy(&mut self.file, &mut self.writer);
    }
}

async fn keep_tail(mut stderr: ChildStderr, mut watch: impl FnMut(&[u8])) -> Vec<u8> {
    let mut tail = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        watch(&buffer[..read]);
        tail.extend_from_slice(&buffer[..read]);
        if tail.len() > STDERR_KEPT {
            tail.drain(..tail.len() - STDERR_KEPT);
        }
    }
    tail
}

#[derive(Debug)]
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        // No id: the process was already waited for, and the kernel may have given its number to another process.
        let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            let _ = kill_process_group(pid, Signal::KILL);
            return;
        };
        let _ = kill_process_group(pid, Signal::TERM);
        runtime.spawn(async move {
            if timeout(GRACE, child.wait()).await.is_err() {
                let _ = kill_process_group(pid, Signal::KILL);
                let _ = child.wait().await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, Write as _};

    /// Soft and hard limit of a process, from `/proc`.
    fn limit(pid: u32, name: &str) -> Vec<String> {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel knows it");
        line.split_whitespace().take(2).map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn a_process_is_limited_before_it_gets_a_byte_of_its_input() {
        let mut file = tempfile::tempfile().unwrap();
        let pack = vec![b'x'; 300 << 10];
        file.write_all(&pack).unwrap();
        file.rewind().unwrap();
        let ration = Ration { memory: 96 << 20, processor: Duration::from_secs(7), yields: false };
        let (child, feed) = spawn(Command::new("cat"), ration, Some(file)).unwrap();
        let mut guard = Guard(Some(child));
        let child = guard.0.as_mut().unwrap();
        let mut feed = feed.expect("nobody has read the file yet");
        assert_eq!(feed.file.stream_position().unwrap(), 0, "not a byte is given");
        let pid = child.id().expect("it waits for its input");
        assert_eq!(limit(pid, "Max data size"), [(96 << 20).to_string(), (96 << 20).to_string()]);
        assert_eq!(limit(pid, "Max cpu time"), ["7", "12"]);
        let feeding = tokio::task::spawn_blocking(|| feed.run());
        let mut out = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut out).await.unwrap();
        assert!(out == pack, "all of it arrives");
        feeding.await.unwrap();
        assert!(child.wait().await.unwrap().success());
    }

    #[tokio::test]
    async fn a_process_that_ends_early_ends_its_input_too() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; 4 << 20]).unwrap();
        file.rewind().unwrap();
        let ration = Ration { memory: 96 << 20, processor: Duration::from_secs(7), yields: false };
        let (mut child, feed) = spawn(Command::new("true"), ration, Some(file)).unwrap();
        tokio::task::spawn_blocking(|| feed.expect("a file").run()).await.unwrap();
        assert!(child.wait().await.unwrap().success());
    }
}
