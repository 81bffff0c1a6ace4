//! General settings of a repository.

use super::transfer;
use crate::App;
use crate::errors::Errors;
use crate::form::Form;
use crate::frame::Frame;
use crate::path::PagePath;
use crate::repo::head::{Elsewhere, Head, Room, Shown};
use crate::respond;
use crate::visitor::Visitor;
use abide_core::Timestamp;
use abide_core::policy::Action;
use abide_forge::browse::{BrowseError, RefKind};
use abide_forge::repos::edit::{self, EditError};
use abide_forge::repos::topics::{self, TopicsError};
use askama::Template;
use axum::extract::State;

#[derive(Template)]
#[template(path = "repo/settings/general.html")]
struct GeneralPage {
    frame: Frame,
    head: Head,
    section: &'static str,
    errors: Errors,
    typed: Typed,
    can_edit: bool,
    can_set_branch: bool,
    /// Danger zone, if the visitor may use it.
    danger: Option<Danger>,
    branches: Branches,
}

/// The menu of the default branch.
struct Branches {
    /// The default branch, then newest first.
    names: Vec<String>,
    /// Text that the branch names contain.
    filter: String,
    /// Number of matching branches; if not all are shown, the page has a filter.
    total: usize,
    /// Whether the default branch was pushed.
    has_default: bool,
}

impl Branches {
    fn filterable(&self) -> bool {
        !self.filter.is_empty() || self.total > self.names.len()
    }
}

struct Danger {
    /// End of the grace period if it were deleted now.
    restore_until: Timestamp,
    waiting: Option<Waiting>,
}

/// An offer that waits for an answer.
struct Waiting {
    id: i64,
    to: String,
    expires_at: Timestamp,
}

struct Typed {
    description: String,
    topics: String,
    default_branch: String,
}

/// `GET /{owner}/{repo}/settings`
pub(in crate::repo) async fn show(State(app): State<App>, visitor: Visitor, page_path: PagePath) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    if !room.may(Action::RepoDelete) {
        room.ensure(&app, Action::RepoEdit).await?;
    }
    let typed = present(&app, &room).await?;
    Ok(respond::page(&page(&app, &room, &page_path, Errors::none(), typed).await?))
}

/// Current settings of the repository.
async fn present(app: &App, room: &Room) -> Result<Typed, Elsewhere> {
    let repo = room.repo();
    let topics: Vec<String> = topics::of(&app.forge, repo).await?.iter().map(ToString::to_string).collect();
    Ok(Typed {
        description: repo.description.clone(),
        topics: topics.join(" "),
        default_branch: repo.default_branch.short().to_owned(),
    })
}

/// `POST /{owner}/{repo}/settings`: the default branch has a form of its own, so absent fields do not change.
pub(in crate::repo) async fn save(State(app): State<App>, visitor: Visitor, page_path: PagePath, form: Form) -> Shown {
    let room = Room::open(&app, visitor, &page_path).await?;
    match write(&app, &room, &form).await? {
        Ok(()) => Ok(respond::see_other(&format!("/{}/settings?done=saved", room.repo().slug()))),
        Err(errors) => {
            let present = present(&app, &room).await?;
            let typed = |name: &str, present: String| if form.ticked(name) { form.text(name) } else { present };
            let typed = Typed {
                description: typed("description", present.description),
                topics: typed("topics", present.topics),
                default_branch: typed("default_branch", present.default_branch),
            };
            Ok(respond::form_again(&page(&app, &room, &page_path, errors, typed).await?))
        }
    }
}

async fn write(app: &App, room: &Room, form: &Form) -> Result<Result<(), Errors>, Elsewhere> {
    let caller = room.visitor.caller();
    let request = edit::Request {
        description: form.ticked("description").then(|| form.text("description")),
        default_branch: form.filled("default_branch"),
        ..edit::Request::default()
    };
    match edit::edit(&app.forge, &caller, room.repo(), request).await {
        Ok(_) => (),
        Err(EditError::Access(access)) => return Err(access.into()),
        Err(error) => return Ok(Err(Errors::of(&["description", "default_branch"], &error))),
    }
    if !form.ticked("topics") {
        return Ok(Ok(()));
    }
    let words: Vec<String> =
        form.text("topics").split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    match topics::replace(&app.forge, &caller, room.repo(), &words).await {
        Ok(_) => Ok(Ok(())),
        Err(TopicsError::Access(access)) => Err(access.into()),
        Err(TopicsError::Invalid(invalid)) => Ok(Err(Errors::at("topics", &invalid.to_string()))),
    }
}

async fn danger(app: &App, room: &Room) -> Result<Option<Danger>, Elsewhere> {
    if !room.may(Action::RepoAdmin) {
        return Ok(None);
    }
    let waiting = transfer::waiting(app, room).await?.map(|offer| Waiting {
        id: offer.transfer.id.get(),
        to: offer.transfer.recipient_name.as_ref().map(ToString::to_string).unwrap_or_default(),
        expires_at: offer.transfer.expires_at,
    });
    let restore_until = app.forge.clock().now().plus(app.forge.settings().lifecycle.grace);
    Ok(Some(Danger { restore_until, waiting }))
}

/// Branches in the menu; the filter finds the others.
const OFFERED: usize = 100;

async fn branches(room: &Room, filter: String) -> Result<Branches, BrowseError> {
    let found = room.browser.newest(RefKind::Branch, &filter, 0, OFFERED).await?;
    let prefix = RefKind::Branch.prefix();
    let named = found.items.iter().filter_map(|found| std::str::from_utf8(&found.name).ok()?.strip_prefix(prefix));
    let default = &room.repo().default_branch;
    let mut names: Vec<String> = named.map(str::to_owned).collect();
    // The current default branch is always in the menu, so that saving without a choice changes nothing.
    if !names.iter().any(|name| name == default.short()) {
        names.insert(0, default.short().to_owned());
    }
    let has_default = room.browser.refs().get(default.as_str().as_bytes()).is_some();
    Ok(Branches { names, filter, total: found.total, has_default })
}

async fn page(
    app: &App,
    room: &Room,
    page_path: &PagePath,
    errors: Errors,
    typed: Typed,
) -> Result<GeneralPage, Elsewhere> {
    Ok(GeneralPage {
        frame: Frame::new(app, &room.visitor, format!("Settings · {}", room.repo().shown())),
        head: room.head(app, "settings").await,
        section: "general",
        errors,
        typed,
        can_edit: room.may(Action::RepoEdit),
        can_set_branch: room.may(Action::DefaultBranchSet),
        danger: danger(app, room).await?,
        branches: branches(room, page_path.query_text("branches")).await?,
    })
}
