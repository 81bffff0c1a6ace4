//! Serving fetches through git.

use crate::support::{Server, Work};
use abide_core::patience::Patience;
use abide_git::pktline::{put_data, put_delim, put_flush};
use abide_git::upload::{self, Request, UploadPack};
use abide_git::{Client, GitError, GitLimits, PacketReader, ProtocolVersion, Pumped};
use bytes::BytesMut;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn fetch(server: &Server) -> UploadPack {
    let patience = Patience::new(Duration::from_secs(10), 1024);
    let (repo, client) = (server.repo.clone(), Client::SERVER);
    UploadPack { repo, protocol: ProtocolVersion::V2, patience, client }
}

/// A conversation of version 0.
fn conversation(server: &Server) -> UploadPack {
    UploadPack { protocol: ProtocolVersion::V0, ..fetch(server) }
}

/// The first request of a conversation.
async fn opening(server: &Server, oid: &str) -> Request {
    let mut body = BytesMut::new();
    put_data(&mut body, format!("want {oid} side-band-64k ofs-delta no-progress\n").as_bytes());
    put_flush(&mut body);
    let mut reader = PacketReader::new(&body[..]);
    upload::read_section(&server.git, Client::SERVER, &mut reader, 1 << 20).await.unwrap().unwrap()
}

const DONE: &[u8] = b"0009done\n";

fn wanting(oid: &str) -> BytesMut {
    let mut body = BytesMut::new();
    put_data(&mut body, b"command=fetch\n");
    put_data(&mut body, b"object-format=sha1");
    put_delim(&mut body);
    for line in [&format!("want {oid}\n"), "ofs-delta\n", "done\n"] {
        put_data(&mut body, line.as_bytes());
    }
    put_flush(&mut body);
    body
}

async fn seeded() -> (Server, String) {
    let (server, work) = (Server::new().await, Work::new());
    let tip = work.commits(50);
    work.push_to(&server);
    (server, tip.to_string())
}

async fn asked(server: &Server, fetch: &UploadPack, body: &[u8]) -> Result<Pumped, GitError> {
    let request = upload::read_request(&server.git, Client::SERVER, body, 1 << 20).await?;
    upload::spawn(&server.git, fetch, request).await
}

/// A commit larger than pipes and channels can buffer.
fn large_tip(server: &Server) -> String {
    let work = Work::new();
    let mut noise = 1u64;
    let text: String = (0..400_000)
        .map(|_| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b' ' + (noise >> 58) as u8)
        })
        .collect();
    let tip = work.commit(&text.repeat(3));
    // A branch of its own, beside existing ones.
    work.run(&["branch", "-m", "large"]);
    work.push_to(server);
    tip.to_string()
}

async fn until_there_are_some(repo: &Path) {
    for _ in 0..1000 {
        if !processes_in(repo).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("something should run");
}

/// Processes whose working directory is this repository.
fn processes_in(repo: &Path) -> Vec<i32> {
    let inside = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == repo);
    let names = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).filter(inside).collect()
}

/// The push before may still run git processes that clean up.
async fn until_there_are(count: usize, repo: &Path) {
    for _ in 0..1000 {
        if processes_in(repo).len() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{count} should run, but these do: {:?}", processes_in(repo));
}

#[tokio::test]
async fn a_fetch_is_served_both_ways() {
    let (server, tip) = seeded().await;
    let body = wanting(&tip);
    let mut answer = Vec::new();
    let begun = opening(&server, &tip).await;
    upload::serve(&server.git, &conversation(&server), begun, DONE, &mut answer).await.unwrap();
    assert!(answer.starts_with(b"0008NAK\n") && answer.ends_with(b"0000"));

    let mut streamed = Vec::new();
    let mut stream = asked(&server, &fetch(&server), &body).await.unwrap();
    stream.read_to_end(&mut streamed).await.unwrap();
    assert!(streamed.starts_with(b"000dpackfile\n") && streamed.ends_with(b"0000"));
    until_there_are(0, &server.repo).await;
}

#[tokio::test]
async fn a_conversation_ends_when_the_client_says_so() {
    let (server, tip) = seeded().await;
    let (mut client, ours) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(ours);
    let talk = async {
        client.write_all(DONE).await.unwrap();
        client.write_all(b"0000").await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"0008NAK\n") && answer.ends_with(b"0000"));
    };
    let begun = opening(&server, &tip).await;
    let serve = async {
        let (mut input, mut output) = (input, output);
        upload::serve(&server.git, &conversation(&server), begun, &mut input, &mut output).await.unwrap();
        output.shutdown().await.unwrap();
    };
    tokio::join!(talk, serve);
}

