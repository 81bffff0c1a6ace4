//! Accounts, and the actions of a site admin on them.

use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::links::Links;
use crate::member::Admin;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::show::text;
use abide_core::{Timestamp, UserId, UserName};
use abide_forge::accounts::admin::{self, AdminError};
use abide_forge::accounts::rename::OldName;
use abide_forge::accounts::reset_factor;
use abide_forge::accounts::{self, User};
use abide_forge::repos::Page;
use askama::Template;
use axum::extract::State;
use axum::response::Response;

const PER_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "admin/users.html")]
struct UsersPage {
    frame: Frame,
    section: &'static str,
    query: String,
    users: Vec<Row>,
    total: String,
    links: Links,
}

#[derive(Template)]
#[template(path = "admin/user.html")]
struct UserPage {
    frame: Frame,
    section: &'static str,
    errors: Errors,
    row: Row,
    two_factor: bool,
    old_names: Vec<OldName>,
}

/// An account as these pages show it.
struct Row {
    id: i64,
    name: String,
    display_name: String,
    email: String,
    site_admin: bool,
    suspended: bool,
    created_at: Timestamp,
    repos: String,
    is_me: bool,
}

impl Row {
    fn new(user: User, repos: i64, me: UserId) -> Self {
        Self {
            is_me: user.id == me,
            id: user.id.get(),
            name: user.handle().map(|handle| handle.to_string()).unwrap_or_default(),
            display_name: user.display_name.unwrap_or_default(),
            email: user.email.unwrap_or_default(),
            site_admin: user.site_admin,
            suspended: user.suspended_at.is_some(),
            created_at: user.created_at,
            repos: text::count(usize::try_from(repos).unwrap_or(0), "repository", "repositories"),
        }
    }
}

/// `GET /admin/users`
pub(super) async fn list(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    let (query, page) = (page_path.query_text("q"), page_path.page());
    let wanted = Page { limit: PER_PAGE as i64, offset: ((page - 1) * PER_PAGE) as i64 };
    let (found, total) = admin::users(&app.forge, &by.by, Some(&query), wanted).await?;
    let me = by.viewer.user.id;
    Ok(respond::page(&UsersPage {
        frame: Frame::new(&app, &by.visitor, "Accounts"),
        section: "users",
        query,
        users: found.into_iter().map(|found| Row::new(found.user, found.repos, me)).collect(),
        total: text::count(usize::try_from(total).unwrap_or(0), "account", "accounts"),
        links: Links::around("/admin/users", &page_path, page, total > (page * PER_PAGE) as i64),
    }))
}

/// The account in the path.
pub(super) fn target(page_path: &PagePath) -> Result<UserId, Problem> {
    page_path.segment(2).parse().map(UserId::new).map_err(|_| Problem::not_found())
}

/// `GET /admin/users/{id}`
pub(super) async fn show(State(app): State<App>, by: Admin, page_path: PagePath) -> Result<Response, Problem> {
    Ok(respond::page(&page(&app, &by, &page_path, Errors::none()).await?))
}

async fn page(app: &App, by: &Admin, page_path: &PagePath, errors: Errors) -> Result<UserPage, Problem> {
    let id = target(page_path)?;
    let user = accounts::by_id(&app.forge, id).await?.filter(|user| !user.is_deleted());
    let user = user.ok_or_else(Problem::not_found)?;
    let old_names = admin::old_names(&app.forge, &by.by, id).await?;
    let two_factor = reset_factor::is_on(&app.forge, &by.by, id).await?;
    let row = Row::new(user, 0, by.viewer.user.id);
    let frame = Frame::new(app, &by.visitor, row.name.clone());
    Ok(UserPage { frame, section: "users", errors, row, two_factor, old_names })
}

/// `POST /admin/users/{id}/suspend`
pub(super) async fn suspend(
    State(app): State<App>,
    by: Admin,
    page_path: PagePath,
    _: Form,
) -> Result<Response, Problem> {
    let end = admin::suspend(&app.forge, &by.viewer.caller, target(&page_path)?).await;
    changed(&app, &by, &page_path, end, "suspended").await
}

/// `POST /admin/users/{id}/unsuspend`
pub(super) async fn unsuspend(
    State(app): State<App>,
    by: Admin,
    page_path: PagePath,
    _: Form,
) -> Result<Response, Problem> {
    let end = admin::unsuspend(&app.forge, &by.viewer.caller, target(&page_path)?).await;
    changed(&app, &by, &page_path, end, "unsuspended").await
}

/// `POST /admin/users/{id}/give-admin`
pub(super) async fn give_admin(
    State(app): State<App>,
    by: Admin,
    page_path: PagePath,
    _: Form,
) -> Result<Response, Problem> {
    let end = admin::set_admin(&app.forge, &by.viewer.caller, target(&page_path)?, true).await;
    changed(&app, &by, &page_path, end, "saved").await
}

/// `POST /admin/users/{id}/take-admin`
pub(super) async fn take_admin(
    State(app): State<App>,
    by: Admin,
    page_path: PagePath,
    _: Form,
) -> Result<Response, Problem> {
    let user = target(&page_path)?;
    let end = admin::set_admin(&app.forge, &by.viewer.caller, user, false).await;
    // An administrator who removed their own rights cannot see this page any more.
    if end.is_ok() && user == by.viewer.user.id {
        return Ok(respond::see_other("/?done=saved"));
    }
    changed(&app, &by, &page_path, end, "saved").await
}

/// `POST /admin/users/{id}/reset-two-factor`
pub(super) async fn reset_factor(
    State(app): State<App>,
    by: Admin,
    page_path: PagePath,
    _: Form,
) -> Result<Response, Problem> {
    let end = reset_factor::by_admin(&app.forge, &by.viewer.caller, target(&page_path)?).await;
    changed(&app, &by, &page_path, end, "two-factor-reset").await
}

async fn changed(
    app: &App,
    by: &Admin,
    page_path: &PagePath,
    end: Result<(), AdminError>,
    done: &str,
) -> Result<Response, Problem> {
    match end {
        Ok(()) => Ok(back(page_path, done)),
        Err(AdminError::Access(access)) => Err(access.into()),
        Err(AdminError::Refused(refusal)) => {
            Ok(respond::form_again(&page(app, by, page_path, Errors::at("", &refusal.to_string())).await?))
        }
    }
}

fn back(page_path: &PagePath, done: &str) -> Response {
    respond::see_other(&format!("/admin/users/{}?done={done}", page_path.segment(2)))
}

/// `POST /admin/users/{id}/release`
pub(super) async fn release(
    State(app): State<App>,
    by: Admin,
    page_path: PagePath,
    form: Form,
) -> Result<Response, Problem> {
    let name: UserName = form.text("name").parse().map_err(|_| Problem::not_found())?;
    // The name must belong to the account of the page, so that an outdated form cannot release another account's name.
    let old_names = admin::old_names(&app.forge, &by.by, target(&page_path)?).await?;
    if !old_names.iter().any(|old| old.name == name) {
        return Err(Problem::not_found());
    }
    match admin::release_name(&app.forge, &by.by, &name).await? {
        true => Ok(back(&page_path, "released")),
        false => Err(Problem::not_found()),
    }
}
