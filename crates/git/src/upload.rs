//! Serves a fetch: copies bytes to and from `git upload-pack` in constant memory.
//!
//! A stateless request (HTTP) is read to its end before it takes a slot or starts a process, so a silent client costs
//! nothing. A conversation (SSH) needs its process from the start, so both directions have a rate limit there.

use crate::child::Running;
use crate::error::blocking;
use crate::pace::too_slow;
use crate::pump::{Pump, Pumped};
use crate::slots::Place;
use crate::spool::{IN_MEMORY, Spool, Spooled};
use crate::{Client, Git, GitError, ProtocolVersion};
use abide_core::patience::Patience;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout};

/// Copy size; a pipe holds as much.
const PIECE: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub struct UploadPack {
    pub repo: PathBuf,
    /// One request and one response (HTTP), or a conversation that begins with git's own advertisement (SSH).
    pub stateless: bool,
    /// Protocol version requested by the client.
    pub protocol: ProtocolVersion,
    /// Minimum rate at which the client must send and read.
    pub patience: Patience,
    pub client: Client,
}

impl UploadPack {
    fn start(&self, git: &Git, request: Option<std::fs::File>) -> Result<Running, GitError> {
        let mut call = git.call("upload-pack", &self.repo);
        if let Some(protocol) = self.protocol.as_env() {
            call = call.env("GIT_PROTOCOL", protocol);
        }
        if self.stateless {
            call = call.args(["--stateless-rpc"]);
        }
        if let Some(request) = request {
            call = call.input(request);
        }
        call.args(["--strict", "--end-of-options", "."]).start()
    }
}

/// Requests up to this size stay in memory; longer ones are spooled to disk.
pub const SMALL_REQUEST: u64 = IN_MEMORY as u64;

/// A completely read request.
#[derive(Debug)]
pub struct Request {
    content: Spooled,
    /// Slot of a request spooled to disk.
    _file: Option<Place>,
}

/// Reads a request to its end, at most `most` bytes. Requests spooled to disk have slots of their own.
pub async fn read_request(
    git: &Git,
    client: Client,
    mut input: impl AsyncRead + Unpin,
    most: u64,
) -> Result<Request, GitError> {
    let dir = git.dir().to_owned();
    let mut spool = Spool::new(&dir);
    let mut piece = Vec::with_capacity(PIECE / 4);
    let reading = async {
        let mut file = None;
        while input.read_buf(&mut piece).await.map_err(GitError::Client)? > 0 {
            let length = spool.len() + piece.len() as u64;
            if length > most {
                return Err(GitError::RequestTooLarge(most));
            }
            if length > SMALL_REQUEST && file.is_none() {
                file = Some(git.request_place(client).await?);
            }
            let place = dir.clone();
            (spool, piece) = blocking(move || {
                spool.push(&piece).map_err(GitError::io("keep a request in", &place))?;
                piece.clear();
                Ok::<_, GitError>((spool, piece))
            })
            .await?;
        }
        let content = spool.finish().map_err(GitError::io("keep a request in", &dir))?;
        Ok(Request { content, _file: file })
    };
    let limit = git.limits().check;
    timeout(limit, reading).await.unwrap_or(Err(GitError::Client(io::ErrorKind::TimedOut.into())))
}

/// Starts a fetch; its answer is read from the returned stream. Dropping the stream kills git.
pub async fn spawn(git: &Git, fetch: &UploadPack, request: Request) -> Result<Pumped, GitError> {
    let place = git.fetch_place(fetch.client).await?;
    let (mut running, request) = match request.content {
        Spooled::File(file) => (fetch.start(git, Some(file))?, None),
        Spooled::Memory(bytes) => {
            let mut running = fetch.start(git, None)?;
            let stdin = running.stdin.take().expect("stdin is piped");
            (running, Some((stdin, bytes)))
        }
    };
    let answer = running.stdout.take().expect("stdout is piped");
    Ok(Pump { running, place, answer, request, patience: fetch.patience }.start())
}

/// Runs a conversation over the two halves of a connection. Returns when git has finished. Dropping the future kills
/// git,
/// and so does a failure or stall of either side.
pub async fn serve(
    git: &Git,
    fetch: &UploadPack,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), GitError> {
    let _place = git.fetch_place(fetch.client).await?;
    let mut running = fetch.start(git, None)?;
    let stdin = running.stdin.take().expect("stdin is piped");
    let stdout = running.stdout.take().expect("stdout is piped");
    let said = AtomicU64::new(0);
    // The client may keep its side open after the fetch, so the end of git's answer is the end.
    tokio::select! {
        sent = send(stdout, output, fetch.patience, &said) => sent?,
        error = feed(input, stdin, fetch.patience, &said) => return Err(GitError::Client(error)),
    }
    let status = running.wait().await?;
    running.judge(status).await
}

/// Copies git's answer to the client until it ends, and counts its bytes.
async fn send(
    mut stdout: ChildStdout,
    mut output: impl AsyncWrite + Unpin,
    mut patience: Patience,
    said: &AtomicU64,
) -> Result<(), GitError> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = stdout.read(&mut piece).await.map_err(GitError::Client)?;
        if length == 0 {
            return Ok(());
        }
        let since = Instant::now();
        let write = async {
            output.write_all(&piece[..length]).await?;
            output.flush().await
        };
        let written = timeout(patience.left(), write).await.map_err(|_| GitError::Client(too_slow(&patience)))?;
        written.map_err(GitError::Client)?;
        patience.waited(since.elapsed(), length as u64);
        said.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Copies the client's request to git. Returns only if the client's side fails, or is too slow while git is silent.
/// When the client closes its side, this closes git's stdin and the answer goes on. If git stops reading, git decides
/// how the fetch ends.
async fn feed(mut input: impl AsyncRead + Unpin, mut stdin: ChildStdin, full: Patience, said: &AtomicU64) -> io::Error {
    let mut piece = vec![0; 8 * 1024];
    let (mut patience, mut heard) = (full, 0);
    loop {
        let since = Instant::now();
        let read = timeout(patience.left(), input.read(&mut piece)).await;
        // A client that reads a long answer sends nothing; its time limit starts again.
        let said = said.load(Ordering::Relaxed);
        if said != heard {
            (patience, heard) = (full, said);
        } else {
            patience.waited(since.elapsed(), 0);
        }
        match read {
            Err(_) if patience.left().is_zero() => return too_slow(&full),
            Err(_) => {}
            Ok(Ok(0)) => break,
            Ok(Ok(length)) => {
                patience.waited(std::time::Duration::ZERO, length as u64);
                if stdin.write_all(&piece[..length]).await.is_err() {
                    break;
                }
            }
            Ok(Err(error)) => return error,
        }
    }
    drop((stdin, piece));
    std::future::pending().await
}
