//! E-mail settings.

use crate::App;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Member;
use crate::problem::Problem;
use crate::respond;
use abide_forge::accounts::emails;
use abide_forge::notify::{Reason, preferences};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "settings/notifications.html")]
struct NotificationsPage {
    frame: Frame,
    section: &'static str,
    /// Each reason with its description, and whether it is mailed.
    mails: Vec<(Reason, &'static str, bool)>,
    /// The verified primary address, if there is one.
    address: Option<String>,
}

fn said(reason: Reason) -> &'static str {
    match reason {
        Reason::ReviewRequested => "I am asked to review",
        Reason::Mention => "I am mentioned",
        Reason::Assign => "An issue is assigned to me",
        Reason::Lifecycle => "A repository of mine changes",
        Reason::Author => "There is activity on an issue I opened",
        Reason::Comment => "There is activity on an issue I commented on",
        Reason::Manual => "There is activity on an issue I subscribed to",
        Reason::Watching => "There is activity in a repository I watch",
    }
}

/// `GET /settings/notifications`
pub(super) async fn show(State(app): State<App>, member: Member) -> Result<Response, Problem> {
    let mails = preferences::mails(&app.forge, &member.viewer.caller).await?;
    let mails = mails.into_iter().map(|(reason, wanted)| (reason, said(reason), wanted)).collect();
    let addresses = emails::list(&app.forge, &member.viewer).await?;
    let verified = addresses.into_iter().find(|email| email.is_primary && email.verified_at.is_some());
    let frame = Frame::new(&app, &member.visitor, "Notifications");
    let address = verified.map(|email| email.address);
    Ok(respond::page(&NotificationsPage { frame, section: "notifications", mails, address }))
}

/// `POST /settings/notifications`
pub(super) async fn save(State(app): State<App>, member: Member, form: Form) -> Result<Response, Problem> {
    let wanted: Vec<Reason> = form.all("mail").filter_map(|word| word.parse().ok()).collect();
    preferences::set_mails(&app.forge, &member.viewer.caller, &wanted).await?;
    Ok(respond::see_other("/settings/notifications?done=saved"))
}
