//! Deleting a webhook, after a page that lists the consequences.

use super::{at, enter};
use crate::App;
use crate::ask::Question;
use crate::form::Form;
use crate::path::PagePath;
use crate::repo::head::Shown;
use crate::repo::settings::ask;
use crate::respond;
use crate::show::text;
use crate::visitor::Visitor;
use abide_core::policy::Action;
use abide_forge::webhooks::remove;
use axum::extract::State;

/// `GET /{owner}/{repo}/settings/webhooks/{hook}/delete`
pub(in crate::repo) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let (room, seen) = enter(&app, visitor, &page_path, Action::WebhookManage).await?;
    let mut consequences = vec!["This URL receives no more events from this repository.".to_owned()];
    if let Some(waiting) = usize::try_from(seen.waiting).ok().filter(|&waiting| waiting > 0) {
        consequences.push(format!("{} in the queue will not be sent.", text::count(waiting, "delivery", "deliveries")));
    }
    consequences.push("Its deliveries and its secret are deleted. This cannot be undone.".to_owned());
    let own = at(&room, &format!("/{}", seen.hook.id));
    let question = Question {
        title: "Delete this webhook?".into(),
        about: seen.hook.url.clone(),
        consequences,
        action: format!("{own}/delete"),
        button: "Delete webhook".into(),
        back: own,
        ..Question::default()
    };
    Ok(ask::ask_in(&app, &room, "webhooks", question).await)
}

/// `POST /{owner}/{repo}/settings/webhooks/{hook}/delete`
pub(in crate::repo) async fn remove(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    _form: Form,
) -> Shown {
    let (room, seen) = enter(&app, visitor, &page_path, Action::WebhookManage).await?;
    remove::remove(&app.forge, &room.visitor.caller(), room.repo(), seen.hook.id).await?;
    Ok(respond::see_other(&at(&room, "?done=removed")))
}
