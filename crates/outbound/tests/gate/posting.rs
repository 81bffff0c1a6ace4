//! The gate against real sockets: permitted targets, and limits on the response.

use crate::support::{Book, address, gate, request, serving, short};
use abide_outbound::http::{HeaderName, HeaderValue};
use abide_outbound::{Answer, Gate, GateError, OutboundLimits, Post};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

async fn post(gate: &Gate, to: &str) -> Result<Answer, GateError> {
    let headers = vec![(HeaderName::from_static("x-test"), HeaderValue::from_static("yes"))];
    gate.post(Post { address: address(to), headers, body: "hello".into() }).await
}

#[tokio::test]
async fn a_request_arrives_whole_and_its_answer_comes_back() {
    let (at, seen) = serving(b"HTTP/1.1 201 Created\r\nX-From: there\r\nContent-Length: 4\r\n\r\nfine").await;
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits::default());
    let answer = post(&gate, &format!("http://{at}/hook?x=1")).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..], answer.cut), (201, &b"fine"[..], false));
    assert_eq!(answer.headers["x-from"], "there");
    let asked = seen.lock().unwrap()[0].to_lowercase();
    assert!(asked.starts_with("post /hook?x=1 http/1.1\r\n"), "{asked}");
    assert!(asked.contains(&format!("host: {at}\r\n")) && asked.contains("x-test: yes\r\n"), "{asked}");
}

