//! Commits and comparisons.

use super::error::ApiError;
use super::media::Media;
use super::page::Paged;
use super::repos::content_of;
use super::scoped::Who;
use super::segments::{Query, Segments, Tail};
use super::shape::{ChangedFile, CommitItem, Comparison, FullCommit, Stats, Urls, in_path};
use super::{bytes, patch};
use crate::App;
use abide_core::Oid;
use abide_core::time::parse_rfc3339;
use abide_forge::browse::{Browser, Commit, Diff};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

/// Maximum number of commits that a filter searches.
const FARTHEST: usize = 20_000;
/// Commits per step of the search.
const STEP: usize = 500;

pub(super) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    query: Query,
    paged: Paged,
) -> Result<Response, ApiError> {
    let browser = content_of(&app, &caller, slug).await?;
    let start = match query.get("sha") {
        Some(name) => browser.revision(name).await?.commit,
        None => browser.front().await?.commit,
    };
    let path = query.get("path").unwrap_or_default().trim_matches('/').as_bytes().to_vec();
    let filter = Filter::of(&query)?;
    let (page, urls) = (paged.page(), Urls::of(&app.forge, &browser.repo));
    let (skip, limit) = (page.offset as usize, page.limit as usize);
    let shape = |commits: &[Commit]| -> Vec<_> { commits.iter().map(|commit| CommitItem::of(&urls, commit)).collect() };
    if filter.lets_all() && path.is_empty() {
        let log = browser.log(start, &path, skip, limit).await?;
        let total = browser.count(start).await?.commits;
        return Ok(paged.answer(&app, &shape(&log.commits), total as i64));
    }
    let (commits, more) = match filter.lets_all() {
        true => {
            let log = browser.log(start, &path, skip, limit).await?;
            (log.commits.clone(), log.more)
        }
        false => filtered(&browser, start, &path, &filter, skip, limit).await?,
    };
    Ok(paged.answer_open(&app, &shape(&commits), more))
}

/// Filter of a list of commits.
struct Filter {
    since: Option<i64>,
    until: Option<i64>,
    author: Option<String>,
}

impl Filter {
    fn of(query: &Query) -> Result<Self, ApiError> {
        let time = |name: &'static str| match query.get(name) {
            None => Ok(None),
            Some(text) => parse_rfc3339(text).map(|at| Some(at.micros().div_euclid(1_000_000))).ok_or_else(|| {
                ApiError::invalid("Commit", name, "invalid", "must be a time such as 2026-01-31T12:00:00Z")
            }),
        };
        let author = query.get("author").map(str::to_lowercase);
        Ok(Self { since: time("since")?, until: time("until")?, author })
    }

    fn lets_all(&self) -> bool {
        self.since.is_none() && self.until.is_none() && self.author.is_none()
    }

    fn lets(&self, commit: &Commit) -> bool {
        let time = commit.committer.time;
        let has = |text: &str, part: &str| text.to_lowercase().contains(part);
        self.since.is_none_or(|since| time >= since)
            && self.until.is_none_or(|until| time <= until)
            && self.author.as_deref().is_none_or(|author| {
                has(&commit.author.name.to_string(), author) || has(&commit.author.email.to_string(), author)
            })
    }
}

/// A page of the matching commits, and whether more follow.
async fn filtered(
    browser: &Browser,
    start: Oid,
    path: &[u8],
    filter: &Filter,
    skip: usize,
    limit: usize,
) -> Result<(Vec<Commit>, bool), ApiError> {
    let mut kept = Vec::new();
    for from in (0..FARTHEST).step_by(STEP) {
        let log = browser.log(start, path, from, STEP).await?;
        kept.extend(log.commits.iter().filter(|commit| filter.lets(commit)).cloned());
        if !log.more || kept.len() > skip + limit {
            break;
        }
    }
    let more = kept.len() > skip + limit;
    Ok((kept.into_iter().skip(skip).take(limit).collect(), more))
}

