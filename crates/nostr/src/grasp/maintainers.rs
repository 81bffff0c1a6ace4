//! Maintainers of a repository: the keys whose signature counts.

use crate::PublicKey;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// How a key becomes a maintainer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Keys listed by the owner, keys listed in those keys' own announcements of the same identifier, and so on.
    #[default]
    Recursive,
    /// As `Recursive`, but a listed key counts only once its own announcement of the same identifier lists a maintainer
    /// in turn: nobody becomes a maintainer without their own signature.
    Reciprocal,
}

/// The text names no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it must be recursive or reciprocal")]
pub struct UnknownModel;

impl FromStr for Model {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        match text {
            "recursive" => Ok(Self::Recursive),
            "reciprocal" => Ok(Self::Reciprocal),
            _ => Err(UnknownModel),
        }
    }
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
    let mut found = BTreeSet::from([owner]);
    let mut edge = vec![owner];
    for _ in 0..bounds.depth {
        let mut next = Vec::new();
        for key in edge.iter().filter_map(|key| listed.get(key)).flatten() {
            if found.len() >= bounds.size {
                return found;
            }
            let counts = model == Model::Recursive || lists_one_of(key, listed, &found);
            if counts && found.insert(*key) {
                next.push(*key);
            }
        }
        edge = match model {
            Model::Recursive => next,
            // A key may list a maintainer who is confirmed only in this step, so all lists are read again.
            Model::Reciprocal if next.is_empty() => break,
            Model::Reciprocal => found.iter().copied().collect(),
        };
    }
    found
}

/// Whether a key's own announcement lists one of these keys.
fn lists_one_of(key: &PublicKey, listed: &BTreeMap<PublicKey, Vec<PublicKey>>, keys: &BTreeSet<PublicKey>) -> bool {
    listed.get(key).is_some_and(|list| list.iter().any(|other| other != key && keys.contains(other)))
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
        set_by(Model::Recursive, owner, listed, bounds)
    }

    fn set_by(model: Model, owner: u8, listed: &[(u8, &[u8])], bounds: Bounds) -> Vec<u8> {
        let listed = listed.iter().map(|(n, list)| (key(*n), list.iter().map(|n| key(*n)).collect())).collect();
        maintainers(key(owner), &listed, model, bounds).iter().map(|key| key.as_bytes()[0]).collect()
    }

    #[test]
    fn a_listed_key_counts_in_the_reciprocal_model_once_it_lists_a_maintainer_back() {
        let set = |listed: &[(u8, &[u8])]| set_by(Model::Reciprocal, 1, listed, Bounds::default());
        assert_eq!(set(&[(1, &[2, 3])]), [1], "nobody else has announced anything");
        assert_eq!(set(&[(1, &[2, 3]), (2, &[1]), (3, &[])]), [1, 2]);
        assert_eq!(set(&[(1, &[2]), (2, &[2])]), [1], "listing oneself confirms nobody");
        assert_eq!(set(&[(1, &[2]), (2, &[1, 3]), (3, &[2])]), [1, 2, 3], "a maintainer who is no owner confirms too");
        assert_eq!(set(&[(1, &[2, 3]), (2, &[3]), (3, &[1])]), [1, 2, 3], "2 lists 3, whom 1 and 3 confirm");
        assert_eq!(set(&[(1, &[]), (2, &[1])]), [1], "nobody lists 2");
        assert_eq!("reciprocal".parse(), Ok(Model::Reciprocal));
        assert_eq!("both".parse::<Model>(), Err(UnknownModel));
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
        /// The least fixed point: every step adds the listed keys that list a member, until nothing changes.
        #[test]
        fn the_reciprocal_set_is_the_least_that_is_closed(
            listed in btree_map(0_u8..10, vec(0_u8..10, 0..4), 0..10),
            owner in 0_u8..10,
        ) {
            let mut members = BTreeSet::from([owner]);
            loop {
                let named: BTreeSet<u8> = members.iter().filter_map(|n| listed.get(n)).flatten().copied().collect();
                let confirms = |n: &u8| listed.get(n).is_some_and(|list| list.iter().any(|m| m != n && members.contains(m)));
                let next: BTreeSet<u8> = named.into_iter().filter(confirms).collect();
                if next.is_subset(&members) {
                    break;
                }
                members.extend(next);
            }
            let lists: Vec<(u8, &[u8])> = listed.iter().map(|(n, list)| (*n, list.as_slice())).collect();
            let unbounded = Bounds { depth: 100, size: 100 };
            let found = set_by(Model::Reciprocal, owner, &lists, unbounded);
            prop_assert_eq!(&found, &members.iter().copied().collect::<Vec<_>>());
            let recursive = set(owner, &lists, unbounded);
            prop_assert!(found.iter().all(|n| recursive.contains(n)), "never more than the recursive model has");
        }

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
