//! Generated repositories: the same bytes in every run.

use std::io::{self, Write};
use std::path::Path;

/// Bytes that cannot be compressed, from a seed (xorshift64*).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let word = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// A straight history on `main`: each commit replaces one of the files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    pub commits: usize,
    pub files: usize,
    pub file_bytes: usize,
}

impl History {
    /// Writes it for `git fast-import`.
    pub(crate) fn write(self, out: &mut dyn Write) -> io::Result<()> {
        const FIRST: usize = 1_700_000_000;
        const FILES_IN_DIRECTORY: usize = 20;
        let mut content = vec![0; self.file_bytes];
        for number in 0..self.commits {
            let file = number % self.files;
            let message = format!("Change {number}\n");
            writeln!(out, "commit refs/heads/main")?;
            writeln!(out, "committer Bench <bench@example.org> {} +0000", FIRST + number * 60)?;
            write!(out, "data {}\n{message}\n", message.len())?;
            writeln!(out, "M 100644 inline src/{}/{}.bin", file / FILES_IN_DIRECTORY, file % FILES_IN_DIRECTORY)?;
            Noise::new(number as u64).fill(&mut content);
            writeln!(out, "data {}", content.len())?;
            out.write_all(&content)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Writes `count` refs to a bare repository, spread over these objects; every fifth is a tag.
pub(crate) fn write_refs(repo: &Path, objects: &[&str], count: usize) -> io::Result<()> {
    let name = |number: usize| match number % 5 {
        0 => format!("refs/tags/v{number:06}"),
        _ => format!("refs/heads/topic/{:03}/change-{number:06}", number % 500),
    };
    let mut lines: Vec<_> = (0..count).map(|number| (name(number), objects[number % objects.len()])).collect();
    lines.push(("refs/heads/main".to_owned(), objects[objects.len() - 1]));
    lines.sort_unstable();
    let mut out = io::BufWriter::new(std::fs::File::create(repo.join("packed-refs"))?);
    writeln!(out, "# pack-refs with: peeled fully-peeled sorted ")?;
    for (name, object) in lines {
        writeln!(out, "{object} {name}")?;
    }
    out.flush()
}

/// Copies objects and refs from one bare repository to another.
pub(crate) fn copy_repository(from: &Path, to: &Path) -> io::Result<()> {
    copy_tree(&from.join("objects"), &to.join("objects"))?;
    copy_tree(&from.join("refs"), &to.join("refs"))?;
    match std::fs::copy(from.join("packed-refs"), to.join("packed-refs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map(drop),
    }
}

/// Copies a directory recursively; existing files stay.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
