//! Lifecycle of a repository: transfers, deletion, old names, and the audit log.

use super::{Repository, SimpleUser, time};
use crate::App;
use abide_core::policy::Action;
use abide_core::transfer::{Answer, Status};
use abide_core::{Handle, UserId};
use abide_forge::Caller;
use abide_forge::repos::redirects::Redirect as OldName;
use abide_forge::repos::trail::Named;
use abide_forge::repos::transfer::{self, Offer};
use abide_forge::repos::{Repo, open, restore};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// An offer to transfer a repository.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = RepositoryTransfer)]
pub(crate) struct Transfer {
    id: i64,
    url: String,
    html_url: String,
    /// `pending`, `accepted`, `declined`, `canceled` or `expired`.
    status: &'static str,
    repository: Offered,
    from: SimpleUser,
    to: SimpleUser,
    /// Full name of the repository after the transfer; `null` once the offer has ended.
    new_full_name: Option<String>,
    created_at: String,
    expires_at: String,
    decided_at: Option<String>,
    permissions: Answers,
}

/// The offered repository. Both parties see it while the offer is pending, even without read access. After the end of the
/// offer, a party without read access sees only its id and the name at the time of the offer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = OfferedRepository)]
struct Offered {
    id: i64,
    full_name: String,
    url: String,
    private: Option<bool>,
    archived: Option<bool>,
    description: Option<String>,
    /// In kilobytes.
    size: Option<i64>,
    pushed_at: Option<String>,
}

/// Answers that the caller can give now.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = TransferAnswers)]
struct Answers {
    accept: bool,
    decline: bool,
    cancel: bool,
}

impl Transfer {
    pub(crate) fn of(app: &App, caller: &Caller, offer: &Offer) -> Self {
        let Offer { transfer: row, repo } = offer;
        let status = offer.status(app.forge.clock().now());
        let open = status == Status::Pending;
        let may = |answer| open && transfer::may(caller, offer, answer);
        let person = |id: UserId, name: &Option<Handle>| {
            SimpleUser::new(&app.forge, id, name.as_ref().map(|name| name.as_str()), false)
        };
        let to = person(row.recipient, &row.recipient_name);
        Self {
            id: row.id.get(),
            url: app.url(&format!("/api/v3/repository_transfers/{}", row.id)),
            html_url: app.url(&format!("/transfers/{}", row.id)),
            status: status.as_str(),
            repository: Offered::of(app, offer, open || open::may(caller, repo, Action::RepoRead)),
            from: person(row.from_owner, &row.from_name),
            new_full_name: open.then(|| format!("{}/{}", to.login(), repo.name)),
            to,
            created_at: time(row.created_at),
            expires_at: time(row.expires_at),
            decided_at: row.decided_at.map(time),
            permissions: Answers {
                accept: may(Answer::Accept),
                decline: may(Answer::Decline),
                cancel: may(Answer::Cancel),
            },
        }
    }
}

impl Offered {
    fn of(app: &App, Offer { transfer, repo }: &Offer, known: bool) -> Self {
        let shown = known.then_some(repo);
        Self {
            id: repo.id.get(),
            full_name: shown.map_or_else(|| transfer.slug.clone(), Repo::slug),
            url: app.url(&format!("/api/v3/repositories/{}", repo.id)),
            private: shown.map(|repo| repo.is_private()),
            archived: shown.map(|repo| repo.is_archived()),
            description: shown.filter(|repo| !repo.description.is_empty()).map(|repo| repo.description.clone()),
            size: shown.map(|repo| repo.size_bytes / 1024),
            pushed_at: shown.and_then(|repo| repo.pushed_at).map(time),
        }
    }
}

/// A deleted repository. Its owner can restore it until `restore_until`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct DeletedRepository {
    #[serde(flatten)]
    repository: Repository,
    deleted_at: Option<String>,
    restore_until: Option<String>,
    restore_url: String,
}

impl DeletedRepository {
    pub(crate) fn of(app: &App, repo: &Repo, repository: Repository) -> Self {
        Self {
            repository,
            deleted_at: repo.deleted_at.map(time),
            restore_until: restore::until(&app.forge, repo).map(time),
            restore_url: app.url(&format!("/api/v3/repositories/{}/restore", repo.id)),
        }
    }
}

/// A former name of a repository, which redirects to it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Redirect {
    id: i64,
    /// The former name, after the current name of the owner at that time.
    full_name: String,
    name: String,
    url: String,
    created_at: String,
    /// Time of the last use, accurate to one hour.
    last_used_at: Option<String>,
}

impl Redirect {
    pub(crate) fn of(app: &App, repo: &Repo, old: &OldName) -> Self {
        let owner = old.owner.as_ref().map_or("~", |owner| owner.as_str());
        Self {
            id: old.id.get(),
            full_name: format!("{owner}/{}", old.name),
            name: old.name.to_string(),
            url: app.url(&format!("/api/v3/repos/{}/redirects/{}", repo.slug(), old.id)),
            created_at: time(old.since),
            last_used_at: old.last_used.map(time),
        }
    }
}

/// An entry of the audit log.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct AuditEntry {
    id: i64,
    action: String,
    /// `null` for the operator and for background jobs.
    actor: Option<SimpleUser>,
    ip: Option<String>,
    /// `owner/name` of the repository, if it still exists.
    repository: Option<String>,
    created_at: String,
    /// Values before and after.
    #[schema(value_type = Object)]
    meta: Value,
}

impl AuditEntry {
    pub(crate) fn of(app: &App, Named { record, actor, repo }: &Named) -> Self {
        let name = actor.as_ref().map(|name| name.as_str());
        Self {
            id: record.id,
            action: record.action.clone(),
            actor: record.actor.map(|id| SimpleUser::new(&app.forge, id, name, false)),
            ip: record.ip.clone(),
            repository: repo.clone(),
            created_at: time(record.created_at),
            meta: serde_json::from_str(&record.meta).unwrap_or_default(),
        }
    }
}
