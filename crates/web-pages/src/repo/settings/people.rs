//! Collaborators of a repository.

use super::ask;
use crate::App;
use crate::ask::Question;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::repo::head::{Elsewhere, Head, Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::UserName;
use abide_core::policy::{self, Action};
use abide_core::repo::Role;
use abide_forge::accounts::{self, User};
use abide_forge::repos::Page;
use abide_forge::repos::collaborators::{self, CollaboratorError};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;

#[derive(Template)]
#[template(path = "repo/settings/collaborators.html")]
struct PeoplePage {
    frame: Frame,
    head: Head,
    section: &'static str,
    errors: Errors,
    typed: String,
    can_manage: bool,
    roles: [(&'static str, &'static str); 5],
    people: Vec<Person>,
}

struct Person {
    name: String,
    role: &'static str,
}

const ROLES: [(&str, &str); 5] = [
    ("read", "Read and clone, even if the repository is private."),
    ("triage", "Read, plus managing issues: label, assign, close."),
    ("write", "Triage, plus pushing."),
    ("maintain", "Write, plus editing description and topics."),
    ("admin", "Full access: collaborators, visibility, rename and delete."),
];

/// Collaborators on the page; the API lists more.
const SHOWN: i64 = 500;

/// `GET /{owner}/{repo}/settings/collaborators`
pub(in crate::repo) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    room.ensure(&app, Action::CollaboratorList).await?;
    Ok(respond::page(&page(&app, &room, Errors::none(), String::new()).await?))
}

/// `POST /{owner}/{repo}/settings/collaborators`
pub(in crate::repo) async fn set(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    room.ensure(&app, Action::CollaboratorManage).await?;
    let typed = form.text("user").trim().to_lowercase();
    let role: Role = form
        .text("role")
        .parse()
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "Choose one of the five roles."))?;
    let Some(user) = find(&app, &typed).await? else {
        let errors = Errors::at("user", "no account has this name");
        return Ok(respond::form_again(&page(&app, &room, errors, typed).await?));
    };
    match collaborators::set(&app.forge, &room.visitor.caller(), room.repo(), &user, role).await {
        Ok(_) => Ok(back(&room, "saved")),
        Err(CollaboratorError::Access(access)) => Err(access.into()),
        Err(error @ CollaboratorError::IsOwner) => {
            let errors = Errors::at("user", &error.to_string());
            Ok(respond::form_again(&page(&app, &room, errors, typed).await?))
        }
    }
}

/// `GET /{owner}/{repo}/settings/collaborators/remove?user=…`
pub(in crate::repo) async fn ask(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::enter(&app, visitor, &page_path, Action::CollaboratorManage).await?;
    let user = find(&app, &page_path.query_text("user")).await?.ok_or_else(Problem::not_found)?;
    let role = collaborators::role(&app.forge, room.repo(), user.id).await?;
    let role = role.filter(|_| user.id != room.repo().owner_id).ok_or_else(Problem::not_found)?;
    let name = user.handle().map(|handle| handle.to_string()).unwrap_or_default();
    let list = format!("/{}/settings/collaborators", room.repo().slug());
    let mut consequences = vec![
        format!("{name} loses the {role} role in {} at once, for git, pages and the API.", room.repo().shown()),
        "Their commits, issues and comments stay.".to_owned(),
    ];
    if !policy::can(&user.actor(), Action::RepoRead, &room.repo().facts(), None).is_allowed() {
        consequences.push("They can no longer read this private repository. Their clones are not affected.".to_owned());
    }
    let question = Question {
        title: format!("Remove {name}?"),
        consequences,
        action: format!("{list}/remove"),
        button: "Remove collaborator".into(),
        back: list,
        hidden: vec![("user", name)],
        ..Question::default()
    };
    Ok(ask::ask_in(&app, &room, "collaborators", question).await)
}

/// `POST /{owner}/{repo}/settings/collaborators/remove`
pub(in crate::repo) async fn remove(
    State(app): State<App>,
    visitor: Visitor,
    page_path: PagePath,
    form: Form,
) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    let user = find(&app, &form.text("user")).await?.ok_or_else(Problem::not_found)?;
    match collaborators::remove(&app.forge, &room.visitor.caller(), room.repo(), &user).await {
        Ok(_) => Ok(back(&room, "removed")),
        Err(CollaboratorError::Access(access)) => Err(access.into()),
        Err(error) => Err(Problem::new(StatusCode::BAD_REQUEST, error.to_string()).into()),
    }
}

fn back(room: &Room, done: &str) -> axum::response::Response {
    respond::see_other(&format!("/{}/settings/collaborators?done={done}", room.repo().slug()))
}

async fn find(app: &App, typed: &str) -> Result<Option<User>, Problem> {
    match typed.parse::<UserName>() {
        Ok(name) => Ok(accounts::find(&app.forge, &name).await?),
        Err(_) => Ok(None),
    }
}

async fn page(app: &App, room: &Room, errors: Errors, typed: String) -> Result<PeoplePage, Elsewhere> {
    let (people, _) = collaborators::list(&app.forge, room.repo(), Page { limit: SHOWN, offset: 0 }).await?;
    let people = people.into_iter().map(|person| Person {
        name: person.name.as_ref().map(ToString::to_string).unwrap_or_default(),
        role: person.role.as_str(),
    });
    Ok(PeoplePage {
        frame: Frame::new(app, &room.visitor, format!("Collaborators · {}", room.repo().shown())),
        head: room.head(app, "settings").await,
        section: "collaborators",
        errors,
        typed,
        can_manage: room.may(Action::CollaboratorManage),
        roles: ROLES,
        people: people.collect(),
    })
}
