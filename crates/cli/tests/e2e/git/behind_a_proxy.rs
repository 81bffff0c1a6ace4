//! A proxy stands between client and server, as most installations have it.

use super::setup::noise;
use crate::support::{builder, person};
use abide_testkit::Engine;
use rstest::rstest;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Does what nginx does: once an answer has begun, nothing more of its request is passed on.
fn strict_proxy(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let at = listener.local_addr().expect("it listens");
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("the test connects");
            thread::spawn(move || pass_on(client, to).unwrap_or_default());
        }
    });
    at
}

fn pass_on(mut client: TcpStream, to: SocketAddr) -> io::Result<()> {
    let mut server = TcpStream::connect(to)?;
    let answered = Arc::new(AtomicBool::new(false));
    let (mut answer, mut back, begun) = (server.try_clone()?, client.try_clone()?, answered.clone());
    thread::spawn(move || -> io::Result<()> {
        each_piece(&mut answer, |piece| {
            begun.store(true, Ordering::SeqCst);
            back.write_all(piece)
        })?;
        back.shutdown(Shutdown::Both)
    });
    each_piece(&mut client, |piece| {
        // git begins a request when it has the answer to the one before.
        if piece.starts_with(b"GET ") || piece.starts_with(b"POST ") {
            answered.store(false, Ordering::SeqCst);
        }
        if answered.load(Ordering::SeqCst) { Ok(()) } else { server.write_all(piece) }
    })?;
    server.shutdown(Shutdown::Both)
}

fn each_piece(from: &mut TcpStream, mut with: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => with(&buffer[..length])?,
        }
    }
}

#[rstest]
#[case::silent(Engine::Sqlite, "--quiet")]
#[case::told(Engine::Postgres, "--progress")]
fn a_large_push_arrives_through_a_proxy_that_wants_requests_before_answers(#[case] engine: Engine, #[case] how: &str) {
    // A push that hangs is to fail soon.
    let server = builder(engine).env("ABIDE_GIT__IDLE_TIMEOUT", "3s").start();
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    let work = alice.git.init_work_tree();
    let commit = alice.git.commit_file(&work, "large", noise(24 << 20, 1), "Much");
    let url = format!("http://{}/alice/project.git", strict_proxy(server.http_addr()));

    alice.git.ok(&work, &["push", how, &url, "main"]);

    let reported = alice.git.ok(&work, &["ls-remote", &url, "refs/heads/main"]);
    assert!(reported.starts_with(&commit), "{reported}");
}
