//! Relays that do not keep to the protocol, or only to a part of it.

use super::pair::{SOON, following};
use crate::grasp::scene::{Scene, WAITS, now, npub, state};
use crate::nodes::Second;
use crate::pages::{add_admin, logged_in};
use crate::support::query;
use abide_nostr::{Event, Filter, RelayLimits};
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use tungstenite::{Message, WebSocket};

/// A relay under a test's control: it answers each message as the test says.
struct Stub {
    addr: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Stub {
    fn new(answer: impl Fn(&Value, &mut WebSocket<TcpStream>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let addr = listener.local_addr().expect("it is bound");
        let (connections, answer) = (Arc::<AtomicUsize>::default(), Arc::new(answer));
        let count = connections.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, count) = (answer.clone(), count.clone());
                thread::spawn(move || {
                    let Ok(mut socket) = tungstenite::accept(stream) else { return };
                    count.fetch_add(1, Ordering::SeqCst);
                    while let Ok(message) = socket.read() {
                        if let Message::Text(text) = message {
                            answer(&serde_json::from_str(&text).expect("JSON"), &mut socket);
                        }
                    }
                });
            }
        });
        Self { addr, connections }
    }

    fn url(&self) -> String {
        format!("ws://{}", self.addr)
    }
}

fn send(socket: &mut WebSocket<TcpStream>, message: &Value) -> bool {
    socket.send(Message::text(message.to_string())).is_ok()
}

/// A server that follows a relay once the repository is served, and connects to nobody before.
fn scene(engine: Engine) -> Scene {
    Scene::on(following(engine).env("ABIDE_SYNC__PUBLISHED_DELAY", "3m").start())
}

/// Serves a repository whose announcement names a relay.
fn serve(scene: &mut Scene, key: &Key, relay: &str) {
    let url = scene.server.url();
    let clone = format!("{url}/{}/demo.git", npub(key));
    let own = url.replacen("http", "ws", 1);
    let tags: &[&[&str]] = &[&["d", "demo"], &["clone", &clone], &["relays", &own, relay]];
    assert_eq!(scene.relay.publish(&key.event(now() - 100, 30_617, tags, "")), (true, WAITS.to_owned()));
    let first = scene.first.clone();
    scene.state_waits(&state(key, now() - 90, "demo", &[("refs/heads/main", &first)], Some("main")));
    scene.push(key, "demo", &["main"]);
}

fn issue(key: &Key, at: u64) -> Event {
    key.event(at, 1621, &[&["a", &key.coordinate("demo")], &["subject", "x"]], "")
}

#[rstest]
fn a_relay_that_cannot_reconcile_is_read_page_by_page(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let key = Key::new(1);
    let held: Vec<Event> = (0..12).map(|n| issue(&key, 1_600_000_000 + n)).collect();
    let stub = Stub::new(move |message, socket| match message[0].as_str() {
        Some("NEG-OPEN") => {
            send(socket, &json!(["NOTICE", "bad msg: unknown cmd"]));
        }
        Some("REQ") => {
            for filter in message.as_array().expect("an array").iter().skip(2) {
                let filter = Filter::parse(filter, &RelayLimits::default()).expect("a filter");
                // Newest first, and no more than five.
                for event in held.iter().rev().filter(|event| filter.matches(event)).take(filter.limit.min(5)) {
                    send(socket, &json!(["EVENT", message[1], event]));
                }
            }
            send(socket, &json!(["EOSE", message[1]]));
        }
        _ => {}
    });
    let mut scene = scene(engine);
    serve(&mut scene, &key, &stub.url());
    eventually(SOON, || query(&scene.server, "SELECT count(*) FROM nostr_events WHERE kind = 1621") == "12");
    eventually(SOON, || query(&scene.server, "SELECT capability FROM sync_relays") == "paging");
    eventually(SOON, || {
        query(&scene.server, "SELECT count(*) FROM sync_relays WHERE reconciled_at IS NOT NULL") == "1"
    });
    scene.assert_healthy();
}

/// A way to lie.
#[derive(Debug, Clone, Copy)]
enum Lies {
    /// Events with the signatures of others.
    Forged,
    /// Events that match nothing.
    Unasked,
    /// Messages that are too large.
    Giant,
    /// No answer to anything.
    Silent,
}

