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
}

/// Namespaces that only the server writes.
const RESERVED: &[&str] = &["refs/abide/", "refs/nostr/", "refs/pull/", "refs/replace/", "refs/keep/"];

/// Judges each update of a push to an account-governed repository; one verdict per update, in order.
pub fn judge(updates: &[RefUpdate], default_branch: &RefName) -> Vec<Result<(), RefRefusal>> {
    let mut seen = HashSet::new();
    updates
        .iter()
        .map(|update| {
            if !seen.insert(&update.name) {
                Err(RefRefusal::Repeated)
            } else if RESERVED.iter().any(|prefix| update.name.as_str().starts_with(prefix)) {
                Err(RefRefusal::ReservedNamespace)
            } else if update.old.is_zero() && update.new.is_zero() {
                Err(RefRefusal::Nothing)
            } else if update.is_delete() && update.name == *default_branch {
                Err(RefRefusal::DefaultBranch)
            } else {
                Ok(())
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Oid = Oid::from_bytes([1; 20]);

    fn update(name: &str, old: Oid, new: Oid) -> RefUpdate {
        RefUpdate { name: name.parse().unwrap(), old, new }
    }

    fn one(name: &str, old: Oid, new: Oid) -> Result<(), RefRefusal> {
        judge(&[update(name, old, new)], &"refs/heads/main".parse().unwrap())[0]
    }

    #[test]
    fn branches_tags_and_notes_pass() {
        for name in ["refs/heads/main", "refs/tags/v1", "refs/notes/commits", "refs/heads/refs/pull/1"] {
            assert_eq!(one(name, Oid::ZERO, A), Ok(()), "{name}");
        }
    }

    #[test]
    fn the_servers_namespaces_are_refused() {
        for prefix in RESERVED {
            assert_eq!(one(&format!("{prefix}x"), Oid::ZERO, A), Err(RefRefusal::ReservedNamespace));
        }
    }

    #[test]
    fn the_default_branch_can_move_but_not_go() {
        assert_eq!(one("refs/heads/main", A, Oid::ZERO), Err(RefRefusal::DefaultBranch));
        assert_eq!(one("refs/heads/main", A, Oid::from_bytes([2; 20])), Ok(()));
        assert_eq!(one("refs/heads/other", A, Oid::ZERO), Ok(()));
    }

    #[test]
    fn a_ref_named_twice_is_refused_the_second_time() {
        let twice = [update("refs/heads/x", Oid::ZERO, A), update("refs/heads/x", A, Oid::ZERO)];
        let verdicts = judge(&twice, &"refs/heads/main".parse().unwrap());
        assert_eq!(verdicts, [Ok(()), Err(RefRefusal::Repeated)]);
    }

    #[test]
    fn nothing_to_nothing_is_refused() {
        assert_eq!(one("refs/heads/x", Oid::ZERO, Oid::ZERO), Err(RefRefusal::Nothing));
    }
}
