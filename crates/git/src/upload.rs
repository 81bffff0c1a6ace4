//! Serves a fetch: copies bytes to and from `git upload-pack` in constant memory.
//!
//! A request is read to its end before a slot is taken or a process is started: a client that says nothing costs nothing.
//! Requests of HTTP and commands of version 2 stand for themselves. A conversation of version 0 or 1 goes on after its first
//! request, so both directions have a limit there.

use crate::child::Running;
use crate::error::blocking;
use crate::fetch_memory::FetchShare;
use crate::pace::too_slow;
use crate::pktline::{Packet, PacketReadError, PacketReader};
use crate::pump::{Pump, Pumped};
use crate::slots::PoolSlot;
use crate::spool::{IN_MEMORY, Spool, Spooled};
use crate::{Client, Git, GitError, ProtocolVersion};
use abide_core::patience::Patience;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::time::{Instant, timeout};

/// Copy size; a pipe holds as much.
const PIECE: usize = 64 * 1024;

/// Settings that keep `pack-objects` within the memory of a small fetch, apart from the number of objects. Maintenance
/// finds good deltas; a fetch mostly reuses them.
const PACKING: &[(&str, &str)] = &[
    ("core.bigFileThreshold", "8m"),
    ("pack.windowMemory", "8m"),
    ("pack.deltaCacheSize", "8m"),
    ("core.deltaBaseCacheLimit", "8m"),
];

/// How long one wait for a client lasts that has nothing more to say; then the next one begins.
const LISTENING: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug)]
pub struct UploadPack {
    pub repo: PathBuf,
    /// Protocol version requested by the client.
    pub protocol: ProtocolVersion,
    /// Minimum rate at which the client must send and read.
    pub patience: Patience,
    pub client: Client,
}

impl UploadPack {
    fn start(
        &self,
        git: &Git,
        share: &FetchShare,
        stateless: bool,
        request: Option<std::fs::File>,
    ) -> Result<Running, GitError> {
        let ration = git.fetch_ration(self.client, share.memory);
        let mut call = git.call_with("upload-pack", &self.repo, PACKING).ration(ration);
        if let Some(protocol) = self.protocol.as_env() {
            call = call.env("GIT_PROTOCOL", protocol);
        }
        if stateless {
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
    _file: Option<PoolSlot>,
}

/// A request while it arrives. A request that is spooled to disk needs a slot.
struct Arriving<'a> {
    git: &'a Git,
    client: Client,
    spool: Spool,
    file: Option<PoolSlot>,
    most: u64,
}

impl<'a> Arriving<'a> {
    fn new(git: &'a Git, client: Client, most: u64) -> Self {
        Self { git, client, spool: Spool::new(git.dir()), file: None, most }
    }

    async fn push(&mut self, piece: &mut Vec<u8>) -> Result<(), GitError> {
        let length = self.spool.len() + piece.len() as u64;
        if length > self.most {
            return Err(GitError::RequestTooLarge(self.most));
        }
        if length > SMALL_REQUEST && self.file.is_none() {
            self.file = Some(self.git.request_slot(self.client).await?);
        }
        let slot = self.git.dir().to_owned();
        let (mut spool, bytes) = (std::mem::replace(&mut self.spool, Spool::new(&slot)), std::mem::take(piece));
        (self.spool, *piece) = blocking(move || {
            spool.push(&bytes).map_err(GitError::io("keep a request in", &slot))?;
            let mut bytes = bytes;
            bytes.clear();
            Ok::<_, GitError>((spool, bytes))
        })
        .await?;
        Ok(())
    }

