//! Parses a pack while it arrives: finds its end and its unpacked size.
//!
//! A pack can claim a thousand times its own length, and each delta in it can claim as much again for a few bytes. git
//! would discover that only by unpacking. The scanner discovers it before git starts: it reads the sizes in object and
//! delta headers, and inflates every object once without storing the output.

use gix::zlib::{Decompress, FlushDecompress, Status};

/// Length of a pack's header: `PACK`, version, number of objects.
const HEADER: usize = 12;
/// Length of the checksum after the last object.
const TRAILER: usize = 20;
/// Length of the base object id of a delta.
const BASE_ID: usize = 20;
/// Smallest encoding of an object in a pack: its header and an empty zlib stream.
const SMALLEST_OBJECT: u64 = 9;
/// Maximum length of the two sizes (base and result) at the start of a delta.
const DELTA_HEAD: usize = 20;
/// git streams blobs above this size (`core.bigFileThreshold`).
const STREAMED: u64 = 50 << 20;

/// Size limits for one pack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Bytes of the pack itself.
    pub packed: u64,
    /// Unpacked bytes allowed for any pack.
    pub unpacked: u64,
    /// Additional unpacked bytes per byte of the pack.
    pub ratio: u64,
    /// Largest commit, tree or tag.
    pub structure: u64,
}

/// Reason for refusing a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It has no pack header.
    #[error("the pack must have version 2 or 3")]
    NotAPack,
    /// It is too long, or claims more objects than its length can hold.
    #[error("the pack is larger than {0} bytes, the limit; push in several steps")]
    TooLarge(u64),
    /// Its unpacked size exceeds the limit.
    #[error("the pack unpacks to more than {0} times its size, the limit; push fewer commits at a time")]
    TooDense(u64),
    /// A commit, tree or tag exceeds the size limit.
    #[error(
        "a commit, tree or tag has {size} bytes; the limit is {limit} bytes; split the directory or shorten the message"
    )]
    Structure { size: u64, limit: u64 },
    #[error("the pack is damaged: {0}")]
    Damaged(&'static str),
}

/// Totals of the scanned part of a pack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Object count from the pack header.
    pub objects: u32,
    /// Size of all objects, with both deltas and their results.
    pub unpacked: u64,
    /// Largest object that git must hold in memory at once.
    pub largest: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Structure,
    Blob,
    OffsetDelta,
    IdDelta,
}

enum State {
    Header,
    /// In the header of an object: its kind, its size so far and the next shift.
    Object(Option<(Kind, u64, u32)>),
    /// In the base offset of a delta.
    Offset,
    /// In the base id of a delta, with this many bytes left.
    Id(usize),
    /// In zlib data.
    Deflated,
    Trailer(usize),
    Done,
}

/// Incremental parser; reads each byte once and accepts chunks of any size.
pub(crate) struct Scanner {
    allowance: Allowance,
    state: State,
    header: Vec<u8>,
    left: u32,
    packed: u64,
    kind: Kind,
    size: u64,
    delta_head: Vec<u8>,
    inflate: Decompress,
    scratch: Vec<u8>,
    seen: Seen,
}

