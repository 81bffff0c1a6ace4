//! Rendering of user text costs a bounded amount of processor time.

use super::{ATTACKER, VICTIM, begun, get, rest};
use crate::grasp::setup::{Setup, now, npub};
use crate::support::{crowded, person};
use abide_testkit::{Engine, Key, Nostr, http};
use rstest::rstest;
use serde_json::json;
use std::net::TcpStream;

#[rstest]
fn nested_text_of_a_stranger_keeps_nobody_waiting(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = crowded(engine).start();
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "tool", false);
    let issue = |who: &str, title: &str, body: &str| {
        let body = json!({ "title": title, "body": body });
        let made = http::post(server.http_addr(), "/api/v3/repos/alice/tool/issues", Some(who), &body);
        assert_eq!(made.status, 201, "{}", made.text());
    };
    issue(&alice.token, "Honest", "It *breaks* at start.");
    let hostile = [
        "> ".repeat(30_000),
        ">".repeat(60_000),
        "<div>".repeat(12_000),
        format!("<p>{}{}", "<font a=1>".repeat(500), "<p>x".repeat(12_000)),
    ];
    for (number, text) in hostile.iter().enumerate() {
        issue(&bob.token, &format!("Hostile {number}"), text);
    }
    let attack: Vec<TcpStream> = (0..16)
        .map(|at| {
            let number = 2 + at % hostile.len();
            begun(&server, ATTACKER, &format!("GET /alice/tool/issues/{number} HTTP/1.1\r\nHost: abide\r\n\r\n"))
        })
        .collect();
    let honest = get(&server, VICTIM, "/alice/tool/issues/1");
    assert_eq!(honest.status, 200);
    assert!(honest.text().contains("It <em>breaks</em> at start."), "rendered, and not kept waiting");
    assert!(get(&server, VICTIM, "/alice/tool/issues/2").text().contains("Shown as plain text"));
    assert!(get(&server, VICTIM, "/alice/tool/issues/4").text().contains("&lt;div&gt;"));
    drop(attack);
    // A client that disconnects leaves no work behind that blocks others.
    for _ in 0..40 {
        drop(begun(&server, ATTACKER, "GET /alice/tool/issues/2 HTTP/1.1\r\nHost: abide\r\n\r\n"));
    }
    let page = "GET /alice/tool/issues/5 HTTP/1.1\r\nHost: abide\r\nConnection: close\r\n\r\n";
    assert!(rest(&mut begun(&server, VICTIM, page)).contains("Hostile 3"));
}

#[rstest]
fn a_thread_of_an_unknown_key_keeps_nobody_waiting(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(crowded(engine).start());
    let (owner, unknown) = (setup.owner.clone(), Key::new(99));
    setup.served(&owner, "demo", &[]);
    let coordinate = owner.coordinate("demo");
    let mut relay = Nostr::try_connect_from(ATTACKER, &setup.server.url()).expect("a relay takes strangers");
    let mut publish = |key: &Key, subject: &str, text: &str| {
        let tags: &[&[&str]] = &[&["a", &coordinate], &["subject", subject]];
        let issue = key.event(now(), 1621, tags, text);
        assert_eq!(relay.publish(&issue), (true, String::new()));
        format!("/{}/demo/nostr/{}", npub(&owner), issue.id.to_hex())
    };
    let honest = publish(&Key::new(98), "Honest", "It *breaks* at start.");
    let hostile = [
        "> ".repeat(60_000),
        "<div>".repeat(20_000),
        format!("<p>{}{}", "<font a=1>".repeat(500), "<p>x".repeat(20_000)),
        format!("<script>{}", "</a ".repeat(60_000)),
    ];
    let hostile: Vec<String> = hostile.iter().map(|text| publish(&unknown, "Hostile", text)).collect();
    let ask = |page: &String| begun(&setup.server, ATTACKER, &format!("GET {page} HTTP/1.1\r\nHost: abide\r\n\r\n"));
    let attack: Vec<TcpStream> = hostile.iter().cycle().take(24).map(ask).collect();
    let page = get(&setup.server, VICTIM, &honest);
    assert_eq!(page.status, 200);
    assert!(page.text().contains("It <em>breaks</em> at start."), "rendered, and not kept waiting");
    assert_eq!(get(&setup.server, VICTIM, &format!("/{}/demo", npub(&owner))).status, 200);
    assert!(get(&setup.server, VICTIM, &hostile[0]).text().contains("Shown as plain text"));
    drop(attack);
    // A client that disconnects leaves no work behind that blocks others.
    hostile.iter().cycle().take(40).for_each(|page| drop(ask(page)));
    assert!(get(&setup.server, VICTIM, &hostile[1]).text().contains("Hostile"));
}
