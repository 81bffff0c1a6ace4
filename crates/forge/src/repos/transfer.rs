//! Transfers a repository: an offer, and an answer to it. The operator transfers without asking.
//!
//! Locks are taken in one order, the repository's row before the offer's, so that an answer, a deletion and a rename
//! wait for each other instead of deadlocking.

use super::refusal::LifeError;
use crate::attention::watch;
use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::{judge_decision, open_locked};
use crate::{Access, Caller, Fault, Forge, throttle};
use abide_core::event::{self, Payload, Publicity};
use abide_core::lifecycle::{self, Action as Life};
use abide_core::notify;
use abide_core::policy::{self, Action, DenyCode, OfferAction, OfferFacts};
use abide_core::transfer::{self, Answer, Status};
use abide_core::{Handle, RepoId, Timestamp, TransferId, UserId, UserName, failpoint};
use abide_macros::boxed;
use abide_store::accounts::users;
use abide_store::attention::inbox;
use abide_store::repos::transfers::{self, NewTransfer, Transfer};
use abide_store::repos::{self, Page, Repo};
use abide_store::repos::{collaborators, redirects};
use abide_store::{StoreError, Tx};
use std::time::Duration;

/// An offer and its repository, as it is now.
#[derive(Debug, Clone)]
pub struct Offer {
    pub transfer: Transfer,
    /// The repository as the two parties of the offer may see it.
    pub repo: Repo,
}

impl Offer {
    /// The repository's slug: the current one while the offer is pending, the offered one afterwards.
    pub fn slug(&self) -> String {
        match self.transfer.status {
            Status::Pending => self.repo.slug(),
            _ => self.transfer.slug.clone(),
        }
    }

    /// Status at a given time. An offer past its expiry counts as expired, even if the row still says pending.
    pub fn status(&self, now: Timestamp) -> Status {
        match self.transfer.status {
            Status::Pending if now >= self.transfer.expires_at => Status::Expired,
            status => status,
        }
    }
}

/// Offers a repository to a user.
#[boxed]
pub async fn offer(forge: &Forge, caller: &Caller, repo: &Repo, new_owner: &str) -> Result<Offer, LifeError> {
    let unit = Unit::of(forge, caller, repo, new_owner);
    let offer = forge.store().write(unit, |tx, unit| Box::pin(write_offer(tx, unit))).await?;
    failpoint::hit(failpoint::OFFER_COMMITTED);
    Ok(offer)
}

/// Transfers a repository at once. Only the operator may do this.
#[boxed]
pub async fn hand_over(forge: &Forge, caller: &Caller, repo: &Repo, new_owner: &str) -> Result<Repo, LifeError> {
    let unit = Unit::of(forge, caller, repo, new_owner);
    let repo = forge.store().write(unit, |tx, unit| Box::pin(write_hand_over(tx, unit))).await?;
    failpoint::hit(failpoint::HAND_OVER_COMMITTED);
    Ok(repo)
}

struct Unit {
    id: RepoId,
    caller: Caller,
    new_owner: String,
    ttl: Duration,
    limit: i64,
}

impl Unit {
    fn of(forge: &Forge, caller: &Caller, repo: &Repo, new_owner: &str) -> Self {
        Self {
            id: repo.id,
            caller: caller.clone(),
            new_owner: new_owner.trim().to_owned(),
            ttl: forge.settings().lifecycle.transfer_ttl,
            limit: forge.settings().repos.per_user,
        }
    }

    /// The recipient.
    async fn recipient(&self, tx: &mut Tx, repo: &Repo) -> Result<UserId, LifeError> {
        let name: UserName = self.new_owner.parse().map_err(|_| LifeError::UnknownRecipient)?;
        let user = users::by_name(tx, &name).await?.filter(|user| user.suspended_at.is_none());
        let user = user.ok_or(LifeError::UnknownRecipient)?;
        if user.id == repo.owner_id {
            return Err(transfer::Refusal::ToSelf.into());
        }
        Ok(user.id)
    }

