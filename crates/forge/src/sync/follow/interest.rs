//! The events that a relay is asked for, as few filters as its limits allow.

use crate::relay::reading;
use crate::{Fault, Forge, circle};
use abide_core::Timestamp;
use abide_nostr::filter::TagLetter;
use abide_nostr::git::Coordinate;
use abide_nostr::{Filter, PublicKey, kinds};
use abide_store::sync::relays::{self, Relay};
use std::collections::{BTreeMap, BTreeSet};

/// Values of one filter. A message of six filters stays below 128 KiB, which is the limit of many relays.
const VALUES: usize = 200;

/// Stored events that a live subscription begins with, for each filter.
const STORED: usize = 500;

/// Repositories, waiting announcements and roots that are asked about at one relay.
const REPOS: i64 = 2_000;
const WAITING: i64 = 200;
const ROOTS: usize = 4_000;

/// Live subscriptions for each kind of value. Rounds cover the rest.
const LIVE: usize = 5;

/// Filters for the states of waiting announcements.
const ASKED: usize = 10;

/// Name of the live subscription for the states of waiting announcements.
pub(super) const STATES: &str = "states";

/// Everything that is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interest {
    /// Identifiers of served repositories.
    pub identifiers: BTreeSet<String>,
    /// Coordinates of served repositories.
    pub coordinates: BTreeSet<String>,
    /// Ids of their issues, patches and pull requests.
    pub roots: BTreeSet<String>,
    /// Waiting announcements: authors of their states, by coordinate.
    pub waiting: BTreeMap<relays::Coordinate, BTreeSet<PublicKey>>,
}

/// A live subscription.
pub(super) struct Subscription {
    pub name: String,
    pub filters: Vec<Filter>,
}

impl Interest {
    /// Reads what a relay is asked for now, and the time at which more waiting announcements are asked about.
    pub(super) async fn load(forge: &Forge, relay: &Relay) -> Result<(Self, Option<Timestamp>), Fault> {
        let now = forge.clock().now();
        let mut conn = forge.store().read().await?;
        let served = relays::served(&mut conn, relay, REPOS).await?;
        let waiting = relays::waiting(&mut conn, &relay.url, WAITING).await?;
        drop(conn);
        let mut interest = Self::default();
        for (pubkey, identifier) in served {
            let author = PublicKey::from_byte_array(pubkey);
            let coordinate = Coordinate { kind: kinds::ANNOUNCEMENT, author, identifier: identifier.clone() };
            interest.coordinates.insert(coordinate.to_string());
            interest.identifiers.insert(identifier);
        }
        let mut next = None;
        for announcement in waiting {
            // While a connection is open anyway, the subscription stays.
            if announcement.from_at > now && (announcement.asked == 0 || interest.coordinates.is_empty()) {
                next = next.or(Some(announcement.from_at));
                continue;
            }
            let Some(parsed) = circle::announcement(&forge.settings().grasp, &announcement.json) else { continue };
            let authors = parsed.maintainers.into_iter().chain([parsed.owner]).collect();
            interest.waiting.insert((announcement.pubkey, announcement.identifier), authors);
        }
        Ok((interest, next))
    }

    /// Reads the newest roots.
    pub(super) async fn load_roots(&mut self, forge: &Forge) -> Result<(), Fault> {
        self.roots.clear();
        for part in chunks(&self.coordinates) {
            let limit = ROOTS - self.roots.len();
            let kinds = Some([kinds::PATCH, kinds::PULL_REQUEST, kinds::ISSUE].into());
            let filter = Filter { kinds, limit, ..tagged('a', part) };
            let found = reading::ours(forge, &filter).await?;
            self.roots.extend(found.into_iter().map(|(_, id)| id.to_hex()));
        }
        Ok(())
    }

    pub(super) fn serves_nothing(&self) -> bool {
        self.coordinates.is_empty()
    }

    /// The values that another interest lacks.
    pub(super) fn beyond(&self, other: &Self) -> Self {
        let rest = |all: &BTreeSet<String>, known: &BTreeSet<String>| all.difference(known).cloned().collect();
        Self {
            identifiers: rest(&self.identifiers, &other.identifiers),
            coordinates: rest(&self.coordinates, &other.coordinates),
            roots: rest(&self.roots, &other.roots),
            waiting: BTreeMap::new(),
        }
    }

    /// Filters of rounds, one after another: announcements and states, events that name repositories, events that name their
    /// roots.
    pub(super) fn rounds(&self) -> Vec<Filter> {
        let announced = chunks(&self.identifiers).map(announcements);
        let naming =
            chunks(&self.coordinates).flat_map(|part| ['a', 'A', 'q'].map(|letter| tagged(letter, part.clone())));
        let below = chunks(&self.roots).flat_map(|part| ['e', 'E'].map(|letter| tagged(letter, part.clone())));
        announced.chain(naming).chain(below).collect()
    }

