//! Receives a pack: reads all of it, runs git on it, then flushes the files that git wrote.
//!
//! While the pack arrives, no process runs and no memory is reserved: clients may be slow, and most attacks are. The
//! pack is scanned on arrival (`scan.rs`), so git's memory and time limits match the pack.

use super::Incoming;
use super::scan::{Allowance, Flaw, Scanner, Seen};
use crate::durable::sync_all;
use crate::error::blocking;
use crate::layout::entries;
use crate::pktline::PacketReadError;
use crate::ration::Ration;
use crate::receive::{ReceiveError, ReceiveLimits};
use crate::spool::{Spool, Spooled};
use crate::{GitError, runner::Call};
use bytes::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
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

/// Replaces git's "object of unexpected type", which does not say that the object may be missing.
const LACKING: &str = "a referenced object is missing or has the wrong type; run `git fsck` in your clone and \
                       push again";
/// Read size.
const PIECE: usize = 64 * 1024;
/// Packs that unpack to more than this stay packs, however few objects they have. Loose objects have no deltas, so they
/// take
/// the space of all results, and each is deflated again.
const LOOSE: u64 = 16 << 20;
/// Memory of a git process before it reads an object.
const BASE_MEMORY: u64 = 160 << 20;
/// Memory of git per object of a pack, for its index entry and checks.
const MEMORY_PER_OBJECT: u64 = 512;
/// Copies of the largest object that git may hold: base, delta, result and output.
const COPIES: u64 = 4;
/// CPU time allowed for any pack.
const BASE_TIME: Duration = Duration::from_secs(20);
/// Bytes of a pack per additional second of CPU time.
const PACKED_PER_SECOND: u64 = 1 << 20;
/// Unpacked bytes per additional second of CPU time.
const UNPACKED_PER_SECOND: u64 = 32 << 20;

/// Facts about a received pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackOutcome {
    /// Object count from the pack header.
    pub objects: u32,
    pub bytes: u64,
    /// Whether it was stored as a pack or as loose objects.
    pub kept_as_pack: bool,
}

/// A completely received pack.
struct Arrived {
    pack: Spooled,
    bytes: u64,
    seen: Seen,
}

impl Incoming {
    /// Receives a pack from the client. Holds no lock.
    ///
    /// git's progress goes to `progress`, ready for side-band 2; `None` for a quiet client. Progress that the channel
    /// cannot take at once is dropped.
    pub async fn receive(
        &self,
        pack: impl AsyncRead + Unpin,
        limits: &ReceiveLimits,
        progress: Option<mpsc::Sender<Bytes>>,
    ) -> Result<PackOutcome, ReceiveError> {
        let Arrived { pack, bytes, seen } = self.arrive(pack, limits).await?;
        let _slot = self.git.unpack_slot(self.client).await?;
        let ration = self.unpack_ration(bytes, seen);
        let _share = self.git.memory_share(self.client, ration.memory).await?;
        let small = seen.objects < limits.unpack_limit && seen.unpacked <= LOOSE;
        self.unpack(pack, self.unpacker(small, limits, ration), small, limits, progress).await?;
        let dir = self.objects();
        blocking(move || flush(&dir).map_err(GitError::io("flush", &dir))).await?;
        Ok(PackOutcome { objects: seen.objects, bytes, kept_as_pack: !small })
    }

    /// Reads and scans the pack to its end.
    async fn arrive(&self, mut pack: impl AsyncRead + Unpin, limits: &ReceiveLimits) -> Result<Arrived, ReceiveError> {
        let allowance = Allowance {
            packed: limits.pack_bytes,
            unpacked: limits.unpacked_bytes,
            ratio: limits.unpacked_ratio,
            structure: limits.structure_bytes,
        };
        let dir = self.area.path().to_owned();
        let mut state = (Scanner::new(allowance), Spool::new(&dir));
        let mut piece = Vec::new();
        while !state.0.is_done() {
            piece.clear();
            piece.reserve(PIECE);
            if read(&mut pack, &mut piece, limits).await? == 0 {
                return Err(ReceiveError::Truncated);
            }
            let (spool_dir, scan) = (dir.clone(), self.git.scan_slot(self.client).await?);
            (state, piece) = blocking(move || {
                let _scan = scan;
                let (mut scanner, mut spool) = state;
                let taken = scanner.feed(&piece)?;
                spool.push(&piece[..taken]).map_err(GitError::io("keep a pack in", &spool_dir))?;
                Ok::<_, ReceiveError>(((scanner, spool), piece))
            })
            .await?;
        }
        if limits.stream_ends {
            // A proxy may forward the response only after it has read the whole request.
            piece.clear();
            read(&mut pack, &mut piece, limits).await?;
        }
        let (scanner, spool) = state;
        let bytes = spool.len();
        let pack = spool.finish().map_err(GitError::io("keep a pack in", &dir))?;
        Ok(Arrived { pack, bytes, seen: scanner.seen() })
    }

