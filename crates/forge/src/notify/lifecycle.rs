//! What happens to a repository itself: whom it concerns, what the inbox calls it, and the mail about it.
//!
//! These mails go to everyone concerned, whether or not they may read the repository: who is offered a private one must
//! know, and who deleted one must be able to restore it. They wait for no window and cannot be turned off. The one who did
//! it gets one only about what cannot be undone or hands something away (`core::notify::mailed_to_actor`): whoever takes
//! over a session could otherwise give a repository away unnoticed. Only those who are brought in
//! without having asked (offered a repository, made a collaborator or an admin, or removed again) get no more than a few from one
//! person in an hour; the rest is in their inbox.

use super::MAX_ADMINS;
use crate::accounts::throttle;
use crate::mail::{self, letters::Letter};
use crate::{Fault, Forge};
use abide_core::repo::Role;
use abide_core::{UserId, notify};
use abide_store::events::Numbered;
use abide_store::{StoreError, Tx, notification_mail, notifications, repos, throttles, users};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// The people an event concerns: of an offer both sides, else the owner and the admins; the collaborator whose role changes;
/// and the actor.
pub(super) async fn concerned(tx: &mut Tx, event: &Numbered, payload: &Json) -> Result<Vec<UserId>, StoreError> {
    let ids = |fields: &[&str]| -> Vec<_> {
        fields.iter().filter_map(|field| payload[*field].as_i64()).map(UserId::new).collect()
    };
    // The operator hands over without asking: that it was accepted is the news.
    if event.kind == "repo_transfer_requested" && payload["status"] != "pending" {
        return Ok(Vec::new());
    }
    if event.kind.starts_with("repo_transfer_") {
        let both: BTreeSet<_> = ids(&["from_id", "to_id"]).into_iter().chain(event.actor).collect();
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
        // Who they were is in the event alone.
        None => {
            people.extend(ids(&["owner_id"]));
            let admins = payload["admins"].as_array().into_iter().flatten();
            people.extend(admins.filter_map(Json::as_i64).map(UserId::new));
        }
    }
    if changes_role(&event.kind) {
        people.extend(ids(&["user_id"]));
    }
    Ok(people.into_iter().collect())
}

/// Whether an event gives a collaborator a role or takes it away.
fn changes_role(kind: &str) -> bool {
    matches!(kind, "collaborator_added" | "collaborator_changed" | "collaborator_removed")
}

/// What a collaborator may from an event on.
pub(super) fn role(payload: &Json) -> Option<Role> {
    payload["after"].as_str()?.parse().ok()
}

/// What the inbox calls it.
pub(super) fn title(kind: &str, payload: &Json) -> String {
    let text = |field: &str| payload[field].as_str().unwrap_or("someone").to_owned();
    match kind {
        "repo_renamed" => format!("Renamed from {} to {}", text("old_name"), text("new_name")),
        "repo_archived" => "Archived".into(),
        "repo_unarchived" => "Unarchived".into(),
        "repo_visibility_changed" => format!("Made {}", text("after")),
        "repo_transfer_requested" => format!("{} wants to transfer this repository to {}", text("from"), text("to")),
        "repo_transfer_accepted" => format!("Transferred from {} to {}", text("from"), text("to")),
        "repo_transfer_declined" => format!("Transfer declined by {}", text("to")),
        "repo_transfer_canceled" => format!("Transfer to {} cancelled", text("to")),
        "repo_transfer_expired" => format!("Transfer to {} expired", text("to")),
        "repo_restored" => "Restored".into(),
        "repo_soft_deleted" => "Deleted".into(),
        "repo_hard_deleted" => "Deleted permanently".into(),
        "repo_redirect_released" => format!("Old name {} released", text("old_name")),
        "collaborator_added" => format!("{} was added as a collaborator ({})", text("user"), text("after")),
        "collaborator_changed" => format!("{} made {}", text("user"), text("after")),
        "collaborator_removed" => format!("{} is no longer a collaborator", text("user")),
        "webhook_suspended" => format!("Webhook to {} suspended", text("host")),
        "webhook_resumed" => format!("Webhook to {} resumed", text("host")),
        other => other.replace('_', " "),
    }
}

