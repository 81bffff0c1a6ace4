//! Each transition of the session, with frames that the test writes.

use super::*;
use crate::client::budget::HOUR;
use serde_json::json;
use std::time::Duration;

fn seconds(count: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(count))
}

fn connected(capability: Capability) -> ClientSession {
    let mut session = session(capability);
    assert_eq!(session.on_connected(NOW), []);
    session
}

fn only_frame(wishes: &[Wish]) -> Value {
    assert_eq!(wishes.len(), 1, "{wishes:?}");
    frames(wishes).remove(0)
}

fn name(frame: &Value) -> String {
    frame[1].as_str().unwrap().to_owned()
}

/// Opens a live subscription to kind 1; returns its name on the wire.
fn subscribe(session: &mut ClientSession, live: &str) -> String {
    let wishes = session.subscribe(live, vec![layer()], None).unwrap();
    name(frames(&wishes).last().unwrap())
}

/// Starts a round that pages; returns the name of its request.
fn page(session: &mut ClientSession) -> String {
    name(&only_frame(&session.start_round(layer(), NOW).unwrap()))
}

fn request(wishes: &[Wish]) -> (u64, Filter) {
    match wishes {
        [.., Wish::NeedItems { request, filter }] => (*request, (**filter).clone()),
        other => panic!("{other:?}"),
    }
}

/// Starts a round that compares with no items of ours; returns the name of the reconciliation.
fn compare(session: &mut ClientSession) -> String {
    let (request, _) = request(&session.start_round(layer(), NOW).unwrap());
    let frame = only_frame(&session.on_items(request, Vec::new(), NOW));
    assert_eq!(frame[0], "NEG-OPEN");
    name(&frame)
}

/// A message that lists all events as the relay's.
fn neg_list(name: &str, events: &[Event]) -> String {
    let ids: String = events.iter().map(|event| event.id.to_hex()).collect();
    assert!(events.len() < 128);
    format!("[\"NEG-MSG\",\"{name}\",\"61000002{:02x}{ids}\"]", events.len())
}

