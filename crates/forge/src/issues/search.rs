//! Issues of many repositories. Issues that the caller may not read are neither found nor counted.

use super::show::detailed_in;
use super::{Detailed, IssueError};
use crate::open::{RepoLocator, open, viewer};
use crate::{Access, Caller, Fault, Forge};
use abide_core::issues::filter::{Filter, Sort, Wanted};
use abide_core::issues::search::Search;
use abide_core::policy::{Action, DenyCode};
use abide_core::{Timestamp, UserId, UserName};
use abide_macros::boxed;
use abide_store::accounts::users;
use abide_store::issues;
use abide_store::issues::search::{Search as Query, Whose};
use abide_store::repos::{Page, Repo};
use abide_store::{Conn, StoreError};

pub use abide_core::issues::search::Concern;

/// Issues of many repositories.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The issues with their details.
    pub issues: Vec<Detailed>,
    /// Their repositories, without duplicates.
    pub repos: Vec<Repo>,
    /// Total number, counted up to [`MAX_TOTAL`](super::list::MAX_TOTAL).
    pub total: i64,
    /// The search stopped at a limit before it read every possible match.
    pub incomplete: bool,
}

impl Found {
    /// Each issue with its repository.
    pub fn each(&self) -> impl Iterator<Item = (&Detailed, &Repo)> {
        let of = |id| self.repos.iter().find(move |repo| repo.id == id);
        self.issues.iter().filter_map(move |found| of(found.issue.repo_id).map(|repo| (found, repo)))
    }
}

/// A page of the issues that match a text and that the caller may read. The `sort` argument overrides the sort order in
/// the text. An unknown name gives no issues.
#[boxed]
pub async fn search(
    forge: &Forge,
    caller: &Caller,
    text: &str,
    order: (Option<Sort>, Option<bool>),
    page: Page,
) -> Result<Found, IssueError> {
    let me = match caller.user_id() {
        Some(id) => users::by_id(&mut *forge.store().read().await?, id).await?.and_then(|user| user.name),
        None => None,
    };
    let Search { mut filter, repo, owner, mentions } = Search::parse(text, me.as_ref())?;
    filter.sort = order.0.unwrap_or(filter.sort);
    filter.ascending = order.1.unwrap_or(filter.ascending);
    let repo = match repo {
        None => None,
        Some((owner, name)) => match open(forge, caller, &RepoLocator::slug(owner, name), Action::RepoRead).await {
            Ok(repo) => Some(repo.id),
            Err(Access::Fault(fault)) => return Err(Access::Fault(fault).into()),
            // Hidden repositories give the same empty result as missing ones.
            Err(_) => return Ok(Found::default()),
        },
    };
    let _slot = forge.search_slot(caller.client()).await.map_err(Fault::from)?;
    let mut conn = forge.store().read().await?;
    let Some(query) = resolve(&mut conn, filter, forge.settings().issues.scan).await? else {
        return Ok(Found::default());
    };
    let owner = known(&mut conn, owner.as_ref()).await?;
    let mentions = known(&mut conn, mentions.as_ref()).await?;
    let (Ok(owner), Ok(mentions)) = (owner, mentions) else { return Ok(Found::default()) };
    find(&mut conn, caller, Query { repo, owner, mentions, ..query }, page).await
}

/// Filter of the issues that concern a user.
#[derive(Debug, Clone)]
pub struct Wish {
    pub concern: Concern,
    /// Only issues in repositories that the user owns or collaborates on.
    pub theirs: bool,
    pub filter: Filter,
    /// Only issues that changed since this time.
    pub since: Option<Timestamp>,
}

/// A page of the issues that concern the caller, in all repositories.
#[boxed]
pub async fn mine(forge: &Forge, caller: &Caller, wish: Wish, page: Page) -> Result<Found, IssueError> {
    let me = caller.user_id().ok_or(Access::Denied(DenyCode::LoginRequired))?;
    let _slot = forge.search_slot(caller.client()).await.map_err(Fault::from)?;
    let mut conn = forge.store().read().await?;
    let Some(mut query) = resolve(&mut conn, wish.filter, forge.settings().issues.scan).await? else {
        return Ok(Found::default());
    };
    query.since = wish.since;
    match wish.concern {
        Concern::Assigned => query.assignee = Wanted::Is(me),
        Concern::Created => query.author = Some(me),
        Concern::Mentioned => query.mentions = Some(me),
        Concern::Subscribed => query.hears = Some(me),
        Concern::Repos => query.whose = Whose::Theirs,
        Concern::All => query.whose = Whose::Concern,
    }
    if wish.theirs {
        query.whose = Whose::Theirs;
    }
    find(&mut conn, caller, query, page).await
}

async fn find(conn: &mut Conn, caller: &Caller, query: Query, page: Page) -> Result<Found, IssueError> {
    let found = issues::search::find(conn, &query, viewer(caller), page).await?;
    let issues = detailed_in(conn, found.issues).await?;
    Ok(Found { issues, repos: found.repos, total: found.total, incomplete: !found.complete })
}

/// Resolves the names of a filter to ids; `None` if one is unknown, or if no issue can match.
async fn resolve(conn: &mut Conn, filter: Filter, scan: i64) -> Result<Option<Query>, StoreError> {
    if filter.impossible {
        return Ok(None);
    }
    let Ok(author) = known(conn, filter.author.as_ref()).await? else { return Ok(None) };
    let assignee = match &filter.assignee {
        Wanted::Any => Wanted::Any,
        Wanted::None => Wanted::None,
        Wanted::Some => Wanted::Some,
        Wanted::Is(name) => match known(conn, Some(name)).await? {
            Ok(Some(user)) => Wanted::Is(user),
            _ => return Ok(None),
        },
    };
    let (mentions, hears, since, repo, owner) = (None, None, None, None, None);
    let whose = Whose::Anyones;
    Ok(Some(Query { filter, author, assignee, mentions, hears, since, repo, owner, whose, scan }))
}

/// No account has this name.
struct Nobody;

/// The account with this name, if one was given.
async fn known(conn: &mut Conn, name: Option<&UserName>) -> Result<Result<Option<UserId>, Nobody>, StoreError> {
    match name {
        None => Ok(Ok(None)),
        Some(name) => Ok(users::by_any_name(conn, name).await?.map(|user| Some(user.id)).ok_or(Nobody)),
    }
}
