//! One client never costs the others their service.

use super::{Setup, store};
use abide_testkit::{Engine, Key, Nostr, connect_from, eventually};
use rstest::rstest;
use serde_json::json;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::Error;

/// Reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_reader_that_does_not_read_is_cut_while_others_are_served() {
    let settings = [("ABIDE_RELAY__OUTGOING", "10"), ("ABIDE_SERVER__WRITE_TIMEOUT", "2s")];
    let setup = Setup::with(Engine::Sqlite, &settings);
    let (mut slow, mut quick, mut writer) = (setup.connect(), setup.connect(), setup.connect());
    for client in [&mut slow, &mut quick] {
        client.subscribe("live", &[json!({"kinds": [1621]})]);
    }
    let text = "x".repeat(200 << 10);
    // More than any buffer between here and there holds.
    for number in 0..80 {
        let issue = setup.issue(2, &format!("{number} {text}"));
        assert!(writer.publish(&issue).0);
        assert_eq!(quick.live("live").id, issue.id);
    }
    eventually(PATIENCE, || metric(&setup, "abide_relay_connections") == 2.0);
    assert_eq!(quick.count(&[json!({"kinds": [1621]})]), 80);
    drop(slow);
}

fn metric(setup: &Setup, name: &str) -> f64 {
    let text = abide_testkit::http::get(setup.server.http_addr(), "/metrics", None).text();
    let line = text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
    line.and_then(|line| line.rsplit(' ').next()).map_or(0.0, |value| value.parse().expect("metrics are numbers"))
}

/// Connections that ask for all that is stored and read none of it hold no more than the share of their address.
#[rstest]
fn answers_that_nobody_reads_are_counted_for_their_address(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let text = "x".repeat(240 << 10);
    // More than any buffer between here and there holds.
    let mut writer = setup.connect();
    for number in 0..80 {
        assert!(writer.publish(&setup.issue(2, &format!("{number} {text}"))).0);
    }
    let from_attacker = || Nostr::try_connect_from([127, 0, 0, 2].into(), &setup.server.url()).expect("a place");
    let all = json!({"kinds": [1621]});
    let mut silent = Vec::new();
    for _ in 0..12 {
        let mut client = from_attacker();
        client.ask("REQ", "unread", std::slice::from_ref(&all));
        silent.push(client);
    }
    eventually(PATIENCE, || metric(&setup, "abide_relay_held_bytes") > f64::from(22 << 20));
    let mut late = from_attacker();
    late.ask("REQ", "late", std::slice::from_ref(&all));
    let refused = late.wait(|heard| heard.name() == "CLOSED");
    let reason = refused.0[2].as_str().unwrap_or_default();
    assert!(reason.starts_with("rate-limited: ") && reason.contains("24 MiB"), "{reason}");
    assert!(metric(&setup, "abide_relay_held_bytes") <= f64::from(24 << 20));
    assert_eq!(setup.connect().req(std::slice::from_ref(&all)).len(), 80, "another address");
    drop((silent, late));
    eventually(PATIENCE, || metric(&setup, "abide_relay_held_bytes") == 0.0);
    assert_eq!(from_attacker().req(&[all]).len(), 80);
}

/// Clients that send most of a message and stop have a share of memory. Control frames do not keep their messages.
#[rstest]
fn unfinished_messages_are_counted_for_their_address(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut honest = setup.connect();
    assert!(honest.publish(&setup.issue(2, "before")).0);
    let before = setup.server.rss_bytes();
    let mut open = Vec::new();
    for last in 2..5 {
        for _ in 0..45 {
            open.push(unfinished_message(&setup, last));
        }
    }
    // The server reads no more of any of them: it took its share and closed the others.
    let closed = || open.iter().filter(|stream| is_closed(stream)).count();
    eventually(PATIENCE, || closed() >= open.len() - 3 * 6);
    let grown = setup.server.rss_bytes().saturating_sub(before);
    assert!(grown < 100 << 20, "{} MiB", grown >> 20);
    let long = setup.issue(2, &"x".repeat(200 << 10));
    assert!(honest.publish(&long).0, "another address");
    drop(open);
    let mut late = Nostr::try_connect_from([127, 0, 0, 2].into(), &setup.server.url()).expect("a slot");
    eventually(PATIENCE, || metric(&setup, "abide_relay_connections") == 2.0);
    assert!(late.publish(&setup.issue(2, &"y".repeat(200 << 10))).0, "the share is free again");
}