#[rstest]
fn a_lying_relay_costs_little_and_changes_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(Lies::Forged, Lies::Unasked, Lies::Giant, Lies::Silent)] lies: Lies,
) {
    let key = Key::new(1);
    let signature = json!(issue(&key, 1))["sig"].clone();
    let forged: Vec<Value> = (0..400)
        .map(|n| {
            let mut event = json!(issue(&key, 1_700_000_000 + n));
            event["sig"] = signature.clone();
            event
        })
        .collect();
    let unasked = json!(Key::new(2).event(1, 1, &[], "unasked"));
    let stub = Stub::new(move |message, socket| {
        if message[0] != "REQ" {
            return;
        }
        let names_the_repository = message.to_string().contains("\"#a\"");
        match lies {
            Lies::Forged if names_the_repository => {
                for event in &forged {
                    send(socket, &json!(["EVENT", message[1], event]));
                }
            }
            Lies::Unasked => while send(socket, &json!(["EVENT", message[1], unasked])) {},
            Lies::Giant => {
                send(socket, &json!(["EVENT", message[1], "x".repeat(50 << 20)]));
            }
            Lies::Forged | Lies::Silent => {}
        }
    });
    let mut scene = scene(engine);
    serve(&mut scene, &key, &stub.url());
    let stored = query(&scene.server, "SELECT count(*) FROM nostr_events");
    let before = scene.server.rss_bytes();
    eventually(SOON, || stub.connections.load(Ordering::SeqCst) > 0);
    let punished = match lies {
        Lies::Forged | Lies::Unasked => "SELECT count(*) FROM sync_relays WHERE rests_until IS NOT NULL",
        Lies::Giant => "SELECT count(*) FROM sync_relays WHERE failures > 0",
        Lies::Silent => "SELECT count(*) FROM sync_relays WHERE connected_at IS NOT NULL",
    };
    let began = Instant::now();
    let mut most = before;
    eventually(SOON, || {
        most = most.max(scene.server.rss_bytes());
        query(&scene.server, punished) == "1"
    });
    most = most.max(scene.server.rss_bytes());
    assert!(most < before + (48 << 20), "{lies:?}: {before} then {most} bytes in {:?}", began.elapsed());
    assert_eq!(query(&scene.server, "SELECT count(*) FROM nostr_events"), stored);
    if matches!(lies, Lies::Forged | Lies::Unasked) {
        let count = stub.connections.load(Ordering::SeqCst);
        assert!(count <= 2, "it rests: {count}");
    }
    scene.assert_healthy();
}

/// A relay without events that cannot reconcile.
fn empty() -> Stub {
    Stub::new(|message, socket| {
        let answer = match message[0].as_str() {
            Some("REQ") => json!(["EOSE", message[1]]),
            Some("NEG-OPEN") => json!(["NEG-ERR", message[1], "blocked: no"]),
            _ => return,
        };
        send(socket, &answer);
    })
}

#[rstest]
fn an_administrator_sees_relays_lets_them_rest_and_forgets_them(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (key, stub) = (Key::new(1), empty());
    let mut scene = scene(engine);
    add_admin(&scene.server, "carol");
    let carol = logged_in(&scene.server, "carol");
    assert!(carol.page("/admin/sync").contains("No relays"));
    serve(&mut scene, &key, &stub.url());
    let connected = "SELECT count(*) FROM sync_relays WHERE connected_at IS NOT NULL";
    eventually(SOON, || query(&scene.server, connected) == "1");
    let html = carol.page("/admin/sync");
    assert!(html.contains(&stub.url()) && html.contains("connected"), "{html}");
    let url = stub.url();
    let manage = |action: &str| {
        let token = carol.token("/admin/sync");
        let fields = [("_token", token.as_str()), ("action", action), ("relay", url.as_str())];
        carol.post("/admin/sync/manage", &fields).status
    };
    assert_eq!(manage("forget-relay"), 409, "it is in use");
    assert_eq!(manage("rest-relay"), 303);
    assert!(carol.page("/admin/sync").contains("resting"));
    assert_eq!(manage("try-relay"), 303);
    eventually(SOON, || stub.connections.load(Ordering::SeqCst) == 2 && query(&scene.server, connected) == "1");
    assert_eq!((manage("rest-relay"), manage("forget-relay")), (303, 303));
    assert!(carol.page("/admin/sync").contains("No relays"));
    scene.assert_healthy();
}

#[test]
fn of_two_nodes_one_follows_a_relay_and_the_other_takes_over() {
    let (key, stub) = (Key::new(1), empty());
    let mut scene = scene(Engine::Postgres);
    let second = Second::start(&scene.server);
    serve(&mut scene, &key, &stub.url());
    let holder = "SELECT holder FROM sync_relays WHERE connected_at IS NOT NULL";
    eventually(SOON, || !query(&scene.server, holder).is_empty());
    let first = query(&scene.server, holder);
    assert_eq!(stub.connections.load(Ordering::SeqCst), 1, "only one node connects");
    if first.starts_with("second") {
        drop(second);
    } else {
        scene.server.kill();
    }
    eventually(2 * SOON, || ![String::new(), first.clone()].contains(&query(&scene.server, holder)));
    assert_eq!(stub.connections.load(Ordering::SeqCst), 2);
}
