//! Our advertisements equal git's, byte for byte.

use crate::support::{Server, Work, feed, plain_git};
use abide_git::pktline::{put_data, put_delim, put_flush};
use abide_git::v2::{self, V2Request};
use abide_git::{ProtocolVersion, Snapshot, advertise};
use bytes::BytesMut;
use rstest::rstest;
use std::process::Command;

/// git with the settings that affect its advertisement.
fn git(server: &Server, version: ProtocolVersion) -> Command {
    let mut command = plain_git(&server.repo);
    for setting in [
        "uploadpack.allowFilter=true",
        "uploadpack.allowTipSHA1InWant=true",
        "uploadpack.allowReachableSHA1InWant=true",
        "uploadpack.hideRefs=refs/abide",
        "receive.hideRefs=refs/abide",
        "receive.advertisePushOptions=true",
    ] {
        command.args(["-c", setting]);
    }
    if let Some(protocol) = version.as_env() {
        command.env("GIT_PROTOCOL", protocol);
    }
    command
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Empty,
    Branches,
    Tags,
    Detached,
    UnbornBesideOthers,
    SymbolicRef,
    ManyPackedSomeLoose,
    PackedByOldGit,
}

async fn shaped(shape: Shape) -> Server {
    let server = Server::new().await;
    if let Shape::Empty = shape {
        return server;
    }
    let work = Work::new();
    work.commit("one");
    for branch in ["main2", "feature/a", "feature/b", "feature-x", "ü/ñ"] {
        work.run(&["branch", branch]);
    }
    let two = work.commit("two");
    work.run(&["update-ref", "refs/abide/kept", "HEAD"]);
    work.run(&["update-ref", "refs/notes/commits", "HEAD"]);
    if let Shape::Tags | Shape::ManyPackedSomeLoose | Shape::PackedByOldGit = shape {
        work.run(&["tag", "light"]);
        work.run(&["tag", "-a", "-m", "t", "annotated"]);
        work.run(&["tag", "-a", "-m", "t", "nested", "annotated"]);
        work.run(&["tag", "-a", "-m", "t", "of-a-tree", "HEAD^{tree}"]);
        work.run(&["update-ref", "refs/other/annotated", "refs/tags/annotated"]);
    }
    work.push_to(&server);
    match shape {
        Shape::Empty | Shape::Branches | Shape::Tags => (),
        Shape::Detached => drop(server.run(&["update-ref", "--no-deref", "HEAD", "refs/heads/main2"])),
        Shape::UnbornBesideOthers => drop(server.run(&["symbolic-ref", "HEAD", "refs/heads/nothing"])),
        Shape::SymbolicRef => {
            server.run(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main2"]);
            server.run(&["symbolic-ref", "refs/remotes/origin/HEAD2", "refs/remotes/origin/HEAD"]);
            server.run(&["symbolic-ref", "HEAD", "refs/remotes/origin/HEAD2"]);
            server.run(&["symbolic-ref", "refs/remotes/origin/nowhere", "refs/heads/nothing"]);
        }
        Shape::ManyPackedSomeLoose => {
            let updates: String = (0..5000).map(|number| format!("create refs/heads/many/{number} {two}\n")).collect();
            feed(plain_git(&server.repo).args(["update-ref", "--stdin"]), updates.as_bytes());
            server.run(&["pack-refs", "--all"]);
            server.run(&["update-ref", "refs/heads/many/17", "refs/heads/main2"]);
            server.run(&["update-ref", "refs/heads/many/17a", "refs/heads/main2"]);
            server.run(&["update-ref", "refs/tags/second", "refs/tags/nested"]);
            server.run(&["update-ref", "-d", "refs/heads/many/18"]);
        }
        Shape::PackedByOldGit => {
            server.run(&["pack-refs", "--all"]);
            let path = server.repo.join("packed-refs");
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with(['#', '^'])).map(|line| format!("{line}\n"));
            std::fs::write(&path, lines.collect::<String>()).unwrap();
        }
    }
    server
}

