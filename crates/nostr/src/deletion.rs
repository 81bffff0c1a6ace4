//! Deletion requests (NIP-09): authors may delete their own events, but not deletions.

use crate::event::{self, Slot};
use crate::git::Coordinate;
use crate::{Event, EventId, hexadecimal, kinds};
use std::collections::BTreeSet;

/// Permitted targets of a kind 5 event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Id of the request.
    pub event: EventId,
    /// Author of the request; only events of the same author are deleted.
    pub author: crate::PublicKey,
    /// A coordinate covers versions up to this second.
    pub created_at: u64,
    /// Events named by id. Their authors are not known yet; [`Deletion::covers`] checks them.
    pub ids: BTreeSet<EventId>,
    /// Replaceable events named by coordinate, all by the author.
    pub coordinates: BTreeSet<Coordinate>,
}

impl Deletion {
    /// Parses a deletion request. Ignores other authors' coordinates and malformed references.
    pub fn parse(request: &Event) -> Option<Self> {
        if request.kind.as_u16() != kinds::DELETION {
            return None;
        }
        let ids = event::values(request, "e").filter_map(hexadecimal::decode).map(EventId::from_byte_array).collect();
        let own = |coordinate: &Coordinate| coordinate.author == request.pubkey;
        let coordinates = event::values(request, "a").filter_map(|text| text.parse().ok()).filter(own).collect();
        let created_at = request.created_at.as_secs();
        Some(Self { event: request.id, author: request.pubkey, created_at, ids, coordinates })
    }

    /// Whether there are no targets.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.coordinates.is_empty()
    }

    /// Whether this request deletes that event. The event needs the same author and must not be a deletion itself. The
    /// request names its id, or its coordinate if the event is not newer than the request.
    pub fn covers(&self, target: &Event) -> bool {
        if target.pubkey != self.author || target.kind.as_u16() == kinds::DELETION {
            return false;
        }
        let by_coordinate = || {
            target.created_at.as_secs() <= self.created_at
                && event::slot(target).is_some_and(|slot| self.coordinates.contains(&Coordinate::from(slot)))
        };
        self.ids.contains(&target.id) || by_coordinate()
    }
}

impl From<Slot> for Coordinate {
    fn from(slot: Slot) -> Self {
        Self { kind: slot.kind, author: slot.author, identifier: slot.identifier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, key};

    fn request(author: u8, at: i64, tags: &[&[&str]]) -> Deletion {
        Deletion::parse(&event(author, 5, at, tags, "")).unwrap()
    }

    #[test]
    fn an_id_deletes_only_the_authors_own_event() {
        let own = event(1, 1621, 0, &[], "");
        let foreign = event(2, 1621, 0, &[], "");
        let both = request(1, 0, &[&["e", &own.id.to_hex()], &["e", &foreign.id.to_hex()]]);
        assert!(both.covers(&own));
        assert!(!both.covers(&foreign));
        assert!(!both.covers(&event(1, 1621, 1, &[], "another")));
    }

    #[test]
    fn a_coordinate_deletes_versions_up_to_the_request() {
        let version = |at| event(1, 30_617, at, &[&["d", "repo"]], "");
        let request = request(1, 10, &[&["a", &format!("30617:{}:repo", key(1))]]);
        assert!(request.covers(&version(9)) && request.covers(&version(10)));
        assert!(!request.covers(&version(11)));
        assert!(!request.covers(&event(1, 30_617, 0, &[&["d", "other"]], "")));
        assert!(!request.covers(&event(1, 30_618, 0, &[&["d", "repo"]], "")));
    }

    #[test]
    fn a_coordinate_of_someone_else_deletes_nothing() {
        let request = request(1, 10, &[&["a", &format!("30617:{}:repo", key(2))]]);
        assert!(request.is_empty());
        assert!(!request.covers(&event(2, 30_617, 0, &[&["d", "repo"]], "")));
    }

    #[test]
    fn a_deletion_is_not_deleted() {
        let deletion = event(1, 5, 0, &[&["e", &"a".repeat(64)]], "");
        assert!(!request(1, 5, &[&["e", &deletion.id.to_hex()]]).covers(&deletion));
    }

    #[test]
    fn only_kind_5_and_only_well_formed_references_count() {
        assert_eq!(Deletion::parse(&event(1, 1, 0, &[&["e", &"a".repeat(64)]], "")), None);
        assert!(request(1, 0, &[&["e", "zz"], &["e"], &["a", "30617:zz:repo"], &["a", "x"], &["p", "y"]]).is_empty());
    }
}