    fn row(&self, tx: &Tx, repo: &Repo, recipient: UserId, status: Status) -> NewTransfer {
        NewTransfer {
            repo_id: repo.id,
            slug: repo.slug(),
            from_owner: repo.owner_id,
            recipient,
            created_by: self.caller.user_id(),
            status,
            expires_at: tx.now().plus(self.ttl),
        }
    }
}

async fn write_offer(tx: &mut Tx, unit: &Unit) -> Result<Offer, LifeError> {
    let repo = open_locked(tx, &unit.caller, unit.id, Action::RepoTransfer).await?;
    lifecycle::transition(repo.state(), Life::Transfer, tx.now())?;
    let recipient = unit.recipient(tx, &repo).await?;
    if let Some(earlier) = transfers::pending_of(tx, repo.id).await? {
        if tx.now() < earlier.expires_at {
            return Err(transfer::Refusal::Pending.into());
        }
        expire_one(tx, &earlier).await?;
    }
    let row = unit.row(tx, &repo, recipient, Status::Pending);
    let id = transfers::insert(tx, &row).await?;
    let transfer = transfers::by_id(tx, id).await?.ok_or(StoreError::Missing)?;
    log(tx, &Who::from(&unit.caller), OfferEvent::Requested, &repo, &transfer).await?;
    failpoint::hit(failpoint::OFFER_BEFORE_COMMIT);
    Ok(Offer { transfer, repo })
}

async fn write_hand_over(tx: &mut Tx, unit: &Unit) -> Result<Repo, LifeError> {
    if unit.caller.actor != policy::Actor::Operator {
        return Err(Access::Denied(DenyCode::OtherSide).into());
    }
    let who = Who::from(&unit.caller);
    let mut repo = open_locked(tx, &unit.caller, unit.id, Action::RepoTransfer).await?;
    lifecycle::transition(repo.state(), Life::Transfer, tx.now())?;
    let recipient = unit.recipient(tx, &repo).await?;
    cancel_pending(tx, &who, &repo).await?;
    let row = unit.row(tx, &repo, recipient, Status::Accepted);
    let id = transfers::insert(tx, &row).await?;
    let transfer = transfers::by_id(tx, id).await?.ok_or(StoreError::Missing)?;
    log(tx, &who, OfferEvent::Requested, &repo, &transfer).await?;
    change_owner(tx, &who, &mut repo, &transfer, unit.limit).await?;
    failpoint::hit(failpoint::HAND_OVER_BEFORE_COMMIT);
    Ok(repo)
}

/// Answers an offer.
#[boxed]
pub async fn answer(forge: &Forge, caller: &Caller, id: &str, answer: Answer) -> Result<Offer, LifeError> {
    let id: TransferId = id.parse().map_err(|_| Access::NotFound)?;
    let input = Reply { id, caller: caller.clone(), answer, limit: forge.settings().repos.per_user };
    let offer = forge.store().write(input, |tx, input| Box::pin(write_answer(tx, input))).await?;
    failpoint::hit(failpoints(answer).1);
    Ok(offer)
}

fn failpoints(answer: Answer) -> (&'static str, &'static str) {
    match answer {
        Answer::Accept => (failpoint::ACCEPT_BEFORE_COMMIT, failpoint::ACCEPT_COMMITTED),
        Answer::Decline => (failpoint::DECLINE_BEFORE_COMMIT, failpoint::DECLINE_COMMITTED),
        Answer::Cancel => (failpoint::CANCEL_BEFORE_COMMIT, failpoint::CANCEL_COMMITTED),
    }
}

struct Reply {
    id: TransferId,
    caller: Caller,
    answer: Answer,
    limit: i64,
}

