//! Connection limits and shutdown.

use crate::world::{World, stderr};
use abide_core::repo::Visibility;
use abide_testkit::eventually;
use std::io::Read as _;
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

/// Connects and reads the server's greeting; `None` if the server closed the connection.
fn connect(world: &World) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(world.addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut greeting = [0; 15];
    match stream.read_exact(&mut greeting) {
        Ok(()) => {
            assert_eq!(&greeting, b"SSH-2.0-Abide\r\n");
            Some(stream)
        }
        Err(_) => None,
    }
}

fn closes(mut stream: TcpStream) -> bool {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).is_ok()
}

#[test]
fn more_connections_than_allowed_are_closed_until_one_ends() {
    let world = World::with(|options, _| options.per_ip = 2);
    let first = connect(&world).unwrap();
    let _second = connect(&world).unwrap();
    assert!(connect(&world).is_none());
    drop(first);
    eventually(Duration::from_secs(10), || connect(&world).is_some());

    let world = World::with(|options, _| options.max_connections = 1);
    let _only = connect(&world).unwrap();
    assert!(connect(&world).is_none());
}

#[test]
fn a_client_that_does_not_authenticate_is_cut_off() {
    let world = World::with(|options, _| options.handshake_timeout = Duration::from_secs(1));
    let silent = connect(&world).unwrap();
    let mut half = connect(&world).unwrap();
    std::io::Write::write_all(&mut half, b"SSH-2.0-half\r\n").unwrap();
    assert!(closes(silent));
    assert!(closes(half));
}

#[test]
fn a_connection_with_nothing_running_is_ended() {
    let world = World::with(|options, _| options.idle_timeout = Duration::from_secs(1));
    let alice = world.person("alice");
    let output = world.ssh(&alice, &["-N"], &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(stderr(&output).contains("idle timeout"), "{}", stderr(&output));
}

#[test]
fn commands_on_one_connection_are_limited() {
    let world = World::with(|options, _| options.max_channels = 2);
    let alice = world.person("alice");
    world.repo_with_commit(&alice, "demo", Visibility::Private);
    let dir = tempfile::tempdir().unwrap();
    let socket = format!("ControlPath={}", dir.path().join("s").display());
    let mux = ["-T", "-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", &socket];
    let hold = || {
        let mut fetch = world.ssh(&alice, &mux, &["git-upload-pack '/alice/demo.git'"]);
        let mut child = fetch.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut start = [0; 4];
        let started = child.stdout.as_mut().unwrap().read_exact(&mut start).is_ok();
        (child, started)
    };
    let (mut first, started) = hold();
    assert!(started);
    let (mut second, started) = hold();
    assert!(started);
    let options = ["-T", "-o", "ControlMaster=no", "-o", &socket];
    let third = world.ssh(&alice, &options, &["git-upload-pack '/alice/demo.git'"]).output().unwrap();
    // ssh then opens a connection of its own, so only its words tell.
    assert!(
        stderr(&third).contains("ession request failed") || stderr(&third).contains("open failed"),
        "{}",
        stderr(&third)
    );
    for child in [&mut first, &mut second] {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
    let fourth = world.ssh(&alice, &options, &["git-upload-pack '/alice/demo.git'"]).output().unwrap();
    assert!(String::from_utf8_lossy(&fourth.stdout).contains("refs/heads/main"), "{}", stderr(&fourth));
    let _ = world.ssh(&alice, &["-O", "exit", "-o", &socket], &[]).output();
}

#[test]
fn stopping_ends_idle_connections_and_lets_running_commands_finish() {
    let mut world = World::new();
    let alice = world.person("alice");
    world.repo_with_commit(&alice, "demo", Visibility::Private);
    let mut idle = world.ssh(&alice, &["-N"], &[]).stderr(Stdio::null()).spawn().unwrap();
    let mut fetch = world.ssh(&alice, &["-T"], &["git-upload-pack '/alice/demo.git'"]);
    let mut running = fetch.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 4];
    running.stdout.as_mut().unwrap().read_exact(&mut start).unwrap();

    world.stop.cancel();
    assert_eq!(idle.wait().unwrap().code(), Some(255));
    assert!(TcpStream::connect(world.addr).is_err());
    assert!(!world.serving.as_ref().unwrap().is_finished());
    std::io::Write::write_all(&mut running.stdin.take().unwrap(), b"0000").unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(0));
    world.stop();
}

#[test]
fn commands_that_take_too_long_to_end_are_cut() {
    let mut world = World::with(|_, settings| settings.drain_timeout = Duration::from_millis(300));
    let alice = world.person("alice");
    world.repo_with_commit(&alice, "demo", Visibility::Private);
    let mut fetch = world.ssh(&alice, &["-T"], &["git-upload-pack '/alice/demo.git'"]);
    let mut running = fetch.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut start = [0; 4];
    running.stdout.as_mut().unwrap().read_exact(&mut start).unwrap();
    world.stop();
    assert_eq!(running.wait().unwrap().code(), Some(255));
}