/// A connection from `127.0.0.LAST` that announces 2,000,000 bytes and sends half of them in two frames of a message.
fn unfinished_message(setup: &Setup, last: u8) -> TcpStream {
    let mut stream = connect_from([127, 0, 0, last].into(), setup.server.http_addr()).expect("a connection");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket has a timeout");
    let upgrade = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    let length = 1_000_000_u64.to_be_bytes();
    let payload = vec![b'x'; 1_000_000];
    let ping = [0x89, 0x80, 0, 0, 0, 0];
    let first = [&[0x01, 0xff][..], &length, &[0; 4], &payload, &ping].concat();
    let second = [&[0x00, 0xff][..], &length, &[0; 4], &payload[..900_000]].concat();
    // The server may close the connection at any point.
    let _ = [upgrade.as_bytes(), &first, &second].into_iter().try_for_each(|part| stream.write_all(part));
    stream
}

/// Whether the server closed a connection.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket can be read without waiting");
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// Our side of a reconciliation is taken from the same share, at the most that it may be.
#[test]
fn reconciliations_are_counted_for_their_address() {
    let setup = Setup::with(Engine::Sqlite, &[("ABIDE_RELAY__RECONCILED_EVENTS", "1000000")]);
    let mut client = setup.connect();
    client.subscribe("held", &[json!({"kinds": [1]})]);
    client.say(&json!(["NEG-OPEN", "n", {}, "6100000200"]));
    let refused = client.wait(|heard| heard.0[1] == "n");
    assert_eq!(refused.name(), "NEG-ERR");
    assert!(refused.0[2].as_str().is_some_and(|reason| reason.starts_with("rate-limited: ")), "{}", refused.0);
    assert_eq!(client.count(&[json!({})]), 1, "the connection goes on");
}