fn outcome(wishes: &[Wish]) -> &RoundOutcome {
    match wishes {
        [.., Wish::RoundEnded(report)] => &report.outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_live_subscription_catches_up_brings_events_and_is_ended_by_the_relay() {
    let mut session = connected(Capability::Unknown);
    let wishes = session.subscribe("news", vec![layer(), Filter::default()], Some(7)).unwrap();
    let filters = (json!({"kinds": [1], "since": 7, "limit": 0}), json!({"since": 7, "limit": 0}));
    assert_eq!(only_frame(&wishes), json!(["REQ", "s1", filters.0, filters.1]));
    let event = unsigned(1, 0, "");
    let wish = Wish::Event(Box::new(event.clone()), Source::Live("news".into()));
    assert_eq!(session.on_message(&event_frame("s1", &event), NOW), [wish]);
    assert_eq!(session.on_message(r#"["EOSE","s1"]"#, NOW), [Wish::CaughtUp("news".into())]);
    assert_eq!(session.on_message(r#"["EOSE","s1"]"#, NOW), [], "once");
    let ended = Wish::Unsubscribed("news".into(), "auth-required: x".to_owned());
    assert_eq!(session.on_message(r#"["CLOSED","s1","auth-required: x"]"#, NOW), [ended]);
    assert_eq!(session.on_message(&event_frame("s1", &event), NOW), []);
    assert_eq!((session.spent().chatter, session.spent().lies), (2, 0), "a late frame is no lie");
}

#[test]
fn a_filters_own_later_since_is_kept() {
    let mut session = connected(Capability::Unknown);
    let late = Filter { since: Some(9), ..Filter::default() };
    let frame = only_frame(&session.subscribe("news", vec![late], Some(7)).unwrap());
    assert_eq!(frame[2]["since"], 9);
}

#[test]
fn a_replaced_subscription_is_closed_and_its_late_events_are_dropped() {
    let mut session = connected(Capability::Unknown);
    let old = subscribe(&mut session, "news");
    let wishes = session.subscribe("news", vec![layer()], None).unwrap();
    let [closed, opened] = &frames(&wishes)[..] else { panic!("{wishes:?}") };
    assert_eq!((closed, &opened[0]), (&json!(["CLOSE", old]), &json!("REQ")));
    let event = unsigned(1, 0, "");
    assert_eq!(session.on_message(&event_frame(&old, &event), NOW), []);
    assert_eq!(session.on_message(&event_frame(&name(opened), &event), NOW).len(), 1);
    assert_eq!(only_frame(&session.unsubscribe("news"))[0], "CLOSE");
    assert_eq!(session.unsubscribe("news"), []);
}

#[test]
fn subscriptions_need_a_connection_and_have_limits() {
    let limits = ClientLimits { subscriptions: 1, ..ClientLimits::default() };
    let mut session = ClientSession::new(limits, Capability::Unknown);
    assert_eq!(session.subscribe("a", vec![layer()], None), Err(ClientError::NotConnected));
    session.on_connected(NOW);
    assert_eq!(session.subscribe("a", Vec::new(), None), Err(ClientError::Filters(20)));
    assert_eq!(session.subscribe("a", vec![layer(); 21], None), Err(ClientError::Filters(20)));
    subscribe(&mut session, "a");
    assert_eq!(session.subscribe("b", vec![layer()], None), Err(ClientError::TooManySubscriptions(1)));
    subscribe(&mut session, "a");
    assert_eq!(session.on_lost(), []);
    session.on_connected(NOW);
    subscribe(&mut session, "b");
}

#[test]
fn an_event_that_matches_no_filter_is_dropped_and_counted() {
    let mut session = connected(Capability::Unknown);
    let live = subscribe(&mut session, "news");
    for (subscription, kind) in [(live.as_str(), 2), ("s99", 1), ("other", 1), ("s0", 1)] {
        assert_eq!(session.on_message(&event_frame(subscription, &unsigned(kind, 0, "")), NOW), []);
    }
    assert_eq!((session.spent().lies, session.spent().events), (4, 4));
}

#[test]
fn challenges_and_unknown_frames_are_chatter() {
    let mut session = connected(Capability::Unknown);
    for text in [r#"["AUTH","x"]"#, r#"["HELLO"]"#, r#"["NOTICE","x"]"#, r#"["EOSE","s1"]"#, r#"["CLOSED","x",""]"#] {
        assert_eq!(session.on_message(text, NOW), [], "{text}");
    }
    assert_eq!((session.spent().chatter, session.spent().lies), (5, 0));
}

#[test]
fn a_round_waits_for_the_connection_and_for_items() {
    let mut session = session(Capability::Unknown);
    assert_eq!(session.start_round(layer(), NOW), Ok(Vec::new()));
    assert_eq!(session.start_round(layer(), NOW), Err(ClientError::RoundInProgress));
    let (first, filter) = request(&session.on_connected(NOW));
    assert_eq!((filter.since, filter.until, filter.limit), (None, Some(NOW_SECONDS + 900), 20_001));
    assert_eq!(session.deadline(), None, "the relay owes nothing");
    assert_eq!(session.on_items(first + 1, Vec::new(), NOW), [], "another request");
    session.on_lost();
    assert_eq!(session.on_items(first, Vec::new(), NOW), [], "no connection");
    let (second, _) = request(&session.on_connected(NOW));
    assert_eq!(session.on_items(first, Vec::new(), NOW), [], "late");
    let frame = only_frame(&session.on_items(second, Vec::new(), NOW));
    assert_eq!((&frame[0], &frame[2]), (&json!("NEG-OPEN"), &json!({"kinds": [1], "until": NOW_SECONDS + 900})));
    assert_eq!(session.deadline(), Some(seconds(10)));
}

#[test]
fn a_layer_without_seconds_ends_at_once() {
    let mut session = connected(Capability::Unknown);
    let never = Filter { since: Some(5), until: Some(4), ..layer() };
    assert_eq!(outcome(&session.start_round(never, NOW).unwrap()), &RoundOutcome::Finished);
    assert!(!session.has_round());
}

#[test]
fn a_comparison_leads_to_a_download_and_the_next_window() {
    let events = row(3);
    let mut session = connected(Capability::Unknown);
    let neg = compare(&mut session);
    let wishes = session.on_message(&neg_list(&neg, &events), NOW);
    assert_eq!(wishes[0], Wish::Learned(Capability::Negentropy));
    let [closed, req] = &frames(&wishes)[..] else { panic!("{wishes:?}") };
    assert_eq!(closed, &json!(["NEG-CLOSE", neg]));
    assert_eq!((&req[0], req[2]["ids"].as_array().unwrap().len()), (&json!("REQ"), 3));
    let req = name(req);
    for event in &events {
        let wish = Wish::Event(Box::new(event.clone()), Source::Round);
        assert_eq!(session.on_message(&event_frame(&req, event), NOW), [wish]);
        assert_eq!(session.on_message(&event_frame(&req, event), NOW), [], "a doubled frame");
    }
    let wishes = session.on_message(&json!(["EOSE", req]).to_string(), NOW);
    assert_eq!(frames(&wishes), [json!(["CLOSE", req])]);
    let report = RoundReport { outcome: RoundOutcome::Finished, events: 3, lacking: 0, missing: 0, crowded_seconds: 0 };
    assert_eq!(wishes.last(), Some(&Wish::RoundEnded(report)));
}

#[test]
fn chatter_does_not_delay_the_end_of_patience() {
    let mut session = connected(Capability::Unknown);
    let neg = compare(&mut session);
    for second in 1..10 {
        session.on_message(r#"["EVENT","s1",{}]"#, seconds(second));
        session.on_message(r#"["OK","x",true]"#, seconds(second));
        assert_eq!(session.on_message(r#"["AUTH","x"]"#, seconds(second)), []);
        assert_eq!(session.on_tick(seconds(second)), []);
    }
    let wishes = session.on_tick(seconds(10));
    let [closed, req] = &frames(&wishes)[..] else { panic!("{wishes:?}") };
    assert_eq!((closed, &req[0]), (&json!(["NEG-CLOSE", neg]), &json!("REQ")));
    assert!(wishes.contains(&Wish::Learned(Capability::PagingOnly)));
    assert_eq!(session.capability(), Capability::PagingOnly);
    assert_eq!(session.on_message(&neg_list(&neg, &row(3)), seconds(11)), [], "too late");
}

#[test]
fn a_known_relay_that_refuses_on_its_first_opening_is_learned_again() {
    let mut session = connected(Capability::Negentropy);
    compare(&mut session);
    let wishes = session.on_message(r#"["NOTICE","bad msg"]"#, NOW);
    assert!(wishes.contains(&Wish::Learned(Capability::PagingOnly)), "{wishes:?}");
}

#[test]
fn after_an_answer_a_refusal_pages_one_window_and_teaches_nothing() {
    // A fingerprint that does not match ours, so that the exchange continues.
    let differs = |neg: &str| format!("[\"NEG-MSG\",\"{neg}\",\"61000001{}\"]", "aa".repeat(16));
    for refusal in ["CLOSED", "NEG-ERR", "silence", "garbage"] {
        let mut session = connected(Capability::Unknown);
        let neg = compare(&mut session);
        let wishes = session.on_message(&differs(&neg), NOW);
        assert_eq!(frames(&wishes)[0][0], "NEG-MSG");
        assert_eq!(session.on_message(r#"["NOTICE","slow down"]"#, seconds(9)), [], "chatter by now");
        let wishes = match refusal {
            "silence" => session.on_tick(seconds(10)),
            "garbage" => session.on_message(&json!(["NEG-MSG", neg, "00"]).to_string(), NOW),
            name => session.on_message(&json!([name, neg, "error: x"]).to_string(), NOW),
        };
        assert_eq!(frames(&wishes).last().unwrap()[0], "REQ", "{refusal}");
        assert_eq!(session.capability(), Capability::Negentropy, "{refusal}");
        assert_eq!(session.spent().lies, u64::from(refusal == "garbage"));
    }
}

#[test]
fn a_first_answer_that_cannot_be_read_is_a_lie_and_a_refusal() {
    let mut session = connected(Capability::Unknown);
    let neg = compare(&mut session);
    let wishes = session.on_message(&json!(["NEG-MSG", neg, "60"]).to_string(), NOW);
    assert!(wishes.contains(&Wish::Learned(Capability::PagingOnly)));
    assert_eq!(session.spent().lies, 1);
}

#[test]
fn two_connections_lost_at_the_opening_are_a_refusal() {
    let mut session = connected(Capability::Unknown);
    compare(&mut session);
    assert_eq!(session.on_lost(), []);
    let (request, _) = request(&session.on_connected(NOW));
    session.on_items(request, Vec::new(), NOW);
    assert_eq!(session.on_lost(), [Wish::Learned(Capability::PagingOnly)]);
    assert_eq!(only_frame(&session.on_connected(NOW))[0], "REQ");
}

#[test]
fn a_page_that_is_closed_after_some_events_continues_at_the_oldest() {
    let mut session = connected(Capability::PagingOnly);
    let req = page(&mut session);
    for event in row(3) {
        assert_eq!(session.on_message(&event_frame(&req, &event), NOW).len(), 1);
    }
    let wishes = session.on_message(&json!(["CLOSED", req, "rate-limited: x"]).to_string(), NOW);
    let next = only_frame(&wishes);
    assert_eq!((&next[0], &next[2]["until"]), (&json!("REQ"), &json!(NOW_SECONDS - 2)));
    let wishes = session.on_message(&json!(["CLOSED", next[1], "auth-required: x"]).to_string(), NOW);
    assert_eq!(outcome(&wishes), &RoundOutcome::Refused("auth-required: x".to_owned()), "no progress");
}

#[test]
fn a_lost_page_continues_at_the_oldest_on_the_next_connection() {
    let mut session = connected(Capability::PagingOnly);
    let req = page(&mut session);
    for event in row(3) {
        session.on_message(&event_frame(&req, &event), NOW);
    }
    session.on_lost();
    let next = only_frame(&session.on_connected(seconds(5)));
    assert_eq!(next[2]["until"], NOW_SECONDS - 2);
    let known = event_frame(&name(&next), &row(3)[2]);
    assert_eq!(session.on_message(&known, seconds(5)), [], "seen before the loss");
}

#[test]
fn silence_in_a_download_ends_the_round_unless_events_came() {
    let mut session = connected(Capability::PagingOnly);
    let req = page(&mut session);
    session.on_message(&event_frame(&req, &unsigned(1, 1, "")), seconds(20));
    session.on_message(&event_frame(&req, &unsigned(1, 1, "")), seconds(40));
    session.on_message(r#"["NOTICE","still there"]"#, seconds(49));
    assert_eq!(session.on_tick(seconds(49)), []);
    let wishes = session.on_tick(seconds(50));
    let [closed, next] = &frames(&wishes)[..] else { panic!("{wishes:?}") };
    assert_eq!((closed, &next[0]), (&json!(["CLOSE", req]), &json!("REQ")));
    assert_eq!(outcome(&session.on_tick(seconds(80))), &RoundOutcome::Silent);
}

#[test]
fn a_round_can_be_abandoned_at_each_stage() {
    let mut session = connected(Capability::Unknown);
    session.start_round(layer(), NOW).unwrap();
    assert_eq!(session.stop_round(), [], "nothing is open");
    let neg = compare(&mut session);
    assert_eq!(only_frame(&session.stop_round()), json!(["NEG-CLOSE", neg]));
    assert_eq!(session.on_message(&neg_list(&neg, &row(1)), NOW), []);
    let mut session = connected(Capability::PagingOnly);
    let req = page(&mut session);
    assert_eq!(only_frame(&session.stop_round()), json!(["CLOSE", req]));
    assert_eq!((session.stop_round(), session.deadline()), (Vec::new(), None));
}

#[test]
fn more_missing_events_than_the_limit_halve_the_window() {
    let limits = ClientLimits { wanted: 2, ..ClientLimits::default() };
    let mut session = ClientSession::new(limits, Capability::Negentropy);
    session.on_connected(NOW);
    let neg = compare(&mut session);
    let wishes = session.on_message(&neg_list(&neg, &row(3)), NOW);
    assert_eq!(only_frame(&wishes[..1]), json!(["NEG-CLOSE", neg]));
    let (_, filter) = request(&wishes);
    assert_eq!((filter.since, filter.until), (Some((NOW_SECONDS + 900) / 2 + 1), Some(NOW_SECONDS + 900)));
}

#[test]
fn a_relay_that_exceeds_its_budget_rests_for_an_hour_and_the_round_continues() {
    let budget = Budget { events: 2, ..Budget::default() };
    let mut session = ClientSession::new(ClientLimits { budget, ..ClientLimits::default() }, Capability::PagingOnly);
    session.on_connected(NOW);
    let req = page(&mut session);
    let events = row(3);
    let mut wishes = Vec::new();
    for event in &events {
        wishes.extend(session.on_message(&event_frame(&req, event), NOW));
    }
    let rest = Wish::Rest(NOW.plus(HOUR), RestReason::Events);
    assert_eq!((wishes.len(), &wishes[2]), (3, &rest), "the third event is dropped");
    assert_eq!(session.on_message(&event_frame(&req, &events[2]), NOW), []);
    assert_eq!((session.on_binary(5, NOW), session.on_tick(seconds(99))), (Vec::new(), Vec::new()));
    assert_eq!(session.on_connected(seconds(3599)), [rest]);
    let next = only_frame(&session.on_connected(seconds(3600)));
    assert_eq!(next[2]["until"], NOW_SECONDS - 1);
    assert_eq!(session.on_message(&event_frame(&name(&next), &events[2]), seconds(3600)).len(), 1);
}

#[test]
fn forged_events_and_binary_frames_are_lies() {
    let budget = Budget { lies: 1, ..Budget::default() };
    let mut session = ClientSession::new(ClientLimits { budget, ..ClientLimits::default() }, Capability::Unknown);
    assert_eq!((session.on_forged(NOW), session.on_message("", NOW)), (Vec::new(), Vec::new()), "no connection");
    session.on_connected(NOW);
    assert_eq!(session.on_binary(100, NOW), []);
    let rest = Wish::Rest(NOW.plus(HOUR), RestReason::Lies(Lie::Forged));
    assert_eq!(session.on_forged(NOW), [rest]);
}

#[test]
fn a_session_moves_between_threads() {
    fn sent<T: Send>(_: &T) {}
    sent(&session(Capability::Unknown));
}
