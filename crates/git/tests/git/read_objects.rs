//! Directories, files and commits as stored.

use crate::read_support::{Bare, Script, Storage};
use crate::support::{Server, feed, plain_git};
use abide_core::Oid;
use abide_core::patience::Patience;
use abide_git::bstr::ByteSlice;
use abide_git::read::stream::BlobStream;
use abide_git::read::{EntryKind, Listing, ObjectKind, split_ref};
use abide_git::{Client, GitError, GitLimits, ReadError, Reader, Snapshot};
use rstest::rstest;
use tokio::io::AsyncReadExt;

async fn streamed(server: &Server, dir: &std::path::Path, oid: Oid) -> Result<BlobStream, ReadError> {
    let patience = Patience::new(std::time::Duration::from_secs(60), 1024);
    BlobStream::open(&server.git, dir, oid, Client::SERVER, patience).await
}

const SUBMODULE: &[u8] = b"0123456789012345678901234567890123456789";

fn sample(storage: Storage) -> Bare {
    let mut script = Script::default();
    let files: [(&str, &[u8], &[u8]); 9] = [
        ("100644", b"b.txt", b"text\n"),
        ("100644", b"b/inner/deep", b"deep\r\n"),
        ("100755", b"a.sh", b"#!/bin/sh\n"),
        ("120000", b"link", b"b.txt"),
        ("160000", b"module", SUBMODULE),
        ("100644", b"caf\xe9", b"latin name"),
        ("100644", b"z/binary", b"a\0b"),
        ("100644", b"empty", b""),
        ("100644", b"z/readme.MD", b"# z"),
    ];
    script.commit("main", 1_700_000_000, &[], &files);
    Bare::import(&script.0, storage)
}

fn names(listing: &Listing) -> Vec<String> {
    listing.entries.iter().map(|entry| entry.name.to_str_lossy().into_owned()).collect()
}

#[test]
fn a_reader_may_go_to_another_thread() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Reader>();
}

#[rstest]
fn directories_come_first_and_everything_has_its_kind(#[values(Storage::Loose, Storage::Packed)] storage: Storage) {
    let bare = sample(storage);
    let (reader, main) = (bare.reader(), bare.oid("main"));
    let mut root = reader.tree(main, b"", 100).unwrap();
    assert_eq!(names(&root), ["b", "z", "a.sh", "b.txt", "caf\u{fffd}", "empty", "link", "module"]);
    assert!(!root.truncated && root.entries.iter().all(|entry| entry.size.is_none()));
    reader.add_sizes(&mut root).unwrap();
    let kinds: Vec<_> = root.entries.iter().map(|entry| (entry.kind, entry.size)).collect();
    use EntryKind::{Directory, Executable, File, Submodule, Symlink};
    let wanted = [
        (Directory, None),
        (Directory, None),
        (Executable, Some(10)),
        (File, Some(5)),
        (File, Some(10)),
        (File, Some(0)),
        (Symlink, Some(5)),
        (Submodule, None),
    ];
    assert_eq!(kinds, wanted);
    assert_eq!(names(&reader.tree(main, b"/b/inner/", 100).unwrap()), ["deep"]);
    let tree = bare.oid("main^{tree}");
    let short = reader.tree(tree, b"", 3).unwrap();
    assert!(short.truncated && names(&short) == ["b", "z", "a.sh"]);
}

#[test]
fn paths_that_are_not_there_and_paths_that_are_something_else_are_told_apart() {
    let bare = sample(Storage::Packed);
    let (reader, main) = (bare.reader(), bare.oid("main"));
    for absent in ["nothing", "b/nothing", "b.txt/x", "b//inner", "..", ".", "module/x", "B"] {
        assert!(matches!(reader.tree(main, absent.as_bytes(), 9), Err(ReadError::NotFound)), "{absent}");
        assert!(matches!(reader.entry(main, absent.as_bytes()), Err(ReadError::NotFound)), "{absent}");
    }
    for file in ["b.txt", "link", "module"] {
        assert!(matches!(reader.tree(main, file.as_bytes(), 9), Err(ReadError::NotADirectory)), "{file}");
    }
    let entry = reader.entry(main, b"b/inner/deep").unwrap();
    assert_eq!((entry.name.as_bytes(), entry.kind, entry.size), (&b"deep"[..], EntryKind::File, Some(6)));
    assert_eq!(reader.entry(main, b"caf\xe9").unwrap().size, Some(10));
    assert_eq!(reader.entry(main, b"").unwrap().kind, EntryKind::Directory);
    assert!(matches!(reader.blob(bare.oid("main:b"), 9), Err(ReadError::NotAFile)));
    assert!(matches!(reader.blob(Oid::ZERO, 9), Err(ReadError::NotFound)));
    assert!(matches!(reader.tree(bare.oid("main:b.txt"), b"", 9), Err(ReadError::NotACommit)));
}

