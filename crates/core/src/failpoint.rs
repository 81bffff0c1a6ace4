//! Named places at which a crash test ends the process.
//!
//! `abide` arms at most one at start (from `ABIDE_FAILPOINT`), and [`hit`] costs one atomic load otherwise. The end is
//! `abort`: no destructor, no flush, as if the power had gone for this process alone.

use std::sync::OnceLock;

static ARMED: OnceLock<String> = OnceLock::new();

/// Every failpoint there is, so that a crash test can walk all of them and a typo is refused at start.
pub const ALL: &[&str] = &[
    CREATE_BEFORE_COMMIT,
    CREATE_COMMITTED,
    CREATE_DIRECTORY_MADE,
    FORK_RESERVED,
    FORK_BUILT,
    FORK_PLACED,
    FORK_BEFORE_COMMIT,
    FORK_COMMITTED,
    PUSH_PACK_RECEIVED,
    PUSH_CONNECTED,
    PUSH_INTENT_COMMITTED,
    PUSH_PACK_WITHOUT_INDEX,
    PUSH_OBJECTS_MIGRATED,
    PUSH_REFS_UPDATED,
    PUSH_FINISH_BEFORE_COMMIT,
    PUSH_FINISHED,
    PUSH_REPORTED,
];

/// Creating: the rows are written, the transaction is still open.
pub const CREATE_BEFORE_COMMIT: &str = "create:before-commit";
/// Creating: the rows are committed, the client does not know yet.
pub const CREATE_COMMITTED: &str = "create:committed";
/// Creating: the bare directory exists too, the client does not know yet.
pub const CREATE_DIRECTORY_MADE: &str = "create:directory-made";
/// Forking: an id is reserved, nothing else is there.
pub const FORK_RESERVED: &str = "fork:reserved";
/// Forking: the repository is whole, apart from the others.
pub const FORK_BUILT: &str = "fork:built";
/// Forking: the repository is in its place, without a row.
pub const FORK_PLACED: &str = "fork:placed";
/// Forking: the rows are written, the transaction is still open.
pub const FORK_BEFORE_COMMIT: &str = "fork:before-commit";
/// Forking: everything is committed, the client does not know yet.
pub const FORK_COMMITTED: &str = "fork:committed";
/// Pushing: the objects are in the incoming area.
pub const PUSH_PACK_RECEIVED: &str = "push:pack-received";
/// Pushing: the new tips are known to be complete.
pub const PUSH_CONNECTED: &str = "push:connected";
/// Pushing: the intent row is committed and the generation is odd.
pub const PUSH_INTENT_COMMITTED: &str = "push:intent-committed";
/// Pushing: a pack was moved in, its index was not.
pub const PUSH_PACK_WITHOUT_INDEX: &str = "push:pack-without-index";
/// Pushing: all objects are in the repository, no ref has moved.
pub const PUSH_OBJECTS_MIGRATED: &str = "push:objects-migrated";
/// Pushing: the refs have moved, the database does not know.
pub const PUSH_REFS_UPDATED: &str = "push:refs-updated";
/// Pushing: state, audit and event are written, the transaction is still open.
pub const PUSH_FINISH_BEFORE_COMMIT: &str = "push:finish-before-commit";
/// Pushing: everything is committed, the client does not know yet.
pub const PUSH_FINISHED: &str = "push:finished";
/// Pushing: the report is on its way.
pub const PUSH_REPORTED: &str = "push:reported";

/// The name is none of [`ALL`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no failpoint is called {0:?}")]
pub struct UnknownFailpoint(pub String);

/// Arms one failpoint for the life of this process.
pub fn arm(name: &str) -> Result<(), UnknownFailpoint> {
    if !ALL.contains(&name) {
        return Err(UnknownFailpoint(name.to_owned()));
    }
    // A second call keeps the first name: a process dies at one place only.
    let _ = ARMED.set(name.to_owned());
    Ok(())
}

/// Ends the process here if this failpoint is the armed one.
pub fn hit(name: &str) {
    if ARMED.get().is_some_and(|armed| armed == name) {
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_refused() {
        assert_eq!(arm("push:nowhere"), Err(UnknownFailpoint("push:nowhere".into())));
    }
}
