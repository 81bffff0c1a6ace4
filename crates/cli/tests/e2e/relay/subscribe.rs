//! Asking for what is stored, and hearing of what comes.

use super::{Setup, store};
use abide_testkit::{Engine, Key};
use rstest::rstest;
use serde_json::{Value, json};

#[rstest]
fn stored_events_come_newest_first_and_new_ones_after_the_end(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let (mut client, mut other) = (setup.connect(), setup.connect());
    let issue = |ago: u64, text: &str| Key::new(2).event(setup.now - ago, 1621, &[&["a", &setup.repo]], text);
    let issues = [issue(30, "first"), issue(20, "second"), issue(10, "third")];
    issues.iter().for_each(|issue| assert!(other.publish(issue).0));
    let filter = json!({"kinds": [1621], "#a": [setup.repo], "limit": 2});
    assert_eq!(client.subscribe("issues", &[filter]), [issues[2].clone(), issues[1].clone()]);
    let new = issue(0, "fourth");
    assert!(other.publish(&new).0);
    assert_eq!(client.live("issues"), new);
    assert!(other.publish(&Key::new(2).event(setup.now, 1111, &[&["e", &new.id.to_hex()]], "no issue")).0);
    client.say(&json!(["CLOSE", "issues"]));
    assert_eq!(client.count(&[json!({"kinds": [1621]})]), 4);
    assert_eq!(client.count(&[json!({"kinds": [1621]}), json!({"kinds": [1111, 1621]})]), 5, "each once");
    assert_eq!(client.hear_within(std::time::Duration::ZERO).filter(|heard| heard.name() == "EVENT"), None);
}

#[rstest]
fn many_subscriptions_with_many_filters_are_all_served(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    for number in 0..500 {
        let mut filters: Vec<Value> = (0..19).map(|kind| json!({"kinds": [kind], "authors": []})).collect();
        filters.push(json!({"kinds": [30_617]}));
        client.ask("REQ", &format!("s{number}"), &filters);
    }
    for number in 0..500 {
        let name = format!("s{number}");
        client.wait(|heard| heard.name() == "EVENT" && heard.0[1] == *name);
        client.wait(|heard| heard.name() == "EOSE" && heard.0[1] == *name);
    }
    client.ask("REQ", "one more", &[json!({})]);
    let closed = client.wait(|heard| heard.0[1] == "one more");
    assert_eq!(closed.0[2], "rate-limited: the limit is 500 subscriptions; close one first");
}

#[rstest]
fn every_condition_of_a_filter_is_kept(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    let (bob, carol) = (Key::new(2), Key::new(3));
    let one = bob.event(setup.now - 20, 1621, &[&["a", &setup.repo], &["t", "bug"], &["t", "ui"]], "one");
    let two = bob.event(setup.now - 10, 1621, &[&["a", &setup.repo], &["t", "bug"]], "two");
    let three = carol.event(setup.now, 1630, &[&["a", &setup.repo], &["e", &one.id.to_hex()]], "");
    store(&setup.server, &[one.clone(), two.clone(), three.clone()]);
    // Events that another node stores are passed on live as well, perhaps before all stored ones have come.
    let mut found = |filter: Value| {
        let mut reported = client.req(&[filter]);
        reported.sort_by_key(|event| std::cmp::Reverse(event.created_at));
        reported
    };
    assert_eq!(found(json!({"ids": [one.id, three.id]})), [three.clone(), one.clone()]);
    assert_eq!(found(json!({"authors": [bob.public()], "kinds": [1621]})), [two.clone(), one.clone()]);
    assert_eq!(found(json!({"#t": ["bug"], "#a": [setup.repo]})), [two.clone(), one.clone()]);
    assert_eq!(found(json!({"#t": ["ui"], "#a": [setup.repo]})), std::slice::from_ref(&one));
    assert_eq!(found(json!({"#t": ["bug"], "authors": [carol.public()]})), []);
    assert_eq!(found(json!({"#e": [one.id]})), [three]);
    assert_eq!(found(json!({"kinds": [1621], "since": setup.now - 10})), [two]);
    assert_eq!(found(json!({"kinds": [1621], "until": setup.now - 20})), [one]);
    assert_eq!(found(json!({"kinds": [1621], "limit": 0})), []);
    assert_eq!(found(json!({"kinds": []})), []);
}

#[rstest]
fn a_page_of_large_events_comes_whole(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let mut client = setup.connect();
    let text = "x".repeat(200 << 10);
    let patches: Vec<_> = (0..24)
        .map(|n| Key::new(2).event(setup.now - n, 1617, &[&["a", &setup.repo]], &format!("{n} {text}")))
        .collect();
    store(&setup.server, &patches);
    let mut reported = client.req(&[json!({"kinds": [1617]})]);
    reported.sort_by_key(|event| std::cmp::Reverse(event.created_at));
    assert_eq!(reported, patches);
}
