//! Named points at which a crash test aborts the process.
//!
//! `abide` arms at most one at start (from `ABIDE_FAILPOINT`); otherwise [`hit`] costs one atomic load. The process
//! ends by `abort`: no destructors, no flush, like a power cut for this process alone.

use std::sync::OnceLock;

static ARMED: OnceLock<String> = OnceLock::new();

/// Declares the failpoints and lists them.
macro_rules! points {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        $($(#[$doc])* pub const $name: &str = $text;)+

        /// Every failpoint. Crash tests iterate over them, and a typo is refused at start.
        pub const ALL: &[&str] = &[$($name),+];
    };
}

points! {
    /// Create: rows written, transaction open.
    CREATE_BEFORE_COMMIT = "create:before-commit",
    /// Create: rows committed, client not answered.
    CREATE_COMMITTED = "create:committed",
    /// Create: bare directory exists, client not answered.
    CREATE_DIRECTORY_MADE = "create:directory-made",
    /// Bare directory of a repository: partly created.
    DIRECTORY_HALF_MADE = "directory:half-made",
    /// HEAD of a repository: written beside it, not renamed.
    HEAD_DRAFTED = "head:drafted",
    /// Fork: id reserved, nothing else exists.
    FORK_RESERVED = "fork:reserved",
    /// Fork: repository complete, still outside `repos/`.
    FORK_BUILT = "fork:built",
    /// Fork: repository in place, without a row.
    FORK_PLACED = "fork:placed",
    /// Fork: rows written, transaction open.
    FORK_BEFORE_COMMIT = "fork:before-commit",
    /// Fork: committed, client not answered.
    FORK_COMMITTED = "fork:committed",
    /// Push: objects in the incoming area.
    PUSH_PACK_RECEIVED = "push:pack-received",
    /// Push: new tips proved complete.
    PUSH_CONNECTED = "push:connected",
    /// Push: intent row committed, generation odd.
    PUSH_INTENT_COMMITTED = "push:intent-committed",
    /// Push: pack moved in, its index not.
    PUSH_PACK_WITHOUT_INDEX = "push:pack-without-index",
    /// Push: all objects in the repository, no ref moved.
    PUSH_OBJECTS_MIGRATED = "push:objects-migrated",
    /// Push: refs moved, database not updated.
    PUSH_REFS_UPDATED = "push:refs-updated",
    /// Push: state, audit and event written, transaction open.
    PUSH_FINISH_BEFORE_COMMIT = "push:finish-before-commit",
    /// Push: committed, client not answered.
    PUSH_FINISHED = "push:finished",
    /// Push: report being sent.
    PUSH_REPORTED = "push:reported",
    /// Sync: identifier claimed, no request made.
    SYNC_CLAIMED = "sync:claimed",
    /// Sync: request counted for its domain, not made.
    SYNC_REQUESTED = "sync:requested",
    /// Sync: pack received, nothing judged.
    SYNC_FETCHED = "sync:fetched",
    /// Sync: events served, outcome and queue not written.
    SYNC_TAKEN = "sync:taken",
    /// Promotion: repository complete, not recorded.
    PROMOTE_BUILT = "promote:built",
    /// Promotion: committed, subscribers not notified.
    PROMOTE_COMMITTED = "promote:committed",
    /// PR event deletion: event gone, refs not.
    PR_EVENT_DELETED = "pr-event:deleted",
    /// Rename: rows written, transaction open.
    RENAME_BEFORE_COMMIT = "rename:before-commit",
    /// Rename: committed, client not answered.
    RENAME_COMMITTED = "rename:committed",
    /// Archive: rows written, transaction open.
    ARCHIVE_BEFORE_COMMIT = "archive:before-commit",
    /// Archive: committed, client not answered.
    ARCHIVE_COMMITTED = "archive:committed",
    /// Unarchive: rows written, transaction open.
    UNARCHIVE_BEFORE_COMMIT = "unarchive:before-commit",
    /// Unarchive: committed, client not answered.
    UNARCHIVE_COMMITTED = "unarchive:committed",
    /// Visibility change: rows written, transaction open.
    VISIBILITY_BEFORE_COMMIT = "visibility:before-commit",
    /// Visibility change: committed, client not answered.
    VISIBILITY_COMMITTED = "visibility:committed",
    /// Soft delete: rows written, transaction open.
    DELETE_BEFORE_COMMIT = "delete:before-commit",
    /// Soft delete: committed, client not answered.
    DELETE_COMMITTED = "delete:committed",
    /// Restore: rows written, transaction open.
    RESTORE_BEFORE_COMMIT = "restore:before-commit",
    /// Restore: committed, client not answered.
    RESTORE_COMMITTED = "restore:committed",
    /// Transfer offer: rows written, transaction open.
    OFFER_BEFORE_COMMIT = "offer:before-commit",
    /// Transfer offer: committed, client not answered.
    OFFER_COMMITTED = "offer:committed",
    /// Accepting an offer: rows written, transaction open.
    ACCEPT_BEFORE_COMMIT = "accept:before-commit",
    /// Accepting an offer: committed, client not answered.
    ACCEPT_COMMITTED = "accept:committed",
    /// Declining an offer: rows written, transaction open.
    DECLINE_BEFORE_COMMIT = "decline:before-commit",
    /// Declining an offer: committed, client not answered.
    DECLINE_COMMITTED = "decline:committed",
    /// Cancelling an offer: rows written, transaction open.
    CANCEL_BEFORE_COMMIT = "cancel:before-commit",
    /// Cancelling an offer: committed, client not answered.
    CANCEL_COMMITTED = "cancel:committed",
    /// Hand-over by the operator: rows written, transaction open.
    HAND_OVER_BEFORE_COMMIT = "hand-over:before-commit",
    /// Hand-over by the operator: committed, operator not answered.
    HAND_OVER_COMMITTED = "hand-over:committed",
    /// Releasing a redirect: rows written, transaction open.
    RELEASE_BEFORE_COMMIT = "release:before-commit",
    /// Releasing a redirect: committed, client not answered.
    RELEASE_COMMITTED = "release:committed",
    /// Expiring offers: rows written, transaction open.
    EXPIRE_BEFORE_COMMIT = "expire:before-commit",
    /// Expiring offers: committed.
    EXPIRE_COMMITTED = "expire:committed",
    /// Purge: row deleted, transaction open.
    PURGE_BEFORE_COMMIT = "purge:before-commit",
    /// Purge: row gone, directory intact.
    PURGE_COMMITTED = "purge:committed",
    /// Purge: directory renamed to its grave, nothing removed.
    PURGE_BURIED = "purge:buried",
    /// Purge: directory removed, its purge row not.
    PURGE_DIRECTORY_REMOVED = "purge:directory-removed",
    /// Purge: finished.
    PURGE_FINISHED = "purge:finished",
    /// Webhook delivery: attempt recorded, nothing sent.
    WEBHOOK_BEGUN = "webhook:begun",
    /// Webhook delivery: payload stored permanently, nothing sent.
    WEBHOOK_FIXED = "webhook:fixed",
    /// Webhook delivery: response received, not recorded.
    WEBHOOK_ANSWERED = "webhook:answered",
    /// Consumer: effects written, transaction open.
    CONSUMER_BEFORE_COMMIT = "consumer:before-commit",
    /// Consumer: effects and cursor committed.
    CONSUMER_COMMITTED = "consumer:committed",
    /// Notifications: some recipients have their row, others not; transaction open.
    NOTIFY_HALFWAY = "notify:halfway",
    /// Notification mail: mails queued, transaction open.
    NOTIFY_MAIL_BEFORE_COMMIT = "notify-mail:before-commit",
    /// Notification mail: mails queued and committed.
    NOTIFY_MAIL_COMMITTED = "notify-mail:committed",
}

/// The name is none of [`ALL`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown failpoint {0:?}")]
pub struct UnknownFailpoint(pub String);

/// Arms one failpoint for the lifetime of this process.
pub fn arm(name: &str) -> Result<(), UnknownFailpoint> {
    if !ALL.contains(&name) {
        return Err(UnknownFailpoint(name.to_owned()));
    }
    // A second call keeps the first name: a process can end at one point only.
    let _ = ARMED.set(name.to_owned());
    Ok(())
}

/// Aborts the process if this failpoint is armed.
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
