//! Whatever a client sends, the session answers or acts, and stays within its limits.
#![no_main]

use abide_core::Timestamp;
use abide_nostr::git::Service;
use abide_nostr::{Action, RelayLimits, Session};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fuzz_target!(|messages: Vec<String>| {
    let limits = RelayLimits { subscriptions: 3, filters: 4, ..RelayLimits::default() };
    let service = Service::parse("https://git.example.org").expect("an address");
    let mut session = Session::new(Arc::new(limits), service, "challenge".to_owned());
    for message in &messages {
        for action in session.on_message(message, Timestamp::from_micros(1_800_000_000_000_000)) {
            match action {
                Action::Send(frame) => assert!(serde_json::from_str::<Vec<serde_json::Value>>(&frame).is_ok()),
                Action::Admit(event) => assert!(event.verify_id()),
                Action::Subscribe(_, filters) => assert!((1..=4).contains(&filters.len())),
                _ => {}
            }
        }
        assert!(session.subscriptions() <= 3);
    }
});