#[tokio::test]
async fn packets_up_to_a_flush_are_one_request_and_what_follows_stays() {
    let server = Server::new().await;
    let read = async |wire: &[u8]| {
        let mut reader = PacketReader::new(wire);
        let read = upload::read_section(&server.git, Client::SERVER, &mut reader, 100).await;
        (read.map(|request| request.is_some()), reader.buffered().to_vec())
    };
    for nothing in [&b""[..], b"0000", b"0000more"] {
        assert!(matches!(read(nothing).await, (Ok(false), _)), "{nothing:?}");
    }
    let (read_one, rest) = read(b"0008want0001000bdone it0000more").await;
    assert!(read_one.unwrap());
    assert_eq!(rest, b"more");
    for cut in [&b"0008want"[..], b"0008wa", b"zzzz"] {
        assert!(matches!(read(cut).await.0, Err(GitError::Client(_))), "{cut:?}");
    }
    let long = [b"0058".to_vec(), vec![b'x'; 84], b"0058".to_vec(), vec![b'x'; 84], b"0000".to_vec()].concat();
    assert!(matches!(read(&long).await.0, Err(GitError::RequestTooLarge(100))));
}

#[tokio::test]
async fn dropping_a_fetch_ends_git() {
    let (server, tip) = seeded().await;
    // The client reads nothing, so git blocks on its output.
    let large = wanting(&large_tip(&server));
    let stream = asked(&server, &fetch(&server), &large).await.unwrap();
    until_there_are_some(&server.repo).await;
    drop(stream);
    until_there_are(0, &server.repo).await;

    let (_client, ours) = tokio::io::duplex(64);
    let (input, output) = tokio::io::split(ours);
    let talk = conversation(&server);
    let serve = upload::serve(&server.git, &talk, opening(&server, &tip).await, input, output);
    assert!(tokio::time::timeout(Duration::from_millis(200), serve).await.is_err());
    until_there_are(0, &server.repo).await;
}

#[tokio::test]
async fn a_client_that_takes_no_bytes_is_given_up() {
    let (server, tip) = seeded().await;
    let (_client, output) = tokio::io::duplex(16);
    let stalled = UploadPack { patience: Patience::new(Duration::from_millis(100), 1024), ..conversation(&server) };
    let result = upload::serve(&server.git, &stalled, opening(&server, &tip).await, DONE, output).await;
    assert!(matches!(result, Err(GitError::Client(_))), "{result:?}");
    until_there_are(0, &server.repo).await;
}

#[tokio::test]
async fn a_client_that_takes_no_bytes_of_a_stream_loses_its_git_and_its_slot() {
    let limits = GitLimits { fetches: 1, ..GitLimits::default() };
    let server = Server::with(limits).await;
    let stalled = UploadPack { patience: Patience::new(Duration::from_millis(100), 1 << 20), ..fetch(&server) };
    let large = wanting(&large_tip(&server));
    let mut stream = asked(&server, &stalled, &large).await.unwrap();
    until_there_are(0, &server.repo).await;
    let other = asked(&server, &fetch(&server), b"0000").await.unwrap();
    let mut rest = Vec::new();
    let error = stream.read_to_end(&mut rest).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "a part is not taken for the whole");
    drop(other);
}

#[tokio::test]
async fn a_request_that_does_not_end_takes_no_slot() {
    let limits = GitLimits { fetches: 1, fetches_each: 1, ..GitLimits::default() };
    let server = Server::with(limits).await;
    let (mut silent, ours) = tokio::io::duplex(64);
    silent.write_all(b"0011command=fetch0001").await.unwrap();
    let reading = tokio::spawn({
        let git = server.git.clone();
        async move { upload::read_request(&git, Client::SERVER, ours, 1 << 20).await }
    });
    asked(&server, &fetch(&server), b"0000").await.unwrap();
    assert!(!reading.is_finished());
    assert!(processes_in(&server.repo).is_empty() || !reading.is_finished());
    reading.abort();
}

#[tokio::test]
async fn a_request_has_an_end_and_a_large_one_waits_in_a_file() {
    let (server, tip) = seeded().await;
    let endless = tokio::io::repeat(b'x');
    let result = upload::read_request(&server.git, Client::SERVER, endless, 1 << 20).await;
    assert!(matches!(result, Err(GitError::RequestTooLarge(_))), "{result:?}");

    let mut body = BytesMut::new();
    put_data(&mut body, b"command=fetch\n");
    put_delim(&mut body);
    put_data(&mut body, format!("want {tip}\n").as_bytes());
    for number in 0..5_000 {
        put_data(&mut body, format!("have {number:040x}\n").as_bytes());
    }
    put_data(&mut body, b"done\n");
    put_flush(&mut body);
    let mut answer = Vec::new();
    let mut stream = asked(&server, &fetch(&server), &body).await.unwrap();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"000dpackfile\n") && answer.ends_with(b"0000"));
}

