//! From rows that are due to mails. Whether someone may still see it and still wants it is asked when the mail is
//! written, and again each time it is tried to be sent.

use super::letter::{self, Story};
use super::sight;
use crate::mail::{self, Gate};
use crate::{Fault, Forge};
use abide_core::failpoint;
use abide_core::notify;
use abide_store::notification_mail::{self as due, Pending};
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx};
use std::collections::HashMap;

/// Mails per transaction. On SQLite nobody else writes meanwhile.
const BATCH: i64 = 200;

/// The job: writes every mail that is due.
pub(crate) async fn run(forge: &Forge) -> Result<(), Fault> {
    loop {
        let now = forge.clock().now();
        if !due::any_due(&mut *forge.store().read().await?, now).await? {
            return Ok(());
        }
        let written: usize = forge.store().write(forge.clone(), |tx, forge| Box::pin(write(tx, forge))).await?;
        failpoint::hit(failpoint::NOTIFY_MAIL_COMMITTED);
        // Nothing, although something is due: another node is at it.
        if written == 0 {
            return Ok(());
        }
    }
}

async fn write(tx: &mut Tx, forge: &Forge) -> Result<usize, Fault> {
    let all = due::due(tx, BATCH).await?;
    let mut stories: HashMap<i64, Option<Story>> = HashMap::new();
    for pending in &all {
        if let std::collections::hash_map::Entry::Vacant(slot) = stories.entry(pending.seq) {
            slot.insert(letter::story(tx, pending).await?);
        }
        let story = stories.get(&pending.seq).and_then(Option::as_ref);
        match (story, &pending.address) {
            (Some(story), Some(address)) if wanted(pending, pending.private, &story.repo) => {
                let (letter, list) = letter::write(forge, pending, story);
                let gate = Gate { user: pending.user.get(), thread: pending.thread.get(), private: pending.private };
                mail::enqueue_listed(tx, forge, address, &letter, list, gate).await?;
                due::sent(tx, pending).await?;
            }
            _ => due::dropped(tx, pending).await?,
        }
    }
    failpoint::hit(failpoint::NOTIFY_MAIL_BEFORE_COMMIT);
    Ok(all.len())
}

fn wanted(pending: &Pending, private: bool, repo: &Repo) -> bool {
    let sight = sight(&pending.actor, !private, repo, pending.role);
    pending.wanted && notify::still_mailed(pending.told_at, sight, pending.muted_at, pending.ignored_at)
}

/// Whether a mail that was written may still be sent to an address.
pub(crate) async fn may_send(forge: &Forge, gate: &Gate, to: &str) -> Result<bool, StoreError> {
    let mut conn = forge.store().read().await?;
    let (user, thread) = (abide_core::UserId::new(gate.user), abide_core::ThreadId::new(gate.thread));
    let Some(pending) = due::of(&mut conn, user, thread).await? else { return Ok(false) };
    let Some(repo) = repos::by_id(&mut conn, pending.repo, None).await? else { return Ok(false) };
    Ok(pending.address.as_deref() == Some(to) && wanted(&pending, gate.private, &repo))
}
