//! Notifications, in the inbox and by mail.
//!
//! The consumer ([`Notifications`]) reads the event log, asks the rule (`abide_core::notify`) about every account that an
//! event may concern, and writes a notification for each recipient; one to be mailed has a due time. [`mailing`] turns due
//! rows into mails, [`letter`] has their texts. Changes of a repository itself are mailed at once: [`lifecycle`]. [`inbox`],
//! [`preferences`] and [`unsubscribe`] are for the recipients.

mod fan_out;
pub mod inbox;
mod letter;
mod lifecycle;
pub(crate) mod mailing;
pub mod preferences;
mod title;
pub mod unsubscribe;

use abide_core::attention::event_visible;
use abide_core::notify::Sight;
use abide_core::policy::{self, Action, Actor};
use abide_core::repo::Role;
use abide_store::repos::Repo;

pub use abide_core::notify::{Reason, State, Subject};
pub use abide_store::attention::inbox::{Filter, Item, Waiting};
pub use fan_out::Notifications;

/// Visibility of an event in a repository for one person.
fn sight(actor: &Actor, public_then: bool, repo: &Repo, role: Option<Role>) -> Sight {
    let facts = repo.facts();
    if event_visible(actor, public_then, &facts, role) {
        return Sight::Event;
    }
    match policy::can(actor, Action::RepoRead, &facts, role).is_allowed() {
        true => Sight::Repo,
        false => Sight::Nothing,
    }
}