    /// Memory and CPU time for unpacking this pack.
    fn unpack_ration(&self, bytes: u64, seen: Seen) -> Ration {
        let limits = self.git.limits();
        let threads = self.unpack_threads() as u64;
        let needed = BASE_MEMORY
            .saturating_add(MEMORY_PER_OBJECT * u64::from(seen.objects))
            .saturating_add(seen.largest.saturating_mul(COPIES * threads));
        let most = if self.client.is_stranger() { limits.stranger_memory } else { limits.memory };
        let seconds = bytes / PACKED_PER_SECOND + seen.unpacked / UNPACKED_PER_SECOND;
        Ration {
            memory: needed.min(most),
            processor: BASE_TIME + Duration::from_secs(seconds),
            yields: self.client.is_stranger(),
        }
    }

    fn unpack_threads(&self) -> usize {
        if self.client.is_stranger() { 1 } else { self.git.limits().pack_threads }
    }

    fn unpacker(&self, small: bool, limits: &ReceiveLimits, ration: Ration) -> Call<'_> {
        let tolerated: Vec<_> = TOLERATED_FSCK.iter().map(|id| format!("{id}=ignore")).collect();
        let strict = format!("--strict={}", tolerated.join(","));
        let size = format!("--max-input-size={}", limits.pack_bytes);
        let threads = self.unpack_threads().to_string();
        let settings = [
            // git flushes file by file, its slowest step here. We flush all files together below, before anything
            // refers to them.
            ("core.fsync", "none"),
            ("pack.threads", threads.as_str()),
            // Limit per thread.
            ("core.deltaBaseCacheLimit", "16m"),
        ];
        let what = if small { "unpack-objects" } else { "index-pack" };
        let call = self.call(what, &settings).env("GIT_ALLOC_LIMIT", ration.memory.to_string()).ration(ration);
        match small {
            true => call.args(["-q", &strict, &size]),
            false => call.args(["--stdin", "--fix-thin", "--show-resolving-progress", &strict, &size]),
        }
    }

    /// Feeds the pack to git and waits for its exit.
    async fn unpack(
        &self,
        pack: Spooled,
        mut call: Call<'_>,
        small: bool,
        limits: &ReceiveLimits,
        progress: Option<mpsc::Sender<Bytes>>,
    ) -> Result<(), ReceiveError> {
        let mut bytes = Vec::new();
        match pack {
            Spooled::File(file) => call = call.input(file),
            Spooled::Memory(memory) => bytes = memory,
        }
        let mut running = call.start_watched(hand_on(progress))?;
        let stdin = running.stdin.take();
        let feeding = async {
            if let Some(mut stdin) = stdin {
                // If git stops reading, its exit status says why.
                let _ = stdin.write_all(&bytes).await;
            }
        };
        let after = self.git.limits().check;
        let what = if small { "unpack-objects" } else { "index-pack" };
        let ended = timeout(after, async { tokio::join!(feeding, running.wait()).1 }).await;
        let status = ended.map_err(|_| GitError::TimedOut { what, after })??;
        match running.judge(status).await {
            Ok(()) => Ok(()),
            Err(GitError::Failed { stderr, .. }) => Err(refusal(&stderr, limits)),
            Err(GitError::UsedUp { of, .. }) => Err(ReceiveError::TooDear(of)),
            Err(error) => Err(error.into()),
        }
    }
}

async fn read(
    pack: &mut (impl AsyncRead + Unpin),
    piece: &mut Vec<u8>,
    limits: &ReceiveLimits,
) -> Result<usize, ReceiveError> {
    match timeout(limits.idle, pack.read_buf(piece)).await {
        Err(_) => Err(ReceiveError::Idle(limits.idle)),
        Ok(Err(error)) => Err(PacketReadError::Io(error).into()),
        Ok(Ok(length)) => Ok(length),
    }
}

/// Forwards git's progress; drops it if the channel is full.
fn hand_on(progress: Option<mpsc::Sender<Bytes>>) -> impl FnMut(&[u8]) + Send {
    move |piece| {
        if let Some(progress) = &progress {
            let _ = progress.try_send(Bytes::copy_from_slice(piece));
        }
    }
}

/// Maps git's stderr to an error for the user who pushed: error lines only, without progress and prefixes.
fn refusal(stderr: &str, limits: &ReceiveLimits) -> ReceiveError {
    if stderr.contains("exceeds maximum allowed size") {
        return Flaw::TooLarge(limits.pack_bytes).into();
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

/// Flushes all files of the area. Migration flushes their directory entries.
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

    #[test]
    fn only_git_s_errors_are_shown() {
        let stderr = "Resolving deltas: 10%\rerror: object 1: badTree\nfatal: fsck error in packed object\n";
        let ReceiveError::BadPack(text) = refusal(stderr, &ReceiveLimits::default()) else { panic!() };
        assert_eq!(text, "object 1: badTree; fsck error in packed object");
    }

    #[test]
    fn idle_time_is_told_in_seconds() {
        let text = ReceiveError::Idle(Duration::from_secs(60)).to_string();
        assert_eq!(text, "no data received for 60 s; check the connection and push again");
    }
}
