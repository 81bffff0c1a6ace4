//! Buffers a client's bytes until all have arrived: small input in memory, larger input in an unlinked file.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

/// Bytes kept in memory; more go to a file.
pub(crate) const IN_MEMORY: usize = 64 * 1024;

/// Buffer for arriving bytes.
#[derive(Debug)]
pub(crate) struct Spool {
    dir: PathBuf,
    memory: Vec<u8>,
    file: Option<File>,
    length: u64,
}

/// Complete input, to be read once from the start.
#[derive(Debug)]
pub enum Spooled {
    /// At most [`IN_MEMORY`] bytes.
    Memory(Vec<u8>),
    /// More bytes. The file is unlinked, so it vanishes with its last reader, even after a crash.
    File(File),
}

impl Spool {
    /// An empty buffer; a spool file would be created in this directory.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), memory: Vec::new(), file: None, length: 0 }
    }

    pub fn len(&self) -> u64 {
        self.length
    }

    /// Appends bytes. Blocks once a file is in use.
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

    /// Ends the input and rewinds the file.
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
