//! Serving a fetch: bytes go through `git upload-pack`, both ways, in constant memory.

use crate::child::Running;
use crate::{Git, GitError, ProtocolVersion};
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How much is copied at a time: a pipe holds as much.
const PIECE: usize = 64 * 1024;

/// One fetch.
#[derive(Clone, Debug)]
pub struct UploadPack {
    /// The repository.
    pub repo: PathBuf,
    /// One request and one answer (HTTP), or a conversation that begins with git's own advertisement (SSH).
    pub stateless: bool,
    /// The version the client asked for.
    pub protocol: ProtocolVersion,
    /// How long the client may neither send nor take a byte.
    pub idle: Duration,
}

impl UploadPack {
    fn start(&self, git: &Git) -> Result<Running, GitError> {
        let mut call = git.call("upload-pack", &self.repo);
        if let Some(protocol) = self.protocol.as_env() {
            call = call.env("GIT_PROTOCOL", protocol);
        }
        if self.stateless {
            call = call.args(["--stateless-rpc"]);
        }
        let seconds = self.idle.as_secs().max(1);
        call.args(["--strict", &format!("--timeout={seconds}"), "--end-of-options", "."]).start()
    }
}

/// Serves a fetch between two halves of a connection. Returns when git has said all; dropping the future, or either
/// side failing, ends git.
pub async fn serve(
    git: &Git,
    fetch: &UploadPack,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), GitError> {
    let _place = git.fetch_place().await?;
    let mut running = fetch.start(git)?;
    let stdin = running.stdin.take().expect("stdin is piped");
    let stdout = running.stdout.take().expect("stdout is piped");
    // The client may keep its side open after it has all it wanted: the end of git's answer is the end.
    tokio::select! {
        sent = send(stdout, output, fetch.idle) => sent?,
        error = feed(input, stdin) => return Err(GitError::Client(error)),
    }
    let status = running.wait().await?;
    running.judge(status).await
}

/// Starts a fetch whose answer is read from the returned stream, for bodies that are polled.
pub async fn spawn(
    git: &Git,
    fetch: &UploadPack,
    input: impl AsyncRead + Unpin + Send + 'static,
) -> Result<UploadStream, GitError> {
    let place = git.fetch_place().await?;
    let mut running = fetch.start(git)?;
    let stdin = running.stdin.take().expect("stdin is piped");
    let stdout = running.stdout.take().expect("stdout is piped");
    let feeder = tokio::spawn(async move {
        feed(input, stdin).await;
    });
    Ok(UploadStream { stdout, running: Some(running), feeder, _place: place })
}

/// Copies git's answer to the client until it ends.
async fn send(mut stdout: ChildStdout, mut output: impl AsyncWrite + Unpin, idle: Duration) -> Result<(), GitError> {
    let stalled = || GitError::Client(io::Error::new(io::ErrorKind::TimedOut, "the client takes no more bytes"));
    let mut piece = vec![0; PIECE];
    loop {
        let length = stdout.read(&mut piece).await.map_err(GitError::Client)?;
        if length == 0 {
            return Ok(());
        }
        let write = async {
            output.write_all(&piece[..length]).await?;
            output.flush().await
        };
        timeout(idle, write).await.map_err(|_| stalled())?.map_err(GitError::Client)?;
    }
}

/// Copies the client's request to git. Comes back only if the client's side fails: its regular end closes git's
/// input and the answer goes on, and a git that reads no more decides by itself how the fetch ends.
async fn feed(mut input: impl AsyncRead + Unpin, mut stdin: ChildStdin) -> io::Error {
    let mut piece = vec![0; 8 * 1024];
    loop {
        match input.read(&mut piece).await {
            Ok(0) => break,
            Ok(length) => {
                if stdin.write_all(&piece[..length]).await.is_err() {
                    break;
                }
            }
            Err(error) => return error,
        }
    }
    drop((stdin, piece));
    std::future::pending().await
}

/// git's answer to a fetch. Dropping it ends git.
#[derive(Debug)]
pub struct UploadStream {
    stdout: ChildStdout,
    running: Option<Running>,
    feeder: JoinHandle<()>,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for UploadStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let read = Pin::new(&mut self.stdout).poll_read(context, out);
        if matches!(read, Poll::Ready(Ok(()))) && out.filled().len() == before && out.capacity() > 0 {
            self.ended();
        }
        read
    }
}

impl UploadStream {
    /// Looks at how git ended, for the log: the client has heard its errors as packets.
    fn ended(&mut self) {
        self.feeder.abort();
        let Some(mut running) = self.running.take() else { return };
        tokio::spawn(async move {
            let judged = match running.wait().await {
                Ok(status) => running.judge(status).await,
                Err(error) => Err(error),
            };
            if let Err(error) = judged {
                tracing::info!(%error, "a fetch ended early");
            }
        });
    }
}

impl Drop for UploadStream {
    fn drop(&mut self) {
        self.feeder.abort();
    }
}
