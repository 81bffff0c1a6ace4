//! Ref updates of a push, judged before any object is looked at.

use crate::{Oid, RefName};
use std::collections::HashSet;

/// One command of a push: move `name` from `old` to `new`. A zero id means "does not exist".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefUpdate {
    /// The ref.
    pub name: RefName,
    /// What the client saw.
    pub old: Oid,
    /// What it should become.
    pub new: Oid,
}

impl RefUpdate {
    /// Whether the ref goes away.
    pub fn is_delete(&self) -> bool {
        self.new.is_zero()
    }

    /// Whether the ref comes into being.
    pub fn is_create(&self) -> bool {
        self.old.is_zero() && !self.new.is_zero()
    }
}

/// Why one ref of a push is refused. The text is what `git push` prints behind `! [remote rejected]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefRefusal {
    /// Abide writes these itself.
    #[error("this namespace is kept by the server; push below refs/heads/ or refs/tags/")]
    ReservedNamespace,
    /// Deleting the branch that clones check out.
    #[error("this is the default branch; choose another default in the settings before deleting it")]
    DefaultBranch,
    /// The same ref twice in one push.
    #[error("named more than once in this push")]
    Repeated,
    /// `0…0 → 0…0`.
    #[error("neither an old nor a new object is named")]
    Nothing,
    /// The ref is not where the client saw it.
    #[error("the ref moved meanwhile; fetch and try again")]
    Moved,
    /// `a` and `a/b` cannot both be refs.
    #[error("another ref is in the way: one cannot be named like a directory of the other; delete or rename that one")]
    NameInTheWay,
}

/// The refs of the repository as they are, as far as the judgement needs them.
pub trait CurrentRefs {
    /// What the ref points to.
    fn get(&self, name: &str) -> Option<Oid>;
    /// Whether any ref is named like something below this one.
    fn any_below(&self, name: &str) -> bool;
}

/// Namespaces that only the server writes.
const RESERVED: &[&str] = &["refs/abide/", "refs/nostr/", "refs/pull/", "refs/replace/", "refs/keep/"];

/// Judges each update of a push to an account-governed repository; one verdict per update, in order.
pub fn judge(updates: &[RefUpdate], default_branch: &RefName, refs: &impl CurrentRefs) -> Vec<Result<(), RefRefusal>> {
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
            } else if update.old.is_zero() && update.new.is_zero() {
                Err(RefRefusal::Nothing)
            } else if update.is_delete() && update.name == *default_branch {
                Err(RefRefusal::DefaultBranch)
            } else if refs.get(name).unwrap_or(Oid::ZERO) != update.old {
                Err(RefRefusal::Moved)
            } else if update.is_create()
                && (refs.any_below(name) || ancestors(name).any(|dir| refs.get(dir).is_some() || created.contains(dir)))
            {
                Err(RefRefusal::NameInTheWay)
            } else {
                Ok(())
            }
        })
        .collect()
}

/// `refs/heads/a/b` → `refs/heads/a`, `refs/heads`, `refs`.
fn ancestors(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('/').map(|(end, _)| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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

    fn verdicts(refs: &[(&'static str, Oid)], updates: &[RefUpdate]) -> Vec<Result<(), RefRefusal>> {
        judge(updates, &"refs/heads/main".parse().unwrap(), &refs.iter().copied().collect::<BTreeMap<_, _>>())
    }

    fn one(refs: &[(&'static str, Oid)], name: &str, old: Oid, new: Oid) -> Result<(), RefRefusal> {
        verdicts(refs, &[update(name, old, new)])[0]
    }

    #[test]
    fn branches_tags_and_notes_pass() {
        for name in ["refs/heads/main", "refs/tags/v1", "refs/notes/commits", "refs/heads/refs/pull/1"] {
            assert_eq!(one(&[], name, Oid::ZERO, A), Ok(()), "{name}");
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
        assert_eq!(one(&refs, "refs/heads/main", A, B), Ok(()));
        assert_eq!(one(&refs, "refs/heads/other", A, Oid::ZERO), Ok(()));
    }

    #[test]
    fn a_ref_named_twice_is_refused_the_second_time() {
        let twice = [update("refs/heads/x", Oid::ZERO, A), update("refs/heads/x", Oid::ZERO, B)];
        assert_eq!(verdicts(&[], &twice), [Ok(()), Err(RefRefusal::Repeated)]);
    }

    #[test]
    fn nothing_to_nothing_is_refused() {
        assert_eq!(one(&[], "refs/heads/x", Oid::ZERO, Oid::ZERO), Err(RefRefusal::Nothing));
    }

    #[test]
    fn a_ref_that_is_not_where_the_client_saw_it_is_refused() {
        let refs = [("refs/heads/x", A)];
        for (name, old, new) in [
            ("refs/heads/x", Oid::ZERO, B),
            ("refs/heads/x", B, A),
            ("refs/heads/x", B, Oid::ZERO),
            ("refs/heads/gone", A, B),
            ("refs/heads/gone", A, Oid::ZERO),
        ] {
            assert_eq!(one(&refs, name, old, new), Err(RefRefusal::Moved), "{name}");
        }
    }

    #[test]
    fn a_ref_cannot_be_a_directory_of_another() {
        let refs = [("refs/heads/a", A), ("refs/heads/d/e", A)];
        assert_eq!(one(&refs, "refs/heads/a/b", Oid::ZERO, B), Err(RefRefusal::NameInTheWay));
        assert_eq!(one(&refs, "refs/heads/d", Oid::ZERO, B), Err(RefRefusal::NameInTheWay));
        assert_eq!(one(&refs, "refs/heads/ab", Oid::ZERO, B), Ok(()));
        let both = [update("refs/heads/n/m", Oid::ZERO, A), update("refs/heads/n", Oid::ZERO, A)];
        assert_eq!(verdicts(&refs, &both), [Err(RefRefusal::NameInTheWay), Ok(())]);
    }
}
