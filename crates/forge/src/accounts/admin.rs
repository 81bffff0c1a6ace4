//! Account operations and lists of site admins. For everyone else they do not exist.

use super::suspend;
use crate::emit::{AuditAction, Who, audit_account};
use crate::open::{RepoLocator, open};
use crate::{Access, By, Caller, Fault, Forge};
use abide_core::account::{self, AdminRefusal};
use abide_core::policy::{Action, SiteAdmin};
use abide_core::{UserId, UserName};
use abide_macros::boxed;
use abide_store::accounts::users::{self, Found};
use abide_store::accounts::{user_keys, user_redirects};
use abide_store::repos::Page;
use abide_store::{StoreError, Tx, audit};
use percent_encoding::percent_decode_str;
use serde_json::json;

pub use abide_store::accounts::users::Found as UserRow;
pub use abide_store::audit::Named as AuditRow;

/// Why the account was not changed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The caller is not an admin, or the account does not exist. Both look the same.
    #[error(transparent)]
    Access(#[from] Access),
    /// Not even an admin may do this.
    #[error(transparent)]
    Refused(#[from] AdminRefusal),
}

impl From<StoreError> for AdminError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

/// Accounts whose name or address contains the text, by name, and their total number.
#[boxed]
pub async fn users(forge: &Forge, _: &By, query: Option<&str>, page: Page) -> Result<(Vec<Found>, i64), Fault> {
    Ok(users::search(&mut *forge.store().read().await?, query.unwrap_or_default(), page).await?)
}

/// Suspends an account and ends its sessions.
#[boxed]
pub async fn suspend(forge: &Forge, caller: &Caller, user: UserId) -> Result<(), AdminError> {
    change(forge, caller, user, Change::Suspended(true)).await
}

/// Lifts a suspension.
#[boxed]
pub async fn unsuspend(forge: &Forge, caller: &Caller, user: UserId) -> Result<(), AdminError> {
    change(forge, caller, user, Change::Suspended(false)).await
}

/// Makes an account a site admin, or removes that right.
#[boxed]
pub async fn set_admin(forge: &Forge, caller: &Caller, user: UserId, admin: bool) -> Result<(), AdminError> {
    change(forge, caller, user, Change::Admin(admin)).await
}

#[derive(Clone, Copy)]
enum Change {
    Suspended(bool),
    Admin(bool),
}

async fn change(forge: &Forge, caller: &Caller, user: UserId, change: Change) -> Result<(), AdminError> {
    let admin = caller.ensure_admin()?;
    let unit = (admin, user, change, Who::from(caller));
    forge.store().write(unit, |tx, (admin, user, change, who)| Box::pin(write(tx, *admin, *user, *change, who))).await
}

/// Decides with the list of admins locked, so that nobody changes it meanwhile.
async fn write(tx: &mut Tx, admin: SiteAdmin, target: UserId, change: Change, who: &Who) -> Result<(), AdminError> {
    let admins = users::lock_admins(tx).await?;
    if !admins.contains(&admin.id()) {
        return Err(Access::NotFound.into());
    }
    let user = users::lock(tx, target).await?.ok_or(Access::NotFound)?;
    match change {
        Change::Suspended(suspended) if user.suspended_at.is_some() == suspended => {}
        Change::Suspended(suspended) => {
            if suspended {
                account::may_suspend(admin.id(), target, &admins)?;
            }
            suspend::write(tx, who, target, suspended).await?;
        }
        Change::Admin(admin) if user.site_admin == admin => {}
        Change::Admin(admin) => {
            if !admin {
                account::may_stop_administering(target, &admins)?;
            }
            users::set_admin(tx, target, admin).await?;
            let action = if admin { AuditAction::AdminGranted } else { AuditAction::AdminTaken };
            audit_account(tx, who, action, json!({ "user_id": target.get() })).await?;
        }
    }
    Ok(())
}

/// Releases an old name, also of a deleted account: it redirects nowhere, and anyone may take it. `false` if it does not
/// exist.
#[boxed]
pub async fn release_name(forge: &Forge, by: &By, old: &UserName) -> Result<bool, Fault> {
    forge
        .store()
        .write((old.clone(), Who::from(by)), |tx, (old, who)| {
            Box::pin(async move {
                let released = user_redirects::remove(tx, old).await?;
                if released {
                    audit_account(tx, who, AuditAction::UserRedirectReleased, json!({ "name": old.as_str() })).await?;
                }
                Ok(released)
            })
        })
        .await
}

/// The old names of an account.
#[boxed]
pub async fn old_names(forge: &Forge, _: &By, user: UserId) -> Result<Vec<super::rename::OldName>, Fault> {
    Ok(user_redirects::list(&mut *forge.store().read().await?, user).await?)
}

/// Filter for rows of the audit log; `None` matches everything.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub action: Option<String>,
    /// Only actions of the account with this name.
    pub actor: Option<String>,
    /// Only actions on the repository `owner/name`.
    pub repo: Option<String>,
}

/// A page of the audit log, newest first, before the row `before`. An unknown action or name gives no rows.
#[boxed]
pub async fn audit(
    forge: &Forge,
    by: &By,
    filter: &AuditFilter,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<AuditRow>, Access> {
    let mut conn = forge.store().read().await?;
    let mut wanted = audit::Filter::default();
    if let Some(action) = filter.action.as_deref().filter(|action| !action.is_empty()) {
        let Ok(action) = action.parse() else { return Ok(Vec::new()) };
        wanted.action = Some(action);
    }
    if let Some(actor) = &filter.actor {
        let found = match actor.trim().parse::<UserName>() {
            Ok(name) => users::by_any_name(&mut conn, &name).await?,
            Err(_) => user_keys::by_npub(&mut conn, actor.trim()).await?,
        };
        let Some(user) = found else { return Ok(Vec::new()) };
        wanted.actor = Some(user.id);
    }
    if let Some(slug) = &filter.repo {
        drop(conn);
        let Some((owner, name)) = slug.trim().split_once('/') else { return Ok(Vec::new()) };
        let name = percent_decode_str(name).decode_utf8_lossy();
        match open(forge, &by.caller(), &RepoLocator::slug(owner, name), Action::RepoRead).await {
            Ok(repo) => wanted.repo = Some(repo.id),
            Err(Access::NotFound) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        conn = forge.store().read().await?;
    }
    Ok(audit::page(&mut conn, &wanted, before.unwrap_or(i64::MAX), limit).await?)
}