async fn write_answer(tx: &mut Tx, reply: &Reply) -> Result<Offer, LifeError> {
    let repo_id = transfers::by_id(tx, reply.id).await?.ok_or(Access::NotFound)?.repo_id;
    let mut repo = repos::lock(tx, repo_id, reply.caller.user_id()).await?.ok_or(Access::NotFound)?;
    let mut transfer = transfers::lock(tx, reply.id).await?.ok_or(Access::NotFound)?;
    allow(&reply.caller, asked(reply.answer), &transfer, &repo)?;
    let status = transfer::answer(facts(&transfer, &repo), reply.answer, tx.now())?;

    let who = Who::from(&reply.caller);
    transfers::decide(tx, transfer.id, status).await?;
    (transfer.status, transfer.decided_at) = (status, Some(tx.now()));
    match reply.answer {
        Answer::Accept => {
            lifecycle::transition(repo.state(), Life::Transfer, tx.now())?;
            ensure_active(tx, transfer.recipient).await?;
            change_owner(tx, &who, &mut repo, &transfer, reply.limit).await?;
        }
        Answer::Decline => log(tx, &who, OfferEvent::Declined, &repo, &transfer).await?,
        Answer::Cancel => log(tx, &who, OfferEvent::Canceled, &repo, &transfer).await?,
    }
    if let Some(user) = reply.caller.user_id() {
        let about = (notify::Subject::Repo, repo.id.get());
        inbox::read_subject(tx, user, repo.id, about).await?;
    }
    failpoint::hit(failpoints(reply.answer).0);
    Ok(Offer { transfer, repo })
}

/// Fails if the account was suspended since the request was admitted. Reads without a lock: a parallel rename or offer
/// of the same account holds its row, and the two would deadlock.
async fn ensure_active(tx: &mut Tx, user: UserId) -> Result<(), LifeError> {
    match users::by_id(tx, user).await? {
        Some(user) if user.suspended_at.is_none() => Ok(()),
        _ => Err(Access::Denied(DenyCode::Suspended).into()),
    }
}

/// Makes the recipient the owner of a locked repository. The old URL redirects to it, the old owner loses access,
/// and the recipient's collaborator role is removed.
async fn change_owner(
    tx: &mut Tx,
    who: &Who,
    repo: &mut Repo,
    transfer: &Transfer,
    limit: i64,
) -> Result<(), LifeError> {
    if throttle::owns_too_many(tx, transfer.recipient, limit).await? {
        return Err(LifeError::TooMany(limit));
    }
    let now = tx.now();
    repos::hand_over(tx, repo.id, transfer.recipient).await?;
    redirects::take(tx, transfer.recipient, &repo.name, repo.id, Some(transfer.recipient).into()).await?;
    redirects::leave(tx, transfer.from_owner, &repo.name, repo.id, now).await?;
    collaborators::remove(tx, repo.id, transfer.recipient).await?;
    watch::on_ownership(tx, transfer.recipient, repo.id).await?;
    repo.owner_id = transfer.recipient;
    repo.owner_name = transfer.recipient_name.as_ref().and_then(Handle::name);
    repo.role = None;
    Ok(log(tx, who, OfferEvent::Accepted, repo, transfer).await?)
}

/// Cancels the pending offer of a locked repository, if there is one.
pub(super) async fn cancel_pending(tx: &mut Tx, who: &Who, repo: &Repo) -> Result<(), StoreError> {
    let Some(id) = transfers::cancel_of(tx, repo.id).await? else { return Ok(()) };
    let transfer = transfers::by_id(tx, id).await?.ok_or(StoreError::Missing)?;
    log(tx, who, OfferEvent::Canceled, repo, &transfer).await
}

/// Declines every pending offer to an account that is being deleted.
pub(crate) async fn decline_all(tx: &mut Tx, who: &Who, recipient: UserId) -> Result<(), StoreError> {
    const PAGE: Page = Page { limit: 100, offset: 0 };
    loop {
        let (pending, _) = transfers::pending_of_user(tx, recipient, PAGE).await?;
        let theirs: Vec<_> = pending.into_iter().filter(|offer| offer.recipient == recipient).collect();
        if theirs.is_empty() {
            return Ok(());
        }
        for offer in theirs {
            let repo = repos::lock(tx, offer.repo_id, None).await?;
            transfers::decide(tx, offer.id, Status::Declined).await?;
            if let (Some(repo), Some(offer)) = (repo, transfers::by_id(tx, offer.id).await?) {
                log(tx, who, OfferEvent::Declined, &repo, &offer).await?;
            }
        }
    }
}

