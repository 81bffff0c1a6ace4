//! Large repositories, created in seconds.

use std::io::{self, Write};
use std::path::Path;

use crate::GitClient;

/// Input of [`GitClient::fast_import`]: a linear history, and refs to its last commit.
#[derive(Clone, Copy, Debug)]
pub struct History {
    /// Number of commits on the branch `main`; at least one.
    pub commits: usize,
    /// Incompressible bytes that each commit adds in a new file.
    pub bytes_per_commit: usize,
    /// Number of tags `many/000000`, `many/000001`, … on the last commit.
    pub refs: usize,
}

/// Files per directory, so that a long history does not rewrite one huge tree per commit.
const FILES_PER_DIRECTORY: usize = 100;

/// From this size on, trying to compress incompressible data takes longer than everything else.
const LARGE: usize = 1 << 20;

impl History {
    /// Writes the stream for `git fast-import`.
    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        let mut content = vec![0; self.bytes_per_commit];
        for number in 0..self.commits {
            noise.fill(&mut content);
            let when = 1_767_225_600 + number;
            let message = format!("Commit {number}\n");
            writeln!(out, "commit refs/heads/main\nmark :{}", number + 1)?;
            writeln!(out, "committer Test Person <person@example.org> {when} +0000")?;
            writeln!(out, "data {}\n{message}", message.len())?;
            writeln!(out, "M 100644 inline {}/{number}.bin", number / FILES_PER_DIRECTORY)?;
            writeln!(out, "data {}", content.len())?;
            out.write_all(&content)?;
            writeln!(out)?;
        }
        for number in 0..self.refs {
            writeln!(out, "reset refs/tags/many/{number:06}\nfrom :{}\n", self.commits)?;
        }
        writeln!(out, "done")
    }
}

impl GitClient {
    /// Fills an empty repository with a history. Refs are packed; a work tree stays unchanged.
    ///
    /// # Panics
    /// If the history has no commit or git refuses it.
    #[track_caller]
    pub fn fast_import(&self, dir: &Path, history: History) {
        assert!(history.commits > 0, "a history has at least one commit");
        let mut args = vec!["-c", "fastimport.unpackLimit=0"];
        if history.bytes_per_commit > LARGE {
            args.extend(["-c", "core.compression=0", "-c", "pack.depth=0"]);
        }
        args.extend(["fast-import", "--quiet", "--done"]);
        self.feed(dir, &args, move |input| history.write(input));
        self.ok(dir, &["pack-refs", "--all"]);
    }
}

/// Incompressible bytes that are the same in every run (xorshift64).
struct Noise(u64);

impl Noise {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            chunk.copy_from_slice(&self.0.to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_has_the_commits_bytes_and_refs_asked_for() {
        let git = GitClient::new();
        let dir = git.init_work_tree();
        git.fast_import(&dir, History { commits: 250, bytes_per_commit: 1001, refs: 300 });

        assert_eq!(git.ok(&dir, &["rev-list", "--count", "main"]), "250");
        assert_eq!(git.ok(&dir, &["cat-file", "-s", "main:2/249.bin"]), "1001");
        assert_eq!(git.ok(&dir, &["for-each-ref", "refs/tags/many"]).lines().count(), 300);
        assert_eq!(git.ok(&dir, &["rev-parse", "many/000299"]), git.ok(&dir, &["rev-parse", "main"]));
        git.ok(&dir, &["fsck", "--strict"]);
    }
}
