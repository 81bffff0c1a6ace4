//! HTTP/1.1 with exact bytes, over blocking sockets.
//!
//! Tests of malformed, slow or partial requests must control every byte on the wire, which no real client allows.
//! [`Request`] is for everyday calls; [`raw_request`] and [`raw_exchange`] send the given bytes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use crate::connect_from;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Longest wait for the next byte from a server.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest line of a response head; far more than any of ours.
const LONGEST_LINE: u64 = 64 * 1024;

/// Gets a path.
#[track_caller]
pub fn get(addr: SocketAddr, path: &str, token: Option<&str>) -> Response {
    Request::new("GET", path).token(token).send(addr)
}

/// Posts JSON to a path.
#[track_caller]
pub fn post(addr: SocketAddr, path: &str, token: Option<&str>, body: &Value) -> Response {
    json("POST", addr, path, token, body)
}

/// Puts JSON to a path.
#[track_caller]
pub fn put(addr: SocketAddr, path: &str, token: Option<&str>, body: &Value) -> Response {
    json("PUT", addr, path, token, body)
}

/// Patches a path with JSON.
#[track_caller]
pub fn patch(addr: SocketAddr, path: &str, token: Option<&str>, body: &Value) -> Response {
    json("PATCH", addr, path, token, body)
}

/// Deletes a path.
#[track_caller]
pub fn delete(addr: SocketAddr, path: &str, token: Option<&str>) -> Response {
    Request::new("DELETE", path).token(token).send(addr)
}

/// Sends JSON with any method.
#[track_caller]
pub fn json(method: &str, addr: SocketAddr, path: &str, token: Option<&str>, body: &Value) -> Response {
    Request::new(method, path).token(token).json(body).send(addr)
}

/// Sends exactly these bytes and returns everything received until the server closes.
///
/// # Panics
/// If the server keeps the connection open and is silent for half a minute. Use [`raw_exchange`] for a server that may
/// keep it open.
#[track_caller]
pub fn raw_request(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    converse(connect(addr), bytes, |stream| {
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // A server that closes before it has read everything resets the connection; its answer still counts.
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => {
                panic!("{addr} did not close: {error}\nso far it said: {}", String::from_utf8_lossy(&answer))
            }
            _ => answer,
        }
    })
}

/// Sends exactly these bytes and returns the one response to them.
///
/// # Panics
/// If no complete response comes back.
#[track_caller]
pub fn raw_exchange(addr: SocketAddr, bytes: &[u8]) -> Response {
    exchange_on(connect(addr), addr, bytes)
}

#[track_caller]
fn exchange_on(stream: TcpStream, addr: SocketAddr, bytes: &[u8]) -> Response {
    let to_head = bytes.starts_with(b"HEAD ");
    let response = converse(stream, bytes, |stream| Response::read_from(&mut BufReader::new(stream), to_head));
    response.unwrap_or_else(|error| {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
        panic!("{addr} gave no proper response: {error:#}\nto: {start}")
    })
}

#[track_caller]
fn connect(addr: SocketAddr) -> TcpStream {
    TcpStream::connect(addr).unwrap_or_else(|error| panic!("{addr} does not take connections: {error}"))
}

/// Writes and reads concurrently, because a server may answer and close before it has read everything.
#[track_caller]
fn converse<T>(mut stream: TcpStream, bytes: &[u8], read: impl FnOnce(&mut TcpStream) -> T) -> T {
    stream.set_read_timeout(Some(READ_TIMEOUT)).expect("a socket takes a timeout");
    let mut writer = stream.try_clone().expect("a socket can be shared");
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = writer.write_all(bytes);
        });
        let answer = read(&mut stream);
        // Unblocks the writer if the server never read the rest.
        let _ = stream.shutdown(Shutdown::Both);
        answer
    })
}

/// A request, sent over its own connection.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A request without body or credentials.
    pub fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds an access token as `Authorization: Bearer`, if there is one.
    pub fn token(self, token: Option<&str>) -> Self {
        match token {
            Some(token) => self.header("Authorization", &format!("Bearer {token}")),
            None => self,
        }
    }

    /// Sets the body and its length header.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a JSON body and its type.
    pub fn json(self, body: &Value) -> Self {
        self.header("Content-Type", "application/json").body(body.to_string())
    }

    /// Sends the request.
    ///
    /// # Panics
    /// If no complete response comes back.
    #[track_caller]
    pub fn send(&self, addr: SocketAddr) -> Response {
        raw_exchange(addr, &self.to_bytes(addr))
    }

    /// Sends the request from another loopback address.
    ///
    /// # Panics
    /// If no complete response comes back.
    #[track_caller]
    pub fn send_from(&self, from: IpAddr, addr: SocketAddr) -> Response {
        let stream = connect_from(from, addr)
            .unwrap_or_else(|error| panic!("{addr} does not take connections from {from}: {error}"));
        exchange_on(stream, addr, &self.to_bytes(addr))
    }

    /// The exact bytes of the request, for a test that sends them itself.
    pub fn to_bytes(&self, addr: SocketAddr) -> Vec<u8> {
        let has = |name: &str| self.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !has("host") {
            head += &format!("Host: {addr}\r\n");
        }
        head += "Connection: close\r\n";
        if !self.body.is_empty() || !matches!(self.method.as_str(), "GET" | "HEAD") {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        [head.as_bytes(), &self.body].concat()
    }
}

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Names as received, in order.
    pub headers: Vec<(String, String)>,
    /// The body, without chunk framing.
    pub body: Vec<u8>,
}

