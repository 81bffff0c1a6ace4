//! Turns due rows into mails. A queued mail only names its event. Access and preferences are checked when it is queued,
//! and again at each attempt to send it, when its text is loaded.

use super::{letter, sight};
use crate::mail::letters::Letter;
use crate::mail::{self, List, ThreadMail};
use crate::{Fault, Forge};
use abide_core::{RepoId, ThreadId, UserId, failpoint, notify};
use abide_store::attention::notification_mail as due;
use abide_store::attention::notification_mail::Pending;
use abide_store::repos::{self, Repo};
use abide_store::{StoreError, Tx};
use std::collections::HashMap;

/// Mails per transaction. On SQLite other writers wait meanwhile.
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
        // Rows are due but locked: another node writes their mails.
        if written == 0 {
            return Ok(());
        }
    }
}

async fn write(tx: &mut Tx, forge: &Forge) -> Result<usize, Fault> {
    let all = due::due(tx, BATCH).await?;
    let mut found: HashMap<RepoId, Option<Repo>> = HashMap::new();
    for pending in &all {
        if let std::collections::hash_map::Entry::Vacant(slot) = found.entry(pending.repo) {
            slot.insert(repos::by_id(tx, pending.repo, None).await?);
        }
        let repo = found.get(&pending.repo).and_then(Option::as_ref);
        match (repo, &pending.address) {
            (Some(repo), Some(address)) if wanted(pending, repo) => {
                mail::enqueue_about(tx, forge, address, thread_mail(pending)).await?;
                due::sent(tx, pending).await?;
            }
            _ => due::dropped(tx, pending).await?,
        }
    }
    failpoint::hit(failpoint::NOTIFY_MAIL_BEFORE_COMMIT);
    Ok(all.len())
}

fn thread_mail(pending: &Pending) -> ThreadMail {
    let &Pending { user, thread, private, seq, events, .. } = pending;
    ThreadMail { user: user.get(), thread: thread.get(), private, seq, events }
}

fn wanted(pending: &Pending, repo: &Repo) -> bool {
    let sight = sight(&pending.actor, !pending.private, repo, pending.role);
    pending.wanted && notify::still_mailed(pending.notified_at, sight, pending.muted_at, pending.ignored_at)
}

/// Writes a queued mail from the rows as they are now; `None` if it may not be sent to that address any more.
pub(crate) async fn letter(
    forge: &Forge,
    thread_mail: &ThreadMail,
    to: &str,
) -> Result<Option<(Letter, List)>, StoreError> {
    let mut conn = forge.store().read().await?;
    let Some(mut pending) =
        due::of(&mut conn, UserId::new(thread_mail.user), ThreadId::new(thread_mail.thread)).await?
    else {
        return Ok(None);
    };
    pending.private = thread_mail.private;
    pending.events = thread_mail.events;
    if thread_mail.seq > 0 {
        pending.seq = thread_mail.seq;
    }
    let Some(story) = letter::story(&mut conn, &pending).await? else { return Ok(None) };
    let sent = pending.address.as_deref() == Some(to) && wanted(&pending, &story.repo);
    Ok(sent.then(|| letter::write(forge, &pending, &story)))
}