#[tokio::test]
async fn what_is_not_public_is_refused_however_it_is_spelled() {
    let (at, seen) = serving(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let book = Book::default().with("inside.example", &[&["127.0.0.1"]]).with("localhost", &[&["127.0.0.1", "::1"]]);
    let gate = gate(book, &[], OutboundLimits::default());
    let port = at.port();
    for host in ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0177.1", "[::ffff:127.0.0.1]", "[::1]", "0"] {
        let to = format!("http://{host}:{port}/");
        assert!(matches!(gate.screen(&address(&to)), Err(GateError::Refused { .. })), "{to}");
        assert!(matches!(post(&gate, &to).await, Err(GateError::Refused { .. })), "{to}");
    }
    for host in ["inside.example", "INSIDE.example.", "localhost"] {
        let refused = post(&gate, &format!("http://{host}:{port}/")).await;
        assert!(matches!(refused, Err(GateError::Refused { .. })), "{host}: {refused:?}");
    }
    let reported = post(&gate, &format!("http://inside.example:{port}/")).await.unwrap_err().to_string();
    assert!(
        reported.contains("127.0.0.1 is a loopback address; ask the administrator to add inside.example"),
        "{reported}"
    );
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn one_refused_address_among_several_refuses_the_name() {
    let book = Book::default().with("mixed.example", &[&["93.184.216.34", "10.0.0.7"]]);
    let refused = gate(book, &[], short()).vet(address("https://mixed.example/").endpoint()).await;
    assert!(matches!(refused, Err(GateError::Refused { ip, .. }) if ip.to_string() == "10.0.0.7"), "{refused:?}");
    let book = Book::default().with("public.example", &[&["93.184.216.34", "2606:4700::1111"]]);
    let vetted = gate(book, &[], short()).vet(address("https://public.example/").endpoint()).await.unwrap();
    let addrs: Vec<_> = vetted.addrs().iter().map(ToString::to_string).collect();
    assert_eq!(addrs, ["93.184.216.34:443", "[2606:4700::1111]:443"]);
}

#[tokio::test]
async fn a_name_is_looked_up_once_so_it_cannot_lead_elsewhere_between_check_and_connection() {
    let (at, seen) = serving(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    // A second look-up would return a refused address, and a third none.
    let book = Book::default().with("turning.example", &[&["127.0.0.1"], &["10.0.0.1"]]);
    let asked = book.asked.clone();
    let gate = gate(book, &["127.0.0.0/8"], OutboundLimits::default());
    post(&gate, &format!("http://turning.example:{}/", at.port())).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(seen.lock().unwrap()[0].to_lowercase().contains(&format!("host: turning.example:{}", at.port())));
    let refused = post(&gate, &format!("http://turning.example:{}/", at.port())).await;
    assert!(matches!(refused, Err(GateError::Refused { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_host_that_the_operator_names_may_lead_anywhere_and_others_may_not() {
    let (at, _) = serving(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    let book = Book::default().with("ci.internal", &[&["127.0.0.1"]]).with("other.internal", &[&["127.0.0.1"]]);
    let gate = gate(book, &["ci.internal"], OutboundLimits::default());
    assert_eq!(post(&gate, &format!("http://ci.internal:{}/", at.port())).await.unwrap().status, 204);
    for host in ["other.internal", "127.0.0.1"] {
        let refused = post(&gate, &format!("http://{host}:{}/", at.port())).await;
        assert!(matches!(refused, Err(GateError::Refused { .. })), "{host}: {refused:?}");
    }
}

#[tokio::test]
async fn redirects_are_answers_and_nobody_follows_them() {
    let (at, seen) = serving(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n").await;
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits::default());
    let answer = post(&gate, &format!("http://{at}/")).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.headers["location"].to_str().unwrap()), (302, "/elsewhere"));
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn only_the_beginning_of_a_huge_answer_is_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let endless = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        // Write until the peer closes: more than any buffer in between holds.
        let mut sent = 0_usize;
        while stream.write_all(&[b'x'; 64 << 10]).await.is_ok() {
            sent += 64 << 10;
            assert!(sent < 1 << 30, "nobody stopped reading");
        }
    });
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits { body: 1000, ..OutboundLimits::default() });
    let answer = post(&gate, &format!("http://{at}/")).await.unwrap();
    assert_eq!((answer.body.len(), answer.cut), (1000, true));
    endless.await.unwrap();
}

#[tokio::test]
async fn whoever_does_not_answer_in_time_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let gate = gate(Book::default(), &["127.0.0.1"], short());
    let to = format!("http://{at}/");
    let (silent, held) = tokio::join!(post(&gate, &to), listener.accept());
    assert!(matches!(silent, Err(GateError::TimedOut(_))), "{silent:?}");
    drop(held);
    drop(listener);
    let gone = post(&gate, &to).await;
    assert!(matches!(gone, Err(GateError::Connect { .. })), "{gone:?}");
}

#[tokio::test]
async fn what_is_no_http_and_what_is_no_tls_is_an_error_and_not_a_panic() {
    let (at, _) = serving(b"220 mail.example ESMTP\r\n").await;
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits::default());
    let odd = post(&gate, &format!("http://{at}/")).await;
    assert!(matches!(odd, Err(GateError::Http(_))), "{odd:?}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 1024];
        let _ = stream.read(&mut hello).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    });
    let odd = post(&gate, &format!("https://{plain}/")).await;
    assert!(matches!(odd, Err(GateError::Tls { .. })), "{odd:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_conversations_are_under_way_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (open, most, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let server = (open.clone(), most.clone(), go.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (open, most, go) = server.clone();
            tokio::spawn(async move {
                request(&mut stream).await;
                most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                go.acquire().await.unwrap().forget();
                open.fetch_sub(1, Ordering::SeqCst);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            });
        }
    });
    let gate = gate(Book::default(), &["127.0.0.1"], OutboundLimits { at_once: 3, ..OutboundLimits::default() });
    let to = format!("http://{at}/");
    let posts: Vec<_> = (0..9)
        .map(|_| {
            let (gate, to) = (gate.clone(), to.clone());
            tokio::spawn(async move { post(&gate, &to).await.unwrap().status })
        })
        .collect();
    // Release one after another, so that all nine pass while at most three are inside.
    while open.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    go.add_permits(9);
    for post in posts {
        assert_eq!(post.await.unwrap(), 200);
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
}
