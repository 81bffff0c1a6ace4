//! Subscription filters.

mod index;
mod parse;

pub use index::SubscriptionIndex;
pub use parse::FilterError;

use crate::{Event, EventId, PublicKey, event};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of text that weigh as one value: the length of an id in hexadecimal.
const LONG: usize = 64;

/// A tag name that filters can use: one ASCII letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagLetter(u8);

impl TagLetter {
    /// The letter of a tag name, if it is one.
    pub fn new(name: &str) -> Option<Self> {
        match name.as_bytes() {
            [letter] if letter.is_ascii_alphabetic() => Some(Self(*letter)),
            _ => None,
        }
    }

    pub fn as_char(self) -> char {
        char::from(self.0)
    }
}

/// One filter of a REQ, COUNT or NEG-OPEN. Every present condition must match; an empty list matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub ids: Option<BTreeSet<EventId>>,
    pub authors: Option<BTreeSet<PublicKey>>,
    pub kinds: Option<BTreeSet<u16>>,
    /// For each letter, a tag of that name whose first value is one of these.
    pub tags: BTreeMap<TagLetter, BTreeSet<String>>,
    /// Earliest `created_at`, in seconds.
    pub since: Option<u64>,
    /// Latest `created_at`, in seconds.
    pub until: Option<u64>,
    /// Most stored events to return, newest first; at most the relay's own limit.
    pub limit: usize,
}

impl Filter {
    /// Whether the event matches. Ignores `limit`, which applies to stored events only.
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

    /// Weight of the filter in the connection's subscription budget: one per value and per list. Long texts count as
    /// several values, because a few can be as large as many.
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

    /// Whether no event can match: an empty list, or `since` after `until`.
    pub fn is_impossible(&self) -> bool {
        let empty = |list: Option<usize>| list == Some(0);
        empty(self.ids.as_ref().map(BTreeSet::len))
            || empty(self.authors.as_ref().map(BTreeSet::len))
            || empty(self.kinds.as_ref().map(BTreeSet::len))
            || self.tags.values().any(BTreeSet::is_empty)
            || self.since.zip(self.until).is_some_and(|(since, until)| since > until)
    }
}

/// Tags of an event that filters can match, with their first values.
pub fn event_tags(event: &Event) -> impl Iterator<Item = (TagLetter, &str)> {
    event::tags(event).filter_map(|(name, values)| Some((TagLetter::new(name)?, values.first()?.as_str())))
}
