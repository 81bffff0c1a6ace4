//! The work of every kind of job. This module stands above all that do some.

mod history;
pub(crate) mod leftovers;

use crate::accounts::{delete, reset};
use crate::git::{maintain, reconcile};
use crate::grasp::{expire, settle, spread, sweep};
use crate::issues::keywords;
use crate::jobs::{Handler, JobError, Kind};
use crate::notify::mailing;
use crate::repos::purge;
use crate::{Fault, Forge, feeds, mail};
use abide_git::bare;
use std::time::Duration;

/// Age from which an unused incoming area has no owner.
const INCOMING_AGE: Duration = Duration::from_secs(6 * 3600);

/// The handler of each kind.
pub(crate) fn handler(kind: Kind) -> Handler {
    match kind {
        Kind::RepoMaintain => |forge, job| Box::pin(maintain::work(forge, job)),
        Kind::PushReconcile => |forge, _| Box::pin(reconcile_pushes(forge)),
        Kind::HistoryPrune => |forge, _| Box::pin(history::work(forge)),
        Kind::LifecycleSweep => |forge, _| Box::pin(purge::work(forge)),
        Kind::MailSend => |forge, job| {
            Box::pin(async move {
                let sent =
                    mail::deliver(forge, job, |forge, gate, to| Box::pin(mailing::letter(forge, gate, to))).await;
                Ok(sent?)
            })
        },
        Kind::AccountReset => |forge, job| Box::pin(async move { Ok(reset::answer(forge, job).await?) }),
        Kind::AccountErase => |forge, job| Box::pin(delete::work(forge, job)),
        Kind::IssueKeywords => |forge, job| Box::pin(keywords::work(forge, job)),
        Kind::NotifyMail => |forge, _| Box::pin(async move { Ok(mailing::run(forge).await?) }),
        Kind::RelayExpire => |forge, _| Box::pin(async move { Ok(expire::expire(forge).await?) }),
        Kind::TrendingCount => |forge, _| Box::pin(async move { Ok(feeds::count_popular(forge).await?) }),
        Kind::GraspSweep => |forge, _| Box::pin(sweep::work(forge)),
        Kind::GraspSettle => |forge, job| Box::pin(settle::work(forge, job)),
        Kind::GraspSpread => |forge, job| Box::pin(spread::work(forge, job)),
    }
}

/// Finishes or aborts crashed pushes, and removes what they left.
async fn reconcile_pushes(forge: &Forge) -> Result<(), JobError> {
    reconcile::all(forge).await?;
    leftovers::sweep_incoming(forge, INCOMING_AGE).await?;
    bare::remove_drafts(forge.layout()).await.map_err(Fault::from)?;
    Ok(())
}
