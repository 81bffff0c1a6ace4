//! Serving a fetch: bytes go through `git upload-pack`, both ways, in constant memory.
//!
//! A request that stands for itself (HTTP) is read to its end before a slot is taken or a process is started: a client
//! that says nothing costs nothing. A conversation (SSH) needs its process from the start, so both directions have a
//! limit there.

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
    /// How slowly the client may send and take bytes.
    pub patience: Patience,
    /// Who fetches.
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

/// A request of this many bytes waits in memory; a longer one takes room on the disk.
pub const SMALL_REQUEST: u64 = IN_MEMORY as u64;

/// A request that is here as a whole.
#[derive(Debug)]
pub struct Request {
    content: Spooled,
    /// The slot of one that takes room on the disk.
    _file: Option<Place>,
}

/// Reads a request to its end, with at most so many bytes. Those that take room on the disk have slots of their own.
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

/// Starts a fetch whose answer is read from the returned stream. Dropping that ends git.
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

/// Holds a conversation between two halves of a connection. Returns when git has said all; dropping the future, or either
/// side failing or standing still, ends git.
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
    // The client may keep its side open after it has all it wanted: the end of git's answer is the end.
    tokio::select! {
        sent = send(stdout, output, fetch.patience, &said) => sent?,
        error = feed(input, stdin, fetch.patience, &said) => return Err(GitError::Client(error)),
    }
    let status = running.wait().await?;
    running.judge(status).await
}

/// Copies git's answer to the client until it ends, and counts it.
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

/// Copies the client's request to git. Comes back only if the client's side fails, or says too little while git says
/// nothing: its regular end closes git's input and the answer goes on, and a git that reads no more decides by itself how
/// the fetch ends.
async fn feed(mut input: impl AsyncRead + Unpin, mut stdin: ChildStdin, full: Patience, said: &AtomicU64) -> io::Error {
    let mut piece = vec![0; 8 * 1024];
    let (mut patience, mut heard) = (full, 0);
    loop {
        let since = Instant::now();
        let read = timeout(patience.left(), input.read(&mut piece)).await;
        // Whoever listens to a long answer has nothing to say.
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