#[test]
fn one_address_has_so_many_connections_and_events() {
    let settings = [
        ("ABIDE_RELAY__CONNECTIONS_PER_IP", "2"),
        ("ABIDE_RELAY__EVENTS_PER_IP", "3"),
        ("ABIDE_RELAY__WINDOW", "1h"),
        ("ABIDE_SERVER__TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let setup = Setup::with(Engine::Sqlite, &settings);
    let mut first = setup.connect();
    let second = setup.connect();
    let Err(refused) = Nostr::try_connect(&setup.server.url()) else { panic!("a third connection") };
    assert!(matches!(*refused, Error::Http(ref response) if response.status() == 429), "{refused}");
    drop(second);
    eventually(PATIENCE, || Nostr::try_connect(&setup.server.url()).is_ok());
    let answers: Vec<_> = (0..5).map(|number| first.publish(&setup.issue(2, &number.to_string()))).collect();
    let accepted = answers.iter().filter(|(accepted, _)| *accepted).count();
    // The hour of the clock may begin anew in between.
    assert!((3..5).contains(&accepted), "{answers:?}");
    assert!(answers.iter().any(|(_, text)| text.starts_with("rate-limited: ")), "{answers:?}");
}

#[test]
fn a_client_that_is_silent_is_asked_and_then_gone() {
    let settings = [("ABIDE_RELAY__PING", "50ms"), ("ABIDE_RELAY__IDLE_TIMEOUT", "200ms")];
    let setup = Setup::with(Engine::Sqlite, &settings);
    let idle = setup.connect();
    eventually(PATIENCE, || metric(&setup, "abide_relay_connections") == 0.0);
    drop(idle);
    let mut answering = setup.connect();
    for _ in 0..5 {
        // Reading answers the pings.
        assert_eq!(answering.hear_within(Duration::from_millis(100)), None);
        assert_eq!(answering.count(&[json!({})]), 1);
    }
}

#[test]
fn a_key_is_proved_by_the_connections_own_challenge() {
    let setup = Setup::new(Engine::Sqlite);
    let mut client = setup.connect();
    client.ask("REQ", "first", &[json!({ "kinds": [1] })]);
    let first = client.hear_within(PATIENCE).map(|heard| heard.0);
    assert_eq!(first, Some(json!(["EOSE", "first"])), "nobody is asked for a proof that nothing needs");
    assert_eq!(client.auth(&Key::new(2), &setup.server.url().replace("http", "ws")), (true, String::new()));
    let (accepted, text) = setup.connect().auth(&Key::new(2), "ws://elsewhere.example");
    assert_eq!((accepted, text.as_str()), (false, "invalid: the relay tag has the URL of another relay"));
}

#[test]
fn a_stopping_server_says_so_and_does_not_wait_for_its_readers() {
    let mut setup = Setup::new(Engine::Sqlite);
    let (mut idle, mut busy) = (setup.connect(), setup.connect());
    busy.subscribe("live", &[json!({})]);
    assert!(setup.server.terminate().success());
    assert_eq!(idle.closed(), Some((1001, "the server is shutting down".into())));
    assert_eq!(busy.closed().map(|(code, _)| code), Some(1001));
}

#[test]
fn what_is_hidden_is_served_to_nobody() {
    let setup = Setup::new(Engine::Sqlite);
    let hidden = Key::new(5).announcement(setup.now, "secret", &setup.server.url());
    store(&setup.server, std::slice::from_ref(&hidden));
    let mut client = setup.connect();
    assert_eq!(client.count(&[json!({"kinds": [30_617]})]), 2);
    crate::support::query(&setup.server, "UPDATE nostr_events SET hidden = TRUE WHERE slot = 'secret'");
    assert_eq!(client.req(&[json!({"ids": [hidden.id]})]), []);
    assert_eq!(client.count(&[json!({"kinds": [30_617]})]), 1);
    let issue = Key::new(2).event(setup.now, 1621, &[&["a", &Key::new(5).coordinate("secret")]], "x");
    assert!(!client.publish(&issue).0, "nothing relates to it");
}

#[test]
fn one_connection_listens_by_so_many_values_in_all() {
    let setup = Setup::with(Engine::Sqlite, &[("ABIDE_RELAY__SUBSCRIBED_VALUES", "10")]);
    let mut client = setup.connect();
    client.subscribe("first", &[json!({"kinds": [1621, 1622, 1623, 1624, 1625]})]);
    client.ask("REQ", "second", &[json!({"kinds": [1, 2, 3, 4, 5]})]);
    let refused = client.wait(|heard| heard.0[1] == "second");
    let text = "rate-limited: the limit is 10 values over all filters; close a subscription first";
    assert_eq!((refused.name(), refused.0[2].as_str()), ("CLOSED", Some(text)));
    let issue = setup.issue(2, "x");
    assert!(setup.connect().publish(&issue).0);
    assert_eq!(client.live("first").id, issue.id, "what it listened by before goes on");
    client.say(&json!(["CLOSE", "first"]));
    client.subscribe("second", &[json!({"kinds": [1, 2, 3, 4, 5]})]);
    setup.connect().subscribe("own", &[json!({"kinds": [1, 2, 3, 4, 5]})]);
}

#[rstest]
fn counting_ends_somewhere_and_says_so(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::with(engine, &[("ABIDE_RELAY__COUNTED", "5")]);
    let mut client = setup.connect();
    let mut counted = |filters: &[serde_json::Value]| {
        client.ask("COUNT", "c", filters);
        client.wait(|heard| heard.0[1] == "c").0[2].clone()
    };
    let issues: Vec<_> = (0..6).map(|n| setup.issue(2, &n.to_string())).collect();
    store(&setup.server, &issues[..5]);
    assert_eq!(counted(&[json!({"kinds": [1621]})]), json!({"count": 5}));
    store(&setup.server, &issues[5..]);
    for filter in [json!({"kinds": [1621]}), json!({"#a": [setup.repo]}), json!({})] {
        assert_eq!(counted(std::slice::from_ref(&filter)), json!({"count": 5, "approximate": true}), "{filter}");
    }
    let several = counted(&[json!({"kinds": [1621]}), json!({"kinds": [30_617]})]);
    assert_eq!(several["approximate"], true, "{several}");
}
