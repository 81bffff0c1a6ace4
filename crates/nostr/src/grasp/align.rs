//! Ref changes that align a repository with a signed state.

use crate::git::{RepoState, is_state_ref};
use abide_core::{Oid, RefName, RefUpdate};
use std::collections::{BTreeMap, BTreeSet};

/// Changes that make a repository's branches, tags and HEAD equal to a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Refs to delete. With [`Plan::in_two_steps`], deletions run first.
    pub deletes: Vec<RefUpdate>,
    /// Refs to create or move.
    pub sets: Vec<RefUpdate>,
    /// New branch in HEAD, if it changes.
    pub head: Option<RefName>,
}

impl Plan {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.deletes.is_empty() && self.sets.is_empty() && self.head.is_none()
    }

    /// Whether a deleted ref is a directory prefix of a created one, or the reverse. git cannot do both in one
    /// transaction.
    pub fn in_two_steps(&self) -> bool {
        let gone: BTreeSet<&str> = self.deletes.iter().map(|update| update.name.as_str()).collect();
        let come: BTreeSet<&str> = self.sets.iter().map(|update| update.name.as_str()).collect();
        let below = |names: &BTreeSet<&str>, others: &BTreeSet<&str>| {
            names.iter().any(|name| name.match_indices('/').any(|(at, _)| others.contains(&name[..at])))
        };
        below(&gone, &come) || below(&come, &gone)
    }
}

/// The state names an object that is not SHA-1, which repositories here cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is a SHA-256 object; only SHA-1 repositories are supported")]
pub struct OtherHash(pub RefName);

/// The branch that HEAD names where nobody says which: `main`, `master`, or the first by name.
pub fn usual_head<'a>(names: impl IntoIterator<Item = &'a RefName>) -> Option<RefName> {
    let rank = |name: &RefName| match name.as_str() {
        "refs/heads/main" => 0,
        "refs/heads/master" => 1,
        _ => 2,
    };
    let branches = names.into_iter().filter(|name| name.as_branch().is_some());
    branches.min_by_key(|name| (rank(name), name.as_str())).cloned()
}

