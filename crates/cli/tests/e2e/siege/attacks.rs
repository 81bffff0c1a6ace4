//! The attacks. Each goes on until it is over, from one loopback address, and returns how often it tried.

use super::packs;
use crate::git::raw::{NONE, packet};
use crate::grasp::scene::{npub, state};
use abide_testkit::http::Request;
use abide_testkit::{ATTACKER, Key, Nostr, Server, connect_from};
use serde_json::json;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use tungstenite::Message;

/// An attack: what it is aimed at, and whether it is over.
pub type Attack = fn(&Target, &AtomicBool) -> u64;

/// Every attack with its name.
pub const ALL: &[(&str, Attack)] = &[
    ("silent fetches", silent_fetches),
    ("unfinished forms", unfinished_forms),
    ("slow heads", slow_heads),
    ("slow packs", slow_packs),
    ("huge trees", huge_trees),
    ("delta bombs", delta_bombs),
    ("nested markdown", nested_markdown),
    ("blame", blame),
    ("events", events),
    ("sockets", sockets),
    ("ssh connections", ssh_connections),
];

/// An object id that a signed state of the attacker names.
const TIP: &str = "1111111111111111111111111111111111111111";

/// What the attacks are aimed at.
pub struct Target {
    addr: SocketAddr,
    ssh: SocketAddr,
    url: String,
    key: Key,
    push_path: String,
    huge_tree: Vec<u8>,
    delta_bomb: Vec<u8>,
}

impl Target {
    /// Announces a repository of the attacker's key, with a state that allows a push.
    pub fn prepare(server: &Server) -> Self {
        let key = Key::new(666);
        let mut relay = Nostr::try_connect_from(ATTACKER, &server.url()).expect("the first connection is welcome");
        let clone = format!("{}/{}/evil.git", server.url(), npub(&key));
        let socket = server.url().replacen("http", "ws", 1);
        let tags: &[&[&str]] = &[&["d", "evil"], &["clone", &clone], &["relays", &socket]];
        assert!(relay.publish(&key.event(Key::now() - 10, 30_617, tags, "")).0);
        assert!(relay.publish(&state(&key, Key::now() - 5, "evil", &[("refs/heads/main", TIP)], Some("main"))).0);
        Self {
            addr: server.http_addr(),
            ssh: server.ssh_addr(),
            url: server.url(),
            push_path: format!("/{}/evil.git/git-receive-pack", npub(&key)),
            key,
            huge_tree: packs::huge_tree(512 << 20),
            delta_bomb: packs::delta_bomb(500),
        }
    }
}

/// A fetch that begins and says nothing more.
fn silent_fetches(target: &Target, over: &AtomicBool) -> u64 {
    let mut body = packet("command=fetch");
    body.extend(b"0001");
    let head = unfinished("/alice/demo.git/git-upload-pack", "git-upload-pack", "Git-Protocol: version=2\r\n");
    hold(target.addr, over, 64, &[head, body].concat(), b"")
}

/// A log-in whose body never comes.
fn unfinished_forms(target: &Target, over: &AtomicBool) -> u64 {
    let form = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                 Content-Length: 1000\r\n\r\nn";
    hold(target.addr, over, 2000, form, b"")
}

/// A request whose head comes a byte at a time.
fn slow_heads(target: &Target, over: &AtomicBool) -> u64 {
    hold(target.addr, over, 200, b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"a")
}

/// A pack that comes a byte at a time.
fn slow_packs(target: &Target, over: &AtomicBool) -> u64 {
    let begun = &target.huge_tree[..target.huge_tree.len() * 9 / 10];
    let push = [unfinished(&target.push_path, "git-receive-pack", ""), commands(), begun.to_vec()].concat();
    hold(target.addr, over, 64, &push, b"\0")
}

/// A pack with one tree that fills the memory of whoever unpacks it.
fn huge_trees(target: &Target, over: &AtomicBool) -> u64 {
    again(over, 4, || push(target, &target.huge_tree))
}

/// A pack whose few bytes become gigabytes.
fn delta_bombs(target: &Target, over: &AtomicBool) -> u64 {
    again(over, 4, || push(target, &target.delta_bomb))
}

/// Issues of quotes in quotes, for repositories of the attacker and of others, and readers who do not wait.
fn nested_markdown(target: &Target, over: &AtomicBool) -> u64 {
    let bodies = ["> ".repeat(60_000), "[".repeat(60_000), "<div>".repeat(20_000), "* ".repeat(60_000)];
    let Ok(mut relay) = Nostr::try_connect_from(ATTACKER, &target.url) else { return 0 };
    let coordinate = Key::new(7).coordinate("kept");
    let ids: Vec<String> = bodies
        .iter()
        .filter_map(|body| {
            let issue = target.key.event(Key::now(), 1621, &[&["a", &coordinate], &["subject", "x"]], body);
            relay.send_if_taken(Message::text(json!(["EVENT", issue]).to_string()));
            relay.hear_within(Duration::from_secs(5)).map(|_| issue.id.to_hex())
        })
        .collect();
    let paths: Vec<String> = ids.iter().map(|id| format!("/{}/kept/nostr/{id}", npub(&Key::new(7)))).collect();
    again(over, 4, || paths.iter().for_each(|path| ask_and_leave(target, path)))
}