#[test]
fn a_recursive_listing_is_that_of_git() {
    let bare = sample(Storage::Packed);
    let listing = bare.reader().tree_recursive(bare.oid("main"), 1000).unwrap();
    let ours: Vec<_> = listing
        .entries
        .iter()
        .flat_map(|entry| {
            let kind = match entry.kind {
                EntryKind::Directory => "tree",
                EntryKind::Submodule => "commit",
                _ => "blob",
            };
            [format!("{} {kind} {}\t", entry.kind.mode(), entry.oid).as_bytes(), entry.name.as_slice(), b"\0"].concat()
        })
        .collect();
    assert_eq!(ours.as_bstr(), bare.bytes(&["ls-tree", "-r", "-t", "-z", "main"]).as_bstr());
    assert!(!listing.truncated);
    let short = bare.reader().tree_recursive(bare.oid("main"), 3).unwrap();
    assert!(short.truncated && short.entries == listing.entries[..3]);
}

#[test]
fn directories_nested_beyond_reason_end_the_listing() {
    let mut script = Script::default();
    let path = vec!["d"; 1000].join("/") + "/f";
    script.commit("main", 1, &[], &[("100644", path.as_bytes(), b"")]);
    let bare = Bare::import(&script.0, Storage::Packed);
    let listing = bare.reader().tree_recursive(bare.oid("main"), 100_000).unwrap();
    assert!(listing.truncated && listing.entries.len() < 300);
}

#[test]
fn what_waits_to_be_listed_is_bounded_however_long_the_paths_are() {
    let mut script = Script::default();
    let long = "d".repeat(250);
    let dir = vec![long.as_str(); 20].join("/");
    let names: Vec<String> = (0..4000).map(|n| format!("{dir}/{n:05}")).collect();
    let files: Vec<(&str, &[u8], &[u8])> = names.iter().map(|name| ("100644", name.as_bytes(), &b""[..])).collect();
    script.commit("main", 1, &[], &files);
    let bare = Bare::import(&script.0, Storage::Packed);
    let listing = bare.reader().tree_recursive(bare.oid("main"), 100_000).unwrap();
    let bytes: usize = listing.entries.iter().map(|entry| entry.name.len()).sum();
    assert!(listing.truncated && bytes <= 16 << 20, "{bytes}");
    assert!(listing.entries.len() > 500, "{}", listing.entries.len());
}

#[test]
fn messages_of_many_commits_are_cut_and_those_of_one_less() {
    let mut script = Script::default();
    script.commit("main", 1, &[], &[("100644", b"f", b"")]);
    let bare = Bare::import(&script.0, Storage::Packed);
    let tree = bare.oid("main^{tree}").to_string();
    let message = format!("first\n\n{}", "\u{e9}".repeat(1 << 20));
    let commit = bare.with_input(&["commit-tree", &tree], message.as_bytes()).parse().unwrap();
    let reader = bare.reader();
    let (one, many) = (reader.commit(commit).unwrap(), reader.commits(&[commit]).unwrap());
    assert!(one.body.len() > 1_000_000 && one.body.len() <= 1 << 20, "{}", one.body.len());
    assert!(many[0].body.len() > 16_000 && many[0].body.len() <= 16 << 10, "{}", many[0].body.len());
    assert_eq!((one.subject.as_slice(), many[0].subject.as_slice()), (&b"first"[..], &b"first"[..]));
    assert!(std::str::from_utf8(&many[0].body).is_ok(), "cut between two characters");
}

#[test]
fn blobs_beyond_the_limit_are_not_read_and_others_known_as_binary() {
    let bare = sample(Storage::Packed);
    let reader = bare.reader();
    let blob = |path: &str, max| reader.blob(bare.oid(&format!("main:{path}")), max).unwrap();
    let text = blob("b.txt", 100);
    assert_eq!((text.data.as_slice(), text.size, text.truncated, text.binary), (&b"text\n"[..], 5, false, false));
    let short = blob("b.txt", 2);
    assert_eq!((short.data.as_slice(), short.size, short.truncated), (&b""[..], 5, true));
    assert!(blob("z/binary", 100).binary);
    assert!(!blob("empty", 1).truncated);
    assert_eq!(blob("b/inner/deep", 100).data, b"deep\r\n");
    assert_eq!(reader.blob_size(bare.oid("main:a.sh")).unwrap(), 10);
}