#[rstest]
#[tokio::test]
async fn advertisements_equal_those_of_git(
    #[values(
        Shape::Empty,
        Shape::Branches,
        Shape::Tags,
        Shape::Detached,
        Shape::UnbornBesideOthers,
        Shape::SymbolicRef,
        Shape::ManyPackedSomeLoose,
        Shape::PackedByOldGit
    )]
    shape: Shape,
) {
    let server = shaped(shape).await;
    let snapshot = Snapshot::read(&server.repo).unwrap();
    let args = |service| [service, "--http-backend-info-refs", "."];
    let capabilities = server.git.upload_capabilities().await.unwrap();
    for version in [ProtocolVersion::V0, ProtocolVersion::V1] {
        let theirs = feed(git(&server, version).args(args("upload-pack")), b"");
        let ours = advertise::upload_pack(&snapshot, capabilities, version, true).into_bytes();
        assert_eq!(text(&ours), text(&theirs), "{shape:?} {version:?}");
        // In a conversation git goes on after its advertisement, until it hears that nothing is wanted.
        let theirs = feed(git(&server, version).args(["upload-pack", "."]), b"0000");
        let ours = advertise::upload_pack(&snapshot, capabilities, version, false).into_bytes();
        assert_eq!(text(&ours), text(&theirs), "a conversation: {shape:?} {version:?}");
        let theirs = feed(git(&server, version).args(args("receive-pack")), b"");
        let agent = format!("git/{}", server.git.version().await.unwrap());
        let ours = advertise::receive_pack(&snapshot, &agent, version).into_bytes();
        assert_eq!(text(&ours), text(&theirs), "{shape:?} {version:?}");
    }
    let theirs = feed(git(&server, ProtocolVersion::V2).args(args("upload-pack")), b"");
    assert_eq!(advertise::upload_pack_v2(capabilities), theirs);
}

#[rstest]
#[tokio::test]
async fn ls_refs_answers_as_git_does(
    #[values(
        Shape::Empty,
        Shape::Branches,
        Shape::Tags,
        Shape::Detached,
        Shape::UnbornBesideOthers,
        Shape::SymbolicRef,
        Shape::ManyPackedSomeLoose,
        Shape::PackedByOldGit
    )]
    shape: Shape,
) {
    let server = shaped(shape).await;
    let snapshot = Snapshot::read(&server.repo).unwrap();
    for arguments in [
        &[][..],
        &["peel", "symrefs", "unborn"],
        &["peel"],
        &["symrefs"],
        &["unborn"],
        &["symrefs", "unborn", "ref-prefix HEAD"],
        &["symrefs", "peel", "ref-prefix refs/tags/", "ref-prefix HEAD", "ref-prefix refs/heads/"],
        &["ref-prefix refs/heads/many/1", "ref-prefix refs/heads/feature", "ref-prefix refs/heads/feature/a"],
        &["ref-prefix refs/heads/main", "ref-prefix refs/heads/many/17"],
        &["ref-prefix refs/abide", "peel"],
        &["ref-prefix nothing"],
        &["ref-prefix "],
    ] {
        let body = request(arguments);
        let theirs = feed(git(&server, ProtocolVersion::V2).args(["upload-pack", "--stateless-rpc", "."]), &body);
        let V2Request::LsRefs(request) = v2::parse_request(&body) else { panic!("{arguments:?}") };
        assert_eq!(
            text(&advertise::ls_refs(&snapshot, request).into_bytes()),
            text(&theirs),
            "{shape:?} {arguments:?}"
        );
    }
}

#[tokio::test]
async fn fifty_thousand_packed_refs_are_read() {
    let server = shaped(Shape::Tags).await;
    let tip = server.run(&["rev-parse", "refs/heads/main"]);
    let packed: String = std::iter::once("# pack-refs with: peeled fully-peeled sorted \n".to_owned())
        .chain((0..50_000).map(|number| format!("{tip} refs/heads/many/{number:05}\n")))
        .collect();
    std::fs::write(server.repo.join("packed-refs"), packed).unwrap();
    let snapshot = Snapshot::read(&server.repo).unwrap();
    assert!(snapshot.refs.len() > 50_000);
    assert!(snapshot.get(b"refs/heads/many/49999").is_some());
    assert_eq!(snapshot.prefixed(b"refs/heads/many/0001").count(), 10);
}

#[tokio::test]
async fn one_damaged_ref_does_not_take_the_others_away() {
    let server = shaped(Shape::Branches).await;
    std::fs::write(server.repo.join("refs/heads/torn"), "").unwrap();
    let snapshot = Snapshot::read(&server.repo).unwrap();
    assert!(snapshot.get(b"refs/heads/torn").is_none() && snapshot.get(b"refs/heads/main").is_some());
}

fn request(arguments: &[&str]) -> BytesMut {
    let mut body = BytesMut::new();
    put_data(&mut body, b"command=ls-refs\n");
    put_data(&mut body, b"agent=git/2.47.3");
    put_data(&mut body, b"object-format=sha1");
    put_delim(&mut body);
    arguments.iter().for_each(|line| put_data(&mut body, format!("{line}\n").as_bytes()));
    put_flush(&mut body);
    body
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
