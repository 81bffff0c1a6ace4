//! Reading the rest of a refused client's input, so that the client can read the refusal.
//!
//! git writes its whole pack before it reads the answer; a connection that ends earlier shows "connection reset" instead
//! of the reason. Refused clients have no other slot, so large rests have slots of their own.

use crate::Forge;
use abide_git::{Client, Git};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

/// Bytes read without a slot: the rest of nearly all pushes.
const FREE: u64 = 64 * 1024;

/// Time limit of a drain with a slot: 64 MiB at about 2 Mbit/s.
const LONGEST: Duration = Duration::from_secs(300);

/// Reads what a refused client still sends, within limits. Returns early if the client gets no slot within `git.queue`;
/// its connection then ends.
pub async fn drain(forge: &Forge, client: Client, reader: &mut (impl AsyncRead + Unpin)) {
    let settings = &forge.settings().git;
    read(forge.git(), client, settings.drain_bytes, settings.idle_timeout, reader).await;
}

async fn read(git: &Git, client: Client, most: u64, idle: Duration, reader: &mut (impl AsyncRead + Unpin)) {
    let free = most.min(FREE);
    if !skip(reader, free, idle).await || most == free {
        return;
    }
    // Nothing is read meanwhile, so the client waits.
    let Ok(_slot) = git.drain_slot(client).await else { return };
    let _ = timeout(LONGEST, skip(reader, most - free, idle)).await;
}

/// Reads and discards this many bytes; false if the input ended, failed or paused for too long before.
async fn skip(reader: &mut (impl AsyncRead + Unpin), mut left: u64, idle: Duration) -> bool {
    let mut buffer = vec![0; 32 * 1024];
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match timeout(idle, reader.read(&mut buffer[..most])).await {
            Ok(Ok(read)) if read > 0 => left -= read as u64,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_git::{GitLimits, Layout};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio_util::io::InspectReader;

    const IDLE: Duration = Duration::from_secs(60);
    const MOST: u64 = 1 << 20;

    fn git() -> (Git, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        (Git::new(Path::new("git"), &layout, GitLimits::default()).unwrap(), dir)
    }

    fn at(last: u8) -> Client {
        Client::new(Some([192, 0, 2, last].into()), None)
    }

    /// Drains a client that sends this many bytes and then pauses; the number that was read.
    fn start(git: &Git, client: Client, bytes: usize) -> Arc<AtomicU64> {
        let (git, seen) = (git.clone(), Arc::new(AtomicU64::new(0)));
        let counted = seen.clone();
        tokio::spawn(async move {
            let (mut sender, receiver) = tokio::io::duplex(1 << 16);
            let sending = async move {
                use tokio::io::AsyncWriteExt as _;
                let _ = sender.write_all(&vec![0; bytes]).await;
                std::future::pending::<()>().await
            };
            let count = |piece: &[u8]| {
                counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
            };
            let mut reader = InspectReader::new(receiver, count);
            tokio::select! {
                () = sending => {}
                () = read(&git, client, MOST, IDLE, &mut reader) => {}
            }
        });
        seen
    }

    /// Lets all tasks run until they are blocked.
    async fn settle() {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_small_push_needs_no_slot_and_large_ones_of_one_client_have_so_many() {
        let (git, _dir) = git();
        let large: Vec<_> = (0..12).map(|_| start(&git, at(1), 256 << 10)).collect();
        settle().await;
        let read = || large.iter().map(|seen| seen.load(Ordering::Relaxed)).collect::<Vec<_>>();
        assert_eq!(read().iter().filter(|seen| **seen == 256 << 10).count(), 4, "{:?}", read());
        assert_eq!(read().iter().filter(|seen| **seen == FREE).count(), 8, "{:?}", read());
        let (small, other) = (start(&git, at(1), 1000), start(&git, at(2), 256 << 10));
        settle().await;
        assert_eq!(small.load(Ordering::Relaxed), 1000);
        assert_eq!(other.load(Ordering::Relaxed), 256 << 10, "another client has slots of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_ends_at_its_bytes_and_at_its_time() {
        let (git, _dir) = git();
        let mut endless = tokio::io::repeat(0);
        read(&git, at(1), MOST, IDLE, &mut endless).await;
        // One byte every 30 s keeps a connection alive, but no slot.
        let (mut sender, mut receiver) = tokio::io::duplex(1 << 17);
        let sending = async move {
            use tokio::io::AsyncWriteExt as _;
            let _ = sender.write_all(&vec![0; 1 << 16]).await;
            while sender.write_all(b"0").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(30)).await;
            }
        };
        let began = tokio::time::Instant::now();
        tokio::select! {
            () = sending => {}
            () = read(&git, at(1), MOST, IDLE, &mut receiver) => {}
        }
        assert_eq!(began.elapsed(), LONGEST);
    }
}