pub(super) async fn show(
    State(app): State<App>,
    Who(caller): Who,
    tail: Tail,
    media: Media,
) -> Result<Response, ApiError> {
    let browser = content_of(&app, &caller, tail.slug.clone()).await?;
    let oid = browser.revision(tail.text()?).await?.commit;
    if media == Media::Sha {
        return Ok(bytes::text("application/vnd.github.sha; charset=utf-8", oid.to_string().into_bytes()));
    }
    let (commit, diff) = (browser.commit(oid).await?, browser.diff(oid).await?);
    ensure_whole(&diff)?;
    match media {
        Media::Diff => Ok(bytes::text(DIFF, patch::unified(&diff))),
        Media::Patch => Ok(bytes::text(PATCH, patch::mail(&commit, &diff))),
        _ => {
            let urls = Urls::of(&app.forge, &browser.repo);
            let files = ChangedFile::all(&urls, oid, &diff);
            let full = FullCommit { item: CommitItem::of(&urls, &commit), stats: Stats::from(&*diff), files };
            Ok(Json(full).into_response())
        }
    }
}

const DIFF: &str = "application/vnd.github.diff; charset=utf-8";
const PATCH: &str = "application/vnd.github.patch; charset=utf-8";

pub(super) async fn compare(
    State(app): State<App>,
    Who(caller): Who,
    tail: Tail,
    media: Media,
) -> Result<Response, ApiError> {
    let browser = content_of(&app, &caller, tail.slug.clone()).await?;
    let names = tail.text()?;
    let (base_name, head_name) = names.split_once("...").ok_or_else(ApiError::not_found)?;
    let (base, head) = (browser.revision(base_name).await?.commit, browser.revision(head_name).await?.commit);
    let found = browser.compare(base, head).await?;
    ensure_whole(&found.diff)?;
    if media == Media::Diff {
        return Ok(bytes::text(DIFF, patch::unified(&found.diff)));
    }
    if media == Media::Patch {
        return Ok(bytes::text(PATCH, mails(&browser, &found.commits).await?));
    }
    let urls = Urls::of(&app.forge, &browser.repo);
    let both = browser.read(move |reader| reader.commits(&[base, found.merge_base])).await?;
    let [base_commit, merge_base_commit] = both.as_slice() else { return Err(ApiError::internal()) };
    let status = match (found.distance.ahead, found.distance.behind) {
        (0, 0) => "identical",
        (_, 0) => "ahead",
        (0, _) => "behind",
        _ => "diverged",
    };
    let named = in_path(names.as_bytes());
    let page = |tail: &str| urls.page(&format!("/compare/{named}{tail}"));
    Ok(Json(Comparison {
        url: urls.api(&format!("/compare/{named}")),
        html_url: page(""),
        permalink_url: urls.page(&format!("/compare/{base}...{head}")),
        diff_url: page(".diff"),
        patch_url: page(".patch"),
        base_commit: CommitItem::of(&urls, base_commit),
        merge_base_commit: CommitItem::of(&urls, merge_base_commit),
        status,
        ahead_by: found.distance.ahead,
        behind_by: found.distance.behind,
        total_commits: found.distance.ahead,
        commits: found.commits.iter().rev().map(|commit| CommitItem::of(&urls, commit)).collect(),
        files: ChangedFile::all(&urls, head, &found.diff),
    })
    .into_response())
}

/// All commits in the format of `git format-patch`, oldest first, up to a size limit.
async fn mails(browser: &Browser, commits: &[Commit]) -> Result<Vec<u8>, ApiError> {
    const LARGEST: usize = 16 << 20;
    let mut all = Vec::new();
    for commit in commits.iter().rev().filter(|commit| commit.parents.len() < 2) {
        if all.len() > LARGEST {
            break;
        }
        let diff = browser.diff(commit.oid).await?;
        ensure_whole(&diff)?;
        all.extend(patch::mail(commit, &diff));
    }
    Ok(all)
}

/// Refuses a diff that ran out of processor time: no field of GitHub's response can report an incomplete diff.
fn ensure_whole(diff: &Diff) -> Result<(), ApiError> {
    const TOO_DEAR: &str =
        "This diff takes more processor time than one request may use. Clone the repository and use git diff.";
    if diff.timed_out { Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, TOO_DEAR)) } else { Ok(()) }
}
