//! A key has one spelling; pointers that are read can be read again from what they print.
#![no_main]

use abide_nostr::nip19::{AddressPointer, EventPointer, npub, parse_npub};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(key) = parse_npub(text) {
        assert_eq!(npub(&key), text);
    }
    if let Some(again) = EventPointer::decode(text).ok().and_then(|pointer| pointer.encode()) {
        assert!(EventPointer::decode(&again).is_ok());
    }
    if let Some(again) = AddressPointer::decode(text).ok().and_then(|pointer| pointer.encode()) {
        assert!(AddressPointer::decode(&again).is_ok());
    }
});
