//! First commits and forks: git accepts what we write, and a fork is self-contained.

use crate::read_support::{Bare, Script, Storage};
use crate::support::Server;
use abide_git::read::Signature;
use abide_git::write::{WriteError, initial_commit};
use abide_git::{Reader, Snapshot};

fn ann() -> Signature {
    Signature { name: "Ann <x>\n".into(), email: "ann@example.org".into(), time: 1_700_000_000, offset: 3600 }
}

#[test]
fn a_first_commit_is_a_commit_for_git() {
    let bare = Bare::new();
    let files: [(&[u8], &[u8]); 5] = [
        (b"README.md", b"# hello\n"),
        (b"src/lib.rs", b"//!\n"),
        (b"src.x", b""),
        (b"src/deep/er", b"\xff"),
        (b"caf\xe9", b"1"),
    ];
    let commit = initial_commit(&bare.objects(), &files, &ann(), b"First commit\n").unwrap();
    bare.run(&["update-ref", "refs/heads/main", &commit.to_string()]);
    bare.run(&["fsck", "--strict", "--full"]);
    for (path, content) in files {
        let entry = bare.reader().entry(commit, path).unwrap();
        assert_eq!(bare.reader().blob(entry.oid, 100).unwrap().data, content);
    }
    let read = bare.reader().commit(commit).unwrap();
    assert_eq!((read.author.name.to_string(), read.author.offset, read.parents.len()), ("Ann x".into(), 3600, 0));
    assert_eq!(
        bare.run(&["log", "--format=%an|%ae|%ad|%s", "--date=raw"]),
        "Ann x|ann@example.org|1700000000 +0100|First commit"
    );
    // Writing the same files again gives the same commit.
    assert_eq!(initial_commit(&bare.objects(), &files, &ann(), b"First commit\n").unwrap(), commit);
}

#[test]
fn names_that_clients_refuse_are_not_written() {
    let bare = Bare::new();
    for path in [
        "",
        "/a",
        "a/",
        "a//b",
        "..",
        "a/../b",
        ".git/config",
        "a/.GIT",
        "git~1",
        ".git.",
        ".g\u{200c}it",
        "aux",
        "a\0",
        "a\\b",
        "a\nb",
    ] {
        let written = initial_commit(&bare.objects(), &[(path.as_bytes(), b"")], &ann(), b"m");
        assert!(matches!(written, Err(WriteError::Path(_))), "{path:?}");
    }
    for pair in [["a", "a"], ["a", "a/b"], ["a/b", "a"]] {
        let files: Vec<(&[u8], &[u8])> = pair.iter().map(|path| (path.as_bytes(), &b""[..])).collect();
        assert!(matches!(initial_commit(&bare.objects(), &files, &ann(), b"m"), Err(WriteError::Path(_))), "{pair:?}");
    }
    assert_eq!(bare.run(&["count-objects"]), "0 objects, 0 kilobytes");
}

#[tokio::test]
async fn a_first_commit_goes_through_the_incoming_area() {
    let server = Server::new().await;
    let incoming = server.incoming("first").await;
    let commit = initial_commit(&incoming.objects(), &[(b"a/b", b"c")], &ann(), b"m").unwrap();
    let update = crate::support::update("refs/heads/main", abide_core::Oid::ZERO, commit);
    let connected = server.connected(incoming, std::slice::from_ref(&update)).await;
    connected.migrate(&server.repo).await.unwrap();
    abide_git::reftx::update_refs(&server.git, &server.repo, &[update]).await.unwrap();
    connected.discard().await.unwrap();
    server.fsck();
    assert_eq!(server.run(&["cat-file", "-p", "main:a/b"]), "c");
}

#[tokio::test]
async fn a_fork_has_its_own_objects_and_only_what_was_named() {
    let mut script = Script::default();
    let one = script.commit("main", 1, &[], &[("100644", b"f", b"1")]);
    script.commit("main", 2, &[one], &[("100644", b"f", b"2")]);
    script.commit("secret", 2, &[one], &[("100644", b"f", b"secret")]);
    let source = Bare::import(&script.0, Storage::Packed);
    source.run(&["tag", "-a", "-m", "t", "v1", "main"]);
    let server = Server::new().await;
    let snapshot = Snapshot::read(source.path()).unwrap();
    let tips: Vec<_> =
        snapshot.refs.iter().filter(|found| !found.name.ends_with(b"secret")).map(|found| found.oid).collect();
    let (secret, main, v1) = (source.oid("secret:f"), source.oid("main"), source.oid("v1"));
    let incoming = server.incoming("fork").await;
    let copied = incoming.copied(source.path(), &tips).await.unwrap();
    copied.migrate(&server.repo).await.unwrap();
    copied.discard().await.unwrap();
    drop(source);
    server.run(&["update-ref", "refs/heads/main", &main.to_string()]);
    server.run(&["update-ref", "refs/tags/v1", &v1.to_string()]);
    server.fsck();
    let reader = Reader::open(&server.repo).unwrap();
    assert!(reader.object(secret).is_err());
    assert_eq!(reader.count(main, 9).unwrap().commits, 2);
    assert!(!server.repo.join("objects/info/alternates").exists());
    // An empty copy is no error.
    let incoming = server.incoming("empty").await;
    incoming.copied(&server.repo, &[]).await.unwrap();
}
