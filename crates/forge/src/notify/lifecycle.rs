//! Events about a repository itself: the people concerned, and the mail.
//!
//! These mails go to everyone concerned, whether or not they may read the repository: the recipient of an offer must know
//! of a private repository, and its former owner must be able to restore a deleted one. They are sent at once and cannot be
//! turned off. The actor gets one only about a change that cannot be undone or that gives something away
//! ([`RepoChange::is_mailed_to_actor`]). People who did not ask (offered a repository, made a collaborator or an admin, or
//! removed again) get at most a few mails per actor and hour; the rest is in their inbox.

use super::title::{Names, title};
use crate::mail::{self, letters::Letter};
use crate::repos::purge::MAX_ADMINS;
use crate::throttle;
use crate::{Fault, Forge};
use abide_core::UserId;
use abide_core::event::Body;
use abide_core::notify::RepoChange;
use abide_core::repo::Role;
use abide_core::transfer::Status;
use abide_store::accounts::users;
use abide_store::attention::{notification_mail, notifications};
use abide_store::events::Numbered;
use abide_store::{StoreError, Tx, repos, throttles};
use std::collections::BTreeSet;

/// The people that a change concerns: both sides of an offer, otherwise the owner and the admins; a collaborator whose
/// role changes; and the actor.
pub(super) async fn concerned(
    tx: &mut Tx,
    event: &Numbered,
    body: &Body,
    change: RepoChange<'_>,
) -> Result<Vec<UserId>, StoreError> {
    // The operator transfers without an offer; only the accepted offer is reported.
    if matches!(change, RepoChange::TransferRequested(transfer) if transfer.status != Status::Pending) {
        return Ok(Vec::new());
    }
    if let Some(transfer) = change.transfer() {
        let both: BTreeSet<_> = [transfer.from_id, transfer.to_id].into_iter().chain(event.actor).collect();
        return Ok(both.into_iter().collect());
    }
    let repo = match event.repo {
        Some(id) => repos::by_id(tx, id, None).await?,
        None => None,
    };
    let mut people: BTreeSet<_> = event.actor.into_iter().collect();
    match repo {
        Some(repo) => {
            people.insert(repo.owner_id);
            people.extend(notifications::admins(tx, repo.id, MAX_ADMINS).await?);
        }
        // The row is deleted; only the event has them.
        None => {
            people.extend(body.repo.owner_id);
            if let RepoChange::HardDeleted(deleted) = change {
                people.extend(&deleted.admins);
            }
        }
    }
    people.extend(change.collaborator().map(|collaborator| collaborator.user_id));
    Ok(people.into_iter().collect())
}

/// Name of the actor; `None` if the operator acted.
pub(super) async fn actor_name(tx: &mut Tx, event: &Numbered) -> Result<Option<String>, StoreError> {
    let Some(id) = event.actor else { return Ok(None) };
    let user = users::by_id(tx, id).await?;
    Ok(user.and_then(|user| user.handle()).map(|handle| handle.shown().into_owned()))
}

/// Queues the mails about a change to the people it concerns.
pub(super) async fn mail(
    tx: &mut Tx,
    forge: &Forge,
    event: &Numbered,
    body: &Body,
    change: RepoChange<'_>,
    actor_name: Option<&str>,
    people: &[UserId],
) -> Result<(), Fault> {
    if people.is_empty() {
        return Ok(());
    }
    for (user, address) in notification_mail::addresses(tx, people).await? {
        if event.actor == Some(user) && !change.is_mailed_to_actor() {
            continue;
        }
        if let Some(actor) = event.actor.filter(|actor| change.brought_in() == Some(user) && *actor != user) {
            let limit = throttle::limit("brought-in", forge.settings().attention.mails_to_one);
            if throttles::hit(tx, limit, &format!("{actor}:{user}")).await?.is_some() {
                continue;
            }
        }
        let names = Names { reader: user, actor: event.actor, actor_name };
        let mail = Mail { change, body, forge, names, event, user };
        mail::enqueue(tx, forge, &address, &mail.letter()).await?;
    }
    Ok(())
}

/// A change, as the mail to one of the people reports it.
struct Mail<'a> {
    change: RepoChange<'a>,
    body: &'a Body,
    forge: &'a Forge,
    event: &'a Numbered,
    names: Names<'a>,
    user: UserId,
}

