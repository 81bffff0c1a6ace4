//! A stranger can hurt nobody: what one client sends, slowly, hugely or often, costs others nothing. Attackers come from
//! one address and victims from another, and attacks go on while the victims are served.

mod answers;
mod connections;
mod files;
mod names;
mod rendering;
mod streams;
mod sudo;

use abide_testkit::http::{Request, Response};
use abide_testkit::{ATTACKER, Server, ServerBuilder, connect_from};
use std::io::{BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::time::Duration;

const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

fn with(builder: ServerBuilder, settings: &[(&str, &str)]) -> Server {
    settings.iter().fold(builder, |builder, (name, value)| builder.env(name, value)).start()
}

/// Gets a page from an address.
#[track_caller]
fn get(server: &Server, from: IpAddr, path: &str) -> Response {
    Request::new("GET", path).send_from(from, server.http_addr())
}

/// The status that a request from an address gets; `None` if the connection is closed without an answer.
#[track_caller]
fn status(server: &Server, from: IpAddr, request: &Request) -> Option<u16> {
    let mut stream = connected(server, from);
    stream.write_all(&request.to_bytes(server.http_addr())).ok()?;
    Response::read_from(&mut BufReader::new(stream), false).ok().map(|answer| answer.status)
}

#[track_caller]
fn connected(server: &Server, from: IpAddr) -> TcpStream {
    let stream = connect_from(from, server.http_addr()).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket takes a timeout");
    stream
}

/// A connection over which something was sent, and nothing was read yet.
fn begun(server: &Server, from: IpAddr, bytes: &str) -> TcpStream {
    let mut stream = connected(server, from);
    // The server may have closed it already.
    let _ = stream.write_all(bytes.as_bytes());
    stream
}

/// Everything that comes until the other side closes.
#[track_caller]
fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => panic!("it stays open: {error}"),
        _ => String::from_utf8_lossy(&bytes).into_owned(),
    }
}
