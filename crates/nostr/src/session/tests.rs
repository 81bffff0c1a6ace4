//! Conversations with a session: frames in, actions out.

use super::*;
use crate::grasp::{Answer, Prefix, Refusal};
use crate::testing::{NOW, NOW_SECONDS, event, json as written, key};
use negentropy::{Id, Negentropy, NegentropyStorageVector};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet as Set;

fn with(limits: RelayLimits) -> Session {
    Session::new(Arc::new(limits), Service::parse("https://git.example.org").unwrap(), "chance".into())
}

fn session() -> Session {
    with(RelayLimits::default())
}

/// The frames among the actions, as JSON.
fn frames(actions: &[Action]) -> Vec<Value> {
    let text = |action: &Action| match action {
        Action::Send(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    };
    actions.iter().filter_map(text).collect()
}

fn only(actions: Vec<Action>) -> Value {
    assert_eq!(actions.len(), 1, "{actions:?}");
    frames(&actions).remove(0)
}

fn subscribe(session: &mut Session, name: &str) -> QueryId {
    let actions = session.on_message(&json!(["REQ", name, {}]).to_string(), NOW);
    match actions.last() {
        Some(Action::Subscribe(query, _)) => query.clone(),
        other => panic!("{other:?}"),
    }
}

fn wire(event: &Event) -> Wire {
    let wire = Wire::from(event);
    assert_eq!(crate::parse_event(&wire.json, &RelayLimits::default()).as_ref(), Ok(event));
    wire
}

#[test]
fn an_event_is_admitted_and_then_answered() {
    let mut session = session();
    let event = event(1, 1621, 0, &[], "x");
    let frame = format!("[\"EVENT\",{}]", written(&event));
    assert_eq!(session.on_message(&frame, NOW), [Action::Admit(Box::new(event.clone()))]);
    let waiting = "purgatory: won't be served until git data arrives";
    let refusal = Refusal::new(Prefix::Restricted, "why");
    for (answer, accepted, text) in [
        (Answer::Stored, true, ""),
        (Answer::Waiting, true, waiting),
        (Answer::DuplicateWaiting, true, "duplicate: in purgatory"),
        (Answer::Refused(refusal), false, "restricted: why"),
    ] {
        assert_eq!(only(session.on_admitted(&event.id, &answer)), json!(["OK", event.id, accepted, text]));
    }
}

#[test]
fn events_from_the_future_expired_ones_and_proofs_are_not_admitted() {
    let mut session = session();
    let past = NOW_SECONDS.to_string();
    for refused in [
        event(1, 1, 901, &[], ""),
        event(1, 1, 0, &[&["expiration", &past]], ""),
        event(1, 22_242, 0, &[&["challenge", "chance"]], ""),
    ] {
        let frame = only(session.on_message(&format!("[\"EVENT\",{}]", written(&refused)), NOW));
        assert_eq!((&frame[0], &frame[1], &frame[2]), (&json!("OK"), &json!(refused.id), &json!(false)));
        assert!(frame[3].as_str().unwrap().starts_with("invalid: "));
    }
}

#[test]
fn events_under_way_are_bounded() {
    let mut session = with(RelayLimits { events_under_way: 1, ..RelayLimits::default() });
    let event = event(1, 1, 0, &[], "");
    let frame = format!("[\"EVENT\",{}]", written(&event));
    assert!(matches!(session.on_message(&frame, NOW)[..], [Action::Admit(_)]));
    assert!(only(session.on_message(&frame, NOW))[3].as_str().unwrap().starts_with("rate-limited: "));
    session.on_admitted(&event.id, &Answer::Stored);
    assert!(matches!(session.on_message(&frame, NOW)[..], [Action::Admit(_)]));
}

#[test]
fn a_subscription_gets_stored_events_then_eose_then_new_ones() {
    let mut session = session();
    let query = subscribe(&mut session, "s");
    let (first, second) = (event(1, 1, 0, &[], "1"), event(1, 1, 0, &[], "2"));
    let stored = session.on_stored(&query, vec![wire(&first)]);
    assert_eq!(only(stored), json!(["EVENT", "s", first]));
    assert_eq!(only(session.on_stored_end(&query)), json!(["EOSE", "s"]));
    assert_eq!(session.on_stored_end(&query), [], "one end");
    assert_eq!(only(session.on_live(&query, &wire(&second))), json!(["EVENT", "s", second]));
}

#[test]
fn an_event_that_comes_both_ways_while_loading_is_sent_once() {
    let mut session = session();
    let query = subscribe(&mut session, "s");
    let event = event(1, 1, 0, &[], "1");
    assert_eq!(session.on_live(&query, &wire(&event)).len(), 1);
    assert_eq!(session.on_stored(&query, vec![wire(&event), wire(&event)]), []);
}

#[test]
fn answers_to_a_replaced_or_closed_subscription_are_dropped() {
    let mut session = session();
    let old = subscribe(&mut session, "s");
    let actions = session.on_message(r#"["REQ","s",{"kinds":[1]}]"#, NOW);
    let [Action::Unsubscribe(gone), Action::Subscribe(new, filters)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((gone, filters.len()), (&old, 1));
    let event = event(1, 1, 0, &[], "1");
    assert_eq!(session.on_stored(&old, vec![wire(&event)]), []);
    assert_eq!(session.on_stored_end(&old), []);
    assert_eq!(session.on_query_failed(&old), []);
    assert_eq!(session.on_live(new, &wire(&event)).len(), 1);
    assert_eq!(session.on_message(r#"["CLOSE","s"]"#, NOW), [Action::Unsubscribe(new.clone())]);
    assert_eq!(session.on_live(new, &wire(&event)), []);
    assert_eq!(session.on_message(r#"["CLOSE","s"]"#, NOW), [], "closing twice is no error");
}

#[test]
fn subscriptions_are_bounded_and_replacing_one_needs_no_room() {
    let mut session = with(RelayLimits { subscriptions: 2, ..RelayLimits::default() });
    subscribe(&mut session, "a");
    subscribe(&mut session, "b");
    let refused = only(session.on_message(r#"["REQ","c",{}]"#, NOW));
    assert_eq!((&refused[0], &refused[1]), (&json!("CLOSED"), &json!("c")));
    subscribe(&mut session, "b");
    session.on_message(r#"["CLOSE","a"]"#, NOW);
    subscribe(&mut session, "c");
    assert_eq!(session.subscriptions(), 2);
}

#[test]
fn the_values_of_all_filters_together_are_bounded() {
    let mut session = with(RelayLimits { subscribed_values: 10, ..RelayLimits::default() });
    let mut ask = |name: &str, filters: &[Value]| {
        let message: Vec<_> = [json!("REQ"), json!(name)].into_iter().chain(filters.iter().cloned()).collect();
        let actions = session.on_message(&Value::from(message).to_string(), NOW);
        match actions.last() {
            Some(Action::Subscribe(..)) => None,
            Some(Action::Send(text)) => Some(text.clone()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask("a", &[json!({"kinds": [1, 2, 3]}), json!({"kinds": [1]})]), None, "six of ten");
    let refused = ask("b", &[json!({"kinds": [1, 2, 3, 4]})]).unwrap();
    assert!(refused.starts_with("[\"CLOSED\",\"b\",\"rate-limited: the limit is 10 values"), "{refused}");
    assert_eq!(ask("b", &[json!({"kinds": [1, 2, 3]})]), None, "just so many");
    assert!(ask("c", &[json!({})]).is_some(), "a filter without values is one too");
    assert_eq!(ask("a", &[json!({"kinds": [1, 2]})]), None, "what is replaced makes room");
    assert_eq!(ask("c", &[json!({"#t": ["x"]})]), None);
    assert!(ask("c", &[json!({"#t": ["x".repeat(65)]})]).is_some(), "a long text counts as several values");
}

#[test]
fn a_refused_request_ends_the_one_it_was_to_replace() {
    let mut session = session();
    let query = subscribe(&mut session, "s");
    let actions = session.on_message(r#"["REQ","s",{"search":"x"}]"#, NOW);
    assert_eq!(actions[0], Action::Unsubscribe(query));
    assert_eq!(frames(&actions)[0][0], "CLOSED");
    assert_eq!(session.subscriptions(), 0);
}

#[test]
fn a_failed_reading_closes_with_an_error() {
    let mut session = session();
    let query = subscribe(&mut session, "s");
    let actions = session.on_query_failed(&query);
    assert_eq!(actions[0], Action::Unsubscribe(query));
    assert!(frames(&actions)[0][2].as_str().unwrap().starts_with("error: "));
}

#[test]
fn counts_are_answered_once_and_bounded() {
    let mut session = with(RelayLimits { counts_under_way: 1, ..RelayLimits::default() });
    let actions = session.on_message(r#"["COUNT","c",{"kinds":[1]}]"#, NOW);
    let [Action::Count(query, filters)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(filters.len(), 1);
    assert_eq!(only(session.on_message(r#"["COUNT","d",{}]"#, NOW))[0], "CLOSED");
    assert_eq!(only(session.on_count(query, Count::Exactly(7))), json!(["COUNT", "c", {"count": 7}]));
    assert_eq!(session.on_count(query, Count::Exactly(7)), []);
    let again = session.on_message(r#"["COUNT","d",{}]"#, NOW);
    let [Action::Count(query, _)] = &again[..] else { panic!("{again:?}") };
    assert!(only(session.on_query_failed(query))[2].as_str().unwrap().starts_with("error: "));
}

#[test]
fn a_key_is_proved_by_signing_the_challenge_for_this_relay_now() {
    let relay: &[&str] = &["relay", "wss://git.example.org/"];
    let challenge: &[&str] = &["challenge", "chance"];
    let mut session = session();
    let mut prove = |event: Event| {
        let actions = session.on_message(&format!("[\"AUTH\",{}]", written(&event)), NOW);
        let actions = match actions[..] {
            [Action::Prove(id, key)] => session.on_proved(&id, key, Ok(())),
            _ => actions,
        };
        let frame = only(actions);
        assert_eq!((&frame[0], &frame[1]), (&json!("OK"), &json!(event.id)));
        frame[2].as_bool().unwrap()
    };
    assert!(!prove(event(2, 22_242, 0, &[&["relay", "wss://other.org"], challenge], "")));
    assert!(!prove(event(2, 22_242, 0, &[challenge], "")));
    assert!(!prove(event(2, 22_242, 601, &[relay, challenge], "")));
    assert!(!prove(event(2, 22_242, -601, &[relay, challenge], "")));
    assert!(!prove(event(2, 1, 0, &[relay, challenge], "")));
    let mut forged = event(2, 22_242, 0, &[relay, challenge], "");
    forged.sig = crate::Signature::from_byte_array([1; 64]);
    assert!(!prove(forged));
    assert!(prove(event(2, 22_242, -600, &[relay, challenge], "")));
    assert_eq!(session.proven(), &Set::from([key(2)]));
}

#[test]
fn a_proved_key_of_a_suspended_account_is_refused() {
    let mut session = session();
    let proof = event(2, 22_242, 0, &[], "");
    assert_eq!(only(session.on_proved(&proof.id, key(2), Ok(())))[2], true);
    let refused = only(session.on_proved(&proof.id, key(2), Err(crate::grasp::signer::suspended())));
    assert_eq!(refused[2], false);
    assert!(refused[3].as_str().unwrap().starts_with("blocked: the account of this key is suspended"));
    assert!(session.proven().is_empty());
}

#[test]
fn whoever_answers_another_challenge_is_told_the_right_one() {
    let mut session = session();
    for tags in [&[["challenge", "guess"]][..], &[]] {
        let tags: Vec<&[&str]> = tags.iter().map(|tag| &tag[..]).collect();
        let proof = event(2, 22_242, 0, &tags, "");
        let mut actions = session.on_message(&format!("[\"AUTH\",{}]", written(&proof)), NOW);
        let challenge = actions.pop().into_iter().collect();
        assert_eq!(only(actions)[2], false);
        assert_eq!(only(challenge), json!(["AUTH", "chance"]));
    }
    assert!(session.proven().is_empty());
}

#[test]
fn what_is_malformed_gets_an_answer_and_the_session_goes_on() {
    let mut session = session();
    for text in ["", "{", "[]", "[\"EVENT\",{}]", "[\"X\"]", "[\"REQ\"]", "[\"NEG-CLOSE\"]", "nonsense"] {
        assert_eq!(only(session.on_message(text, NOW))[0], "NOTICE", "{text:?}");
    }
    assert_eq!(only(session.on_binary())[0], "NOTICE");
    assert_eq!(only(session.on_message(&" ".repeat((1 << 20) + 1), NOW))[0], "NOTICE");
    subscribe(&mut session, "still here");
}

fn items(range: std::ops::Range<u16>) -> Vec<(u64, EventId)> {
    let id = |n: u16| {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&n.to_be_bytes());
        EventId::from_byte_array(bytes)
    };
    range.map(|n| (u64::from(n / 3), id(n))).collect()
}

fn storage(items: &[(u64, EventId)]) -> NegentropyStorageVector {
    let mut storage = NegentropyStorageVector::new();
    for (at, id) in items {
        storage.insert(*at, Id::from_byte_array(id.to_bytes())).unwrap();
    }
    storage.seal().unwrap();
    storage
}

fn open(session: &mut Session, name: &str, first: &[u8]) -> QueryId {
    let actions = session.on_message(&json!(["NEG-OPEN", name, {"kinds": [1]}, hex::encode(first)]).to_string(), NOW);
    let [Action::Reconcile { query, .. }] = &actions[..] else { panic!("{actions:?}") };
    query.clone()
}

#[test]
fn both_sides_find_out_what_the_other_lacks() {
    let (theirs, ours) = (items(0..900), items(300..2000));
    // Small frames, so that it takes several.
    let mut session = with(RelayLimits { reconciliation_frame: 4096, ..RelayLimits::default() });
    let mut client = Negentropy::owned(storage(&theirs), 0).unwrap();
    let query = open(&mut session, "n", &client.initiate().unwrap());
    let (mut have, mut need, mut rounds) = (Vec::new(), Vec::new(), 0);
    let mut frame = only(session.on_reconcile_items(&query, ours));
    loop {
        assert_eq!((&frame[0], &frame[1]), (&json!("NEG-MSG"), &json!("n")));
        rounds += 1;
        let answer = hex::decode(frame[2].as_str().unwrap()).unwrap();
        let Some(next) = client.reconcile_with_ids(&answer, &mut have, &mut need).unwrap() else { break };
        frame = only(session.on_message(&json!(["NEG-MSG", "n", hex::encode(next)]).to_string(), NOW));
    }
    let ids = |range| items(range).into_iter().map(|(_, id)| id.to_bytes()).collect::<Set<_>>();
    assert_eq!(have.iter().map(|id| id.to_bytes()).collect::<Set<_>>(), ids(0..300));
    assert_eq!(need.iter().map(|id| id.to_bytes()).collect::<Set<_>>(), ids(900..2000));
    assert!(rounds > 1);
    assert_eq!(session.on_message(r#"["NEG-CLOSE","n"]"#, NOW), []);
    assert_eq!(only(session.on_message(r#"["NEG-MSG","n","61"]"#, NOW))[0], "NEG-ERR");
}

#[test]
fn reconciliations_are_bounded_in_number_and_size() {
    let mut session = with(RelayLimits { reconciliations: 1, reconciled_events: 3, ..RelayLimits::default() });
    let mut query = open(&mut session, "a", &[0x61]);
    let refused = only(session.on_message(r#"["NEG-OPEN","b",{},"61"]"#, NOW));
    assert_eq!((&refused[0], &refused[1]), (&json!("NEG-ERR"), &json!("b")));
    let replaced = std::mem::replace(&mut query, open(&mut session, "a", &[0x61]));
    assert_eq!(session.on_reconcile_items(&replaced, items(0..4)), [], "replacing one needs no room");
    let err = only(session.on_reconcile_items(&query, items(0..4)));
    assert!(err[0] == "NEG-ERR" && err[2].as_str().unwrap().starts_with("blocked: "));
    let query = open(&mut session, "a", &[0x61]);
    assert_eq!(only(session.on_reconcile_items(&query, items(0..3)))[0], "NEG-MSG");
    assert_eq!(session.on_reconcile_items(&query, items(0..3)), [], "items come once");
}

#[test]
fn the_reconciliations_of_one_connection_share_one_number_of_events() {
    let mut session = with(RelayLimits { reconciled_events: 5, ..RelayLimits::default() });
    let first = open(&mut session, "a", &[0x61]);
    assert_eq!(only(session.on_reconcile_items(&first, items(0..3)))[0], "NEG-MSG");
    let actions = session.on_message(r#"["NEG-OPEN","b",{},"61"]"#, NOW);
    let [Action::Reconcile { query: second, at_most: 2, .. }] = &actions[..] else { panic!("{actions:?}") };
    let third = open(&mut session, "c", &[0x61]);
    let err = only(session.on_reconcile_items(second, items(0..3)));
    assert!(err[0] == "NEG-ERR" && err[2].as_str().unwrap().contains("compare 5 events together"), "{err}");
    assert!(session.goes_on(&first) && session.goes_on(&third) && !session.goes_on(second));
    assert_eq!(only(session.on_reconcile_items(&third, items(0..2)))[0], "NEG-MSG");
    session.on_message(r#"["NEG-CLOSE","a"]"#, NOW);
    assert!(!session.goes_on(&first), "its events are free again");
    let again = open(&mut session, "a", &[0x61]);
    assert_eq!(only(session.on_reconcile_items(&again, items(0..3)))[0], "NEG-MSG");
}

#[test]
fn a_question_that_is_refused_hears_why_and_is_over() {
    let mut session = session();
    let actions = session.on_message(r#"["REQ","r",{}]"#, NOW);
    let [Action::Subscribe(query, _)] = &actions[..] else { panic!("{actions:?}") };
    assert!(session.goes_on(query));
    let refused = session.on_refused(query, "rate-limited: read first");
    let closed = Action::Send(json!(["CLOSED", "r", "rate-limited: read first"]).to_string());
    assert_eq!(refused, [Action::Unsubscribe(query.clone()), closed]);
    assert!(!session.goes_on(query));
    let actions = session.on_message(r#"["COUNT","c",{}]"#, NOW);
    let [Action::Count(query, _)] = &actions[..] else { panic!("{actions:?}") };
    assert!(session.goes_on(query));
    assert_eq!(only(session.on_refused(query, "rate-limited: x"))[0], "CLOSED");
    let query = open(&mut session, "n", &[0x61]);
    assert_eq!(only(session.on_refused(&query, "rate-limited: x")), json!(["NEG-ERR", "n", "rate-limited: x"]));
    assert_eq!(session.on_refused(&query, "rate-limited: x"), [], "it is over");
}

#[test]
fn a_broken_or_hasty_reconciliation_ends_with_an_error() {
    let mut session = session();
    let query = open(&mut session, "n", &[0x00]);
    assert_eq!(only(session.on_reconcile_items(&query, items(0..3)))[0], "NEG-ERR");
    let query = open(&mut session, "n", &[0x61]);
    assert_eq!(only(session.on_message(r#"["NEG-MSG","n","61"]"#, NOW))[0], "NEG-ERR");
    assert_eq!(session.on_reconcile_items(&query, items(0..3)), [], "it is over");
    let query = open(&mut session, "n", &[0x61]);
    assert!(only(session.on_query_failed(&query))[2].as_str().unwrap().starts_with("error: "));
}

proptest! {
    #[test]
    fn no_reconciliation_message_panics(first in prop::collection::vec(any::<u8>(), 0..80), second: Vec<u8>) {
        let mut session = session();
        let first: Vec<u8> = std::iter::once(0x61).chain(first).collect();
        let query = open(&mut session, "n", &first);
        prop_assert_eq!(session.on_reconcile_items(&query, items(0..200)).len(), 1);
        let next = json!(["NEG-MSG", "n", hex::encode(second)]).to_string();
        prop_assert_eq!(session.on_message(&next, NOW).len(), 1);
    }

    /// For any messages in any order, the number of open subscriptions, counts and reconciliations stays within the
    /// limits.
    #[test]
    fn any_sequence_stays_within_the_limits(steps in prop::collection::vec((0_u8..5, 0_u8..6), 0..60)) {
        let limits = RelayLimits { subscriptions: 3, counts_under_way: 2, reconciliations: 2, ..RelayLimits::default() };
        let mut session = with(limits);
        let mut open: Set<QueryId> = Set::new();
        for (what, name) in steps {
            let name = format!("s{name}");
            let message = match what {
                0 | 1 => json!(["REQ", name, {}]),
                2 => json!(["CLOSE", name]),
                3 => json!(["COUNT", name, {}]),
                _ => json!(["NEG-OPEN", name, {}, "61"]),
            };
            for action in session.on_message(&message.to_string(), NOW) {
                match action {
                    Action::Subscribe(query, _) => prop_assert!(open.insert(query)),
                    Action::Unsubscribe(query) => prop_assert!(open.remove(&query), "only what was opened is closed"),
                    _ => {}
                }
            }
            prop_assert_eq!(open.len(), session.subscriptions());
            prop_assert!(open.len() <= 3 && session.counts.len() <= 2 && session.reconciliations.len() <= 2);
        }
    }
}
