//! Receiver of webhook deliveries. Each request is written down before it is answered.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A received request.
#[derive(Debug, Clone)]
pub struct Got {
    pub event: String,
    pub guid: String,
    pub body: Value,
}

pub struct Receiver {
    pub at: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
    status: Arc<AtomicU16>,
}

impl Receiver {
    /// Answers everything with 200 unless set otherwise.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let at = listener.local_addr().expect("it is bound");
        let (got, status) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU16::new(200)));
        let (log, answer) = (got.clone(), status.clone());
        // Ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (log.clone(), answer.clone());
                thread::spawn(move || serve(stream, &log, &answer));
            }
        });
        Self { at, got, status }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.at)
    }

    pub fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().expect("nobody panics in here").clone()
    }

    /// Requests of one event.
    pub fn of(&self, event: &str) -> Vec<Got> {
        self.got().into_iter().filter(|got| got.event == event).collect()
    }
}

/// A sender that dies in between is the point of some tests, so what breaks off is left alone.
fn serve(stream: TcpStream, log: &Mutex<Vec<Got>>, answer: &AtomicU16) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut event, mut guid, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name.to_ascii_lowercase().as_str() {
            "x-github-event" => event = value.to_owned(),
            "x-github-delivery" => guid = value.to_owned(),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    // A form is no JSON, and is received all the same.
    let body = serde_json::from_slice(&body).unwrap_or_default();
    // Before anyone can see it and decide how the next one is answered.
    let status = answer.load(Ordering::SeqCst);
    log.lock().ok()?.push(Got { event, guid, body });
    let mut stream = stream;
    stream.write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 4\r\n\r\nsaid").as_bytes()).ok()
}
