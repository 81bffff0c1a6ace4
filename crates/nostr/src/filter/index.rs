//! Finds the subscriptions that match an event without testing every filter.

use super::{Filter, TagLetter, event_tags};
use crate::{Event, EventId, PublicKey};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

/// Index key of a filter: one condition that every matching event fulfils.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Id(EventId),
    Tag(TagLetter, String),
    Author(PublicKey),
    Kind(u16),
    Anything,
}

/// Filters of all open subscriptions, each indexed under its most selective condition.
///
/// `K` identifies a subscription, usually a connection and its subscription id. The result equals testing every filter.
#[derive(Debug)]
pub struct SubscriptionIndex<K> {
    subscriptions: HashMap<K, Arc<[Filter]>>,
    filed: HashMap<Key, Vec<(K, usize)>>,
}

impl<K> Default for SubscriptionIndex<K> {
    fn default() -> Self {
        Self { subscriptions: HashMap::new(), filed: HashMap::new() }
    }
}

impl<K: Clone + Ord + Hash> SubscriptionIndex<K> {
    /// Adds a subscription, replacing one with the same name.
    pub fn insert(&mut self, name: K, filters: Arc<[Filter]>) {
        self.remove(&name);
        for (number, filter) in filters.iter().enumerate() {
            for key in keys(filter) {
                self.filed.entry(key).or_default().push((name.clone(), number));
            }
        }
        self.subscriptions.insert(name, filters);
    }

    /// Removes a subscription.
    pub fn remove(&mut self, name: &K) {
        let Some(filters) = self.subscriptions.remove(name) else { return };
        for key in filters.iter().flat_map(keys) {
            if let Some(entries) = self.filed.get_mut(&key) {
                entries.retain(|(other, _)| other != name);
                if entries.is_empty() {
                    self.filed.remove(&key);
                }
            }
        }
    }

    /// Subscriptions that match this event, each once.
    pub fn matching(&self, event: &Event) -> BTreeSet<K> {
        let mut found = BTreeSet::new();
        let mut look = |key: Key| {
            for (name, number) in self.filed.get(&key).into_iter().flatten() {
                let filter = self.subscriptions.get(name).and_then(|filters| filters.get(*number));
                if !found.contains(name) && filter.is_some_and(|filter| filter.matches(event)) {
                    found.insert(name.clone());
                }
            }
        };
        look(Key::Id(event.id));
        look(Key::Author(event.pubkey));
        look(Key::Kind(event.kind.as_u16()));
        look(Key::Anything);
        // Deduplicated, because an event may repeat a tag thousands of times.
        let tags: BTreeSet<_> = event_tags(event).collect();
        for (letter, value) in tags {
            look(Key::Tag(letter, value.to_owned()));
        }
        found
    }

    /// Number of subscriptions.
    pub fn len(&self) -> usize {
        self.subscriptions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty()
    }
}