impl Mail<'_> {
    /// Slug at the time of the event.
    fn slug(&self) -> &str {
        self.body.repo.slug.as_deref().unwrap_or_default()
    }

    fn link(&self, path: &str) -> String {
        format!("{}{path}", self.forge.settings().public_url)
    }

    fn letter(&self) -> Letter {
        let mut text = format!("{}\n", self.said());
        for part in self.next() {
            text.push_str(&format!("\n{part}\n"));
        }
        Letter { subject: format!("[{}] {}", self.slug(), title(self.change, self.names)), text }
    }

    /// The change in a sentence.
    fn said(&self) -> String {
        let (slug, names) = (self.slug(), self.names);
        let who = names.actor();
        let transfer = self.change.transfer();
        let from = transfer.map_or("", |offer| names.from(offer));
        let to = transfer.map_or("", |offer| names.to(offer));
        let role = |role: Option<Role>| role.map_or("", Role::as_str);
        match self.change {
            RepoChange::Renamed(names) => {
                format!("{who} renamed the repository {} to {}.", names.old_name, names.new_name)
            }
            RepoChange::Archived => format!("{who} archived {slug}. It is read-only until it is unarchived."),
            RepoChange::Unarchived => format!("{who} unarchived {slug}. It accepts pushes again."),
            RepoChange::VisibilityChanged(changed) => format!("{who} made {slug} {}.", changed.after),
            RepoChange::TransferRequested(_) if self.event.actor == Some(self.user) => {
                format!("You offered to transfer {slug} to {to}.")
            }
            RepoChange::TransferRequested(_) => format!("{who} wants to transfer {slug} to {to}."),
            RepoChange::TransferAccepted(offer) => {
                format!("{} was transferred from {from} to {to}.", offer.offered_as)
            }
            RepoChange::TransferDeclined(_) => {
                format!("{to} declined the transfer of {slug}. It stays with {from}.")
            }
            RepoChange::TransferCanceled(_) => {
                format!("{who} cancelled the transfer of {slug} to {to}. It stays with {from}.")
            }
            RepoChange::TransferExpired(_) => {
                format!("The transfer of {slug} to {to} expired without an answer. It stays with {from}.")
            }
            RepoChange::Restored => format!("{who} restored {slug} with all its data."),
            RepoChange::SoftDeleted(_) => format!("{who} deleted the repository {slug}."),
            RepoChange::HardDeleted(_) => {
                format!("The repository {slug} was deleted permanently. It can no longer be restored.")
            }
            RepoChange::RedirectReleased(released) => {
                format!("{who} released the old name {} of {slug}. It no longer redirects.", released.old_name)
            }
            RepoChange::CollaboratorAdded(added) => {
                format!(
                    "{who} added {} as a collaborator of {slug} with the {} role.",
                    names.collaborator(added),
                    role(added.after)
                )
            }
            RepoChange::CollaboratorChanged(changed) => format!(
                "{who} changed the role of {} in {slug} to {}. The role was {}.",
                names.collaborator(changed),
                role(changed.after),
                role(changed.before)
            ),
            RepoChange::CollaboratorRemoved(removed) => {
                let (is_actor, is_reader) = (self.event.actor == Some(removed.user_id), removed.user_id == self.user);
                match (is_actor, is_reader) {
                    (true, true) => format!("You left {slug}. You are no longer a collaborator."),
                    (true, false) => format!("{who} left {slug} and is no longer a collaborator."),
                    (false, _) => {
                        let (name, before) = (names.collaborator(removed), role(removed.before));
                        format!("{who} removed {name} from the collaborators of {slug}. The role was {before}.")
                    }
                }
            }
            RepoChange::WebhookSuspended(hook) => format!(
                "The webhook of {slug} to {} is suspended: {} deliveries in a row failed. New deliveries are queued and \
                 sent in order once the receiver responds again; it is probed regularly.",
                hook.host, hook.failures,
            ),
            RepoChange::WebhookResumed(hook) => {
                format!("The webhook of {slug} to {} responds again. Its queued deliveries are sent.", hook.host)
            }
        }
    }

    /// The next steps, with their URLs.
    fn next(&self) -> Vec<String> {
        let page = self.link(&format!("/{}", self.slug()));
        match self.change {
            RepoChange::TransferRequested(transfer) => {
                let offer = self.link(&format!("/transfers/{}", transfer.transfer_id));
                let until = transfer.expires_at;
                let what = match transfer.to_id == self.user {
                    true => format!("Accept or decline it until {until} (UTC):"),
                    false => format!("You can cancel it until it is answered. It expires at {until} (UTC):"),
                };
                vec![what, offer]
            }
            RepoChange::SoftDeleted(deleted) => {
                let until = deleted.restore_until.map(|until| until.to_string()).unwrap_or_default();
                match self.body.repo.owner_id == Some(self.user) {
                    true => {
                        let repo = self.body.repo.repo_id.map(|id| id.to_string()).unwrap_or_default();
                        vec![
                            format!("You can restore it until {until} (UTC):"),
                            self.link(&format!("/settings/repositories#repo-{repo}")),
                            "If this was not you, restore it and change your password.".into(),
                        ]
                    }
                    false => vec![format!("Its owner can restore it until {until} (UTC).")],
                }
            }
            RepoChange::WebhookSuspended(hook) | RepoChange::WebhookResumed(hook) => {
                let page = format!("/{}/settings/webhooks/{}", self.slug(), hook.hook_id);
                vec!["See responses and redeliver here:".into(), self.link(&page)]
            }
            RepoChange::HardDeleted(_) => Vec::new(),
            // A former collaborator of a private repository cannot read it any more.
            RepoChange::CollaboratorRemoved(removed) if removed.user_id == self.user && !self.event.public => {
                Vec::new()
            }
            RepoChange::Renamed(_) => vec!["The old URL redirects to it:".into(), page],
            // The old owner may have lost read access, so there is no URL to give.
            RepoChange::TransferAccepted(transfer) if transfer.to_id != self.user => {
                vec!["The old URL redirects to it.".into()]
            }
            RepoChange::TransferDeclined(transfer)
            | RepoChange::TransferCanceled(transfer)
            | RepoChange::TransferExpired(transfer)
                if transfer.to_id == self.user =>
            {
                Vec::new()
            }
            RepoChange::TransferAccepted(_)
            | RepoChange::TransferDeclined(_)
            | RepoChange::TransferCanceled(_)
            | RepoChange::TransferExpired(_)
            | RepoChange::Archived
            | RepoChange::Unarchived
            | RepoChange::VisibilityChanged(_)
            | RepoChange::Restored
            | RepoChange::RedirectReleased(_)
            | RepoChange::CollaboratorAdded(_)
            | RepoChange::CollaboratorChanged(_)
            | RepoChange::CollaboratorRemoved(_) => vec![page],
        }
    }
}
