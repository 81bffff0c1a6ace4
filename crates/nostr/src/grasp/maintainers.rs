//! Maintainers of a repository: the keys whose signature counts.

use crate::PublicKey;
use std::collections::{BTreeMap, BTreeSet};

/// How a key becomes a maintainer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Model {
    /// Keys listed by the owner, keys listed in those keys' own announcements of the same identifier, and so on.
    Recursive,
}

/// RelayLimits of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Steps from the owner.
    pub depth: usize,
    /// Maintainers, including the owner.
    pub size: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { depth: 8, size: 200 }
    }
}

/// Maintainers of `owner`'s repository, always including the owner.
///
/// `listed` maps the author of every announcement of this identifier, served or in purgatory, to the keys it lists. At
/// the limits, nearer keys come before farther ones and earlier list entries before later ones.
pub fn maintainers(
    owner: PublicKey,
    listed: &BTreeMap<PublicKey, Vec<PublicKey>>,
    model: Model,
    bounds: Bounds,
) -> BTreeSet<PublicKey> {
    let Model::Recursive = model;
    let mut found = BTreeSet::from([owner]);
    let mut edge = vec![owner];
    for _ in 0..bounds.depth {
        let mut next = Vec::new();
        for key in edge.iter().filter_map(|key| listed.get(key)).flatten() {
            if found.len() >= bounds.size {
                return found;
            }
            if found.insert(*key) {
                next.push(*key);
            }
        }
        edge = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    fn key(n: u8) -> PublicKey {
        PublicKey::from_byte_array([n; 32])
    }

    fn set(owner: u8, listed: &[(u8, &[u8])], bounds: Bounds) -> Vec<u8> {
        let listed = listed.iter().map(|(n, list)| (key(*n), list.iter().map(|n| key(*n)).collect())).collect();
        maintainers(key(owner), &listed, Model::Recursive, bounds).iter().map(|key| key.as_bytes()[0]).collect()
    }

    #[test]
    fn lists_are_followed_through_the_listed_ones_own_announcements() {
        let listed: &[(u8, &[u8])] = &[(1, &[2]), (2, &[3]), (3, &[4]), (7, &[1])];
        assert_eq!(set(1, listed, Bounds::default()), [1, 2, 3, 4]);
        assert_eq!(set(3, listed, Bounds::default()), [3, 4]);
        assert_eq!(set(9, listed, Bounds::default()), [9]);
    }

    #[test]
    fn naming_oneself_maintainer_of_anothers_repository_changes_nothing() {
        assert_eq!(set(1, &[(1, &[]), (2, &[1, 2])], Bounds::default()), [1]);
    }

    #[test]
    fn circles_end() {
        assert_eq!(set(1, &[(1, &[2]), (2, &[3, 1]), (3, &[1, 2, 3])], Bounds::default()), [1, 2, 3]);
    }

    #[test]
    fn depth_and_size_are_bounded_and_the_nearest_stay() {
        let chain: &[(u8, &[u8])] = &[(1, &[2, 9]), (2, &[3]), (3, &[4])];
        assert_eq!(set(1, chain, Bounds { depth: 1, size: 10 }), [1, 2, 9]);
        assert_eq!(set(1, chain, Bounds { depth: 0, size: 10 }), [1]);
        assert_eq!(set(1, chain, Bounds { depth: 9, size: 3 }), [1, 2, 9]);
        assert_eq!(set(1, chain, Bounds { depth: 9, size: 0 }), [1]);
    }

    proptest! {
        /// Reachability over the lists, computed naively: grow until nothing changes.
        #[test]
        fn the_set_is_what_can_be_reached(
            listed in btree_map(0_u8..12, vec(0_u8..12, 0..4), 0..12),
            owner in 0_u8..12,
        ) {
            let mut reached = BTreeSet::from([owner]);
            loop {
                let next: BTreeSet<u8> = reached.iter().filter_map(|n| listed.get(n)).flatten().copied().collect();
                if next.is_subset(&reached) {
                    break;
                }
                reached.extend(next);
            }
            let lists: Vec<(u8, &[u8])> = listed.iter().map(|(n, list)| (*n, list.as_slice())).collect();
            let unbounded = Bounds { depth: 100, size: 100 };
            prop_assert_eq!(set(owner, &lists, unbounded), reached.iter().copied().collect::<Vec<_>>());
            for size in 1..6 {
                let few = set(owner, &lists, Bounds { depth: 100, size });
                prop_assert!(few.len() == size.min(reached.len()) && few.contains(&owner));
            }
        }
    }
}