/// Index keys of a filter: its ids, else the tag with the fewest values, else authors, else kinds.
fn keys(filter: &Filter) -> Vec<Key> {
    if filter.is_impossible() {
        return Vec::new();
    }
    if let Some(ids) = &filter.ids {
        return ids.iter().copied().map(Key::Id).collect();
    }
    if let Some((letter, wanted)) = filter.tags.iter().min_by_key(|(_, wanted)| wanted.len()) {
        return wanted.iter().map(|value| Key::Tag(*letter, value.clone())).collect();
    }
    if let Some(authors) = &filter.authors {
        return authors.iter().copied().map(Key::Author).collect();
    }
    if let Some(kinds) = &filter.kinds {
        return kinds.iter().copied().map(Key::Kind).collect();
    }
    vec![Key::Anything]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelayLimits;
    use crate::testing::{event, key};
    use proptest::collection::{btree_map, btree_set, vec};
    use proptest::option::of;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::Value;
    use std::sync::LazyLock;

    /// Few distinct values, so that filters match events often and every condition can also fail.
    const KINDS: [u16; 3] = [1, 1621, 30_617];
    const LETTERS: [&str; 3] = ["a", "e", "E"];
    const VALUES: [&str; 4] = ["x", "y", "z", ""];

    static EVENTS: LazyLock<Vec<Event>> = LazyLock::new(|| {
        let tags: [&[&[&str]]; 5] = [
            &[],
            &[&["a", "x"], &["a", "y"]],
            &[&["e", "z"], &["E", "x"], &["alt", "x"]],
            &[&["a", ""], &["e"]],
            &[&["a", "x"], &["e", "y"], &["a", "x"]],
        ];
        let mut events = Vec::new();
        for (number, tags) in tags.iter().enumerate() {
            for kind in KINDS {
                events.push(event(u8::try_from(number % 3).unwrap(), kind, i64::from(kind % 5), tags, ""));
            }
        }
        events
    });

    static WRITTEN: LazyLock<Vec<Value>> =
        LazyLock::new(|| EVENTS.iter().map(|event| serde_json::to_value(event).unwrap()).collect());

    fn filter() -> impl Strategy<Value = Filter> {
        let ids = of(btree_set(select(EVENTS.iter().map(|event| event.id).collect::<Vec<_>>()), 0..3));
        let authors = of(btree_set((0_u8..4).prop_map(key), 0..3));
        let kinds = of(btree_set(select(&KINDS[..]), 0..3));
        let letter = select(&LETTERS[..]).prop_map(|letter| TagLetter::new(letter).unwrap());
        let tags = btree_map(letter, btree_set(select(&VALUES[..]).prop_map(str::to_owned), 0..3), 0..3);
        let time = || of((1_799_999_998_u64..1_800_000_006).boxed());
        (of(ids), authors, kinds, tags, time(), time()).prop_map(|(ids, authors, kinds, tags, since, until)| Filter {
            ids: ids.flatten(),
            authors,
            kinds,
            tags,
            since,
            until,
            limit: 500,
        })
    }

    /// NIP-01 to the letter, on the JSON of both, without our types, sets or index.
    fn naive(filter: &Value, event: &Value) -> bool {
        filter.as_object().unwrap().iter().all(|(field, wanted)| match field.as_str() {
            "ids" => wanted.as_array().unwrap().contains(&event["id"]),
            "authors" => wanted.as_array().unwrap().contains(&event["pubkey"]),
            "kinds" => wanted.as_array().unwrap().contains(&event["kind"]),
            "since" => event["created_at"].as_u64() >= wanted.as_u64(),
            "until" => event["created_at"].as_u64() <= wanted.as_u64(),
            "limit" => true,
            tag => event["tags"].as_array().unwrap().iter().any(|entry| {
                entry[0] == tag[1..] && entry.get(1).is_some_and(|value| wanted.as_array().unwrap().contains(value))
            }),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn a_filter_matches_what_the_naive_reference_matches(filter in filter()) {
            let json = filter.to_json();
            for (event, written) in EVENTS.iter().zip(WRITTEN.iter()) {
                prop_assert_eq!(filter.matches(event), naive(&json, written), "{} {}", json, written);
            }
            if filter.is_impossible() {
                prop_assert!(!WRITTEN.iter().any(|event| naive(&json, event)));
            }
        }

        #[test]
        fn a_filter_reads_back_from_its_json(filter in filter()) {
            prop_assert_eq!(Filter::parse(&filter.to_json(), &RelayLimits::default()), Ok(filter));
        }

        /// Subscriptions are added, replaced and removed; at every step the index agrees with testing every filter.
        #[test]
        fn the_index_finds_whom_asking_everyone_finds(
            steps in vec((0_u8..6, of(vec(filter(), 0..4))), 1..20)
        ) {
            let mut index = SubscriptionIndex::default();
            let mut everyone: HashMap<u8, Vec<Value>> = HashMap::new();
            for (name, filters) in steps {
                match filters {
                    Some(filters) => {
                        everyone.insert(name, filters.iter().map(Filter::to_json).collect());
                        index.insert(name, filters.into());
                    }
                    None => {
                        index.remove(&name);
                        everyone.remove(&name);
                    }
                }
                prop_assert_eq!(index.len(), everyone.len());
                for (event, written) in EVENTS.iter().zip(WRITTEN.iter()) {
                    let asked = everyone.iter().filter(|(_, filters)| filters.iter().any(|f| naive(f, written)));
                    let asked: BTreeSet<u8> = asked.map(|(name, _)| *name).collect();
                    prop_assert_eq!(index.matching(event), asked);
                }
            }
            for name in 0..6 {
                index.remove(&name);
            }
            prop_assert!(index.filed.is_empty() && index.is_empty(), "nothing is left behind");
        }
    }

    #[test]
    fn the_events_of_the_tests_reach_both_answers() {
        let tag = TagLetter::new("a").unwrap();
        let filter = Filter { tags: [(tag, ["x".to_owned()].into())].into(), ..Filter::default() };
        let matched = EVENTS.iter().filter(|event| filter.matches(event)).count();
        assert!(matched > 0 && matched < EVENTS.len());
    }
}
