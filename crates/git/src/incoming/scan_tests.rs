use super::*;
use proptest::prelude::*;
use std::io::Write as _;
use std::process::{Command, Stdio};

const PLENTY: Allowance = Allowance { packed: 1 << 30, unpacked: 1 << 30, ratio: 1000, structure: 8 << 20 };

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut writer = gix::zlib::stream::deflate::Write::new(Vec::new(), gix::zlib::Compression::BEST_SPEED);
    writer.write_all(bytes).unwrap();
    writer.flush().unwrap();
    writer.into_inner()
}

fn head(kind: u8, mut size: u64) -> Vec<u8> {
    let mut bytes = vec![kind << 4 | (size & 15) as u8];
    size >>= 4;
    while size > 0 {
        *bytes.last_mut().unwrap() |= 0x80;
        bytes.push((size & 0x7f) as u8);
        size >>= 7;
    }
    bytes
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        bytes.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return bytes;
        }
    }
}

fn pack(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend((objects.len() as u32).to_be_bytes());
    objects.iter().for_each(|object| pack.extend(object));
    pack.extend([0; TRAILER]);
    pack
}

fn object(kind: u8, content: &[u8]) -> Vec<u8> {
    [head(kind, content.len() as u64), deflated(content)].concat()
}

fn delta(base: u64, result: u64) -> Vec<u8> {
    let content = [varint(base), varint(result), vec![0x90, 1]].concat();
    [head(7, content.len() as u64), vec![9; BASE_ID], deflated(&content)].concat()
}

fn scan(pack: &[u8], allowance: Allowance, step: usize) -> Result<(usize, Seen, bool), Flaw> {
    let mut scanner = Scanner::new(allowance);
    let mut taken = 0;
    for piece in pack.chunks(step.max(1)) {
        taken += scanner.feed(piece)?;
    }
    Ok((taken, scanner.seen(), scanner.is_done()))
}

#[test]
fn objects_deltas_and_the_end_are_found() {
    let pack = pack(&[object(3, b"hello"), object(1, b"tree x"), delta(5, 1_000_000), object(3, b"")]);
    for step in [1, 2, 7, pack.len()] {
        let (taken, seen, done) = scan(&pack, PLENTY, step).unwrap();
        assert!(done && taken == pack.len(), "{step}");
        assert_eq!((seen.objects, seen.largest), (4, 1_000_000));
        assert!(seen.unpacked > 1_000_011 && seen.unpacked < 1_000_100);
    }
    let longer = [pack.as_slice(), b"more"].concat();
    assert_eq!(scan(&longer, PLENTY, longer.len()).unwrap().0, pack.len());
}

#[test]
fn a_pack_of_git_itself_is_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let git = |args: &[&str], input: &[u8]| {
        let mut command = Command::new("git");
        command.current_dir(dir.path()).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap().stdout
    };
    git(&["init", "-q"], b"");
    let mut text = String::new();
    for number in 0..40 {
        text += &format!("line {number} of a file that grows and so becomes deltas\n").repeat(20);
        std::fs::write(dir.path().join("file"), &text).unwrap();
        git(&["add", "."], b"");
        git(&["commit", "-q", "-m", "more"], b"");
    }
    let pack = git(&["pack-objects", "--stdout", "--revs", "--delta-base-offset", "-q"], b"HEAD\n");
    for step in [1, 1000, pack.len()] {
        let (taken, seen, done) = scan(&pack, PLENTY, step).unwrap();
        assert!(done && taken == pack.len());
        assert_eq!(seen.objects, 120);
    }
}

#[test]
fn a_delta_bomb_is_refused_by_what_it_would_become() {
    let bombs: Vec<_> = (0..1000).map(|_| delta(1 << 20, 50 << 20)).collect();
    let pack = pack(&bombs);
    assert!(pack.len() < 64 << 10);
    let allowance = Allowance { unpacked: 512 << 20, ratio: 500, ..PLENTY };
    assert_eq!(scan(&pack, allowance, 4096), Err(Flaw::TooDense(500)));
}

#[test]
fn a_delta_whose_sizes_cannot_be_read_is_refused() {
    // git accepts sizes padded with zero bytes, so a padded base size must not hide the size of the result.
    let padded = [vec![0x80 | 16], vec![0x80; 9], vec![0]].concat();
    let content = [padded, varint(50 << 20), vec![0x90, 1]].concat();
    assert!(content.len() < DELTA_HEAD);
    let hidden = [head(7, content.len() as u64), vec![9; BASE_ID], deflated(&content)].concat();
    let pack = pack(&[hidden]);
    for step in [1, 7, pack.len()] {
        assert!(matches!(scan(&pack, PLENTY, step), Err(Flaw::Damaged(_))), "{step}");
    }
}

#[test]
fn a_text_that_deflates_well_is_taken() {
    let text = b"a line that is said again and again\n".repeat(3_000_000);
    let pack = pack(&[object(3, &text)]);
    assert!(pack.len() < text.len() / 20);
    let (_, seen, done) = scan(&pack, Allowance { unpacked: 512 << 20, ratio: 500, ..PLENTY }, 65_536).unwrap();
    assert!(done && seen.unpacked == text.len() as u64);
}

#[test]
fn a_huge_directory_is_refused_before_a_byte_of_it_is_inflated() {
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    pack.extend(head(2, 1 << 30));
    let plenty = Allowance { unpacked: 4 << 30, ..PLENTY };
    assert_eq!(scan(&pack, plenty, 1), Err(Flaw::Structure { size: 1 << 30, limit: 8 << 20 }));
}

#[test]
fn damage_is_named() {
    let wrong = |object: Vec<u8>| scan(&pack(&[object]), PLENTY, 64).unwrap_err();
    assert_eq!(
        wrong([head(3, 9), deflated(b"hello")].concat()),
        Flaw::Damaged("an object is shorter than its header says")
    );
    assert_eq!(
        wrong([head(3, 2), deflated(b"hello")].concat()),
        Flaw::Damaged("an object is longer than its header says")
    );
    assert_eq!(wrong(vec![0x50]), Flaw::Damaged("unknown object type"));
    assert_eq!(scan(b"KCAP\0\0\0\x02\0\0\0\0", PLENTY, 3), Err(Flaw::NotAPack));
    assert_eq!(
        scan(b"PACK\0\0\0\x02\xff\xff\xff\xff", Allowance { packed: 1000, ..PLENTY }, 12),
        Err(Flaw::TooLarge(1000))
    );
    assert_eq!(scan(&pack(&[object(3, &[7; 500])]), Allowance { packed: 20, ..PLENTY }, 64), Err(Flaw::TooLarge(20)));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, step in 1..64usize) {
        let _ = scan(&bytes, PLENTY, step);
        let _ = scan(&[b"PACK\0\0\0\x02\0\0\0\x03".as_slice(), &bytes].concat(), PLENTY, step);
    }

    #[test]
    fn the_answer_does_not_depend_on_how_the_bytes_arrive(
        contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..6),
        step in 1..200usize,
    ) {
        let objects: Vec<_> = contents.iter().map(|content| object(3, content)).collect();
        let pack = pack(&objects);
        prop_assert_eq!(scan(&pack, PLENTY, step), scan(&pack, PLENTY, pack.len()));
    }
}
