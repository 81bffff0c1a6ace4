//! Responses that are read as streams.

use crate::support::{Book, address, endless, gate, holding, self_signed, serving, short};
use abide_outbound::http::{HeaderName, HeaderValue, Method};
use abide_outbound::{Gate, GateError, OutboundLimits, Post, Request, Response};
use std::io;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";

fn get(to: &str) -> Request {
    let headers = vec![
        (HeaderName::from_static("x-test"), HeaderValue::from_static("yes")),
        (HeaderName::from_static("accept-encoding"), HeaderValue::from_static("gzip")),
    ];
    Request { method: Method::GET, address: address(to), headers, body: "".into(), idle: Duration::from_secs(10) }
}

async fn open(gate: &Gate, to: &str) -> Result<Response, GateError> {
    gate.open(get(to)).await
}

async fn read(mut response: Response) -> io::Result<String> {
    let mut text = String::new();
    response.body.read_to_string(&mut text).await?;
    Ok(text)
}

#[tokio::test]
async fn a_response_is_streamed_with_the_address_of_its_server() {
    let (at, seen) = serving(
        b"HTTP/1.1 206 Some\r\nX-From: there\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nfin\r\n1\r\ne\r\n0\r\n\r\n",
    )
    .await;
    let book = Book::default().with("git.example", &[&["127.0.0.1"]]);
    let gate = gate(book, &["git.example"], OutboundLimits::default());
    let response = open(&gate, &format!("http://git.example:{}/a?x=1", at.port())).await.unwrap();
    assert_eq!((response.status.as_u16(), response.peer), (206, at.ip()));
    assert_eq!(response.headers["x-from"], "there");
    assert_eq!(read(response).await.unwrap(), "fine");
    let asked = seen.lock().unwrap()[0].to_lowercase();
    assert!(asked.starts_with("get /a?x=1 http/1.1\r\n") && asked.contains("x-test: yes\r\n"), "{asked}");
    assert!(asked.contains("accept-encoding: identity\r\n") && !asked.contains("gzip"), "{asked}");
    assert!(!asked.contains("content-length") && asked.contains("connection: close\r\n"), "{asked}");

    let post = Request { method: Method::POST, body: "hello".into(), ..get(&format!("http://{at}/")) };
    let gate = crate::support::gate(Book::default(), &["127.0.0.1"], OutboundLimits::default());
    gate.open(post).await.unwrap();
    let asked = seen.lock().unwrap()[1].to_lowercase();
    assert!(
        asked.starts_with("post / ") && asked.contains("content-length: 5\r\n") && asked.ends_with("hello"),
        "{asked}"
    );
}