/// Plans the alignment. Refs outside `refs/heads/` and `refs/tags/` are left as they are, and so is HEAD if the state
/// says nothing of it and has the branch that HEAD names. Without that branch a clone would have nothing to check out, so
/// HEAD names the usual branch of those that are left.
pub fn plan(refs: &BTreeMap<RefName, Oid>, head: Option<&RefName>, state: &RepoState) -> Result<Plan, OtherHash> {
    let mut sets = Vec::new();
    for (name, id) in &state.refs {
        let new = id.sha1().ok_or_else(|| OtherHash(name.clone()))?;
        let old = refs.get(name).copied().unwrap_or(Oid::ZERO);
        if old != new {
            sets.push(RefUpdate { name: name.clone(), old, new });
        }
    }
    let goes = |name: &RefName| is_state_ref(name.as_str()) && !state.refs.contains_key(name);
    let deletes = refs.iter().filter(|(name, _)| goes(name));
    let deletes = deletes.map(|(name, old)| RefUpdate { name: name.clone(), old: *old, new: Oid::ZERO }).collect();
    let wanted = match (&state.head, head) {
        (Some(named), _) => Some(named.clone()),
        (None, Some(now)) if !state.refs.contains_key(now) => usual_head(state.refs.keys()),
        (None, _) => None,
    };
    let head = wanted.filter(|named| Some(named) != head);
    Ok(Plan { deletes, sets, head })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelayLimits;
    use crate::testing::event;
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    fn oid(n: u8) -> Oid {
        Oid::from_bytes([n; 20])
    }

    fn state(refs: &BTreeMap<RefName, Oid>, head: Option<&str>) -> RepoState {
        let mut tags: Vec<Vec<String>> = vec![vec!["d".into(), "x".into()]];
        tags.extend(refs.iter().map(|(name, oid)| vec![name.to_string(), oid.to_string()]));
        tags.extend(head.map(|head| vec!["HEAD".into(), format!("ref: {head}")]));
        let tags: Vec<Vec<&str>> = tags.iter().map(|tag| tag.iter().map(String::as_str).collect()).collect();
        let tags: Vec<&[&str]> = tags.iter().map(Vec::as_slice).collect();
        RepoState::parse(&event(1, 30_618, 0, &tags, ""), &RelayLimits::default()).unwrap()
    }

    fn refs(list: &[(&str, u8)]) -> BTreeMap<RefName, Oid> {
        list.iter().map(|(name, n)| (name.parse().unwrap(), oid(*n))).collect()
    }

    #[test]
    fn heads_and_tags_follow_the_state_and_other_refs_stay() {
        let now = refs(&[("refs/heads/main", 1), ("refs/heads/old", 2), ("refs/tags/v1", 3), ("refs/nostr/x", 4)]);
        let plan = plan(&now, None, &state(&refs(&[("refs/heads/main", 5), ("refs/heads/new", 2)]), None)).unwrap();
        let shown =
            |updates: &[RefUpdate]| updates.iter().map(|u| (u.name.to_string(), u.old, u.new)).collect::<Vec<_>>();
        let zero = Oid::ZERO;
        assert_eq!(
            shown(&plan.deletes),
            [("refs/heads/old".into(), oid(2), zero), ("refs/tags/v1".into(), oid(3), zero)]
        );
        assert_eq!(
            shown(&plan.sets),
            [("refs/heads/main".into(), oid(1), oid(5)), ("refs/heads/new".into(), zero, oid(2))]
        );
        assert!(!plan.in_two_steps());
    }

    #[test]
    fn head_changes_only_to_what_the_state_names() {
        let same = refs(&[("refs/heads/main", 1)]);
        let main: RefName = "refs/heads/main".parse().unwrap();
        let head = |now: Option<&RefName>, named| plan(&same, now, &state(&same, named)).unwrap().head;
        assert_eq!(head(None, Some("refs/heads/main")), Some(main.clone()));
        assert_eq!(head(Some(&main), Some("refs/heads/main")), None);
        assert_eq!(head(Some(&main), None), None);
        assert!(plan(&same, Some(&main), &state(&same, None)).unwrap().is_empty());
    }

    #[test]
    fn head_does_not_stay_at_a_branch_that_the_state_drops() {
        let now = refs(&[("refs/heads/main", 1), ("refs/heads/dev", 2)]);
        let main: RefName = "refs/heads/main".parse().unwrap();
        let head = |left: &[(&str, u8)], named| plan(&now, Some(&main), &state(&refs(left), named)).unwrap().head;
        let name = |text: &str| Some(text.parse::<RefName>().unwrap());
        assert_eq!(head(&[("refs/heads/dev", 2)], None), name("refs/heads/dev"));
        let both = [("refs/heads/a", 1), ("refs/heads/master", 2)];
        assert_eq!(head(&both, None), name("refs/heads/master"));
        assert_eq!(head(&both, Some("refs/heads/a")), name("refs/heads/a"), "the state says which");
        assert_eq!(head(&both, Some("refs/heads/main")), None, "also if it has no such branch");
        assert_eq!(head(&[("refs/heads/main", 3), ("refs/heads/a", 1)], None), None, "it is there");
        assert_eq!(head(&[("refs/tags/v1", 1)], None), None, "there is no branch");
        let after = refs(&[("refs/heads/dev", 2)]);
        let dev: RefName = "refs/heads/dev".parse().unwrap();
        assert!(plan(&after, Some(&dev), &state(&after, None)).unwrap().is_empty(), "and it stays there");
    }

    #[test]
    fn directories_in_the_way_need_two_steps() {
        let steps = |now: &str, then: &str| {
            plan(&refs(&[(now, 1)]), None, &state(&refs(&[(then, 1)]), None)).unwrap().in_two_steps()
        };
        assert!(steps("refs/heads/a", "refs/heads/a/b"));
        assert!(steps("refs/heads/a/b", "refs/heads/a"));
        assert!(!steps("refs/heads/ab", "refs/heads/a"));
        assert!(!steps("refs/heads/a/b", "refs/heads/a/c"));
    }

    #[test]
    fn an_object_of_the_other_hash_cannot_be_aligned() {
        let tags: [&[&str]; 2] = [&["d", "x"], &["refs/heads/main", &"a".repeat(64)]];
        let state = RepoState::parse(&event(1, 30_618, 0, &tags, ""), &RelayLimits::default()).unwrap();
        assert_eq!(plan(&refs(&[]), None, &state), Err(OtherHash("refs/heads/main".parse().unwrap())));
    }

    fn any_refs(least: usize) -> impl Strategy<Value = BTreeMap<RefName, Oid>> {
        let name = (prop::sample::select(vec!["refs/heads/", "refs/tags/", "refs/notes/"]), "[a-d]")
            .prop_map(|(space, short)| format!("{space}{short}").parse::<RefName>().unwrap());
        btree_map(name, (1_u8..4).prop_map(oid), least..8)
    }

    proptest! {
        /// Applying the plan yields the state's branches and tags, and leaves every other ref unchanged.
        #[test]
        fn carrying_out_the_plan_gives_the_state(now in any_refs(0), wanted in any_refs(0)) {
            let wanted: BTreeMap<_, _> = wanted.into_iter().filter(|(name, _)| is_state_ref(name.as_str())).collect();
            prop_assume!(!wanted.is_empty());
            let state = state(&wanted, None);
            let plan = plan(&now, None, &state).unwrap();
            let mut after = now.clone();
            for update in plan.deletes.iter().chain(&plan.sets) {
                prop_assert_eq!(after.get(&update.name).copied().unwrap_or(Oid::ZERO), update.old);
                prop_assert_ne!(update.old, update.new, "no command without a change");
                if update.is_delete() {
                    after.remove(&update.name);
                } else {
                    after.insert(update.name.clone(), update.new);
                }
            }
            type Refs = BTreeMap<RefName, Oid>;
            let is_ours = |(name, _): &(RefName, Oid)| is_state_ref(name.as_str());
            let split = |refs: Refs| -> (Refs, Refs) { refs.into_iter().partition(is_ours) };
            prop_assert_eq!(split(after.clone()), (wanted, split(now).1));
            prop_assert!(super::plan(&after, None, &state).unwrap().is_empty(), "doing it twice changes nothing");
        }
    }
}
