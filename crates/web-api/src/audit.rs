//! Audit log of a repository.

use super::error::ApiError;
use super::keyset::Keyset;
use super::repos;
use super::scoped::Who;
use super::segments::Segments;
use super::shape::AuditEntry;
use crate::App;
use abide_core::policy::Action;
use abide_forge::repos::trail;
use axum::extract::State;
use axum::response::Response;

pub(super) async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Segments(slug): Segments<(String, String)>,
    keyset: Keyset,
) -> Result<Response, ApiError> {
    let repo = repos::at(&app, &caller, slug, Action::AuditRead).await?;
    let entries = trail::page(&app.forge, &caller, &repo, keyset.before, keyset.limit()).await?;
    Ok(keyset.answer(&app, &entries, |entry| entry.record.id, |entry| AuditEntry::of(&app, entry)))
}