#[tokio::test]
async fn large_requests_of_one_client_have_so_many_slots_and_small_ones_need_none() {
    let server = Server::with(GitLimits { queue: Duration::from_secs(1), ..GitLimits::default() }).await;
    let [attacker, other] = [1, 2].map(|last| Client::new(Some([192, 0, 2, last].into()), None));
    let large = vec![b'x'; 100_000];
    let mut held = Vec::new();
    for _ in 0..8 {
        let (mut client, ours) = tokio::io::duplex(200_000);
        client.write_all(&large).await.unwrap();
        let git = server.git.clone();
        held.push((client, tokio::spawn(async move { upload::read_request(&git, attacker, ours, 1 << 20).await })));
    }
    // Wait until each unfinished request holds its slot.
    let refused = loop {
        match upload::read_request(&server.git, attacker, &large[..], 1 << 20).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, GitError::Busy { .. }), "{refused:?}");
    assert!(held.iter().all(|(_, reading)| !reading.is_finished()));
    upload::read_request(&server.git, attacker, &large[..1000], 1 << 20).await.unwrap();
    upload::read_request(&server.git, other, &large[..], 1 << 20).await.unwrap();
}

#[tokio::test]
async fn a_conversation_in_which_nobody_says_anything_is_given_up() {
    let (server, tip) = seeded().await;
    let (_client, ours) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(ours);
    let silent = UploadPack { patience: Patience::new(Duration::from_millis(100), 1024), ..conversation(&server) };
    let result = upload::serve(&server.git, &silent, opening(&server, &tip).await, input, output).await;
    assert!(
        matches!(&result, Err(GitError::Client(error)) if error.kind() == std::io::ErrorKind::TimedOut),
        "{result:?}"
    );
    until_there_are(0, &server.repo).await;
}

#[tokio::test]
async fn small_questions_do_not_keep_a_conversation_and_its_slot() {
    let (server, tip) = seeded().await;
    let (client, ours) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(ours);
    // git answers each of them at once.
    let asking = tokio::spawn(async move {
        let (mut answers, mut questions) = tokio::io::split(client);
        let question = format!("0032have {:040x}\n0000", 1);
        let mut answer = [0; 8];
        while questions.write_all(question.as_bytes()).await.is_ok() {
            answers.read_exact(&mut answer).await.map(|_| ()).unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let slow = UploadPack { patience: Patience::new(Duration::from_millis(300), 1 << 20), ..conversation(&server) };
    let result = upload::serve(&server.git, &slow, opening(&server, &tip).await, input, output).await;
    assert!(
        matches!(&result, Err(GitError::Client(error)) if error.kind() == std::io::ErrorKind::TimedOut),
        "{result:?}"
    );
    asking.await.unwrap();
    until_there_are(0, &server.repo).await;
}

#[tokio::test]
async fn no_more_fetches_run_than_allowed() {
    let limits = GitLimits { fetches: 1, queue: Duration::from_millis(50), ..GitLimits::default() };
    let server = Server::with(limits).await;
    let large = wanting(&large_tip(&server));
    let first = asked(&server, &fetch(&server), &large).await.unwrap();
    let second = asked(&server, &fetch(&server), b"0000").await;
    assert!(matches!(second, Err(GitError::Busy { .. })), "{second:?}");
    drop(first);
    asked(&server, &fetch(&server), b"0000").await.unwrap();
}

#[tokio::test]
async fn objects_that_no_ref_reaches_are_refused_with_version_0() {
    let (server, work) = (Server::new().await, Work::new());
    work.commit("one");
    work.push_to(&server);
    let hidden = work.commit("two");
    let incoming = server.incoming("hidden").await;
    incoming.receive(&work.pack(&["HEAD"])[..], &Default::default(), None).await.unwrap();
    server.take_unproved(incoming).await;
    let mut answer = Vec::new();
    let begun = opening(&server, &hidden.to_string()).await;
    let result = upload::serve(&server.git, &conversation(&server), begun, DONE, &mut answer).await;
    assert!(result.is_err());
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("ERR upload-pack: not our ref"), "{answer}");
}
