//! Rendering of user text costs a bounded amount of processor time.

use super::{ATTACKER, VICTIM, begun, get, rest};
use crate::support::{crowded, person};
use abide_testkit::{Engine, http};
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
