//! Ref updates of a push, judged before any object is read.

use crate::{Oid, RefName};
use std::collections::HashSet;

/// One command of a push: move `name` from `old` to `new`. A zero id means "does not exist".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefUpdate {
    pub name: RefName,
    /// Value that the client saw.
    pub old: Oid,
    pub new: Oid,
}

impl RefUpdate {
    /// Whether the ref is deleted.
    pub fn is_delete(&self) -> bool {
        self.new.is_zero()
    }

    /// Whether the ref is created.
    pub fn is_create(&self) -> bool {
        self.old.is_zero() && !self.new.is_zero()
    }
}

/// Refusal of one ref. The text is what `git push` prints after `! [remote rejected]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefRefusal {
    /// Only the server writes this namespace.
    #[error("this ref namespace is reserved for the server; push to refs/heads/ or refs/tags/")]
    ReservedNamespace,
    /// Deleting the default branch.
    #[error("this is the default branch; set another default branch in the settings before deleting it")]
    DefaultBranch,
    /// The push names the ref twice.
    #[error("listed more than once in this push")]
    Repeated,
    /// The ref is not at the client's old value.
    #[error("the ref was updated by someone else; fetch and try again")]
    Moved,
    /// `a` and `a/b` cannot both be refs.
    #[error("the name conflicts with another ref (a and a/b cannot both exist); delete or rename that ref")]
    NameInTheWay,
}

/// Current refs of the repository, as the judgement needs them.
pub trait CurrentRefs {
    /// Current value of the ref.
    fn get(&self, name: &str) -> Option<Oid>;
    /// Whether any ref name is below this one.
    fn any_below(&self, name: &str) -> bool;
}

/// Namespaces that only the server writes.
const RESERVED: &[&str] = &["refs/abide/", "refs/nostr/", "refs/pull/", "refs/replace/", "refs/keep/"];

/// Action for an accepted ref of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefAction {
    Move,
    /// It was to be deleted and is gone already, or never was: nothing is left to do, which git calls a success with a warning.
    AlreadyGone,
}

/// Judges each update of a push to an account-governed repository; one verdict per update, in order.
pub fn judge(
    updates: &[RefUpdate],
    default_branch: &RefName,
    refs: &impl CurrentRefs,
) -> Vec<Result<RefAction, RefRefusal>> {
    let mut seen = HashSet::new();
    let created: HashSet<&str> =
        updates.iter().filter(|update| update.is_create()).map(|update| update.name.as_str()).collect();
    updates
        .iter()
        .map(|update| {
            let name = update.name.as_str();
            if !seen.insert(&update.name) {
                Err(RefRefusal::Repeated)
            } else if RESERVED.iter().any(|prefix| name.starts_with(prefix)) {
                Err(RefRefusal::ReservedNamespace)
            } else if update.is_delete() && refs.get(name).is_none() {
                Ok(RefAction::AlreadyGone)
            } else if update.is_delete() && update.name == *default_branch {
                Err(RefRefusal::DefaultBranch)
            } else if refs.get(name).unwrap_or(Oid::ZERO) != update.old {
                Err(RefRefusal::Moved)
            } else if update.is_create()
                && (refs.any_below(name) || ancestors(name).any(|dir| refs.get(dir).is_some() || created.contains(dir)))
            {
                Err(RefRefusal::NameInTheWay)
            } else {
                Ok(RefAction::Move)
            }
        })
        .collect()
}

/// New default branch after a push, if the current default does not exist and the push creates other branches: `main`,
/// `master`, or the first by name.
pub fn first_default(default_branch: &RefName, updates: &[RefUpdate]) -> Option<RefName> {
    let mut pushed: Vec<&RefName> =
        updates.iter().filter(|update| update.is_create()).map(|update| &update.name).collect();
    pushed.retain(|name| name.as_branch().is_some());
    if pushed.contains(&default_branch) {
        return None;
    }
    let usual = ["refs/heads/main", "refs/heads/master"];
    let usual = usual.iter().find_map(|usual| pushed.iter().find(|name| name.as_str() == *usual));
    usual.or(pushed.iter().min_by_key(|name| name.as_str())).map(|name| (*name).clone())
}