/// Blame and path history by somebody without an account.
fn blame(target: &Target, over: &AtomicBool) -> u64 {
    again(over, 8, || {
        ask_and_leave(target, "/alice/demo/blame/main/README.md");
        ask_and_leave(target, "/alice/demo/commits/main/README.md");
    })
}

/// Events of ever new keys, as many as the relay takes.
fn events(target: &Target, over: &AtomicBool) -> u64 {
    let coordinate = Key::new(7).coordinate("kept");
    let text = "x".repeat(60_000);
    let number = AtomicU32::new(10_000);
    again(over, 1, || {
        let Ok(mut relay) = Nostr::try_connect_from(ATTACKER, &target.url) else { return };
        for _ in 0..50 {
            let key = Key::new(number.fetch_add(1, Ordering::Relaxed));
            let issue = key.event(Key::now(), 1621, &[&["a", &coordinate]], &text);
            relay.send_if_taken(Message::text(json!(["EVENT", issue]).to_string()));
        }
        let _ = relay.hear_within(Duration::from_secs(1));
    })
}

/// Sockets of the relay that are opened and left alone.
fn sockets(target: &Target, over: &AtomicBool) -> u64 {
    let upgrade = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    hold(target.addr, over, 300, upgrade, b"")
}

/// SSH connections that never say who they are.
fn ssh_connections(target: &Target, over: &AtomicBool) -> u64 {
    hold(target.ssh, over, 200, b"SSH-2.0-x\r\n", b"")
}

/// The head of a git request that promises more than ever comes.
fn unfinished(path: &str, service: &str, more: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-{service}-request\r\n{more}\
         Content-Length: 100000000\r\n\r\n"
    )
    .into_bytes()
}

fn commands() -> Vec<u8> {
    let mut commands = packet(&format!("{NONE} {TIP} refs/heads/main\0report-status"));
    commands.extend(b"0000");
    commands
}

/// Pushes a whole pack and waits for the answer.
fn push(target: &Target, pack: &[u8]) {
    let request = Request::new("POST", &target.push_path)
        .header("Content-Type", "application/x-git-receive-pack-request")
        .body([commands(), pack.to_vec()].concat());
    let Ok(mut stream) = connect_from(ATTACKER, target.addr) else { return };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let _ = stream.set_write_timeout(Some(Duration::from_secs(5)));
    if stream.write_all(&request.to_bytes(target.addr)).is_ok() {
        let _ = stream.read(&mut [0; 512]);
    }
}

/// Asks for a page and is gone before it comes.
fn ask_and_leave(target: &Target, path: &str) {
    let Ok(mut stream) = connect_from(ATTACKER, target.addr) else { return };
    let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
    if stream.write_all(&Request::new("GET", path).to_bytes(target.addr)).is_ok() {
        let _ = stream.read(&mut [0; 64]);
    }
}

/// Does something over and over, several at a time.
fn again(over: &AtomicBool, at_once: usize, attack: impl FnMut() + Clone + Send) -> u64 {
    thread::scope(|scope| {
        let attackers: Vec<_> = (0..at_once)
            .map(|_| {
                let mut attack = attack.clone();
                scope.spawn(move || {
                    let mut tries = 0;
                    while !over.load(Ordering::Relaxed) {
                        attack();
                        tries += 1;
                    }
                    tries
                })
            })
            .collect();
        attackers.into_iter().map(|attacker| attacker.join().unwrap_or(0)).sum()
    })
}

/// Keeps so many connections open: each says its beginning, then a little more from time to time, and is replaced when
/// the server closes it.
fn hold(addr: SocketAddr, over: &AtomicBool, count: usize, beginning: &[u8], more: &[u8]) -> u64 {
    let mut held: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
    let mut tries = 0;
    while !over.load(Ordering::Relaxed) {
        for place in &mut held {
            if over.load(Ordering::Relaxed) {
                break;
            }
            if !place.as_mut().is_some_and(|stream| goes_on(stream, more)) {
                *place = begin(addr, beginning);
                tries += 1;
            }
        }
        // An attacker of many connections is not a busy loop: what hurts is that they stay.
        thread::sleep(Duration::from_millis(100));
    }
    tries
}

fn begin(addr: SocketAddr, beginning: &[u8]) -> Option<TcpStream> {
    let mut stream = connect_from(ATTACKER, addr).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(200))).ok()?;
    stream.write_all(beginning).ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

/// Whether a connection is still open, after a little more was said on it.
fn goes_on(stream: &mut TcpStream, more: &[u8]) -> bool {
    if !more.is_empty() && stream.write(more).is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
        return false;
    }
    match stream.read(&mut [0; 256]) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}