#[rstest]
#[tokio::test]
async fn a_huge_file_is_streamed_and_never_loaded(#[values(Storage::Loose, Storage::Packed)] storage: Storage) {
    let server = Server::new().await;
    let mut script = Script::default();
    let huge = vec![b'x'; 40 * 1024 * 1024];
    script.commit("main", 1, &[], &[("100644", b"huge", &huge), ("100644", b"small", b"small\n")]);
    let bare = Bare::import(&script.0, storage);
    let (reader, oid) = (bare.reader(), bare.oid("main:huge"));
    let blob = reader.blob(oid, 1000).unwrap();
    assert!(blob.data.is_empty() && blob.truncated && blob.size == huge.len() as u64);
    let mut stream = streamed(&server, bare.path(), oid).await.unwrap();
    assert_eq!(stream.size(), huge.len() as u64);
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.unwrap();
    assert!(read == huge);
    let mut small = streamed(&server, bare.path(), bare.oid("main:small")).await.unwrap();
    let mut read = String::new();
    small.read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "small\n");
    // Dropping a half-read stream kills git and frees its slot.
    let mut half = streamed(&server, bare.path(), oid).await.unwrap();
    half.read_exact(&mut [0; 1000]).await.unwrap();
    drop(half);
    for other in ["main", "main^{tree}"] {
        let opened = streamed(&server, bare.path(), bare.oid(other)).await;
        assert!(matches!(opened, Err(ReadError::NotAFile)));
    }
    assert!(matches!(streamed(&server, bare.path(), Oid::ZERO).await, Err(ReadError::NotFound)));
}

/// A repository with two files of 20 MiB in a pack: one stored whole, one as a difference to it.
fn with_large_files() -> (Bare, Oid, Oid) {
    let mut state = 1u64;
    let noise: Vec<u8> = (0..20 << 20)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    let from = Bare::new();
    let write =
        |content: &[u8]| from.with_input(&["-c", "core.looseCompression=0", "hash-object", "-w", "--stdin"], content);
    let (whole, delta) = (write(&noise), write(&noise[..noise.len() - 100]));
    let args = ["-c", "core.compression=0", "pack-objects", "--stdout", "-q", "--window=10", "--depth=10"];
    let pack = feed(plain_git(from.path()).args(args), format!("{whole}\n{delta}\n").as_bytes());
    let bare = Bare::new();
    feed(plain_git(bare.path()).args(["index-pack", "--stdin"]), &pack);
    let bases = bare.run(&["cat-file", "--batch-check=%(objectname) %(deltabase)", "--batch-all-objects"]);
    assert!(bases.contains(&format!("{delta} {whole}")), "{bases}");
    (bare, whole.parse().unwrap(), delta.parse().unwrap())
}

#[tokio::test]
async fn a_file_that_is_stored_whole_is_sent_in_little_memory_and_a_difference_within_the_ration() {
    let limits =
        GitLimits { stranger_memory: 12 << 20, queue: std::time::Duration::from_millis(200), ..GitLimits::default() };
    let server = Server::with(limits).await;
    let (bare, whole, delta) = with_large_files();
    let patience = Patience::new(std::time::Duration::from_secs(60), 1024);
    let open = async |oid, account: Option<i64>| {
        let client = Client::new(Some([192, 0, 2, 1].into()), account.map(abide_core::UserId::new));
        BlobStream::open(&server.git, bare.path(), oid, client, patience).await
    };
    for (oid, account, size) in [(whole, None, 20 << 20), (delta, Some(7), (20 << 20) - 100)] {
        let mut content = Vec::new();
        open(oid, account).await.unwrap().read_to_end(&mut content).await.unwrap();
        assert_eq!(content.len(), size);
    }
    let refused = open(delta, None).await;
    assert!(matches!(refused, Err(ReadError::Git(GitError::UsedUp { of: "memory", .. }))), "{refused:?}");

    let _held = [open(delta, Some(7)).await.unwrap(), open(delta, Some(7)).await.unwrap()];
    assert!(matches!(open(delta, Some(7)).await, Err(ReadError::Git(GitError::Busy { .. }))), "two are in memory");
    open(whole, Some(7)).await.unwrap();
}