/// Parents of a ref name: `refs/heads/a/b` → `refs/heads/a`, `refs/heads`, `refs`.
fn ancestors(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('/').map(|(end, _)| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const MOVES: Result<RefAction, RefRefusal> = Ok(RefAction::Move);
    const A: Oid = Oid::from_bytes([1; 20]);
    const B: Oid = Oid::from_bytes([2; 20]);

    impl CurrentRefs for BTreeMap<&str, Oid> {
        fn get(&self, name: &str) -> Option<Oid> {
            BTreeMap::get(self, name).copied()
        }

        fn any_below(&self, name: &str) -> bool {
            self.keys().any(|key| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
        }
    }

    fn update(name: &str, old: Oid, new: Oid) -> RefUpdate {
        RefUpdate { name: name.parse().unwrap(), old, new }
    }

    fn verdicts(refs: &[(&'static str, Oid)], updates: &[RefUpdate]) -> Vec<Result<RefAction, RefRefusal>> {
        judge(updates, &"refs/heads/main".parse().unwrap(), &refs.iter().copied().collect::<BTreeMap<_, _>>())
    }

    fn one(refs: &[(&'static str, Oid)], name: &str, old: Oid, new: Oid) -> Result<RefAction, RefRefusal> {
        verdicts(refs, &[update(name, old, new)])[0]
    }

    #[test]
    fn branches_tags_and_notes_pass() {
        for name in ["refs/heads/main", "refs/tags/v1", "refs/notes/commits", "refs/heads/refs/pull/1"] {
            assert_eq!(one(&[], name, Oid::ZERO, A), MOVES, "{name}");
        }
    }

    #[test]
    fn the_servers_namespaces_are_refused() {
        for prefix in RESERVED {
            assert_eq!(one(&[], &format!("{prefix}x"), Oid::ZERO, A), Err(RefRefusal::ReservedNamespace));
        }
    }

    #[test]
    fn the_default_branch_can_move_but_not_go() {
        let refs = [("refs/heads/main", A), ("refs/heads/other", A)];
        assert_eq!(one(&refs, "refs/heads/main", A, Oid::ZERO), Err(RefRefusal::DefaultBranch));
        assert_eq!(one(&refs, "refs/heads/main", A, B), MOVES);
        assert_eq!(one(&refs, "refs/heads/other", A, Oid::ZERO), MOVES);
    }

    #[test]
    fn a_ref_named_twice_is_refused_the_second_time() {
        let twice = [update("refs/heads/x", Oid::ZERO, A), update("refs/heads/x", Oid::ZERO, B)];
        assert_eq!(verdicts(&[], &twice), [MOVES, Err(RefRefusal::Repeated)]);
    }

    #[test]
    fn a_ref_that_is_not_where_the_client_saw_it_is_refused() {
        let refs = [("refs/heads/x", A)];
        for (name, old, new) in [
            ("refs/heads/x", Oid::ZERO, B),
            ("refs/heads/x", B, A),
            ("refs/heads/x", B, Oid::ZERO),
            ("refs/heads/gone", A, B),
        ] {
            assert_eq!(one(&refs, name, old, new), Err(RefRefusal::Moved), "{name}");
        }
    }

    #[test]
    fn a_ref_cannot_be_a_directory_of_another() {
        let refs = [("refs/heads/a", A), ("refs/heads/d/e", A)];
        assert_eq!(one(&refs, "refs/heads/a/b", Oid::ZERO, B), Err(RefRefusal::NameInTheWay));
        assert_eq!(one(&refs, "refs/heads/d", Oid::ZERO, B), Err(RefRefusal::NameInTheWay));
        assert_eq!(one(&refs, "refs/heads/ab", Oid::ZERO, B), MOVES);
        let both = [update("refs/heads/n/m", Oid::ZERO, A), update("refs/heads/n", Oid::ZERO, A)];
        assert_eq!(verdicts(&refs, &both), [Err(RefRefusal::NameInTheWay), MOVES]);
    }

    #[test]
    fn deleting_what_is_gone_is_fine_whatever_the_client_saw() {
        let gone = Ok(RefAction::AlreadyGone);
        assert_eq!(one(&[], "refs/heads/x", A, Oid::ZERO), gone);
        assert_eq!(one(&[], "refs/heads/main", A, Oid::ZERO), gone, "the default branch too");
        assert_eq!(one(&[], "refs/heads/x", Oid::ZERO, Oid::ZERO), gone, "git sends this for a ref that it never saw");
        let here = [("refs/heads/x", B)];
        assert_eq!(one(&here, "refs/heads/x", Oid::ZERO, Oid::ZERO), Err(RefRefusal::Moved), "it came meanwhile");
        assert_eq!(one(&[("refs/heads/x", B)], "refs/heads/x", A, Oid::ZERO), Err(RefRefusal::Moved));
        assert_eq!(one(&[], "refs/pull/1/head", A, Oid::ZERO), Err(RefRefusal::ReservedNamespace));
    }

    fn first(pushed: &[&str]) -> Option<String> {
        let updates: Vec<_> = pushed.iter().map(|name| update(name, Oid::ZERO, A)).collect();
        let found = first_default(&"refs/heads/trunk".parse().unwrap(), &updates);
        found.map(|name| name.as_str().to_owned())
    }

    #[test]
    fn the_first_branch_is_the_default_one_if_the_preset_one_was_not_pushed() {
        assert_eq!(first(&["refs/heads/master"]).as_deref(), Some("refs/heads/master"));
        assert_eq!(first(&["refs/heads/b", "refs/heads/a"]).as_deref(), Some("refs/heads/a"));
        assert_eq!(first(&["refs/heads/a", "refs/heads/master"]).as_deref(), Some("refs/heads/master"));
        assert_eq!(first(&["refs/heads/master", "refs/heads/main"]).as_deref(), Some("refs/heads/main"));
        assert_eq!(first(&["refs/heads/a", "refs/heads/trunk"]), None, "the preset one was pushed");
        assert_eq!(first(&["refs/tags/v1"]), None);
        assert_eq!(first(&["refs/tags/a", "refs/heads/x"]).as_deref(), Some("refs/heads/x"));
        let moved = update("refs/heads/x", A, B);
        assert_eq!(first_default(&"refs/heads/main".parse().unwrap(), &[moved]), None, "it is no new branch");
    }
}