#[tokio::test]
async fn private_addresses_are_refused_before_a_connection() {
    let (at, seen) = serving(OK).await;
    let book = Book::default()
        .with("inside.example", &[&["127.0.0.1"]])
        .with("mixed.example", &[&["93.184.216.34", "127.0.0.1"]]);
    let gate = gate(book, &[], OutboundLimits::default());
    for host in ["inside.example", "mixed.example", "127.0.0.1", "0x7f.1", "[::ffff:127.0.0.1]"] {
        let refused = open(&gate, &format!("http://{host}:{}/", at.port())).await;
        assert!(matches!(refused, Err(GateError::Refused { .. })), "{host}: {refused:?}");
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_redirect_is_returned_and_its_target_is_judged_like_any_other() {
    let (at, seen) =
        serving(b"HTTP/1.1 301 Moved\r\nLocation: http://inside.example/x\r\nContent-Length: 0\r\n\r\n").await;
    let book = Book::default().with("inside.example", &[&["10.0.0.1"]]);
    let gate = gate(book, &["127.0.0.1"], OutboundLimits::default());
    let from = address(&format!("http://{at}/info/refs"));
    let response = open(&gate, from.as_str()).await.unwrap();
    assert_eq!(response.status, 301);
    assert_eq!(seen.lock().unwrap().len(), 1);
    let target = from.join(response.headers["location"].to_str().unwrap()).unwrap();
    assert_eq!(target.as_str(), "http://inside.example/x");
    assert!(matches!(open(&gate, target.as_str()).await, Err(GateError::Refused { .. })));
}

#[tokio::test]
async fn a_head_has_limits_of_time_and_size() {
    let gate = gate(Book::default(), &["127.0.0.1"], short());
    for slow in [&b""[..], b"HTTP/1.1 200 OK\r\nX-Slow: "] {
        let at = holding(slow).await;
        let late = open(&gate, &format!("http://{at}/")).await;
        assert!(matches!(late, Err(GateError::TimedOut(_))), "{late:?}");
    }
    for repeated in [&[b'x'; 1024][..], b"x: y\r\n"] {
        let at = endless(b"HTTP/1.1 200 OK\r\nX-Long: y\r\n", repeated).await;
        let odd = open(&gate, &format!("http://{at}/")).await;
        assert!(matches!(odd, Err(GateError::Http(_))), "{odd:?}");
    }
}

#[tokio::test]
async fn silence_within_a_body_ends_it() {
    let at = holding(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst").await;
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits::default());
    let idle = Duration::from_millis(100);
    let mut response = gate.open(Request { idle, ..get(&format!("http://{at}/")) }).await.unwrap();
    let mut first = [0; 5];
    response.body.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"first");
    let error = response.body.read(&mut first).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "no data received for 0.1 s");
}

#[tokio::test]
async fn a_caller_that_reads_late_is_no_silence() {
    let (at, _) = serving(OK).await;
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits::default());
    let response = open(&gate, &format!("http://{at}/")).await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    assert_eq!(read(response).await.unwrap(), "fine");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_error_and_not_an_end() {
    for cut in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfine"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n",
    ] {
        let (at, _) = serving(cut).await;
        let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits::default());
        let response = open(&gate, &format!("http://{at}/")).await.unwrap();
        assert!(read(response).await.is_err());
    }
}

#[tokio::test]
async fn a_compressed_response_is_refused() {
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits::default());
    let (at, _) = serving(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nfine").await;
    let odd = open(&gate, &format!("http://{at}/")).await;
    assert!(matches!(&odd, Err(GateError::Http(reason)) if reason.contains("compressed")), "{odd:?}");
    let (at, _) = serving(b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 4\r\n\r\nfine").await;
    assert_eq!(read(open(&gate, &format!("http://{at}/")).await.unwrap()).await.unwrap(), "fine");
}

#[tokio::test]
async fn streams_have_slots_of_their_own_until_the_body_is_dropped() {
    let held = holding(b"HTTP/1.1 200 OK\r\n\r\nfirst").await;
    let (at, _) = serving(OK).await;
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits { streams: 1, at_once: 1, ..short() });
    let response = open(&gate, &format!("http://{held}/")).await.unwrap();
    let to = format!("http://{at}/");
    assert!(matches!(open(&gate, &to).await, Err(GateError::Crowded)));
    let post = Post { address: address(&to), headers: Vec::new(), body: "hello".into() };
    assert_eq!(gate.post(post).await.unwrap().status, 200);
    drop(response);
    assert_eq!(read(open(&gate, &to).await.unwrap()).await.unwrap(), "fine");
    // A failure gives the slot back, too.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert!(matches!(open(&gate, &gone).await, Err(GateError::Connect { .. })));
    open(&gate, &to).await.unwrap();
}

#[tokio::test]
async fn a_certificate_must_be_signed_by_a_known_authority() {
    let at = self_signed().await;
    let book = Book::default().with("relay.example", &[&["127.0.0.1"]]);
    let gate = gate(book, &["127.0.0.1"], OutboundLimits::default());
    for host in ["relay.example", "127.0.0.1"] {
        let refused = open(&gate, &format!("https://{host}:{}/", at.port())).await;
        assert!(matches!(refused, Err(GateError::Tls { .. })), "{refused:?}");
    }
}
