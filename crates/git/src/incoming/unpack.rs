//! Taking the pack: count it, hand it to git, and make what git wrote durable.

use super::Incoming;
use crate::child::Running;
use crate::durable::sync_all;
use crate::error::blocking;
use crate::layout::entries;
use crate::pktline::PacketReadError;
use crate::receive::{ReceiveError, ReceiveLimits};
use crate::{GitError, runner::Call};
use bytes::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Mistakes that only old tools made and that sit deep in the history of well-known projects. They harm nobody, and
/// refusing them would keep those projects out. Everything else that git calls an error stays one, above all what
/// attacks a client: names like `.git`, hostile `.gitmodules`, over-long paths, NUL where text is expected.
pub const TOLERATED_FSCK: &[&str] = &[
    "badTimezone",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
    "missingEmail",
    "missingNameBeforeEmail",
    "zeroPaddedDate",
    "zeroPaddedFilemode",
    "badFilemode",
    "missingTaggerEntry",
    "badTagName",
];

/// Length of a pack's header: `PACK`, version, number of objects.
const HEADER: usize = 12;
/// No object takes fewer bytes in a pack than this: its header and an empty zlib stream.
const SMALLEST_OBJECT: u64 = 9;
/// No single object may make git ask for more memory than this: a few kilobytes of pack can claim any size. Large blobs
/// are streamed and need little; the table of objects of the largest packs we know of takes about half.
const LARGEST_ALLOCATION: &str = "2g";
/// What git calls an "object of unexpected type", without saying that it means one that is not there.
const LACKING: &str = "an object that it refers to is missing or of another kind; run `git fsck` in your clone and \
                       push again";
/// How much is copied at a time: a pipe holds as much.
const PIECE: usize = 64 * 1024;

/// What a pack was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackOutcome {
    /// Objects it said it has.
    pub objects: u32,
    /// Its length, as far as we know: all that was read behind the commands.
    pub bytes: u64,
    /// Whether it stays a pack or became loose objects.
    pub kept_as_pack: bool,
}

impl Incoming {
    /// Takes a pack from the client. No lock is held; progress is dropped rather than waited for.
    ///
    /// What git says while resolving goes to `progress`, ready for side-band 2; `None` for a quiet client.
    pub async fn receive(
        &self,
        mut pack: impl AsyncRead + Unpin,
        limits: &ReceiveLimits,
        progress: Option<mpsc::Sender<Bytes>>,
    ) -> Result<PackOutcome, ReceiveError> {
        let _place = self.git.receive_place().await?;
        let (version, objects) = read_header(&mut pack, limits).await?;
        let small = objects < limits.unpack_limit;
        let ended = Arc::new(AtomicBool::new(false));
        let mut running =
            self.unpacker(small, version, objects, limits).start_watched(watch_progress(ended.clone(), progress))?;
        let stdin = running.stdin.take().expect("stdin is piped");
        let mut feed =
            Feed { stdin: Some(stdin), ended: &ended, limits, resolve: self.git.limits().check, bytes: HEADER as u64 };
        let status = tokio::select! {
            // git ends when the pack does, which is before the client's stream ends: it waits for our report.
            status = running.wait() => status?,
            fed = feed.all(pack) => {
                fed?;
                self.wait_for_the_rest(&mut running, small).await?
            }
        };
        let bytes = feed.bytes;
        if !status.success() {
            return Err(refusal(&running.last_words().await, limits));
        }
        let dir = self.objects();
        blocking(move || flush(&dir).map_err(GitError::io("flush", &dir))).await?;
        Ok(PackOutcome { objects, bytes, kept_as_pack: !small })
    }

    fn unpacker(&self, small: bool, version: u32, objects: u32, limits: &ReceiveLimits) -> Call<'_> {
        let tolerated: Vec<_> = TOLERATED_FSCK.iter().map(|id| format!("{id}=ignore")).collect();
        let strict = format!("--strict={}", tolerated.join(","));
        let header = format!("--pack_header={version},{objects}");
        let size = format!("--max-input-size={}", limits.pack_bytes);
        // Flushing file by file is git's slowest part here. We flush all at once below, before anything refers to it.
        let settings = [("core.fsync", "none")];
        if small {
            let call = self.call("unpack-objects", &settings).env("GIT_ALLOC_LIMIT", LARGEST_ALLOCATION);
            return call.args(["-q", &strict, &header, &size]);
        }
        let fixed = ["--stdin", "--fix-thin", "--show-resolving-progress", "--report-end-of-input"];
        let call = self.call("index-pack", &settings).env("GIT_ALLOC_LIMIT", LARGEST_ALLOCATION);
        call.args(fixed).args([&strict, &header, &size])
    }

    /// All is with git; resolving deltas takes its time, but not forever.
    async fn wait_for_the_rest(
        &self,
        running: &mut Running,
        small: bool,
    ) -> Result<std::process::ExitStatus, GitError> {
        let after = self.git.limits().check;
        let what = if small { "unpack-objects" } else { "index-pack" };
        timeout(after, running.wait()).await.map_err(|_| GitError::TimedOut { what, after })?
    }
}

async fn read_header(pack: &mut (impl AsyncRead + Unpin), limits: &ReceiveLimits) -> Result<(u32, u32), ReceiveError> {
    let mut header = [0; HEADER];
    match timeout(limits.idle, pack.read_exact(&mut header)).await {
        Err(_) => return Err(ReceiveError::Idle(limits.idle)),
        Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(ReceiveError::Truncated),
        Ok(Err(error)) => return Err(PacketReadError::Io(error).into()),
        Ok(Ok(_)) => (),
    }
    let (version, objects) = parse_header(&header).ok_or(ReceiveError::NotAPack)?;
    // index-pack reserves memory for as many objects as the header claims.
    if u64::from(objects) > limits.pack_bytes / SMALLEST_OBJECT {
        return Err(ReceiveError::TooLarge(limits.pack_bytes));
    }
    Ok((version, objects))
}