impl Response {
    /// Reads one response; skips interim ones (1xx). A response to HEAD has no body, whatever its headers say.
    pub fn read_from(input: &mut impl BufRead, to_head: bool) -> Result<Self> {
        loop {
            let (status, headers) = read_head(input)?;
            if (100..200).contains(&status) && status != 101 {
                continue;
            }
            let mut response = Self { status, headers, body: Vec::new() };
            if !to_head && !matches!(status, 101 | 204 | 304) {
                response.body = response.read_body(input).with_context(|| format!("in the body of a {status}"))?;
            }
            return Ok(response);
        }
    }

    /// Parses one response, to anything but HEAD, from collected bytes.
    pub fn parse(mut bytes: &[u8]) -> Result<Self> {
        Self::read_from(&mut bytes, false)
    }

    /// First header with this name, in any letter case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is not JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("the body is not JSON ({error}): {} {}", self.status, self.text()))
    }

    fn read_body(&self, input: &mut impl BufRead) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        if self.header("transfer-encoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case("chunked")) {
            while read_chunk(input, &mut body)? {}
            // Skip trailers; an empty line ends them.
            while !read_line(input)?.is_empty() {}
        } else if let Some(length) = self.header("content-length") {
            let length: u64 = length.parse().with_context(|| format!("Content-Length: {length}"))?;
            read_exactly(input, length, &mut body)?;
        } else {
            input.read_to_end(&mut body)?;
        }
        Ok(body)
    }
}

type Head = (u16, Vec<(String, String)>);

fn read_head(input: &mut impl BufRead) -> Result<Head> {
    let status_line = read_line(input).context("reading the status line")?;
    let code = status_line
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| status_line.strip_prefix("HTTP/1.0 "))
        .and_then(|rest| rest.get(..3))
        .with_context(|| format!("not a status line: {status_line:?}"))?;
    let status = code.parse().with_context(|| format!("not a status code: {status_line:?}"))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(input).context("reading the headers")?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line.split_once(':').with_context(|| format!("not a header: {line:?}"))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
}

/// Appends the next chunk; `false` at the last one, which is empty.
fn read_chunk(input: &mut impl BufRead, body: &mut Vec<u8>) -> Result<bool> {
    let line = read_line(input).context("reading a chunk size")?;
    let size = line.split(';').next().unwrap_or_default().trim();
    let size = u64::from_str_radix(size, 16).with_context(|| format!("not a chunk size: {line:?}"))?;
    if size == 0 {
        return Ok(false);
    }
    read_exactly(input, size, body)?;
    ensure!(read_line(input)?.is_empty(), "a chunk is longer than it says");
    Ok(true)
}

fn read_exactly(input: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> Result<()> {
    let read = input.take(length).read_to_end(body)? as u64;
    ensure!(read == length, "the connection closed after {read} of {length} bytes");
    Ok(())
}

/// A line without its CRLF.
fn read_line(input: &mut impl BufRead) -> Result<String> {
    let mut line = Vec::new();
    input.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(String::from_utf8(line.to_vec())?),
        None if line.is_empty() => bail!("the connection closed"),
        None => bail!("not a line that ends in CRLF: {:?}", String::from_utf8_lossy(&line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_where_its_length_says() {
        let response = Response::parse(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhelloHTTP/1.1 500");
        let response = response.expect("a proper response");
        assert_eq!((response.status, response.text().as_str()), (200, "hello"));
        assert_eq!(response.header("x-a"), Some("b"));
        assert_eq!(response.header("x-b"), None);
    }

    #[test]
    fn chunks_are_put_together() {
        let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n\
            3\r\nabc\r\nA;ext=1\r\n0123\r\n6789\r\n0\r\nTrailer: x\r\n\r\n";
        let response = Response::parse(bytes).expect("a proper response");
        assert_eq!(response.text(), "abc0123\r\n6789");
    }

    #[test]
    fn a_body_without_length_ends_with_the_connection() {
        let response = Response::parse(b"HTTP/1.0 400 Bad Request\r\n\r\nwhy not").expect("a proper response");
        assert_eq!((response.status, response.text().as_str()), (400, "why not"));
    }

    #[test]
    fn some_responses_have_no_body_whatever_they_say() {
        let mut to_head: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let response = Response::read_from(&mut to_head, true).expect("a proper response");
        assert_eq!(response.body, b"");
        let response = Response::parse(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(response.expect("a proper response").body, b"");
    }

    #[test]
    fn interim_responses_are_passed_over() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok";
        let response = Response::parse(bytes).expect("a proper response");
        assert_eq!((response.status, response.text().as_str()), (201, "ok"));
    }

    #[test]
    fn a_response_that_breaks_off_is_refused() {
        for bytes in [
            &b""[..],
            b"HTTP/1.1 200 OK",
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloo\r\n0\r\n\r\n",
            b"HTTP/1.1 abc OK\r\n\r\n",
            b"SSH-2.0-Abide\r\n\r\n",
        ] {
            assert!(Response::parse(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_server_that_answers_early_and_closes_is_heard() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("it has an address");
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).expect("a request line");
            stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nbig!").expect("it is written");
            // Reads on until the client gives up, like a lingering server.
            let _ = io::copy(&mut stream, &mut io::sink());
            line
        });
        let response = Request::new("POST", "/upload").body(vec![0; 16 << 20]).send(addr);
        assert_eq!((response.status, response.text().as_str()), (413, "big!"));
        assert_eq!(server.join().expect("the server ended well"), "POST /upload HTTP/1.1\r\n");
    }
}
