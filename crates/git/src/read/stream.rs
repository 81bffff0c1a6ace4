//! Streams blobs of any size through git.

use super::ReadError;
use crate::pump::{Cutter, Pump, Pumped};
use crate::{Client, Git, GitError};
use abide_core::Oid;
use abide_core::patience::Patience;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, ReadBuf, Take};
use tokio::time::timeout;

/// Longest `cat-file` header: id, type, size and the id of the delta base.
const HEADER: u64 = 256;

/// Settings of `cat-file`. Files above this size are streamed if they are stored whole, and bases of deltas are forgotten.
const STREAMING: &[(&str, &str)] = &[("core.bigFileThreshold", "512k"), ("core.deltaBaseCacheLimit", "512k")];

/// A file up to this size needs no slot while git holds it in memory.
const SMALL: u64 = 1 << 20;

/// Content of a blob, to be read to its end. Dropping it kills git.
#[derive(Debug)]
pub struct BlobStream {
    size: u64,
    content: Take<Pumped>,
}

impl BlobStream {
    /// Starts streaming a blob. This process uses constant memory. git streams blobs that are stored whole; it holds one
    /// that is stored as a delta in memory, within its ration, so few such files are sent at once.
    pub async fn open(
        git: &Git,
        repo_dir: &Path,
        oid: Oid,
        client: Client,
        patience: Patience,
    ) -> Result<Self, ReadError> {
        let slot = git.file_slot(client).await?;
        let call = git.call_with("cat-file", repo_dir, STREAMING).ration(git.download_ration(client));
        let format = "--batch-command=%(objectname) %(objecttype) %(objectsize) %(deltabase)";
        let mut running = call.args([format]).start()?;
        let mut stdin = running.stdin.take().expect("stdin is piped");
        let mut stdout = BufReader::new(running.stdout.take().expect("stdout is piped"));
        let limit = git.limits().quick;
        let mut ask = async |command: &str| {
            let mut header = Vec::new();
            let asking = async {
                stdin.write_all(format!("{command} {oid}\n").as_bytes()).await?;
                (&mut stdout).take(HEADER).read_until(b'\n', &mut header).await
            };
            timeout(limit, asking).await.map_err(|_| late(limit))?.map_err(unreadable)?;
            parse_header(&header)
        };
        let Found { size, is_delta } = ask("info").await?;
        let held = if is_delta && size > SMALL { Some(git.held_file_slot(client).await?) } else { None };
        ask("contents").await?;
        // git exits after its answer, because its input has ended.
        drop(stdin);
        // Before the first byte, git has loaded a blob that is stored as a delta, or failed.
        let begun = timeout(limit, stdout.fill_buf()).await.map_err(|_| late(limit))?.map_err(unreadable)?;
        if begun.is_empty() {
            let status = running.wait().await?;
            running.judge(status).await?;
            return Err(unreadable(io::ErrorKind::UnexpectedEof.into()).into());
        }
        // Read the newline after the content too, so that git can finish its output.
        let answer = stdout.take(size.saturating_add(1));
        let failed = Box::new(|_: &GitError| ());
        let content = Pump { running, held: (slot, held), answer, request: None, patience, failed }.start().take(size);
        Ok(Self { size, content })
    }

    /// A handle that ends it.
    pub fn cutter(&self) -> Cutter {
        self.content.get_ref().cutter()
    }

    /// Size of the blob in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// A blob that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    size: u64,
    /// Whether it is stored as a difference to another object.
    is_delta: bool,
}

fn late(limit: Duration) -> GitError {
    GitError::TimedOut { what: "cat-file", after: limit }
}

fn unreadable(source: io::Error) -> GitError {
    GitError::Failed { what: "cat-file", status: "unreadable".to_owned(), stderr: source.to_string() }
}

/// Parses `<oid> blob <size> <delta base>` or `<oid> missing`. The base is zero for an object that is stored whole.
fn parse_header(header: &[u8]) -> Result<Found, ReadError> {
    let text = String::from_utf8_lossy(header);
    let mut words = text.split_whitespace().skip(1);
    match (words.next(), words.next().and_then(|size| size.parse().ok())) {
        (Some("blob"), Some(size)) => {
            let is_delta = words.next().is_some_and(|base| base.bytes().any(|digit| digit != b'0'));
            Ok(Found { size, is_delta })
        }
        (Some("tree" | "commit" | "tag"), _) => Err(ReadError::NotAFile),
        _ => Err(ReadError::NotFound),
    }
}

impl AsyncRead for BlobStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let read = Pin::new(&mut self.content).poll_read(context, out);
        let ended = matches!(read, Poll::Ready(Ok(()))) && out.filled().len() == before && out.remaining() > 0;
        if ended && self.content.limit() > 0 {
            // The client knows the size and must not take a partial blob for a whole one.
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "git ended before the blob did")));
        }
        read
    }
}
