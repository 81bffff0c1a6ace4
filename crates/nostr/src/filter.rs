//! Filters: what a subscription asks for.

mod index;
mod parse;

pub use index::SubscriptionIndex;
pub use parse::FilterError;

use crate::{Event, EventId, PublicKey, event};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a text that count as one value: an id in hexadecimal has so many.
const LONG: usize = 64;

/// A tag that filters can ask for: one letter of the English alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagLetter(u8);

impl TagLetter {
    /// The letter of a tag's name, if it is one.
    pub fn new(name: &str) -> Option<Self> {
        match name.as_bytes() {
            [letter] if letter.is_ascii_alphabetic() => Some(Self(*letter)),
            _ => None,
        }
    }

    /// The letter.
    pub fn as_char(self) -> char {
        char::from(self.0)
    }
}

/// One filter of a REQ, COUNT or NEG-OPEN. All conditions that are there must hold; an empty list holds for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The event is one of these.
    pub ids: Option<BTreeSet<EventId>>,
    /// The author is one of these.
    pub authors: Option<BTreeSet<PublicKey>>,
    /// The kind is one of these.
    pub kinds: Option<BTreeSet<u16>>,
    /// For each letter, a tag of that name has one of these as its first value.
    pub tags: BTreeMap<TagLetter, BTreeSet<String>>,
    /// Dated at or after, in seconds.
    pub since: Option<u64>,
    /// Dated at or before, in seconds.
    pub until: Option<u64>,
    /// At most so many stored events, the newest; within the relay's own bound.
    pub limit: usize,
}

impl Filter {
    /// Whether the event is asked for. `limit` concerns stored events only.
    pub fn matches(&self, event: &Event) -> bool {
        let at = event.created_at.as_secs();
        let holds = |list: &Option<_>, value| list.as_ref().is_none_or(|list: &BTreeSet<_>| list.contains(value));
        self.ids.as_ref().is_none_or(|ids| ids.contains(&event.id))
            && holds(&self.authors, &event.pubkey)
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind.as_u16()))
            && self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at <= until)
            && self.tags.iter().all(|(letter, wanted)| {
                event_tags(event).any(|(name, value)| name == *letter && wanted.contains(value))
            })
    }

    /// How much of a connection's room it takes while it is listened by: one for each value and each list, and long texts
    /// count as several, because a few can be as large as many.
    pub fn weight(&self) -> usize {
        let text = |value: &String| value.len().div_ceil(LONG).max(1);
        let lists = [
            self.ids.as_ref().map(BTreeSet::len),
            self.authors.as_ref().map(BTreeSet::len),
            self.kinds.as_ref().map(BTreeSet::len),
        ];
        let tags = self.tags.values().map(|wanted| 1 + wanted.iter().map(text).sum::<usize>());
        1 + lists.into_iter().flatten().sum::<usize>() + tags.sum::<usize>()
    }

    /// Whether no event can ever match: an empty list, or a time that ends before it begins.
    pub fn is_impossible(&self) -> bool {
        let empty = |list: Option<usize>| list == Some(0);
        empty(self.ids.as_ref().map(BTreeSet::len))
            || empty(self.authors.as_ref().map(BTreeSet::len))
            || empty(self.kinds.as_ref().map(BTreeSet::len))
            || self.tags.values().any(BTreeSet::is_empty)
            || self.since.zip(self.until).is_some_and(|(since, until)| since > until)
    }
}

/// The tags of an event that filters can ask for, with their first values.
pub fn event_tags(event: &Event) -> impl Iterator<Item = (TagLetter, &str)> {
    event::tags(event).filter_map(|(name, values)| Some((TagLetter::new(name)?, values.first()?.as_str())))
}