    fn finish(self) -> Result<Request, GitError> {
        let content = self.spool.finish().map_err(GitError::io("keep a request in", self.git.dir()))?;
        Ok(Request { content, _file: self.file })
    }
}

/// Reads a request to its end, with at most so many bytes.
pub async fn read_request(
    git: &Git,
    client: Client,
    mut input: impl AsyncRead + Unpin,
    most: u64,
) -> Result<Request, GitError> {
    let mut arriving = Arriving::new(git, client, most);
    let mut piece = Vec::with_capacity(PIECE / 4);
    let reading = async {
        while input.read_buf(&mut piece).await.map_err(GitError::Client)? > 0 {
            arriving.push(&mut piece).await?;
        }
        arriving.finish()
    };
    let limit = git.limits().check;
    timeout(limit, reading).await.unwrap_or(Err(GitError::Client(io::ErrorKind::TimedOut.into())))
}

/// Reads packets up to a flush: a command of version 2, or the first request of a conversation. `None` is a client that wants
/// nothing more.
pub async fn read_section<R: AsyncRead + Unpin>(
    git: &Git,
    client: Client,
    reader: &mut PacketReader<R>,
    most: u64,
) -> Result<Option<Request>, GitError> {
    let mut arriving = Arriving::new(git, client, most);
    let mut piece = Vec::with_capacity(PIECE / 4);
    let reading = async {
        let mut is_first = true;
        loop {
            let packet = match reader.next().await.map_err(broken)? {
                None | Some(Packet::Flush) if is_first => return Ok(None),
                None => return Err(GitError::Client(io::ErrorKind::UnexpectedEof.into())),
                Some(packet) => packet,
            };
            is_first = false;
            put_packet(&mut piece, &packet);
            let is_last = packet == Packet::Flush;
            if is_last || piece.len() >= PIECE / 4 {
                arriving.push(&mut piece).await?;
            }
            if is_last {
                return arriving.finish().map(Some);
            }
        }
    };
    let limit = git.limits().check;
    timeout(limit, reading).await.unwrap_or(Err(GitError::Client(io::ErrorKind::TimedOut.into())))
}

/// A packet as it came.
fn put_packet(out: &mut Vec<u8>, packet: &Packet) {
    match packet {
        Packet::Data(data) => {
            out.extend_from_slice(format!("{:04x}", data.len() + 4).as_bytes());
            out.extend_from_slice(data);
        }
        Packet::Flush => out.extend_from_slice(b"0000"),
        Packet::Delim => out.extend_from_slice(b"0001"),
        Packet::ResponseEnd => out.extend_from_slice(b"0002"),
    }
}

/// The failure of a client whose packets cannot be read.
fn broken(error: PacketReadError) -> GitError {
    GitError::Client(match error {
        PacketReadError::Io(error) => error,
        PacketReadError::Truncated => io::ErrorKind::UnexpectedEof.into(),
        PacketReadError::Packet(error) => io::Error::new(io::ErrorKind::InvalidData, error),
    })
}

/// Starts a fetch; its answer is read from the returned stream. Dropping the stream kills git.
pub async fn spawn(git: &Git, fetch: &UploadPack, request: Request) -> Result<Pumped, GitError> {
    let slot = git.fetch_slot(fetch.client).await?;
    let share = git.fetch_share(fetch.client, &fetch.repo).await?;
    let (mut running, request) = match request.content {
        Spooled::File(file) => (fetch.start(git, &share, true, Some(file))?, None),
        Spooled::Memory(bytes) => {
            let mut running = fetch.start(git, &share, true, None)?;
            let stdin = running.stdin.take().expect("stdin is piped");
            (running, Some((stdin, bytes)))
        }
    };
    let answer = running.stdout.take().expect("stdout is piped");
    let (owner, repo) = (git.clone(), fetch.repo.clone());
    let failed = Box::new(move |error: &GitError| note_starved(&owner, &repo, error));
    Ok(Pump { running, held: (slot, share), answer, request, patience: fetch.patience, failed }.start())
}

/// Goes on with a conversation of version 0 or 1 whose advertisement the client has, and whose first request is here. Returns
/// when git has said all; dropping the future, or either side failing or standing still, ends git.
pub async fn serve(
    git: &Git,
    fetch: &UploadPack,
    opening: Request,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), GitError> {
    let _slot = git.fetch_slot(fetch.client).await?;
    let share = git.fetch_share(fetch.client, &fetch.repo).await?;
    let mut running = fetch.start(git, &share, false, None)?;
    let mut stdin = running.stdin.take().expect("stdin is piped");
    let mut stdout = PacketReader::new(running.stdout.take().expect("stdout is piped"));
    // git advertises what the client has heard already, and reads nothing before.
    while !matches!(stdout.next().await.map_err(broken)?, None | Some(Packet::Flush)) {}
    // A git that reads no more says why.
    let _ = match opening.content {
        Spooled::Memory(bytes) => stdin.write_all(&bytes).await,
        Spooled::File(file) => tokio::io::copy(&mut tokio::fs::File::from_std(file), &mut stdin).await.map(drop),
    };
    let said = AtomicU64::new(0);
    // The client may keep its side open after the fetch, so the end of git's answer is the end.
    tokio::select! {
        sent = send_counted(stdout, output, fetch.patience, &said) => sent?,
        error = feed(input, stdin, fetch.patience, &said) => return Err(GitError::Client(error)),
    }
    let status = running.wait().await?;
    let judged = running.judge(status).await;
    if let Err(error) = &judged {
        note_starved(git, &fetch.repo, error);
    }
    judged
}

/// Lets the next fetch from this repository have more memory, if this one ended for want of it. `upload-pack` does not say
/// why its `pack-objects` ended, so each such end counts; the sum over large fetches bounds the rest.
fn note_starved(git: &Git, repo: &Path, error: &GitError) {
    let is_starved = match error {
        GitError::UsedUp { of, .. } => *of == "memory",
        GitError::Failed { stderr, .. } => stderr.contains("pack-objects died"),
        _ => false,
    };
    if is_starved {
        git.fetch_starved(repo);
    }
}

/// Copies an answer to the client until it ends.
pub async fn send(
    answer: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    patience: Patience,
) -> Result<(), GitError> {
    send_counted(answer, output, patience, &AtomicU64::new(0)).await
}

async fn send_counted(
    mut answer: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    mut patience: Patience,
    said: &AtomicU64,
) -> Result<(), GitError> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = answer.read(&mut piece).await.map_err(GitError::Client)?;
        if length == 0 {
            return Ok(());
        }
        send_piece(&mut output, &piece[..length], &mut patience).await?;
        said.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Sends a piece of an answer to a client that takes it at the least rate.
pub async fn send_piece(
    mut output: impl AsyncWrite + Unpin,
    piece: &[u8],
    patience: &mut Patience,
) -> Result<(), GitError> {
    let since = Instant::now();
    let write = async {
        output.write_all(piece).await?;
        output.flush().await
    };
    let written = timeout(patience.left(), write).await.map_err(|_| GitError::Client(too_slow(patience)))?;
    written.map_err(GitError::Client)?;
    patience.waited(since.elapsed(), piece.len() as u64);
    Ok(())
}

/// Copies the client's words to git. Comes back only if the client's side fails or is too slow: its regular end closes git's
/// input and the answer goes on, and a git that reads no more decides by itself how the fetch ends. Bytes of either side give
/// patience back at the least rate, so small questions do not hold the slot. A client that has said `done` only listens.
async fn feed(input: impl AsyncRead + Unpin, mut stdin: ChildStdin, full: Patience, said: &AtomicU64) -> io::Error {
    let mut reader = PacketReader::new(input);
    let (mut patience, mut heard, mut is_done) = (full, 0, false);
    let mut piece = Vec::new();
    loop {
        let since = Instant::now();
        let most = if is_done { full.full().max(LISTENING) } else { patience.left() };
        let read = timeout(most, reader.next()).await;
        let said = said.load(Ordering::Relaxed);
        patience.waited(since.elapsed(), said - heard);
        heard = said;
        match read {
            Err(_) if !is_done && patience.left().is_zero() => return too_slow(&full),
            Err(_) => {}
            Ok(Ok(None) | Err(PacketReadError::Truncated)) => break,
            Ok(Ok(Some(packet))) => {
                is_done |= matches!(&packet, Packet::Data(data) if data.trim_ascii_end() == b"done");
                piece.clear();
                put_packet(&mut piece, &packet);
                patience.waited(Duration::ZERO, piece.len() as u64);
                if stdin.write_all(&piece).await.is_err() {
                    break;
                }
            }
            Ok(Err(PacketReadError::Io(error))) => return error,
            Ok(Err(PacketReadError::Packet(error))) => return io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
    drop((stdin, piece));
    std::future::pending().await
}
