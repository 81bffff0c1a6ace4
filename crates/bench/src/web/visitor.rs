//! An HTTP client with a keep-alive connection.

use super::io;
use crate::Failure;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct Visitor {
    stream: BufReader<TcpStream>,
    host: String,
    body: Vec<u8>,
}

impl Visitor {
    pub(crate) fn new(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).map_err(io("connect to the server"))?;
        stream.set_nodelay(true).map_err(io("set up a connection"))?;
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), host: address.to_owned(), body: Vec::new() })
    }

    /// Gets a page, reads all of it and returns the time.
    pub(crate) fn get(&mut self, path: &str) -> Result<Duration, Failure> {
        let start = Instant::now();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        self.stream.get_mut().write_all(request.as_bytes()).map_err(io("ask for a page"))?;
        let mut length = None;
        let mut status = String::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).map_err(io("read an answer"))?;
            if status.is_empty() {
                status = line.trim().to_owned();
            } else if line.trim().is_empty() {
                break;
            } else if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let length = length.ok_or_else(|| Failure::failed(format!("{path} does not say how long it is: {status}")))?;
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).map_err(io("read a page"))?;
        if !status.contains(" 200 ") {
            return Err(Failure::failed(format!("{path} answers {status}")));
        }
        Ok(start.elapsed())
    }
}

/// Responses per second of a page with `visitors` clients that request it without a pause.
pub(crate) fn load(address: &str, path: &str, visitors: usize, time: Duration) -> Result<f64, Failure> {
    let (answered, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let start = Instant::now();
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..visitors)
            .map(|_| {
                scope.spawn(|| {
                    let mut visitor = Visitor::new(address)?;
                    while !stop.load(Ordering::Relaxed) {
                        visitor.get(path)?;
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        asking
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(Failure::failed("a visitor ended early"))))
    })?;
    Ok(answered.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
}