impl Scanner {
    pub fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            state: State::Header,
            header: Vec::with_capacity(HEADER),
            left: 0,
            packed: 0,
            kind: Kind::Blob,
            size: 0,
            delta_head: Vec::with_capacity(DELTA_HEAD),
            inflate: Decompress::new(),
            scratch: vec![0; 32 * 1024],
            seen: Seen::default(),
        }
    }

    /// Parses a chunk. Returns how many of its bytes belong to the pack: fewer than all only at the end of the pack.
    pub fn feed(&mut self, piece: &[u8]) -> Result<usize, Flaw> {
        let mut rest = piece;
        while !rest.is_empty() && !self.is_done() {
            let taken = self.step(rest)?;
            rest = &rest[taken..];
            self.packed += taken as u64;
            if self.packed > self.allowance.packed {
                return Err(Flaw::TooLarge(self.allowance.packed));
            }
        }
        Ok(piece.len() - rest.len())
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Totals so far.
    pub fn seen(&self) -> Seen {
        self.seen
    }

    fn step(&mut self, bytes: &[u8]) -> Result<usize, Flaw> {
        match &mut self.state {
            State::Header => {
                let taken = bytes.len().min(HEADER - self.header.len());
                self.header.extend_from_slice(&bytes[..taken]);
                if self.header.len() == HEADER {
                    self.begin()?;
                }
                Ok(taken)
            }
            State::Object(head) => {
                let head = *head;
                self.object(head, bytes[0])?;
                Ok(1)
            }
            State::Offset => {
                if bytes[0] & 0x80 == 0 {
                    self.state = State::Deflated;
                }
                Ok(1)
            }
            State::Id(left) | State::Trailer(left) => {
                let taken = bytes.len().min(*left);
                *left -= taken;
                if *left == 0 {
                    self.state = if matches!(self.state, State::Id(_)) { State::Deflated } else { State::Done };
                }
                Ok(taken)
            }
            State::Deflated => self.inflate(bytes),
            State::Done => Ok(0),
        }
    }

    fn begin(&mut self) -> Result<(), Flaw> {
        let number = |at: usize| self.header[at..at + 4].iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
        let (version, objects) = (number(4), number(8));
        if !self.header.starts_with(b"PACK") || !matches!(version, 2 | 3) {
            return Err(Flaw::NotAPack);
        }
        // index-pack allocates memory for as many objects as the header claims.
        if u64::from(objects) > self.allowance.packed / SMALLEST_OBJECT {
            return Err(Flaw::TooLarge(self.allowance.packed));
        }
        (self.left, self.seen.objects) = (objects, objects);
        self.next();
        Ok(())
    }

    fn next(&mut self) {
        self.state = if self.left == 0 { State::Trailer(TRAILER) } else { State::Object(None) };
    }

    fn object(&mut self, head: Option<(Kind, u64, u32)>, byte: u8) -> Result<(), Flaw> {
        let (kind, size, shift) = match head {
            None => {
                let kind = match byte >> 4 & 7 {
                    1 | 2 | 4 => Kind::Structure,
                    3 => Kind::Blob,
                    6 => Kind::OffsetDelta,
                    7 => Kind::IdDelta,
                    _ => return Err(Flaw::Damaged("unknown object type")),
                };
                (kind, u64::from(byte & 15), 4)
            }
            Some((kind, size, shift)) => {
                let more = u64::from(byte & 0x7f);
                if shift > 57 {
                    return Err(Flaw::Damaged("invalid object size"));
                }
                (kind, size | more << shift, shift + 7)
            }
        };
        if byte & 0x80 != 0 {
            self.state = State::Object(Some((kind, size, shift)));
            return Ok(());
        }
        let limit = self.allowance.structure;
        if kind == Kind::Structure && size > limit {
            return Err(Flaw::Structure { size, limit });
        }
        (self.kind, self.size) = (kind, size);
        self.delta_head.clear();
        self.inflate.reset();
        self.becomes(size, kind != Kind::Blob || size <= STREAMED)?;
        self.state = match kind {
            Kind::Structure | Kind::Blob => State::Deflated,
            Kind::OffsetDelta => State::Offset,
            Kind::IdDelta => State::Id(BASE_ID),
        };
        Ok(())
    }

    /// Adds unpacked bytes. `held` says whether git keeps them in memory at once.
    fn becomes(&mut self, bytes: u64, held: bool) -> Result<(), Flaw> {
        self.seen.unpacked = self.seen.unpacked.saturating_add(bytes);
        if held {
            self.seen.largest = self.seen.largest.max(bytes);
        }
        let Allowance { unpacked, ratio, .. } = self.allowance;
        if self.seen.unpacked > unpacked.saturating_add(self.packed.saturating_mul(ratio)) {
            return Err(Flaw::TooDense(ratio));
        }
        Ok(())
    }

    fn inflate(&mut self, bytes: &[u8]) -> Result<usize, Flaw> {
        let mut taken = 0;
        loop {
            let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self
                .inflate
                .decompress(&bytes[taken..], &mut self.scratch, FlushDecompress::None)
                .map_err(|_| Flaw::Damaged("an object cannot be inflated"))?;
            let used = (self.inflate.total_in() - before_in) as usize;
            let made = (self.inflate.total_out() - before_out) as usize;
            taken += used;
            if self.inflate.total_out() > self.size {
                return Err(Flaw::Damaged("an object is longer than its header says"));
            }
            self.look_at_delta(made)?;
            match status {
                Status::StreamEnd if self.is_delta() && result_size(&self.delta_head).is_none() => {
                    return Err(Flaw::Damaged("a delta has no target size"));
                }
                Status::StreamEnd if self.inflate.total_out() == self.size => {
                    self.left -= 1;
                    self.next();
                    return Ok(taken);
                }
                Status::StreamEnd => return Err(Flaw::Damaged("an object is shorter than its header says")),
                _ if used == 0 && made == 0 => {
                    // The decoder needs more input. If it consumed nothing of the bytes it has, it never will.
                    return if taken > 0 || bytes.is_empty() {
                        Ok(taken)
                    } else {
                        Err(Flaw::Damaged("an object cannot be inflated"))
                    };
                }
                _ => {}
            }
        }
    }

    fn is_delta(&self) -> bool {
        matches!(self.kind, Kind::OffsetDelta | Kind::IdDelta)
    }

    /// Reads the result size of a delta as soon as its header is complete.
    fn look_at_delta(&mut self, made: usize) -> Result<(), Flaw> {
        if !self.is_delta() || self.delta_head.len() >= DELTA_HEAD || made == 0 {
            return Ok(());
        }
        let known = result_size(&self.delta_head).is_some();
        let wanted = made.min(DELTA_HEAD - self.delta_head.len());
        self.delta_head.extend_from_slice(&self.scratch[..wanted]);
        match result_size(&self.delta_head) {
            Some(size) if !known => self.becomes(size, true),
            None if self.delta_head.len() >= DELTA_HEAD => Err(Flaw::Damaged("invalid delta size")),
            _ => Ok(()),
        }
    }
}

/// Scans a pack in memory; returns its length if it is complete. For fuzzing and tests.
pub fn scan_pack(pack: &[u8], unpacked: u64) -> Result<Option<usize>, Flaw> {
    let mut scanner = Scanner::new(Allowance { packed: 1 << 20, unpacked, ratio: 10, structure: 1 << 20 });
    let taken = scanner.feed(pack)?;
    Ok(scanner.is_done().then_some(taken))
}

/// Second of the two sizes at the start of a delta, once both are complete.
fn result_size(delta: &[u8]) -> Option<u64> {
    let (_, rest) = number(delta)?;
    number(rest).map(|(size, _)| size)
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32).unwrap_or(u64::MAX);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
