//! A filter reads back from its own JSON, and the index finds what the filter itself matches.
#![no_main]

use abide_nostr::{Event, Filter, RelayLimits, SubscriptionIndex, parse_event};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static EVENTS: LazyLock<Vec<Event>> = LazyLock::new(|| {
    let all: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(include_str!("../../crates/nostr/tests/data/ngit-events.json")).expect("samples");
    all.values().map(|event| parse_event(&event.to_string(), &RelayLimits::default()).expect("a sample")).collect()
});

fuzz_target!(|text: &str| {
    let Ok(value) = serde_json::from_str(text) else { return };
    let Ok(filter) = Filter::parse(&value, &RelayLimits::default()) else { return };
    assert_eq!(Filter::parse(&filter.to_json(), &RelayLimits::default()).as_ref(), Ok(&filter));
    let mut index = SubscriptionIndex::default();
    index.insert((), vec![filter.clone()].into());
    for event in EVENTS.iter() {
        assert_eq!(!index.matching(event).is_empty(), filter.matches(event));
        assert!(!(filter.is_impossible() && filter.matches(event)));
    }
});
