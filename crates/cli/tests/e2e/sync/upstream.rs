//! A server under a test's control: it answers each request with the bytes that the test gives, and counts requests.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Handler of a connection, called after the head and body of the request were read.
pub type Answer = Arc<dyn Fn(&str, &mut TcpStream) + Send + Sync>;

pub struct Upstream {
    pub addr: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Upstream {
    pub fn new(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let addr = listener.local_addr().expect("it is bound");
        let this = Self {
            addr,
            requests: Arc::default(),
            open: Arc::default(),
            most_open: Arc::default(),
            stop: Arc::default(),
        };
        let (requests, open, most, stop) =
            (this.requests.clone(), this.open.clone(), this.most_open.clone(), this.stop.clone());
        let answer: Answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(mut stream) = stream else { return };
                let (requests, open, most, answer) = (requests.clone(), open.clone(), most.clone(), answer.clone());
                thread::spawn(move || {
                    most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
                    if let Some(request) = read_request(&mut stream) {
                        requests.lock().expect("nobody panics with it").push(request.clone());
                        answer(&request, &mut stream);
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        this
    }

    /// The first lines of all requests.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("nobody panics with it").clone()
    }

    /// Most connections at once.
    pub fn most_open(&self) -> usize {
        self.most_open.load(Ordering::SeqCst)
    }

    /// Clone URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.addr)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.addr);
    }
}

/// Reads head and body; returns the first line.
fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 || head.len() > 64 << 10 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    head.lines().next().map(str::to_owned)
}

/// Writes a whole answer.
pub fn respond(stream: &mut TcpStream, status: &str, content_type: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// The advertisement of a server that speaks version 2.
pub fn advertise(stream: &mut TcpStream) {
    let lines = ["# service=git-upload-pack\n", "", "version 2\n", "agent=git/2\n", "fetch=wait-for-done\n", ""];
    respond(stream, "200 OK", "application/x-git-upload-pack-advertisement", packets(&lines).as_bytes());
}

/// Text as packets; an empty line is a flush.
pub fn packets(lines: &[&str]) -> String {
    let packet = |line: &&str| match line.len() {
        0 => "0000".to_owned(),
        length => format!("{:04x}{line}", length + 4),
    };
    lines.iter().map(packet).collect()
}