    /// Live subscriptions. New events of any date are sent, and stored ones since a second. Announcements and states are sent
    /// whatever their date: they show what the relay holds.
    pub(super) fn live(&self, since: u64) -> Vec<Subscription> {
        let resumed = |filters: Vec<Filter>| -> Vec<Filter> {
            let later =
                filters.clone().into_iter().map(|filter| Filter { since: Some(since), limit: STORED, ..filter });
            filters.into_iter().map(|filter| Filter { limit: 1, ..filter }).chain(later).collect()
        };
        let mut live = Vec::new();
        for (n, part) in chunks(&self.identifiers).take(LIVE).enumerate() {
            live.push(Subscription { name: format!("repositories-{n}"), filters: vec![announcements(part)] });
        }
        for (n, part) in chunks(&self.coordinates).take(LIVE).enumerate() {
            let filters = resumed(['a', 'A', 'q'].map(|letter| tagged(letter, part.clone())).into());
            live.push(Subscription { name: format!("events-{n}"), filters });
        }
        for (n, part) in chunks(&self.roots).take(LIVE).enumerate() {
            let filters = resumed(['e', 'E'].map(|letter| tagged(letter, part.clone())).into());
            live.push(Subscription { name: format!("threads-{n}"), filters });
        }
        if !self.waiting.is_empty() {
            live.push(Subscription { name: STATES.into(), filters: self.states() });
        }
        live
    }

    /// The waiting announcements that the live subscription asks about.
    pub(super) fn asked(&self) -> impl Iterator<Item = &relays::Coordinate> {
        self.waiting.keys().take(ASKED)
    }

    /// Filters for the states of waiting announcements.
    fn states(&self) -> Vec<Filter> {
        let state = |((_, identifier), authors): (&relays::Coordinate, &BTreeSet<PublicKey>)| Filter {
            kinds: Some([kinds::STATE].into()),
            authors: Some(authors.iter().take(VALUES).copied().collect()),
            limit: STORED,
            ..tagged('d', [identifier.clone()].into())
        };
        self.waiting.iter().take(ASKED).map(state).collect()
    }
}

fn announcements(identifiers: BTreeSet<String>) -> Filter {
    Filter { kinds: Some([kinds::ANNOUNCEMENT, kinds::STATE].into()), limit: STORED, ..tagged('d', identifiers) }
}

fn tagged(letter: char, values: BTreeSet<String>) -> Filter {
    let mut name = [0; 4];
    let letter = TagLetter::new(letter.encode_utf8(&mut name)).expect("it is an ASCII letter");
    Filter { tags: [(letter, values)].into(), limit: STORED, ..Filter::default() }
}

/// Parts of a set that fit into a filter. A long value counts as several.
fn chunks(values: &BTreeSet<String>) -> impl Iterator<Item = BTreeSet<String>> {
    let (mut parts, mut weight): (Vec<BTreeSet<String>>, usize) = (Vec::new(), VALUES);
    for value in values {
        let more = value.len().div_ceil(128).max(1);
        if weight + more > VALUES {
            parts.push(BTreeSet::new());
            weight = 0;
        }
        weight += more;
        if let Some(part) = parts.last_mut() {
            part.insert(value.clone());
        }
    }
    parts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered(count: usize) -> BTreeSet<String> {
        (0..count).map(|n| format!("{n:04}")).collect()
    }

    fn interest(identifiers: usize, coordinates: usize, roots: usize) -> Interest {
        Interest {
            identifiers: numbered(identifiers),
            coordinates: numbered(coordinates),
            roots: numbered(roots),
            waiting: BTreeMap::new(),
        }
    }

    #[test]
    fn many_repositories_share_filters() {
        assert_eq!(interest(0, 0, 0).rounds().len(), 0);
        assert_eq!(interest(200, 200, 200).rounds().len(), 1 + 3 + 2);
        assert_eq!(interest(201, 0, 0).rounds().len(), 2);
        let live = interest(200, 200, 200).live(7);
        assert_eq!(live.iter().map(|one| one.filters.len()).collect::<Vec<_>>(), [1, 6, 4]);
        assert_eq!(live[0].filters[0].since, None, "announcements and states of any date");
        let since: Vec<_> = live[1].filters.iter().map(|filter| filter.since).collect();
        assert_eq!(since, [None, None, None, Some(7), Some(7), Some(7)]);
    }

    #[test]
    fn live_subscriptions_are_bounded_and_rounds_cover_everything() {
        let large = interest(3_000, 3_000, 3_000);
        assert!(large.live(0).len() < abide_nostr::client::ClientLimits::default().subscriptions);
        assert_eq!(large.rounds().len(), 15 * (1 + 3 + 2));
        assert_eq!(large.beyond(&interest(2_999, 3_000, 3_000)).rounds().len(), 1, "only the new identifier");
        assert_eq!(large.beyond(&large), Interest::default());
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_part_and_long_ones_take_more_room(lengths in prop::collection::vec(1_usize..1_024, 0..600)) {
            let values: BTreeSet<String> =
                lengths.iter().enumerate().map(|(n, length)| format!("{n:04}{}", "x".repeat(*length))).collect();
            let parts: Vec<_> = chunks(&values).collect();
            prop_assert_eq!(parts.iter().map(BTreeSet::len).sum::<usize>(), values.len());
            prop_assert_eq!(parts.iter().flatten().cloned().collect::<BTreeSet<_>>(), values);
            for part in parts {
                prop_assert!(!part.is_empty());
                prop_assert!(part.iter().map(String::len).sum::<usize>() <= VALUES * 128);
            }
        }
    }
}
