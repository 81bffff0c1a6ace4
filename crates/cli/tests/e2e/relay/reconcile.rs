//! Reconciliation (NIP-77) with the reference library as the client.

use super::{Setup, store};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, Nostr};
use negentropy::{Id, Negentropy, NegentropyStorageVector};
use rstest::rstest;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Compares events with what the relay has: the ids that only we have, and those that only the relay has.
pub fn compare(client: &mut Nostr, filter: &Value, ours: &[Event]) -> (BTreeSet<[u8; 32]>, BTreeSet<[u8; 32]>) {
    let mut storage = NegentropyStorageVector::new();
    for event in ours {
        storage.insert(event.created_at.as_secs(), Id::from_byte_array(event.id.to_bytes())).expect("it is not sealed");
    }
    storage.seal().expect("it is sealed once");
    let mut negentropy = Negentropy::borrowed(&storage, 60_000).expect("the frame is large enough");
    let first = hex::encode(negentropy.initiate().expect("it begins once"));
    client.say(&json!(["NEG-OPEN", "n", filter, first]));
    let (mut have, mut need) = (Vec::new(), Vec::new());
    loop {
        let heard = client.wait(|heard| heard.0[1] == "n");
        assert_eq!(heard.name(), "NEG-MSG", "{}", heard.0);
        let message = bytes(heard.0[2].as_str().unwrap_or_default());
        match negentropy.reconcile_with_ids(&message, &mut have, &mut need).expect("the answer can be read") {
            Some(next) => client.say(&json!(["NEG-MSG", "n", hex::encode(next)])),
            None => break,
        }
    }
    client.say(&json!(["NEG-CLOSE", "n"]));
    let ids = |ids: &[Id]| ids.iter().map(|id| id.to_bytes()).collect();
    (ids(&have), ids(&need))
}

#[rstest]
fn both_sides_find_out_what_the_other_lacks(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let issues: Vec<_> =
        (0..600).map(|n| Key::new(2).event(setup.now - n, 1621, &[&["a", &setup.repo]], &n.to_string())).collect();
    let (theirs, ours) = (&issues[..500], &issues[100..]);
    store(&setup.server, theirs);
    let (have, need) = compare(&mut setup.connect(), &json!({"kinds": [1621]}), ours);
    let of = |events: &[Event]| events.iter().map(|event| event.id.to_bytes()).collect::<BTreeSet<_>>();
    assert_eq!(need, of(&issues[..100]));
    assert_eq!(have, of(&issues[500..]));
}

#[test]
fn too_many_events_are_not_compared() {
    let setup = Setup::with(Engine::Sqlite, &[("ABIDE_RELAY__RECONCILED_EVENTS", "5")]);
    store(&setup.server, &(0..6).map(|n| setup.issue(2, &n.to_string())).collect::<Vec<_>>());
    let mut client = setup.connect();
    client.say(&json!(["NEG-OPEN", "n", {"kinds": [1621]}, "61"]));
    let heard = client.wait(|heard| heard.0[1] == "n");
    assert_eq!(
        (heard.name(), heard.0[2].as_str()),
        ("NEG-ERR", Some("blocked: more than 5 events match; narrow the filter"))
    );
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect()
}
