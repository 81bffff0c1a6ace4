//! Title of a change of a repository, for the inbox and for mail subjects. It addresses its reader as "you".

use abide_core::UserId;
use abide_core::event::{RoleChange, Transfer};
use abide_core::notify::RepoChange;
use abide_core::repo::Role;

/// Names the people of an event for one reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub reader: UserId,
    pub actor: Option<UserId>,
    /// `None` for the operator.
    pub actor_name: Option<&'a str>,
}

impl Names<'_> {
    /// Subject of a sentence.
    pub(super) fn actor(&self) -> &str {
        match self.actor_name {
            _ if self.actor == Some(self.reader) => "You",
            Some(name) => name,
            None => "The operator of this site",
        }
    }

    /// Object of a sentence.
    pub(super) fn of<'b>(&self, user: UserId, name: Option<&'b str>) -> &'b str {
        if user == self.reader { "you" } else { name.unwrap_or("someone") }
    }

    pub(super) fn from<'b>(&self, transfer: &'b Transfer) -> &'b str {
        self.of(transfer.from_id, transfer.from.as_deref())
    }

    pub(super) fn to<'b>(&self, transfer: &'b Transfer) -> &'b str {
        self.of(transfer.to_id, transfer.to.as_deref())
    }

    pub(super) fn collaborator<'b>(&self, change: &'b RoleChange) -> &'b str {
        self.of(change.user_id, Some(&change.user))
    }
}

pub(super) fn title(change: RepoChange<'_>, names: Names<'_>) -> String {
    let actor = names.actor();
    let role = |role: Option<Role>| role.map_or("none", Role::as_str);
    match change {
        RepoChange::Renamed(names) => format!("Renamed from {} to {}", names.old_name, names.new_name),
        RepoChange::Archived => "Archived".into(),
        RepoChange::Unarchived => "Unarchived".into(),
        RepoChange::VisibilityChanged(changed) => format!("Made {}", changed.after),
        RepoChange::TransferRequested(offer) => {
            let verb = if names.actor == Some(names.reader) { "offered" } else { "wants" };
            format!("{actor} {verb} to transfer {} to {}", offer.offered_as, names.to(offer))
        }
        // The recipient is the actor of an acceptance, so the title names the former owner instead.
        RepoChange::TransferAccepted(offer) if offer.to_id == names.reader && names.actor.is_some() => {
            format!("{} transferred {} to you", names.from(offer), offer.offered_as)
        }
        RepoChange::TransferAccepted(offer) if names.actor.is_none() => {
            format!("{actor} transferred {} to {}", offer.offered_as, names.to(offer))
        }
        RepoChange::TransferAccepted(offer) => format!("Transferred from {} to {}", names.from(offer), names.to(offer)),
        RepoChange::TransferDeclined(offer) => format!("Transfer declined by {}", names.to(offer)),
        RepoChange::TransferCanceled(offer) => format!("Transfer to {} cancelled", names.to(offer)),
        RepoChange::TransferExpired(offer) => format!("Transfer to {} expired", names.to(offer)),
        RepoChange::Restored => "Restored".into(),
        RepoChange::SoftDeleted(_) => "Deleted".into(),
        RepoChange::HardDeleted(_) => "Deleted permanently".into(),
        RepoChange::RedirectReleased(released) => format!("Old name {} released", released.old_name),
        RepoChange::CollaboratorAdded(added) => {
            format!("{actor} added {} as a collaborator ({})", names.collaborator(added), role(added.after))
        }
        RepoChange::CollaboratorChanged(changed) => match changed.user_id == names.reader {
            true => format!("{actor} changed your role to {}", role(changed.after)),
            false => format!("{actor} changed the role of {} to {}", changed.user, role(changed.after)),
        },
        RepoChange::CollaboratorRemoved(removed) if names.actor == Some(removed.user_id) => {
            format!("{actor} left the repository")
        }
        RepoChange::CollaboratorRemoved(removed) => {
            format!("{actor} removed {} as a collaborator", names.collaborator(removed))
        }
        RepoChange::WebhookSuspended(hook) => format!("Webhook to {} suspended", hook.host),
        RepoChange::WebhookResumed(hook) => format!("Webhook to {} resumed", hook.host),
    }
}
