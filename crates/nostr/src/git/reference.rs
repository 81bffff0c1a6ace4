//! References of an event: coordinates in `a`, `A`, `q` and ids in `e`, `E`, `q`.

use crate::{Event, EventId, PublicKey, event, hexadecimal, kinds};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Coordinate of a replaceable event: `kind:author:identifier`. The identifier may contain colons.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coordinate {
    pub kind: u16,
    pub author: PublicKey,
    /// The `d` tag; empty for kinds without one.
    pub identifier: String,
}

impl Coordinate {
    /// Coordinate of a repository's announcement.
    pub fn repo(owner: PublicKey, identifier: &str) -> Self {
        Self { kind: kinds::ANNOUNCEMENT, author: owner, identifier: identifier.to_owned() }
    }

    /// Whether this is the coordinate of a repository.
    pub fn is_repo(&self) -> bool {
        self.kind == kinds::ANNOUNCEMENT && !self.identifier.is_empty()
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.kind, self.author, self.identifier)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a coordinate must be kind:author:identifier")]
pub struct InvalidCoordinate;

impl FromStr for Coordinate {
    type Err = InvalidCoordinate;

    /// Each coordinate has one spelling: digits without leading zeros, lower-case hexadecimal.
    fn from_str(text: &str) -> Result<Self, InvalidCoordinate> {
        let mut parts = text.splitn(3, ':');
        let (Some(kind), Some(author), Some(identifier)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(InvalidCoordinate);
        };
        let number: u16 = kind.parse().map_err(|_| InvalidCoordinate)?;
        let author = hexadecimal::decode(author).ok_or(InvalidCoordinate)?;
        if number.to_string() != kind {
            return Err(InvalidCoordinate);
        }
        let author = PublicKey::from_byte_array(author);
        Ok(Self { kind: number, author, identifier: identifier.to_owned() })
    }
}

/// All references of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// From `a`, `A` and `q`.
    pub coordinates: BTreeSet<Coordinate>,
    /// From `e`, `E` and `q`.
    pub ids: BTreeSet<EventId>,
}

impl References {
    /// Collects the references of an event. Ignores malformed ones.
    pub fn of(event: &Event) -> Self {
        let mut found = Self::default();
        for (name, values) in event::tags(event) {
            let Some(value) = values.first() else { continue };
            if matches!(name, "a" | "A" | "q") {
                found.coordinates.extend(value.parse::<Coordinate>().ok());
            }
            if matches!(name, "e" | "E" | "q") {
                found.ids.extend(hexadecimal::decode(value).map(EventId::from_byte_array));
            }
        }
        found
    }

    /// The repository coordinates among them.
    pub fn repos(&self) -> impl Iterator<Item = &Coordinate> {
        self.coordinates.iter().filter(|coordinate| coordinate.is_repo())
    }

    pub fn is_empty(&self) -> bool {
        self.coordinates.is_empty() && self.ids.is_empty()
    }
}

/// Repositories in the `a` tags of an event.
pub(super) fn repos(event: &Event) -> Vec<Coordinate> {
    let named: Vec<Coordinate> = event::values(event, "a").filter_map(|text| text.parse().ok()).collect();
    named.into_iter().filter(Coordinate::is_repo).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, key, sample};
    use proptest::prelude::*;

    #[test]
    fn identifiers_may_hold_colons() {
        let coordinate: Coordinate = format!("30617:{}:a:b", key(1)).parse().unwrap();
        assert_eq!((coordinate.author, coordinate.identifier.as_str()), (key(1), "a:b"));
        assert_eq!(coordinate, Coordinate::repo(key(1), "a:b"));
    }

    #[test]
    fn other_spellings_are_no_coordinates() {
        let key = key(1).to_hex();
        for bad in ["", "30617", "30617:x", "30617:zz:x", "a:b:c"] {
            assert_eq!(bad.parse::<Coordinate>(), Err(InvalidCoordinate), "{bad}");
        }
        for bad in [
            format!("030617:{key}:x"),
            format!("+1:{key}:x"),
            format!("70000:{key}:x"),
            format!("1:{}:x", key.to_uppercase()),
        ] {
            assert_eq!(bad.parse::<Coordinate>(), Err(InvalidCoordinate), "{bad}");
        }
    }

    #[test]
    fn each_tag_counts_for_what_it_may_name() {
        let id = "ab".repeat(32);
        let coordinate = Coordinate::repo(key(1), "x").to_string();
        let of = |tag: &str, value: &str| References::of(&event(2, 1111, 0, &[&[tag, value]], ""));
        for tag in ["a", "A", "q"] {
            assert_eq!(of(tag, &coordinate).repos().count(), 1, "{tag}");
        }
        for tag in ["e", "E", "q"] {
            assert_eq!(of(tag, &id).ids.len(), 1, "{tag}");
        }
        for (tag, value) in [("e", &coordinate), ("a", &id), ("p", &id), ("r", &coordinate), ("E", &"AB".repeat(32))] {
            assert!(of(tag, value).is_empty(), "{tag} {value}");
        }
    }

    #[test]
    fn a_published_clients_status_refers_to_repository_pr_event_and_update() {
        let found = References::of(&sample(1631));
        assert_eq!(found.repos().count(), 1);
        assert_eq!(found.ids, [sample(1618).id, sample(1619).id].into());
    }

    proptest! {
        #[test]
        fn what_is_read_prints_the_same(text in "[0-9]{1,6}:[0-9a-f]{64}:.{0,8}|.{0,20}") {
            if let Ok(coordinate) = text.parse::<Coordinate>() {
                prop_assert_eq!(coordinate.to_string(), text);
            }
        }
    }
}
