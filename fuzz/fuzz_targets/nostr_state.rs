//! Whatever the tags of a state, what is taken could be a repository's refs: no name is a directory of another.
#![no_main]

use abide_nostr::git::RepoState;
use abide_nostr::{Event, EventId, PublicKey, RelayLimits, Signature};
use libfuzzer_sys::fuzz_target;
use nostr::event::{Kind, Tag};
use nostr::types::Timestamp;

fuzz_target!(|tags: Vec<Vec<String>>| {
    let tags = tags.into_iter().filter_map(|tag| Tag::parse(tag).ok());
    let tags = tags.chain([Tag::parse(["d", "x"]).expect("a tag")]);
    let (id, author, sig) =
        (EventId::from_byte_array([1; 32]), PublicKey::from_byte_array([2; 32]), Signature::from_byte_array([3; 64]));
    let event = Event::new(id, author, Timestamp::from_secs(0), Kind::from_u16(30_618), tags, "", sig);
    let Ok(state) = RepoState::parse(&event, &RelayLimits::default()) else { return };
    assert!(!state.refs.is_empty());
    assert!(state.head.is_none_or(|head| head.as_branch().is_some()));
    for name in state.refs.keys() {
        assert!(name.as_branch().or(name.as_tag()).is_some());
        let below = format!("{name}/");
        assert!(!state.refs.keys().any(|other| other.as_str().starts_with(&below)));
    }
});
