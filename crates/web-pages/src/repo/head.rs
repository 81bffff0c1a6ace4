//! Opens a repository for a page, and loads the header of all its pages.

use super::attention::Attention;
use super::nostr::Governance;
use super::waiting;
use crate::App;
use crate::path::PagePath;
use crate::problem::Problem;
use crate::respond;
use crate::show::text::{self, url_path};
use crate::visitor::Visitor;
use abide_core::Timestamp;
use abide_core::lifecycle::{Action as Life, Refusal};
use abide_core::policy::{Action, DenyCode};
use abide_core::repo::{Governance as Governed, Role};
use abide_forge::Access;
use abide_forge::browse::{self, BrowseError, Browser, CommitPath, ObjectError};
use abide_forge::issues::show as issues;
use abide_forge::repos::open::{self, RepoLocator};
use abide_forge::repos::{LifeError, Repo};
use abide_nostr::nip19;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;

/// Header of a repository's pages.
pub(super) struct Head {
    pub owner: String,
    pub name: String,
    /// Base URL of its pages.
    pub url: String,
    pub description: String,
    pub private: bool,
    pub archived: bool,
    pub archived_at: Option<Timestamp>,
    pub empty: bool,
    pub has_tags: bool,
    pub fork_of: Option<String>,
    pub branches: String,
    pub tags: String,
    pub issues: String,
    pub default_branch: String,
    pub default_branch_query: String,
    pub clone_http: String,
    pub clone_ssh: String,
    pub permalink: String,
    pub pushed_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub size: String,
    pub can_edit: bool,
    pub can_push: bool,
    pub can_fork: bool,
    pub can_see_people: bool,
    pub can_unarchive: bool,
    pub can_read_audit: bool,
    pub can_see_hooks: bool,
    pub attention: Attention,
    /// The nostr key that owns the repository, if one does.
    pub nostr: Option<Governance>,
    pub tab: &'static str,
}

/// An error page, or a redirect.
pub(crate) enum Elsewhere {
    Problem(Problem),
    To(Response),
}

impl<E: Into<Problem>> From<E> for Elsewhere {
    fn from(error: E) -> Self {
        Self::Problem(error.into())
    }
}

impl IntoResponse for Elsewhere {
    fn into_response(self) -> Response {
        match self {
            Self::Problem(problem) => problem.into_response(),
            Self::To(response) => response,
        }
    }
}

/// Response of a repository's page.
pub(crate) type Shown = Result<Response, Elsewhere>;

/// The locators of a page path, in the order in which they are tried. `.git` after a name is removed; but a nostr
/// identifier can be any text and may itself end in `.git`.
fn locators(page_path: &PagePath) -> (RepoLocator, Option<RepoLocator>) {
    let (owner, typed) = (page_path.segment(0), page_path.segment(1));
    let bare = typed.strip_suffix(".git");
    match nip19::parse_npub(owner) {
        Err(_) => (RepoLocator::slug(owner, bare.unwrap_or(typed)), None),
        Ok(owner) => {
            let locator = |raw: &str| RepoLocator::Nostr { owner, identifier: decoded(raw) };
            (locator(typed), bare.map(locator))
        }
    }
}

/// Identifiers are UTF-8; the replacement character makes other bytes match none.
fn decoded(raw: &str) -> String {
    percent_decode_str(raw).decode_utf8_lossy().into_owned()
}

/// A repository opened for one of its pages.
pub(super) struct Room {
    pub browser: Browser,
    pub visitor: Visitor,
}

impl Room {
    /// Opens the repository in the path. An old name redirects to the same page with the current name.
    pub(super) async fn open(app: &App, visitor: Visitor, page_path: &PagePath) -> Result<Self, Elsewhere> {
        let (owner, typed) = (page_path.segment(0), page_path.segment(1));
        let (locator, other) = locators(page_path);
        let caller = visitor.caller();
        let mut found = browse::open(&app.forge, &caller, &locator).await;
        if let (Err(Access::NotFound), Some(other)) = (&found, &other) {
            found = browse::open(&app.forge, &caller, other).await;
        }
        let browser = match found {
            Err(Access::NotFound) => {
                return Err(waiting::or_nothing(app, &visitor, page_path, other.as_ref().unwrap_or(&locator)).await);
            }
            found => found?,
        };
        let slug = browser.repo.slug();
        if slug != format!("{owner}/{typed}") {
            let rest = page_path.raw_rest(2);
            let slash = if rest.is_empty() { "" } else { "/" };
            let to = format!("/{slug}{slash}{rest}{}", page_path.raw_query());
            return Err(Elsewhere::To(if page_path.reads() { respond::moved(&to) } else { respond::resend(&to) }));
        }
        Ok(Self { browser, visitor })
    }

    /// Opens the repository for an action; others get the policy's refusal.
    pub(super) async fn enter(
        app: &App,
        visitor: Visitor,
        page_path: &PagePath,
        action: Action,
    ) -> Result<Self, Elsewhere> {
        let room = Self::open(app, visitor, page_path).await?;
        room.ensure(app, action).await?;
        Ok(room)
    }

