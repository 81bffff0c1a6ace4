//! WebSockets to relays.

use crate::support::{Book, endless, gate, holding, self_signed, serving, short};
use abide_outbound::tungstenite::{Error, Message};
use abide_outbound::{Gate, GateError, OutboundLimits, Socket, SocketLimits};
use futures_util::{SinkExt as _, StreamExt as _};
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpListener;

const LIMITS: SocketLimits = SocketLimits { message: 1000, frame: 1000 };

async fn open(gate: &Gate, to: &str) -> Result<(Socket, IpAddr), GateError> {
    gate.websocket(&to.parse().unwrap(), LIMITS).await
}

/// A relay that sends every message back twice as long.
async fn doubling() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
                while let Some(Ok(Message::Text(text))) = socket.next().await {
                    let _ = socket.send(Message::text(text.repeat(2))).await;
                }
            });
        }
    });
    at
}

#[tokio::test]
async fn messages_go_both_ways_within_their_limit() {
    let at = doubling().await;
    let book = Book::default().with("relay.example", &[&["127.0.0.1"]]);
    let gate = gate(book, &["127.0.0.1"], OutboundLimits::default());
    for host in ["127.0.0.1", "relay.example"] {
        let (mut socket, peer) = open(&gate, &format!("ws://{host}:{}/", at.port())).await.unwrap();
        assert_eq!(peer, at.ip());
        socket.send(Message::text("ab")).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text("abab"));
        socket.send(Message::text("x".repeat(600))).await.unwrap();
        assert!(matches!(socket.next().await, Some(Err(Error::Capacity(_)))));
    }
}

#[tokio::test]
async fn private_addresses_are_refused_before_a_connection() {
    let (at, seen) = serving(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let book = Book::default()
        .with("inside.example", &[&["127.0.0.1"]])
        .with("mixed.example", &[&["93.184.216.34", "127.0.0.1"]]);
    let gate = gate(book, &[], OutboundLimits::default());
    for host in ["inside.example", "mixed.example", "127.0.0.1", "0x7f.1"] {
        let refused = open(&gate, &format!("ws://{host}:{}", at.port())).await;
        assert!(matches!(refused, Err(GateError::Refused { .. })), "{host}: {refused:?}");
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn only_a_websocket_is_opened_and_no_redirect_is_followed() {
    let gate = gate(Book::default(), &["127.0.0.1"], short());
    for (answer, reason) in [
        (&b"HTTP/1.1 302 Found\r\nLocation: ws://10.0.0.1/\r\n\r\n"[..], "status 302"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "status 200"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", "handshake"),
        (b"220 mail.example ESMTP\r\n", "handshake"),
    ] {
        let (at, seen) = serving(answer).await;
        let odd = open(&gate, &format!("ws://{at}/npub")).await;
        assert!(matches!(&odd, Err(GateError::Http(text)) if text.contains(reason)), "{odd:?}");
        let asked = seen.lock().unwrap()[0].to_lowercase();
        assert!(asked.starts_with("get /npub http/1.1\r\n") && asked.contains(&format!("host: {at}\r\n")), "{asked}");
    }
}

#[tokio::test]
async fn a_handshake_has_limits_of_time_and_size() {
    let gate = gate(Book::default(), &["127.0.0.1"], short());
    let at = holding(b"HTTP/1.1 101 Switching Protocols\r\n").await;
    let late = open(&gate, &format!("ws://{at}")).await;
    assert!(matches!(late, Err(GateError::TimedOut(_))), "{late:?}");
    for repeated in [&[b'x'; 1024][..], b"x: y\r\n"] {
        let at = endless(b"HTTP/1.1 101 Switching Protocols\r\nX-Long: y\r\n", repeated).await;
        let odd = open(&gate, &format!("ws://{at}")).await;
        assert!(matches!(odd, Err(GateError::Http(_))), "{odd:?}");
    }
}

#[tokio::test]
async fn a_certificate_must_be_signed_by_a_known_authority() {
    let at = self_signed().await;
    let book = Book::default().with("relay.example", &[&["127.0.0.1"]]);
    let gate = gate(book, &["127.0.0.1"], OutboundLimits::default());
    let refused = open(&gate, &format!("wss://relay.example:{}", at.port())).await;
    assert!(matches!(refused, Err(GateError::Tls { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_socket_holds_its_slot_until_it_is_dropped() {
    let to = format!("ws://{}", doubling().await);
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits { sockets: 1, ..short() });
    let first = open(&gate, &to).await.unwrap();
    assert!(matches!(open(&gate, &to).await, Err(GateError::Crowded)));
    drop(first);
    open(&gate, &to).await.unwrap();
}
