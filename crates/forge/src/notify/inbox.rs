//! The inbox: notifications, and marking them. Notifications of unreadable repositories are left out.

use super::{Filter, Item, State, Subject, Waiting};
use crate::threads::show::Thread;
use crate::{Access, Caller, Fault, Forge};
use abide_core::policy::{self, Actor, DenyCode};
use abide_core::repo::Visibility;
use abide_core::{IssueId, RepoId, ThreadId, Timestamp, UserId};
use abide_macros::boxed;
use abide_store::attention::inbox;
use abide_store::attention::lists::Part;
use abide_store::issues::Issue;
use abide_store::repos::{Repo, Viewer};
use abide_store::{StoreError, Tx, issues};

/// Limit of the unread count, which every page shows.
pub const BADGE: i64 = 100;
/// Repositories that are listed beside the inbox.
const REPOS: i64 = 50;

/// Only accounts have an inbox.
pub(super) fn account(caller: &Caller) -> Result<UserId, Access> {
    match caller.actor {
        Actor::User { suspended: true, .. } => Err(Access::Denied(DenyCode::Suspended)),
        Actor::User { id, .. } => Ok(id),
        Actor::Anonymous | Actor::Operator => Err(Access::Denied(DenyCode::LoginRequired)),
    }
}

/// Owner of the inbox, and whether their token reaches only public repositories.
fn reader(caller: &Caller) -> (Viewer, bool) {
    let reads_everything = policy::reads_everything(&caller.actor);
    (Viewer { user: caller.user_id(), reads_everything }, !caller.reaches(Visibility::Private))
}

/// A part of the caller's inbox, the latest first.
pub async fn list(forge: &Forge, caller: &Caller, filter: Filter, part: impl Into<Part>) -> Result<Vec<Item>, Access> {
    account(caller)?;
    let (viewer, public) = reader(caller);
    let filter = Filter { public, ..filter };
    Ok(inbox::list(&mut *forge.store().read().await?, viewer, filter, part.into()).await?)
}

/// Number of the caller's notifications that match a filter.
#[boxed]
pub async fn count(forge: &Forge, caller: &Caller, filter: Filter) -> Result<i64, Access> {
    account(caller)?;
    let (viewer, public) = reader(caller);
    Ok(inbox::count(&mut *forge.store().read().await?, viewer, Filter { public, ..filter }).await?)
}

/// Number of unread notifications, counted up to [`BADGE`].
#[boxed]
pub async fn unread(forge: &Forge, caller: &Caller) -> Result<i64, Fault> {
    match caller.user_id() {
        Some(_) => Ok(inbox::count_some(&mut *forge.store().read().await?, reader(caller).0, BADGE).await?),
        None => Ok(0),
    }
}

/// The repositories with the most unread notifications of the caller.
#[boxed]
pub async fn waiting(forge: &Forge, caller: &Caller) -> Result<Vec<Waiting>, Access> {
    account(caller)?;
    Ok(inbox::waiting(&mut *forge.store().read().await?, reader(caller).0, REPOS).await?)
}

/// One thread of the caller's inbox.
#[boxed]
pub async fn show(forge: &Forge, caller: &Caller, id: &str) -> Result<Item, Access> {
    account(caller)?;
    let thread: ThreadId = id.parse().map_err(|_| Access::NotFound)?;
    let (viewer, public) = reader(caller);
    let found = inbox::one(&mut *forge.store().read().await?, viewer, thread, public).await?;
    found.ok_or(Access::NotFound)
}

/// Marks a thread as read or done, unless a notification came after the caller loaded it.
#[boxed]
pub async fn mark(forge: &Forge, caller: &Caller, item: &Item, state: State) -> Result<(), Access> {
    let unit = (account(caller)?, item.thread, state, item.notified_at);
    forge
        .store()
        .write(unit, |tx, &(user, thread, state, seen)| {
            Box::pin(async move { Ok(inbox::set_state(tx, user, thread, state, seen).await.map(drop)?) })
        })
        .await
}

/// Marks the caller's notifications until an instant as read, in one repository or everywhere.
#[boxed]
pub async fn mark_all(
    forge: &Forge,
    caller: &Caller,
    repo: Option<RepoId>,
    until: Option<Timestamp>,
) -> Result<u64, Access> {
    let unit = (account(caller)?, repo, until.unwrap_or_else(|| forge.clock().now()), reader(caller).1);
    forge
        .store()
        .write(unit, |tx, &(user, repo, until, public)| {
            Box::pin(async move { Ok(inbox::read_all(tx, user, repo, until, public).await?) })
        })
        .await
}

/// The caller opens an issue: its notification is marked as read. `true` if it was unread.
#[boxed]
pub async fn opened(forge: &Forge, caller: &Caller, repo: &Repo, issue: &Issue) -> Result<bool, Access> {
    opened_subject(forge, caller, repo, (Subject::Issue, issue.id.get())).await
}

/// The same for a thread that came by nostr.
#[boxed]
pub async fn opened_thread(forge: &Forge, caller: &Caller, repo: &Repo, thread: &Thread) -> Result<bool, Access> {
    opened_subject(forge, caller, repo, (Subject::NostrThread, thread.n)).await
}

async fn opened_subject(forge: &Forge, caller: &Caller, repo: &Repo, subject: (Subject, i64)) -> Result<bool, Access> {
    if account(caller).is_err() {
        return Ok(false);
    }
    // Reads first, so that most pages write nothing.
    let item = inbox::of_subject(&mut *forge.store().read().await?, reader(caller).0, repo.id, subject).await?;
    match item.filter(|item| item.state == State::Unread) {
        Some(item) => mark(forge, caller, &item, State::Read).await.map(|()| true),
        None => Ok(false),
    }
}

/// Mutes or unmutes a thread. For an issue this changes its subscription.
#[boxed]
pub async fn set_muted(forge: &Forge, caller: &Caller, item: &Item, muted: bool) -> Result<(), Access> {
    let unit = (account(caller)?, item.thread, item.subject, item.subject_id, muted);
    forge
        .store()
        .write(unit, |tx, &(user, thread, subject, id, muted)| {
            Box::pin(async move { Ok(mute(tx, user, thread, subject, id, muted).await?) })
        })
        .await
}

pub(super) async fn mute(
    tx: &mut Tx,
    user: UserId,
    thread: ThreadId,
    subject: Subject,
    id: i64,
    muted: bool,
) -> Result<(), StoreError> {
    match subject {
        Subject::Issue => issues::people::subscribe(tx, IssueId::new(id), user, !muted).await,
        Subject::NostrThread | Subject::Repo => inbox::set_muted(tx, user, thread, muted).await,
    }
}