#[test]
fn ids_are_resolved_through_tags_and_from_their_beginning() {
    let bare = sample(Storage::Loose);
    bare.run(&["tag", "-a", "-m", "t", "inner", "main"]);
    bare.run(&["tag", "-a", "-m", "t", "outer", "inner"]);
    bare.run(&["tag", "-a", "-m", "t", "tree", "main^{tree}"]);
    let (reader, main) = (bare.reader(), bare.oid("main"));
    assert_eq!(reader.resolve_commit(bare.oid("outer")).unwrap(), main);
    assert_eq!(reader.resolve_commit(main).unwrap(), main);
    assert!(matches!(reader.resolve_commit(bare.oid("refs/tags/tree")), Err(ReadError::NotACommit)));
    assert_eq!(names(&reader.tree(bare.oid("outer"), b"b", 9).unwrap()), ["inner"]);
    assert_eq!(reader.object(bare.oid("outer")).unwrap().0, ObjectKind::Tag);
    assert_eq!(reader.object(bare.oid("main:b.txt")).unwrap(), (ObjectKind::Blob, 5));
    let hex = main.to_string();
    for length in [7, 12, 40] {
        assert_eq!(reader.find_by_prefix(&hex[..length]).unwrap(), main);
    }
    assert_eq!(reader.find_by_prefix(&hex.to_uppercase()).unwrap(), main);
    let absent = "0123456789012345678901234567890123456789";
    for odd in ["", &hex[..3], "not hex", absent, "ü123", &"a".repeat(41)] {
        assert!(matches!(reader.find_by_prefix(odd), Err(ReadError::NotFound)), "{odd}");
    }
}

