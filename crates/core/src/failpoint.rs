//! Named places at which a crash test ends the process.
//!
//! `abide` arms at most one at start (from `ABIDE_FAILPOINT`), and [`hit`] costs one atomic load otherwise. The end is
//! `abort`: no destructor, no flush, as if the power had gone for this process alone.

use std::sync::OnceLock;

static ARMED: OnceLock<String> = OnceLock::new();

/// Declares the failpoints and lists them.
macro_rules! points {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        $($(#[$doc])* pub const $name: &str = $text;)+

        /// Every failpoint there is, so that a crash test can walk all of them and a typo is refused at start.
        pub const ALL: &[&str] = &[$($name),+];
    };
}

points! {
    /// Creating: the rows are written, the transaction is still open.
    CREATE_BEFORE_COMMIT = "create:before-commit",
    /// Creating: the rows are committed, the client does not know yet.
    CREATE_COMMITTED = "create:committed",
    /// Creating: the bare directory exists too, the client does not know yet.
    CREATE_DIRECTORY_MADE = "create:directory-made",
    /// Making the bare directory of a repository: some of it is there.
    DIRECTORY_HALF_MADE = "directory:half-made",
    /// Forking: an id is reserved, nothing else is there.
    FORK_RESERVED = "fork:reserved",
    /// Forking: the repository is whole, apart from the others.
    FORK_BUILT = "fork:built",
    /// Forking: the repository is in its place, without a row.
    FORK_PLACED = "fork:placed",
    /// Forking: the rows are written, the transaction is still open.
    FORK_BEFORE_COMMIT = "fork:before-commit",
    /// Forking: everything is committed, the client does not know yet.
    FORK_COMMITTED = "fork:committed",
    /// Pushing: the objects are in the incoming area.
    PUSH_PACK_RECEIVED = "push:pack-received",
    /// Pushing: the new tips are known to be complete.
    PUSH_CONNECTED = "push:connected",
    /// Pushing: the intent row is committed and the generation is odd.
    PUSH_INTENT_COMMITTED = "push:intent-committed",
    /// Pushing: a pack was moved in, its index was not.
    PUSH_PACK_WITHOUT_INDEX = "push:pack-without-index",
    /// Pushing: all objects are in the repository, no ref has moved.
    PUSH_OBJECTS_MIGRATED = "push:objects-migrated",
    /// Pushing: the refs have moved, the database does not know.
    PUSH_REFS_UPDATED = "push:refs-updated",
    /// Pushing: state, audit and event are written, the transaction is still open.
    PUSH_FINISH_BEFORE_COMMIT = "push:finish-before-commit",
    /// Pushing: everything is committed, the client does not know yet.
    PUSH_FINISHED = "push:finished",
    /// Pushing: the report is on its way.
    PUSH_REPORTED = "push:reported",
    /// Promoting: the repository is whole, nothing knows of it.
    PROMOTE_BUILT = "promote:built",
    /// Promoting: everything is committed, nobody was told.
    PROMOTE_COMMITTED = "promote:committed",
    /// Deleting a proposal: its event is gone, its refs are not.
    PROPOSAL_DELETED = "proposal:deleted",
    /// Renaming: the rows are written, the transaction is still open.
    RENAME_BEFORE_COMMIT = "rename:before-commit",
    /// Renaming: everything is committed, nobody knows yet.
    RENAME_COMMITTED = "rename:committed",
    /// Archiving: the rows are written, the transaction is still open.
    ARCHIVE_BEFORE_COMMIT = "archive:before-commit",
    /// Archiving: everything is committed, nobody knows yet.
    ARCHIVE_COMMITTED = "archive:committed",
    /// Unarchiving: the rows are written, the transaction is still open.
    UNARCHIVE_BEFORE_COMMIT = "unarchive:before-commit",
    /// Unarchiving: everything is committed, nobody knows yet.
    UNARCHIVE_COMMITTED = "unarchive:committed",
    /// Changing who may read it: the rows are written, the transaction is still open.
    VISIBILITY_BEFORE_COMMIT = "visibility:before-commit",
    /// Changing who may read it: everything is committed, nobody knows yet.
    VISIBILITY_COMMITTED = "visibility:committed",
    /// Soft-deleting: the rows are written, the transaction is still open.
    DELETE_BEFORE_COMMIT = "delete:before-commit",
    /// Soft-deleting: everything is committed, nobody knows yet.
    DELETE_COMMITTED = "delete:committed",
    /// Restoring: the rows are written, the transaction is still open.
    RESTORE_BEFORE_COMMIT = "restore:before-commit",
    /// Restoring: everything is committed, nobody knows yet.
    RESTORE_COMMITTED = "restore:committed",
    /// Offering it to someone: the rows are written, the transaction is still open.
    OFFER_BEFORE_COMMIT = "offer:before-commit",
    /// Offering it to someone: everything is committed, nobody knows yet.
    OFFER_COMMITTED = "offer:committed",
    /// Accepting an offer: the rows are written, the transaction is still open.
    ACCEPT_BEFORE_COMMIT = "accept:before-commit",
    /// Accepting an offer: everything is committed, nobody knows yet.
    ACCEPT_COMMITTED = "accept:committed",
    /// Declining an offer: the rows are written, the transaction is still open.
    DECLINE_BEFORE_COMMIT = "decline:before-commit",
    /// Declining an offer: everything is committed, nobody knows yet.
    DECLINE_COMMITTED = "decline:committed",
    /// Taking an offer back: the rows are written, the transaction is still open.
    CANCEL_BEFORE_COMMIT = "cancel:before-commit",
    /// Taking an offer back: everything is committed, nobody knows yet.
    CANCEL_COMMITTED = "cancel:committed",
    /// Handing over by the operator: the rows are written, the transaction is still open.
    HAND_OVER_BEFORE_COMMIT = "hand-over:before-commit",
    /// Handing over by the operator: everything is committed, nobody knows yet.
    HAND_OVER_COMMITTED = "hand-over:committed",
    /// Releasing an old name: the rows are written, the transaction is still open.
    RELEASE_BEFORE_COMMIT = "release:before-commit",
    /// Releasing an old name: everything is committed, nobody knows yet.
    RELEASE_COMMITTED = "release:committed",
    /// Letting offers expire: the rows are written, the transaction is still open.
    EXPIRE_BEFORE_COMMIT = "expire:before-commit",
    /// Letting offers expire: everything is committed, nobody knows yet.
    EXPIRE_COMMITTED = "expire:committed",
    /// Removing for good: the row is deleted, the transaction is still open.
    PURGE_BEFORE_COMMIT = "purge:before-commit",
    /// Removing for good: the row is gone, the directory is whole.
    PURGE_COMMITTED = "purge:committed",
    /// Removing for good: the directory has left its place, none of it is removed.
    PURGE_BURIED = "purge:buried",
    /// Removing for good: the directory is gone, the note that it should go is not.
    PURGE_DIRECTORY_REMOVED = "purge:directory-removed",
    /// Removing for good: nothing is left of it.
    PURGE_FINISHED = "purge:finished",
    /// Telling a webhook: the try is written, nothing is sent.
    WEBHOOK_BEGUN = "webhook:begun",
    /// Telling a webhook: what it says is written for good, nothing is sent.
    WEBHOOK_FIXED = "webhook:fixed",
    /// Telling a webhook: the receiver has answered, nobody has noted it.
    WEBHOOK_ANSWERED = "webhook:answered",
    /// Reading the log of events: what they bring about is written, the transaction is still open.
    CONSUMER_BEFORE_COMMIT = "consumer:before-commit",
    /// Reading the log of events: what they bring about is committed, and so is the place in the log.
    CONSUMER_COMMITTED = "consumer:committed",
    /// Telling people: some of those whom an event concerns have their row, others do not, the transaction is open.
    NOTIFY_HALFWAY = "notify:halfway",
    /// Mailing what people were told: the mails are queued, the transaction is still open.
    NOTIFY_MAIL_BEFORE_COMMIT = "notify-mail:before-commit",
    /// Mailing what people were told: the mails are queued and committed.
    NOTIFY_MAIL_COMMITTED = "notify-mail:committed",
}

/// The name is none of [`ALL`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown failpoint {0:?}")]
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
