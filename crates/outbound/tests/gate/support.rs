//! Fake DNS, gates and servers on loopback.

use abide_outbound::{AllowList, Gate, OutboundLimits, OutboundUrl, Resolver};
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// Answers to successive look-ups of a name.
type Answers = Vec<Vec<IpAddr>>;

/// Fake DNS: each look-up of a name returns the next list.
#[derive(Clone, Default)]
pub struct Book {
    entries: Arc<Mutex<HashMap<&'static str, Answers>>>,
    pub asked: Arc<AtomicUsize>,
}

impl Book {
    pub fn with(self, name: &'static str, answers: &[&[&str]]) -> Self {
        let parsed = answers.iter().map(|ips| ips.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        self.entries.lock().unwrap().insert(name, parsed);
        self
    }
}

impl Resolver for Book {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let turn = self.asked.fetch_add(1, Ordering::SeqCst);
        let entries = self.entries.lock().unwrap();
        let found = entries.get(name).map(|lists| lists[turn.min(lists.len() - 1)].clone());
        Box::pin(async move { found.ok_or_else(|| io::Error::other("no such name")) })
    }
}

pub fn gate(book: Book, allow: &[&str], limits: OutboundLimits) -> Gate {
    Gate::new(AllowList::parse(allow).unwrap(), book, limits)
}

pub fn short() -> OutboundLimits {
    OutboundLimits {
        total: Duration::from_millis(400),
        connect: Duration::from_millis(200),
        body: 1024,
        at_once: 8,
        ..OutboundLimits::default()
    }
}

pub fn address(text: &str) -> OutboundUrl {
    text.parse().unwrap()
}

/// Reads a request up to the end of its head, or of the body `hello`, and returns its text.
pub async fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    let ended = |text: &[u8]| match text.starts_with(b"GET ") {
        true => text.ends_with(b"\r\n\r\n"),
        false => text.ends_with(b"hello"),
    };
    while !ended(&text) {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request broke off: {}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8(text).unwrap()
}

/// A server that answers every request with the same bytes, and records the requests.
pub async fn serving(answer: &'static [u8]) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let log = log.clone();
            tokio::spawn(async move {
                let asked = request(&mut stream).await;
                log.lock().unwrap().push(asked);
                let _ = stream.write_all(answer).await;
            });
        }
    });
    (at, seen)
}

/// A server that answers one request with these bytes, and then keeps the connection open.
pub async fn holding(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        stream.write_all(answer).await.unwrap();
        // The end of the client's side.
        let _ = stream.read(&mut [0; 64]).await;
    });
    at
}

/// A server that answers one request with these bytes, and then repeats others until the client closes.
pub async fn endless(answer: &'static [u8], repeated: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        stream.write_all(answer).await.unwrap();
        while stream.write_all(repeated).await.is_ok() {}
    });
    at
}

/// A server with a certificate that no authority signed.
pub async fn self_signed() -> SocketAddr {
    let certificate = CertificateDer::from(&include_bytes!("data/self-signed.der")[..]);
    let key = PrivatePkcs8KeyDer::from(&include_bytes!("data/self-signed.key.der")[..]);
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            assert!(acceptor.accept(stream).await.is_err(), "the client accepts any certificate");
        }
    });
    at
}