    /// The repository.
    pub(super) fn repo(&self) -> &Repo {
        &self.browser.repo
    }

    /// Name of the owner in URLs.
    pub(super) fn owner(&self) -> String {
        self.repo().owner().map(|handle| handle.to_string()).unwrap_or_default()
    }

    /// Whether the visitor owns it. Only for the choice of words; permissions are decided by the policy.
    pub(super) fn is_owner(&self) -> bool {
        self.visitor.caller().user_id() == Some(self.repo().owner_id)
    }

    /// Whether the visitor may perform an action.
    pub(super) fn may(&self, action: Action) -> bool {
        open::may(&self.visitor.caller(), self.repo(), action)
    }

    /// Whether the visitor may perform an action, or may after signing in: the page then shows the link, which leads
    /// through the sign-in page.
    pub(super) fn offers(&self, action: Action) -> bool {
        self.may(action) || open::needs_login(&self.visitor.caller(), self.repo(), action)
    }

    /// Refuses an action with the policy's reason.
    pub(super) async fn ensure(&self, app: &App, action: Action) -> Result<(), Elsewhere> {
        let id = RepoLocator::Id(self.repo().id.to_string());
        match open::open(&app.forge, &self.visitor.caller(), &id, action).await {
            Ok(_) => Ok(()),
            Err(Access::Denied(DenyCode::RoleTooLow { needed })) => Err(self.role_too_low(needed).into()),
            Err(refused) => Err(refused.into()),
        }
    }

    /// The refusal of an action that needs a higher role.
    fn role_too_low(&self, needed: Role) -> Problem {
        let mut role = needed.to_string();
        role[..1].make_ascii_uppercase();
        let owner = self.repo().owner().map(|handle| handle.shown().into_owned()).unwrap_or_default();
        let detail = format!("You need the {role} role. Ask {owner} to change your access.");
        Problem::new(StatusCode::FORBIDDEN, detail).back_to(format!("/{}", self.repo().slug()))
    }

    /// Error page of a path that cannot be shown. For a missing path it names the path and the branch, and links back.
    pub(super) fn no_path(&self, commit_path: &CommitPath, error: BrowseError) -> Problem {
        match error {
            BrowseError::Object(ObjectError::NotFound) => {
                let detail =
                    format!("\"{}\" does not exist on {}.", text::shown(&commit_path.path), commit_path.name());
                Problem::absent(detail).back_to(format!("/{}", self.repo().slug()))
            }
            other => other.into(),
        }
    }

    /// Refuses actions that a repository of a nostr key does not support, before the confirmation page.
    pub(super) fn ensure_ours_to_give(&self) -> Result<(), Problem> {
        match self.repo().governance {
            Governed::Nostr => Err(LifeError::Refused(Refusal::NostrGoverned).into()),
            Governed::Account => Ok(()),
        }
    }

    pub(super) async fn head(&self, app: &App, tab: &'static str) -> Head {
        let repo = self.repo();
        let settings = app.forge.settings();
        let governed = repo.governance == Governed::Nostr;
        let slug = repo.slug();
        let default_branch = repo.default_branch.short().to_owned();
        let (branches, tags) = self.browser.ref_counts();
        let issues = issues::counts(&app.forge, repo).await.unwrap_or_default().open;
        let fork_of = match repo.fork_of {
            Some(id) => {
                let locator = RepoLocator::Id(id.to_string());
                let source = open::open(&app.forge, &self.visitor.caller(), &locator, Action::RepoRead).await;
                source.ok().map(|source| source.slug())
            }
            None => None,
        };
        Head {
            owner: self.owner(),
            name: repo.name.to_string(),
            url: format!("/{slug}"),
            description: repo.description.clone(),
            private: repo.is_private(),
            archived: repo.is_archived(),
            archived_at: repo.archived_at,
            empty: self.browser.is_empty(),
            has_tags: tags > 0,
            fork_of,
            branches: text::grouped(branches),
            tags: text::grouped(tags),
            issues: text::grouped(usize::try_from(issues).unwrap_or_default()),
            default_branch_query: url_path(default_branch.as_bytes()),
            default_branch,
            clone_http: format!("{}/{slug}.git", settings.public_url),
            clone_ssh: format!("{}/{slug}.git", settings.ssh_url),
            permalink: app.url(&format!("/r/{}", repo.id)),
            pushed_at: repo.pushed_at,
            created_at: repo.created_at,
            size: u64::try_from(repo.size_bytes).ok().filter(|&bytes| bytes > 0).map(text::size).unwrap_or_default(),
            can_edit: self.may(Action::RepoEdit) || self.may(Action::RepoDelete),
            can_push: self.may(Action::GitPush) && !governed,
            can_fork: self.offers(Action::ForkCreate) && !self.browser.is_empty(),
            can_see_people: self.may(Action::CollaboratorList),
            can_unarchive: !repo.state().holds(Life::Unarchive) && self.may(Action::RepoUnarchive),
            can_read_audit: self.may(Action::AuditRead),
            can_see_hooks: self.may(Action::WebhookList),
            attention: Attention::of(app, self).await,
            nostr: Governance::of(app, &self.visitor.caller(), repo).await,
            tab,
        }
    }
}