/// Queues the mails about an event to those whom it concerns.
pub(super) async fn mail(
    tx: &mut Tx,
    forge: &Forge,
    event: &Numbered,
    payload: &Json,
    people: &[UserId],
) -> Result<(), Fault> {
    if people.is_empty() {
        return Ok(());
    }
    let actor = match event.actor {
        Some(id) => {
            users::by_id(tx, id).await?.and_then(|user| user.handle()).map(|handle| handle.shown().into_owned())
        }
        None => None,
    };
    let role = role(payload);
    for (user, address) in notification_mail::addresses(tx, people).await? {
        if event.actor == Some(user) && !notify::mailed_to_actor(&event.kind, role) {
            continue;
        }
        if let Some(actor) = event.actor.filter(|actor| brought_in(&event.kind, payload, user) && *actor != user) {
            let limit = throttle::limit("brought-in", forge.settings().attention.mails_to_one);
            if throttles::hit(tx, limit, &format!("{actor}:{user}")).await?.is_some() {
                continue;
            }
        }
        let told = Told { kind: &event.kind, payload, forge, actor: actor.as_deref(), event, user };
        mail::enqueue(tx, forge, &address, &told.letter()).await?;
    }
    Ok(())
}

/// Whether an event is about someone who need not have asked for it.
fn brought_in(kind: &str, payload: &Json, user: UserId) -> bool {
    let field = if changes_role(kind) { "user_id" } else { "to_id" };
    (changes_role(kind) || kind.starts_with("repo_transfer_")) && payload[field].as_i64() == Some(user.get())
}

/// An event as one of those whom it concerns is told of it.
struct Told<'a> {
    kind: &'a str,
    payload: &'a Json,
    forge: &'a Forge,
    event: &'a Numbered,
    actor: Option<&'a str>,
    user: UserId,
}