/// Expires one offer and emits an event.
async fn expire_one(tx: &mut Tx, transfer: &Transfer) -> Result<(), StoreError> {
    if !transfers::decide(tx, transfer.id, Status::Expired).await? {
        return Ok(());
    }
    match repos::by_id(tx, transfer.repo_id, None).await? {
        Some(repo) => log(tx, &Who::default(), OfferEvent::Expired, &repo, transfer).await,
        None => Ok(()),
    }
}

/// Expires every offer past its expiry. Returns their number.
pub(super) async fn expire_due(forge: &Forge) -> Result<u64, Fault> {
    const AT_ONCE: i64 = 200;
    let mut all = 0;
    loop {
        let expired: Result<u64, StoreError> = forge
            .store()
            .write((), |tx, ()| {
                Box::pin(async move {
                    let now = tx.now();
                    let due = transfers::due(tx, now, AT_ONCE).await?;
                    for transfer in &due {
                        expire_one(tx, transfer).await?;
                    }
                    failpoint::hit(failpoint::EXPIRE_BEFORE_COMMIT);
                    Ok(due.len() as u64)
                })
            })
            .await;
        failpoint::hit(failpoint::EXPIRE_COMMITTED);
        let expired = expired?;
        all += expired;
        if expired < AT_ONCE as u64 {
            return Ok(all);
        }
    }
}

fn facts(transfer: &Transfer, repo: &Repo) -> transfer::Offer {
    transfer::Offer {
        status: transfer.status,
        expires_at: transfer.expires_at,
        from_owner: transfer.from_owner,
        owner: repo.owner_id,
        deleted: !repo.is_live(),
    }
}

fn allow(caller: &Caller, action: OfferAction, transfer: &Transfer, repo: &Repo) -> Result<(), Access> {
    let sides = OfferFacts { from_owner: transfer.from_owner, recipient: transfer.recipient };
    judge_decision(policy::can_offer(&caller.actor, action, &sides, &repo.facts(), repo.role))
}

/// The pending offer of a repository to or from the caller.
pub async fn pending_with(forge: &Forge, caller: &Caller, repo: RepoId) -> Result<Option<TransferId>, Fault> {
    let Some(user) = caller.user_id() else { return Ok(None) };
    let pending = transfers::pending_of(&mut *forge.store().read().await?, repo).await?;
    let theirs = |offer: &Transfer| {
        [offer.from_owner, offer.recipient].contains(&user) && forge.clock().now() < offer.expires_at
    };
    Ok(pending.filter(theirs).map(|offer| offer.id))
}

/// The policy action of an answer.
fn asked(answer: Answer) -> OfferAction {
    match answer {
        Answer::Accept => OfferAction::Accept,
        Answer::Decline => OfferAction::Decline,
        Answer::Cancel => OfferAction::Cancel,
    }
}

/// Whether the caller may give this answer. Does not check whether the offer is still pending.
pub fn may(caller: &Caller, offer: &Offer, answer: Answer) -> bool {
    allow(caller, asked(answer), &offer.transfer, &offer.repo).is_ok()
}

/// An event about an offer.
#[derive(Debug, Clone, Copy)]
enum OfferEvent {
    Requested,
    Accepted,
    Declined,
    Canceled,
    Expired,
}

