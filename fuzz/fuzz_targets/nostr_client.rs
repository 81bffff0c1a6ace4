//! Whatever a relay sends, the client's session neither panics nor delivers events that it did not ask for, and the relay
//! rests once it exceeds its budget.
#![no_main]

use abide_core::Timestamp;
use abide_nostr::client::{Budget, Capability, ClientLimits, ClientSession, RelayMessage, Wish};
use abide_nostr::{EventId, Filter};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// Our items in each window.
fn items() -> Vec<(u64, EventId)> {
    (0..40_u8).map(|n| (u64::from(n / 3), EventId::from_byte_array([n; 32]))).collect()
}

/// Grants the wishes of the session; returns whether the relay rests.
fn grant(session: &mut ClientSession, wishes: Vec<Wish>, open: &mut String) -> bool {
    let mut wishes = VecDeque::from(wishes);
    let mut rests = false;
    while let Some(wish) = wishes.pop_front() {
        match wish {
            Wish::Send(frame) => {
                let frame: Vec<serde_json::Value> = serde_json::from_str(&frame).expect("an array");
                *open = frame[1].as_str().expect("a name").to_owned();
            }
            Wish::Event(event, _) => assert_eq!(event.kind.as_u16(), 1),
            Wish::NeedItems { request, .. } => wishes.extend(session.on_items(request, items(), NOW)),
            Wish::Rest(..) => rests = true,
            Wish::CaughtUp(_) | Wish::Unsubscribed(..) | Wish::Learned(_) | Wish::RoundEnded(_) => {}
        }
    }
    rests
}

// A message is sent as it is, and as the rest of a frame for the session's last request. An empty one is silence.
fuzz_target!(|messages: Vec<(u8, String)>| {
    let budget = Budget { events: 50, bytes: 1 << 16, lies: 20 };
    let limits = ClientLimits { budget, wanted: 50, ..ClientLimits::default() };
    let relay = limits.relay.clone();
    let mut session = ClientSession::new(limits, Capability::Unknown);
    let layer = Filter { kinds: Some([1].into()), ..Filter::default() };
    let mut open = String::new();
    let mut wishes = session.on_connected(NOW);
    wishes.extend(session.subscribe("news", vec![layer.clone()], None).expect("it is connected"));
    let mut rests = grant(&mut session, wishes, &mut open);
    for (kind, message) in &messages {
        if !session.has_round() {
            let wishes = session.start_round(layer.clone(), NOW).expect("there is no other");
            rests |= grant(&mut session, wishes, &mut open);
        }
        let name = ["EVENT", "EOSE", "CLOSED", "NEG-MSG", "NEG-ERR"].get(usize::from(kind % 6));
        let frame = match name {
            Some(name) => format!("[\"{name}\",\"{open}\",{message}]"),
            None => message.clone(),
        };
        let _ = RelayMessage::parse(&frame, &relay);
        let wishes = match session.deadline() {
            Some(deadline) if message.is_empty() => session.on_tick(deadline),
            _ => session.on_message(&frame, NOW),
        };
        assert!(!rests || wishes.is_empty(), "a resting relay is not listened to");
        rests |= grant(&mut session, wishes, &mut open);
        assert!(session.spent().lies <= 21 && session.spent().events <= 51);
    }
});