#[test]
fn a_beginning_that_two_objects_share_is_ambiguous() {
    let bare = Bare::new();
    let input: String =
        (0..2000).map(|number| format!("blob\ndata {}\n{number}\n", number.to_string().len())).collect();
    bare.more(input.as_bytes(), Storage::Packed);
    let oids = bare.run(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    let oids: Vec<_> = oids.lines().collect();
    let shared = oids.windows(2).find(|pair| pair[0][..4] == pair[1][..4]).expect("of 2000 ids two begin the same");
    assert!(matches!(bare.reader().find_by_prefix(&shared[0][..4]), Err(ReadError::Ambiguous)));
    assert_eq!(bare.reader().find_by_prefix(shared[0]).unwrap().to_string(), shared[0]);
}

#[test]
fn an_empty_repository_has_nothing_to_read() {
    let bare = Bare::new();
    let reader = bare.reader();
    let snapshot = Snapshot::read(bare.path()).unwrap();
    assert_eq!((snapshot.head_oid(), split_ref(&snapshot, "main")), (None, None));
    assert!(matches!(reader.commit(Oid::ZERO), Err(ReadError::NotFound)));
    assert!(matches!(reader.find_by_prefix("0000"), Err(ReadError::NotFound)));
    let empty_tree: Oid = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse().unwrap();
    assert_eq!(reader.tree(empty_tree, b"", 9).unwrap(), Listing::default());
    assert!(Reader::open(&bare.path().join("nothing")).is_err());
}

#[test]
fn a_commit_says_what_git_says() {
    let mut script = Script::default();
    let one = script.commit_as("main", 1_700_000_000, &[], b"subject\nin two lines\n\n\nbody\n\nmore\n", &[]);
    script.commit_as("main", 1_700_000_001, &[one], b"bytes \xff\xfe\n", &[("100644", b"f", b"")]);
    let bare = Bare::import(&script.0, Storage::Packed);
    for rev in ["main", "main^"] {
        let commit = bare.reader().commit(bare.oid(rev)).unwrap();
        let parents: Vec<_> = commit.parents.iter().map(Oid::to_string).collect();
        let person = |who: &abide_git::read::Signature| format!("{}\n{}\n{}", who.name, who.email, who.time);
        let ours = [
            format!("{}\n{}\n{}\n", commit.oid, commit.tree, parents.join(" ")).as_bytes(),
            format!("{}\n{}\n", person(&commit.author), person(&commit.committer)).as_bytes(),
            &commit.subject,
            b"\n",
            &commit.body,
        ]
        .concat();
        let format = "--format=%H%n%T%n%P%n%an%n%ae%n%at%n%cn%n%ce%n%ct%n%s%n%b";
        let theirs = bare.bytes(&["log", "-1", "--encoding=ISO-8859-1", format, rev]);
        assert_eq!(ours.trim_end().as_bstr(), theirs.trim_end().as_bstr());
        assert_eq!((commit.author.offset, commit.committer.offset, commit.signed), (7200, -5400, false));
    }
}

#[test]
fn odd_commits_of_old_tools_are_read_as_far_as_possible() {
    let bare = sample(Storage::Packed);
    let tree = bare.oid("main^{tree}");
    let write = |text: &[u8]| -> Oid {
        let args = ["hash-object", "-t", "commit", "-w", "--stdin", "--literally"];
        let output = crate::support::feed(crate::support::plain_git(bare.path()).args(args), text);
        String::from_utf8(output).unwrap().trim().parse().unwrap()
    };
    let headers = format!("tree {tree}\nauthor nobody\ncommitter C <c> 99999999999999999999 +9999\n\nm\n");
    let odd = bare.reader().commit(write(headers.as_bytes())).unwrap();
    assert_eq!((odd.author.email.as_slice(), odd.author.time, odd.subject.as_slice()), (&b""[..], 0, &b"m"[..]));
    let who = "A <a> 1 +0000";
    let mut latin = format!("tree {tree}\nauthor {who}\ncommitter {who}\nencoding ISO-8859-1\n").into_bytes();
    latin.extend_from_slice(b"gpgsig -----BEGIN\n x\n -----END\n\ncaf\xe9\n");
    let latin = bare.reader().commit(write(&latin)).unwrap();
    assert_eq!((latin.subject.to_string(), latin.signed), ("café".to_owned(), true));
    let broken = write(b"tree nothing\n\n");
    assert!(matches!(bare.reader().commit(broken), Err(ReadError::Broken { .. })));
    assert!(matches!(bare.reader().log(broken, 0, 1), Err(ReadError::Broken { .. })));
}

#[test]
fn the_readme_is_found_by_preference_whatever_its_case() {
    let mut script = Script::default();
    let mut last = script.commit("main", 1, &[], &[("100644", b"readmenot", b""), ("100644", b"readme/x", b"")]);
    let mut found = Vec::new();
    for name in ["README", "ReadMe.TXT", "readme.rst", "README.markdown", "readme.md", "README.md"] {
        last = script.commit("main", 1, &[last], &[("100644", name.as_bytes(), b"")]);
        found.push(name);
    }
    let bare = Bare::import(&script.0, Storage::Packed);
    let reader = bare.reader();
    for (age, name) in found.iter().rev().enumerate() {
        let readme = reader.readme(bare.oid(&format!("main~{age}")), b"").unwrap().unwrap();
        assert_eq!(readme.name, *name);
    }
    assert_eq!(reader.readme(bare.oid(&format!("main~{}", found.len())), b"").unwrap(), None);
    let z = sample(Storage::Loose);
    assert_eq!(z.reader().readme(z.oid("main"), b"z").unwrap().unwrap().name, "readme.MD");
}

/// Maintenance removes loose objects and old packs during reads; every object is still found.
#[test]
fn everything_is_found_while_maintenance_moves_it() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    let bare = Bare::new();
    let (known, done) = (Mutex::new(Vec::<Oid>::new()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut kept = bare.reader();
                for round in 0.. {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    // One reader kept as pages keep theirs, replaced now and then.
                    if round % 50 == 0 {
                        kept = bare.reader();
                    }
                    let all = known.lock().unwrap().clone();
                    for oid in all {
                        let listing = kept.tree(oid, b"dir", 10);
                        assert!(listing.is_ok(), "{oid}: {listing:?}");
                        assert_eq!(kept.object(oid).unwrap().0, ObjectKind::Commit);
                    }
                }
            });
        }
        for number in 0..40 {
            let mut script = Script::default();
            let text = format!("{number}");
            script.commit(
                &format!("b{number}"),
                1_700_000_000 + number,
                &[],
                &[("100644", b"dir/file", text.as_bytes())],
            );
            bare.more(&script.0, if number % 3 == 0 { Storage::Packed } else { Storage::Loose });
            known.lock().unwrap().push(bare.oid(&format!("b{number}")));
            bare.run(&["repack", "--geometric=2", "-d", "-l", "-q", "--write-midx", "--write-bitmap-index"]);
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// A directory of so many files of one blob, behind a directory and a README; returns its tree.
fn wide(bare: &Bare, entries: u32) -> Oid {
    let blob = bare.with_input(&["hash-object", "-w", "--stdin"], b"text");
    let inner = bare.with_input(&["mktree"], format!("100644 blob {blob}\tfile\n").as_bytes());
    let raw = |oid: &str| *oid.parse::<Oid>().unwrap().as_bytes();
    let mut tree = Vec::new();
    for number in 0..entries {
        tree.extend(format!("100644 {number:08}\0").bytes());
        tree.extend(raw(&blob));
    }
    for (name, oid) in [("100644 readme.txt", &blob), ("40000 z", &inner)] {
        tree.extend(name.bytes().chain([0]));
        tree.extend(raw(oid));
    }
    bare.with_input(&["hash-object", "-w", "-t", "tree", "--stdin"], &tree).parse().unwrap()
}

#[rstest]
fn a_wide_directory_needs_a_slot_and_only_what_is_shown_is_held(
    #[values(Storage::Loose, Storage::Packed)] storage: Storage,
) {
    let bare = Bare::new();
    // More than is read without a slot.
    let tree = wide(&bare, 95_000);
    if let Storage::Packed = storage {
        let commit = bare.with_input(&["commit-tree", "-m", "wide", &tree.to_string()], b"");
        bare.run(&["update-ref", "refs/heads/main", &commit]);
        bare.run(&["repack", "-adq"]);
    }
    let (reader, small) = (bare.reader(), Reader::open_small(bare.path()).unwrap());
    let listing = reader.tree(tree, b"", 4).unwrap();
    assert_eq!(names(&listing), ["z", "00000000", "00000001", "00000002"]);
    assert!(listing.truncated);
    assert_eq!(listing.entries.capacity(), 4, "nothing else is kept");
    assert_eq!(reader.tree(tree, b"", 95_002).map(|all| (all.entries.len(), all.truncated)).unwrap(), (95_002, false));
    assert_eq!(reader.readme(tree, b"").unwrap().unwrap().name, "readme.txt");
    assert_eq!(names(&reader.tree_recursive(tree, 2).unwrap()), ["00000000", "00000001"]);
    let all = reader.tree_recursive(tree, 95_003).unwrap();
    assert_eq!((all.entries.len(), all.truncated), (95_003, false));
    assert_eq!(reader.entry(tree, b"z/file").unwrap().size, Some(4));

    assert!(matches!(small.tree(tree, b"", 4), Err(ReadError::TooLarge)));
    assert!(matches!(small.entry(tree, b"00000001"), Err(ReadError::TooLarge)));
    assert!(matches!(small.readme(tree, b""), Err(ReadError::TooLarge)));
    assert_eq!(small.object(tree).unwrap().0, ObjectKind::Tree, "its header can be read");
}

#[test]
fn a_directory_that_is_too_large_for_any_slot_is_told_from_a_broken_one() {
    let bare = Bare::new();
    let tree = wide(&bare, 900_000);
    let reader = bare.reader();
    assert!(matches!(reader.tree(tree, b"", 4), Err(ReadError::TooLarge)));
    assert!(matches!(reader.entry(tree, b"00000001"), Err(ReadError::TooLarge)));
    assert!(matches!(reader.tree_recursive(tree, 4), Err(ReadError::TooLarge)));
}

#[test]
fn a_small_object_that_is_stored_as_a_difference_to_a_large_one_needs_a_slot() {
    let bare = Bare::new();
    // The second file is the first with a line less, so git stores one of them as a difference.
    let text: String = (0..200_000).map(|number| format!("line {number}\n")).collect();
    let large = bare.with_input(&["hash-object", "-w", "--stdin"], format!("{text}{}", "x".repeat(1 << 20)).as_bytes());
    let other = bare.with_input(&["hash-object", "-w", "--stdin"], &text.as_bytes()[..text.len() / 3]);
    let pack = feed(
        plain_git(bare.path()).args(["pack-objects", "--stdout", "-q", "--window=10", "--depth=10"]),
        format!("{large}\n{other}\n").as_bytes(),
    );
    let elsewhere = Bare::new();
    feed(plain_git(elsewhere.path()).args(["index-pack", "--stdin"]), &pack);
    let chain = elsewhere.run(&["cat-file", "--batch-check=%(deltabase)", "--batch-all-objects"]);
    assert!(chain.lines().any(|base| base == large), "{chain}");
    let oid: Oid = other.parse().unwrap();
    let small = Reader::open_small(elsewhere.path()).unwrap();
    assert!(matches!(small.blob(oid, 1 << 20), Err(ReadError::TooLarge)));
    assert_eq!(elsewhere.reader().blob(oid, 1 << 20).unwrap().data.len(), text.len() / 3);
}
