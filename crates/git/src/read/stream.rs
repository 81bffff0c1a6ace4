//! Blobs of any size, as a stream through git.

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

/// The longest answer of `cat-file` before the content: an id, a kind, a number.
const HEADER: u64 = 128;

/// The content of a blob, to be read to its end. Dropping it ends git.
#[derive(Debug)]
pub struct BlobStream {
    size: u64,
    content: Take<Pumped>,
}

impl BlobStream {
    /// Starts to read a blob in constant memory here; git itself holds what it must.
    pub async fn open(
        git: &Git,
        repo_dir: &Path,
        oid: Oid,
        client: Client,
        patience: Patience,
    ) -> Result<Self, ReadError> {
        let place = git.file_place(client).await?;
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
        // The end of its input ends git, once it has said all.
        drop(stdin);
        // With the newline behind it, so that git says all.
        let answer = stdout.take(size.saturating_add(1));
        let content = Pump { running, place, answer, request: None, patience }.start().take(size);
        Ok(Self { size, content })
    }

    /// A handle that ends it.
    pub fn cutter(&self) -> Cutter {
        self.content.get_ref().cutter()
    }

    /// How many bytes the blob has.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// Reads `<oid> blob <size>` or `<oid> missing`.
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
            // A client that was told the size must not take a part for the whole.
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "git ended before the blob did")));
        }
        read
    }
}