impl OfferEvent {
    fn payload(self, transfer: &Transfer) -> Payload {
        let details = event::Transfer {
            transfer_id: transfer.id,
            from: transfer.from_name.as_ref().map(ToString::to_string),
            from_id: transfer.from_owner,
            to: transfer.recipient_name.as_ref().map(ToString::to_string),
            to_id: transfer.recipient,
            offered_as: transfer.slug.clone(),
            expires_at: transfer.expires_at,
            status: transfer.status,
        };
        match self {
            Self::Requested => Payload::RepoTransferRequested(details),
            Self::Accepted => Payload::RepoTransferAccepted(details),
            Self::Declined => Payload::RepoTransferDeclined(details),
            Self::Canceled => Payload::RepoTransferCanceled(details),
            Self::Expired => Payload::RepoTransferExpired(details),
        }
    }

    /// Offers concern two users, so their events are private unless the owner changed.
    fn publicity(self, repo: &Repo) -> Publicity {
        match self {
            Self::Accepted => repo.visibility.into(),
            Self::Requested | Self::Declined | Self::Canceled | Self::Expired => Publicity::Private,
        }
    }

    /// `None` for an expired offer: its row is the record.
    fn audit_action(self) -> Option<AuditAction> {
        match self {
            Self::Requested => Some(AuditAction::RepoTransferRequested),
            Self::Accepted => Some(AuditAction::RepoTransferAccepted),
            Self::Declined => Some(AuditAction::RepoTransferDeclined),
            Self::Canceled => Some(AuditAction::RepoTransferCanceled),
            Self::Expired => None,
        }
    }
}

/// Writes the audit row and the event of an offer.
async fn log(tx: &mut Tx, who: &Who, event: OfferEvent, repo: &Repo, transfer: &Transfer) -> Result<(), StoreError> {
    let payload = event.payload(transfer);
    if let Some(action) = event.audit_action() {
        audit_repo(tx, who, action, repo, payload.details()).await?;
    }
    emit(tx, who, Subject::Repo(repo), event.publicity(repo), payload).await
}

/// An offer, for a caller who may see it.
#[boxed]
pub async fn see(forge: &Forge, caller: &Caller, id: &str) -> Result<Offer, Access> {
    let id: TransferId = id.parse().map_err(|_| Access::NotFound)?;
    let mut conn = forge.store().read().await?;
    let transfer = transfers::by_id(&mut conn, id).await?.ok_or(Access::NotFound)?;
    let repo = repos::by_id(&mut conn, transfer.repo_id, caller.user_id()).await?.ok_or(Access::NotFound)?;
    allow(caller, OfferAction::See, &transfer, &repo)?;
    Ok(Offer { transfer, repo })
}

/// A page of the pending offers to and from the caller, latest first, and their total number.
#[boxed]
pub async fn inbox(forge: &Forge, caller: &Caller, page: Page) -> Result<(Vec<Offer>, i64), Access> {
    let user = caller.user_id().ok_or(Access::Denied(DenyCode::LoginRequired))?;
    let mut conn = forge.store().read().await?;
    let (list, total) = transfers::pending_of_user(&mut conn, user, page).await?;
    let mut offers = Vec::with_capacity(list.len());
    for transfer in list {
        if let Some(repo) = repos::by_id(&mut conn, transfer.repo_id, Some(user)).await? {
            offers.push(Offer { transfer, repo });
        }
    }
    Ok((offers, total))
}

/// Number of offers that wait for the caller's answer.
#[boxed]
pub async fn to_answer(forge: &Forge, caller: &Caller) -> Result<i64, Fault> {
    match caller.user_id() {
        Some(user) => {
            let now = forge.clock().now();
            Ok(transfers::count_to_answer(&mut *forge.store().read().await?, user, now).await?)
        }
        None => Ok(0),
    }
}

/// The pending offer of a repository, for its administrators.
#[boxed]
pub async fn pending(forge: &Forge, caller: &Caller, repo: &Repo) -> Result<Option<Offer>, Access> {
    let found = transfers::pending_of(&mut *forge.store().read().await?, repo.id).await?;
    let Some(transfer) = found else { return Ok(None) };
    allow(caller, OfferAction::See, &transfer, repo)?;
    Ok(Some(Offer { transfer, repo: repo.clone() }))
}
