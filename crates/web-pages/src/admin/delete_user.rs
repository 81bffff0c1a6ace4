//! Deleting a user's account: a page that lists the consequences and asks for the account name.

use super::users::target;
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::member::Admin;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::settings::delete::remains;
use crate::show::time;
use abide_core::UserId;
use abide_forge::accounts;
use abide_forge::accounts::delete::{self, DeleteError};
use askama::Template;
use axum::extract::State;
use axum::response::Response;

#[derive(Template)]
#[template(path = "admin/delete_user.html")]
struct DeletePage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    id: UserId,
    name: String,
    typed: String,
    grace: String,
}

/// `GET /admin/users/{id}/delete`
pub(super) async fn ask(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    Ok(respond::page(&page(&app, &by, &page_path, Errors::none(), String::new()).await?))
}

async fn page(
    app: &App,
    by: &Admin,
    page_path: &PagePath,
    errors: Errors,
    typed: String,
) -> Result<DeletePage, Problem> {
    let id = target(page_path)?;
    let user = accounts::by_id(&app.forge, id).await?.filter(|user| !user.is_deleted());
    let name = user.ok_or_else(Problem::not_found)?.handle().map(|name| name.to_string()).unwrap_or_default();
    let grace = time::days(app.forge.settings().lifecycle.grace);
    let frame = Frame::new(app, &by.visitor, "Delete an account");
    Ok(DeletePage { frame, section: "users", errors, id, name, typed, grace })
}

/// `POST /admin/users/{id}/delete`
pub(super) async fn delete(
    State(app): State<App>,
    by: Admin,
    page_path: PagePath,
    form: Form,
) -> Result<Response, Problem> {
    let (typed, asked) = (form.text("name"), page(&app, &by, &page_path, Errors::none(), form.text("name")).await?);
    let errors = if typed.trim() != asked.name {
        Errors::of(&["name"], &DeleteError::Unconfirmed)
    } else {
        match delete::delete_by_admin(&app.forge, &by.viewer.caller, asked.id, remains(&form)).await {
            Ok(()) => return Ok(respond::see_other("/admin/users?done=user-deleted")),
            Err(DeleteError::Access(access)) => return Err(access.into()),
            Err(error) => Errors::of(&["name"], &error),
        }
    };
    Ok(respond::form_again(&DeletePage { errors, ..asked }))
}