/// Version and number of objects.
fn parse_header(header: &[u8; HEADER]) -> Option<(u32, u32)> {
    let number = |at: usize| header[at..at + 4].iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
    let version = number(4);
    (header.starts_with(b"PACK") && matches!(version, 2 | 3)).then(|| (version, number(8)))
}

/// Notes the NUL by which index-pack says that it has the whole pack, and hands on the rest.
fn watch_progress(ended: Arc<AtomicBool>, progress: Option<mpsc::Sender<Bytes>>) -> impl FnMut(&[u8]) + Send {
    move |piece| {
        let text: Vec<u8> = piece.iter().copied().filter(|&byte| byte != 0).collect();
        if text.len() < piece.len() {
            ended.store(true, Ordering::Relaxed);
        }
        if let (Some(progress), false) = (&progress, text.is_empty()) {
            let _ = progress.try_send(text.into());
        }
    }
}

/// Copies the client's bytes to git, counting and keeping time.
struct Feed<'a> {
    /// Dropped at the end of the client's stream: that is how git hears of it.
    stdin: Option<ChildStdin>,
    ended: &'a AtomicBool,
    limits: &'a ReceiveLimits,
    /// How long git may take once it has the whole pack.
    resolve: Duration,
    bytes: u64,
}

impl Feed<'_> {
    /// Returns at the end of the client's stream, with git's input closed.
    async fn all(&mut self, mut pack: impl AsyncRead + Unpin) -> Result<(), ReceiveError> {
        let mut piece = vec![0; PIECE];
        let mut resolving = Duration::ZERO;
        loop {
            let length = match timeout(self.limits.idle, pack.read(&mut piece)).await {
                // A client that has sent all and waits for the report is not idle; then it is git's time that runs.
                Err(_) if self.ended.load(Ordering::Relaxed) && resolving < self.resolve => {
                    resolving += self.limits.idle;
                    continue;
                }
                Err(_) => return Err(ReceiveError::Idle(self.limits.idle)),
                Ok(Err(error)) => return Err(PacketReadError::Io(error).into()),
                Ok(Ok(length)) => length,
            };
            let Some(stdin) = self.stdin.as_mut().filter(|_| length > 0) else {
                self.stdin = None;
                return Ok(());
            };
            self.bytes += length as u64;
            if self.bytes > self.limits.pack_bytes {
                return Err(ReceiveError::TooLarge(self.limits.pack_bytes));
            }
            if stdin.write_all(&piece[..length]).await.is_err() {
                // git reads no more: its exit status says why, and is waited for beside us.
                return std::future::pending().await;
            }
        }
    }
}

/// What git's complaint means for the person who pushed: its errors, without progress and prefixes.
fn refusal(stderr: &str, limits: &ReceiveLimits) -> ReceiveError {
    if stderr.contains("exceeds maximum allowed size") {
        return ReceiveError::TooLarge(limits.pack_bytes);
    }
    if stderr.contains("object of unexpected type") {
        return ReceiveError::BadPack(LACKING.to_owned());
    }
    let errors: Vec<_> = stderr
        .split(['\n', '\r', '\0'])
        .filter_map(|line| line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")))
        .take(5)
        .collect();
    let text = if errors.is_empty() { "git gave no reason".to_owned() } else { errors.join("; ") };
    ReceiveError::BadPack(text)
}

/// Makes all files of the area durable. Their names become so when they are migrated.
fn flush(objects: &Path) -> io::Result<()> {
    let mut files: Vec<PathBuf> = Vec::new();
    for dir in entries(objects)? {
        files.extend(entries(&dir)?.into_iter().filter(|path| path.is_file()));
    }
    sync_all(&files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_are_read() {
        assert_eq!(parse_header(b"PACK\0\0\0\x02\0\0\x01\x02"), Some((2, 258)));
        assert_eq!(parse_header(b"PACK\0\0\0\x04\0\0\x01\x02"), None);
        assert_eq!(parse_header(b"KCAP\0\0\0\x02\0\0\x01\x02"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_headers_never_panic(header: [u8; HEADER]) {
            let _ = parse_header(&header);
        }
    }

    #[test]
    fn only_git_s_errors_are_shown() {
        let stderr = "Resolving deltas: 10%\rerror: object 1: badTree\nfatal: fsck error in packed object\n";
        let ReceiveError::BadPack(text) = refusal(stderr, &ReceiveLimits::default()) else { panic!() };
        assert_eq!(text, "object 1: badTree; fsck error in packed object");
    }

    #[tokio::test]
    async fn a_header_that_claims_more_than_can_be_is_refused() {
        let limits = ReceiveLimits { pack_bytes: 1000, ..ReceiveLimits::default() };
        let mut pack = &b"PACK\0\0\0\x02\xff\xff\xff\xff"[..];
        assert!(matches!(read_header(&mut pack, &limits).await, Err(ReceiveError::TooLarge(1000))));
    }

    #[test]
    fn idle_time_is_told_in_seconds() {
        let text = ReceiveError::Idle(Duration::from_secs(60)).to_string();
        assert_eq!(text, "nothing arrived for 60 s; check the connection and push again");
    }
}
