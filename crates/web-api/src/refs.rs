//! Branches, tags and refs.

use super::error::ApiError;
use super::page::Paged;
use super::repos::{content_of, look_into};
use super::scoped::Who;
use super::segments::{Segments, Tail};
use super::shape::{Branch, GitRef, ShortBranch, Tag, Urls};
use crate::App;
use abide_forge::browse::{Browser, ObjectError, ObjectKind, Ref};
use axum::Json;
use axum::extract::State;
use axum::response::Response;

pub(super) async fn branches(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    paged: Paged,
) -> Result<Response, ApiError> {
    let browser = look_into(&app, &caller, slug).await?;
    let urls = Urls::of(&app.forge, &browser.repo);
    let (found, total) = below(&browser, b"refs/heads/", &paged);
    let items: Vec<_> =
        found.iter().map(|found| ShortBranch::new(&urls, &found.name["refs/heads/".len()..], found.oid)).collect();
    Ok(paged.answer(&app, &items, total))
}

pub(super) async fn branch(State(app): State<App>, Who(caller): Who, tail: Tail) -> Result<Json<Branch>, ApiError> {
    let browser = look_into(&app, &caller, tail.slug.clone()).await?;
    let name = tail.text()?;
    let found = browser.refs().get(format!("refs/heads/{name}").as_bytes());
    let tip = found.ok_or_else(|| ApiError::missing("Branch not found"))?.oid;
    let commit = browser.commit(tip).await?;
    Ok(Json(Branch::new(&Urls::of(&app.forge, &browser.repo), name, &commit)))
}

pub(super) async fn tags(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    paged: Paged,
) -> Result<Response, ApiError> {
    let browser = look_into(&app, &caller, slug).await?;
    let page = paged.page();
    let tags = browser.tags(page.offset as usize, page.limit as usize).await?;
    let urls = Urls::of(&app.forge, &browser.repo);
    let target = |tag: &abide_forge::browse::Tag| tag.commit.as_ref().map_or(tag.oid, |commit| commit.oid);
    let items: Vec<_> = tags.items.iter().map(|tag| Tag::new(&urls, tag.name.as_bytes(), target(tag))).collect();
    Ok(paged.answer(&app, &items, tags.total as i64))
}

pub(super) async fn refs(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    paged: Paged,
) -> Result<Response, ApiError> {
    matching_prefix(&app, content_of(&app, &caller, slug).await?, b"refs/", paged).await
}

pub(super) async fn matching(
    State(app): State<App>,
    Who(caller): Who,
    tail: Tail,
    paged: Paged,
) -> Result<Response, ApiError> {
    let browser = content_of(&app, &caller, tail.slug.clone()).await?;
    matching_prefix(&app, browser, &whole(&tail.rest), paged).await
}

async fn matching_prefix(app: &App, browser: Browser, prefix: &[u8], paged: Paged) -> Result<Response, ApiError> {
    let (found, total) = below(&browser, prefix, &paged);
    let kinds = kinds(&browser, found.clone()).await?;
    let urls = Urls::of(&app.forge, &browser.repo);
    let items: Vec<_> =
        found.iter().zip(kinds).map(|(found, kind)| GitRef::new(&urls, &found.name, kind, found.oid)).collect();
    Ok(paged.answer(app, &items, total))
}

pub(super) async fn one(State(app): State<App>, Who(caller): Who, tail: Tail) -> Result<Json<GitRef>, ApiError> {
    let browser = look_into(&app, &caller, tail.slug.clone()).await?;
    let name = whole(&tail.rest);
    let found = browser.shown_refs().find(|found| found.name.as_slice() == name);
    let found = found.ok_or_else(ApiError::not_found)?.clone();
    let kind = kinds(&browser, vec![found.clone()]).await?.pop().ok_or_else(ApiError::not_found)?;
    Ok(Json(GitRef::new(&Urls::of(&app.forge, &browser.repo), &found.name, kind, found.oid)))
}

/// Full name of a ref; `refs/` is optional in requests.
fn whole(name: &[u8]) -> Vec<u8> {
    match name.starts_with(b"refs/") {
        true => name.to_vec(),
        false => [b"refs/", name].concat(),
    }
}

/// A page of the refs with a prefix, and their total number.
fn below(browser: &Browser, prefix: &[u8], paged: &Paged) -> (Vec<Ref>, i64) {
    let all = || browser.shown_refs().filter(|found| found.name.starts_with(prefix));
    let page = paged.page();
    (all().skip(page.offset as usize).take(page.limit as usize).cloned().collect(), all().count() as i64)
}

/// Object kinds that refs point to.
async fn kinds(browser: &Browser, refs: Vec<Ref>) -> Result<Vec<ObjectKind>, ApiError> {
    let ask = move |reader: &abide_forge::browse::Objects| {
        let kind = |found: &Ref| match found.peeled {
            Some(_) => Ok(ObjectKind::Tag),
            None => reader.object(found.oid).map(|(kind, _)| kind),
        };
        refs.iter().map(kind).collect::<Result<_, ObjectError>>()
    };
    Ok(browser.read(ask).await?)
}