impl Told<'_> {
    fn text(&self, field: &str) -> &str {
        self.payload[field].as_str().unwrap_or_default()
    }

    fn is(&self, field: &str) -> bool {
        self.payload[field].as_i64() == Some(self.user.get())
    }

    fn link(&self, path: &str) -> String {
        format!("{}{path}", self.forge.settings().public_url)
    }

    fn letter(&self) -> Letter {
        let slug = self.text("slug");
        let mut text = format!("{}\n", self.said());
        for part in self.next() {
            text.push_str(&format!("\n{part}\n"));
        }
        Letter { subject: format!("[{slug}] {}", title(self.kind, self.payload)), text }
    }

    /// What happened, in a sentence.
    fn said(&self) -> String {
        let slug = self.text("slug");
        let who = match self.actor {
            _ if self.event.actor == Some(self.user) => "You",
            Some(name) => name,
            None => "The operator of this site",
        };
        let (from, to) = (self.text("from"), self.text("to"));
        match self.kind {
            "repo_renamed" => {
                format!("{who} renamed the repository {} to {}.", self.text("old_name"), self.text("new_name"))
            }
            "repo_archived" => format!("{who} archived {slug}. It is read-only until it is unarchived."),
            "repo_unarchived" => format!("{who} unarchived {slug}. It accepts pushes again."),
            "repo_visibility_changed" => format!("{who} made {slug} {}.", self.text("after")),
            "repo_transfer_requested" => format!("{who} wants to transfer {slug} from {from} to {to}."),
            "repo_transfer_accepted" => {
                format!("{} was transferred from {from} to {to}.", self.text("offered_as"))
            }
            "repo_transfer_declined" => format!("{to} declined the transfer of {slug}. {from} remains the owner."),
            "repo_transfer_canceled" => {
                format!("{who} cancelled the transfer of {slug} to {to}. {from} remains the owner.")
            }
            "repo_transfer_expired" => {
                format!("The transfer of {slug} to {to} expired without an answer. {from} remains the owner.")
            }
            "repo_restored" => format!("{who} restored {slug} with all its data."),
            "repo_soft_deleted" => format!("{who} deleted the repository {slug}."),
            "repo_hard_deleted" => {
                format!("The repository {slug} was deleted permanently. It can no longer be restored.")
            }
            "repo_redirect_released" => {
                format!("{who} released the old name {} of {slug}. It no longer redirects.", self.text("old_name"))
            }
            "collaborator_added" => {
                format!(
                    "{who} added {} as a collaborator of {slug} with the {} role.",
                    self.text("user"),
                    self.text("after")
                )
            }
            "collaborator_changed" => format!(
                "{who} changed what {} may do in {slug}: {} instead of {}.",
                self.text("user"),
                self.text("after"),
                self.text("before")
            ),
            "collaborator_removed" if self.event.actor == Some(self.user) && self.is("user_id") => {
                format!("You left {slug}. You are no longer a collaborator.")
            }
            "collaborator_removed" if self.event.actor.map(UserId::get) == self.payload["user_id"].as_i64() => {
                format!("{who} left {slug} and is no longer a collaborator.")
            }
            "collaborator_removed" => {
                let removed = if self.is("user_id") { "you" } else { self.text("user") };
                format!(
                    "{who} removed {removed} from the collaborators of {slug}. The role was {}.",
                    self.text("before")
                )
            }
            "webhook_suspended" => format!(
                "The webhook of {slug} to {} is suspended: {} deliveries in a row failed. New deliveries are queued and \
                 sent in order once the receiver responds again; it is probed regularly.",
                self.text("host"),
                self.payload["failures"],
            ),
            "webhook_resumed" => {
                format!(
                    "The webhook of {slug} to {} responds again. Its queued deliveries are sent.",
                    self.text("host")
                )
            }
            other => format!("{slug}: {}.", other.replace('_', " ")),
        }
    }

    /// What can be done now, and where.
    fn next(&self) -> Vec<String> {
        let page = self.link(&format!("/{}", self.text("slug")));
        match self.kind {
            "repo_transfer_requested" => {
                let offer = self.link(&format!("/transfers/{}", self.payload["transfer_id"]));
                let until = self.text("expires_at");
                let what = match self.is("to_id") {
                    true => format!("Accept or decline it until {until} (UTC):"),
                    false => format!("You can cancel it until it is answered. It expires at {until} (UTC):"),
                };
                vec![what, offer]
            }
            "repo_soft_deleted" => {
                let until = self.text("restore_until");
                match self.is("owner_id") {
                    true => vec![
                        format!("You can restore it until {until} (UTC):"),
                        self.link(&format!("/settings/repositories#repo-{}", self.payload["repo_id"])),
                        "If this was not you, restore it and change your password.".into(),
                    ],
                    false => vec![format!("Its owner can restore it until {until} (UTC).")],
                }
            }
            "webhook_suspended" | "webhook_resumed" => {
                let hook = format!("/{}/settings/webhooks/{}", self.text("slug"), self.payload["hook_id"]);
                vec!["See responses and redeliver here:".into(), self.link(&hook)]
            }
            "repo_hard_deleted" => Vec::new(),
            // A former collaborator of a private repository cannot read it any more.
            "collaborator_removed" if self.is("user_id") && !self.event.public => Vec::new(),
            "repo_renamed" => vec!["The old address redirects to it:".into(), page],
            // The old owner may not be able to read it any more, so there is nothing to point at.
            "repo_transfer_accepted" if !self.is("to_id") => vec!["The old address redirects to it.".into()],
            _ if self.kind.starts_with("repo_transfer_")
                && self.is("to_id")
                && self.kind != "repo_transfer_accepted" =>
            {
                Vec::new()
            }
            _ => vec![page],
        }
    }
}
