//! Bytes of a client that wait until all of them are here: few in memory, more in a file without a name.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

/// As much waits in memory; more goes to a file.
pub(crate) const IN_MEMORY: usize = 64 * 1024;

/// Bytes that arrive.
#[derive(Debug)]
pub(crate) struct Spool {
    dir: PathBuf,
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
}

/// Bytes that are all here, to be read once from their beginning.
#[derive(Debug)]
pub enum Spooled {
    /// Few.
    Memory(Vec<u8>),
    /// Many. The file has no name, so it is gone with its last reader, a crash included.
    File(File),
}

impl Spool {
    /// Nothing yet; a file would be made in this directory.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), memory: Vec::new(), file: None, length: 0 }
    }

    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Takes some more. Blocks once there is a file.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        if let Some(file) = &mut self.file {
            return file.write_all(bytes);
        }
        if self.memory.len() + bytes.len() <= IN_MEMORY {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let mut file = nameless(&self.dir)?;
        file.write_all(&std::mem::take(&mut self.memory))?;
        file.write_all(bytes)?;
        self.file = Some(file);
        Ok(())
    }

    /// No more will come.
    pub fn finish(mut self) -> io::Result<Spooled> {
        match self.file.take() {
            None => Ok(Spooled::Memory(self.memory)),
            Some(mut file) => {
                file.rewind()?;
                Ok(Spooled::File(file))
            }
        }
    }
}

fn nameless(dir: &Path) -> io::Result<File> {
    let path = dir.join(format!("spool-{:016x}", crate::durable::never_twice()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn few_bytes_stay_in_memory_and_many_go_to_a_file_that_has_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut few = Spool::new(dir.path());
        few.push(b"few").unwrap();
        assert!(matches!(few.finish().unwrap(), Spooled::Memory(bytes) if bytes == b"few"));
        let mut many = Spool::new(dir.path());
        let piece = vec![7; 50_000];
        (0..3).for_each(|_| many.push(&piece).unwrap());
        assert_eq!(many.len(), 150_000);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let Spooled::File(mut file) = many.finish().unwrap() else { panic!("it is in memory") };
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert_eq!(read, piece.repeat(3));
    }
}
