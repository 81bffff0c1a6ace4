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
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, ReadBuf, Take};
use tokio::time::timeout;

/// Longest `cat-file` header: id, type and size.
const HEADER: u64 = 128;

/// Content of a blob, to be read to its end. Dropping it kills git.
#[derive(Debug)]
pub struct BlobStream {
    size: u64,
    content: Take<Pumped>,
}

impl BlobStream {
    /// Starts streaming a blob. This process uses constant memory; git uses what it needs.
    pub async fn open(
        git: &Git,
        repo_dir: &Path,
        oid: Oid,
        client: Client,
        patience: Patience,
    ) -> Result<Self, ReadError> {
        let slot = git.file_slot(client).await?;
        let mut running = git.call("cat-file", repo_dir).args(["--batch"]).start()?;
        let mut stdin = running.stdin.take().expect("stdin is piped");
        let mut stdout = BufReader::new(running.stdout.take().expect("stdout is piped"));
        let mut header = Vec::new();
        let limit = git.limits().quick;
        let ask = async {
            stdin.write_all(format!("{oid}\n").as_bytes()).await?;
            (&mut stdout).take(HEADER).read_until(b'\n', &mut header).await
        };
        let asked = timeout(limit, ask).await.map_err(|_| GitError::TimedOut { what: "cat-file", after: limit })?;
        asked.map_err(|source| GitError::Failed {
            what: "cat-file",
            status: "unreadable".to_owned(),
            stderr: source.to_string(),
        })?;
        let size = parse_header(&header)?;
        // git exits after its answer, because its input has ended.
        drop(stdin);
        // Read the newline after the content too, so that git can finish its output.
        let answer = stdout.take(size.saturating_add(1));
        let content = Pump { running, slot, answer, request: None, patience }.start().take(size);
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

/// Parses `<oid> blob <size>` or `<oid> missing`.
fn parse_header(header: &[u8]) -> Result<u64, ReadError> {
    let text = String::from_utf8_lossy(header);
    let mut words = text.split_whitespace().skip(1);
    match (words.next(), words.next().and_then(|size| size.parse().ok())) {
        (Some("blob"), Some(size)) => Ok(size),
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
