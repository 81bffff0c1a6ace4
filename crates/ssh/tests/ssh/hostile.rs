//! Hostile clients, and slow ones.

use crate::world::{Person, World, stderr};
use abide_core::repo::Visibility;
use abide_store::repos::Repo;
use abide_testkit::{History, eventually};
use russh::client::{self, Handle};
use russh::keys::{PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{Channel, ChannelMsg};
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

/// A custom client, for behaviour that OpenSSH does not have.
struct Trusting;

impl client::Handler for Trusting {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _key: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        Ok(true)
    }
}

async fn connect(world: &World, person: &Person) -> Handle<Trusting> {
    let mut handle = client::connect(Arc::default(), world.addr, Trusting).await.unwrap();
    let key = PrivateKey::from_openssh(fs::read_to_string(person.private_key()).unwrap()).unwrap();
    let key = PrivateKeyWithHashAlg::new(Arc::new(key), None);
    assert!(handle.authenticate_publickey("git", key).await.unwrap().success());
    handle
}

/// Output and exit status of a command.
async fn run(channel: &mut Channel<client::Msg>, command: &str) -> (Vec<u8>, Option<u32>) {
    channel.exec(true, command).await.unwrap();
    let (mut printed, mut status) = (Vec::new(), None);
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => printed.extend_from_slice(&data),
            ChannelMsg::ExitStatus { exit_status } => status = Some(exit_status),
            _ => {}
        }
    }
    (printed, status)
}

fn big(world: &World, owner: &Person, megabytes: usize) -> Repo {
    let repo = world.repo(owner, "big", Visibility::Private);
    let work = owner.git.init_work_tree();
    owner.git.fast_import(&work, History { commits: megabytes, bytes_per_commit: 1 << 20, refs: 0 });
    owner.git.ok(&work, &["push", "--quiet", &world.url(&repo.slug()), "main"]);
    repo
}

#[test]
fn a_channel_that_is_flooded_before_it_asks_for_anything_holds_up_nobody() {
    let world = World::with(|options, _| options.handshake_timeout = Duration::from_secs(3));
    let alice = world.person("alice");
    world.repo_with_commit(&alice, "demo", Visibility::Private);
    world.run(async {
        let client = connect(&world, &alice).await;
        let mut flooded = client.channel_open_session().await.unwrap();
        flooded.data_bytes(vec![0; 8 << 20]).await.unwrap();
        let mut other = client.channel_open_session().await.unwrap();
        let (printed, _) = run(&mut other, "git-upload-pack '/alice/absent.git'").await;
        assert!(printed.ends_with(b"repository not found"), "{printed:?}");

        // The channel sent no request in time, so the server closes it.
        while flooded.wait().await.is_some_and(|message| !matches!(message, ChannelMsg::Close)) {}
    });
}

#[test]
fn a_channel_runs_one_command() {
    let world = World::new();
    let alice = world.person("alice");
    world.repo_with_commit(&alice, "demo", Visibility::Private);
    world.run(async {
        let client = connect(&world, &alice).await;
        let mut channel = client.channel_open_session().await.unwrap();
        channel.exec(true, "git-upload-pack '/alice/demo.git'").await.unwrap();
        channel.exec(true, "git-receive-pack '/alice/demo.git'").await.unwrap();
        channel.request_shell(true).await.unwrap();
        let (mut taken, mut refused) = (0, 0);
        while taken + refused < 3 {
            match channel.wait().await.unwrap() {
                ChannelMsg::Success => taken += 1,
                ChannelMsg::Failure => refused += 1,
                _ => {}
            }
        }
        assert_eq!((taken, refused), (1, 2));
        channel.data_bytes(&b"0000"[..]).await.unwrap();
        let mut status = None;
        while let Some(message) = channel.wait().await {
            if let ChannelMsg::ExitStatus { exit_status } = message {
                status = Some(exit_status);
            }
        }
        assert_eq!(status, Some(0));
    });
}

#[test]
fn a_client_that_takes_no_bytes_is_given_up() {
    let world = World::with(|_, settings| settings.git.idle_timeout = Duration::from_secs(1));
    let alice = world.person("alice");
    let repo = big(&world, &alice, 16);
    let listing = alice.git.ok(&alice.git.fresh_dir(), &["ls-remote", &world.url("alice/big"), "refs/heads/main"]);
    let oid = &listing[..40];
    let mut fetch = world.ssh(&alice, &["-T"], &["git-upload-pack '/alice/big.git'"]);
    let mut child = fetch.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let request = format!("0032want {oid}\n00000009done\n");
    child.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
    let path = fs::canonicalize(world.path(&repo)).unwrap();
    let running = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes.filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == path)).count() > 0
    };
    eventually(Duration::from_secs(20), running);
    eventually(Duration::from_secs(20), || !running());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

/// A proxy to the server that passes back this many bytes per second, without buffering.
async fn bottleneck(server: SocketAddr, rate: u32) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        let (mut from_server, mut to_server) = socket.connect(server).await.unwrap().into_split();
        let (mut from_client, mut to_client) = client.into_split();
        let up = tokio::io::copy(&mut from_client, &mut to_server);
        let down = async {
            let mut piece = vec![0; 8 * 1024];
            let mut due = tokio::time::Instant::now();
            loop {
                let length = from_server.read(&mut piece).await?;
                if length == 0 {
                    return std::io::Result::Ok(());
                }
                to_client.write_all(&piece[..length]).await?;
                due += Duration::from_secs(1) * length as u32 / rate;
                tokio::time::sleep_until(due).await;
            }
        };
        let _ = tokio::join!(up, down);
    });
    addr
}

/// Scaled down: with the usual minute of patience, this is a client at 13 kB/s. The whole transfer takes several times
/// the patience, and a single chunk so little that a busy machine may be late.
#[test]
fn a_slow_client_gets_its_pack() {
    let world = World::with(|_, settings| settings.git.idle_timeout = Duration::from_secs(4));
    let alice = world.person("alice");
    big(&world, &alice, 3);
    let slow = world.run(bottleneck(world.addr, 200_000));
    let dir = alice.git.fresh_dir();
    let url = format!("ssh://git@{slow}/alice/big.git");
    alice.git.ok(&dir, &["clone", "--quiet", "--bare", &url, "copy.git"]);
}
