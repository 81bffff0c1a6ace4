//! Keywords in commits: `fixes #12` on the default branch closes the issue, `#12` adds a reference.
//!
//! The end of a push queues a job. Each commit is referenced in an issue once, by a key in its timeline, so a job that runs
//! again, or a commit that comes again, changes nothing.

use super::context::{IssueContext, Target};
use super::{IssueError, involve, state};
use crate::git::push::KeywordSearch;
use crate::jobs::{self, Job, JobError};
use crate::open::open_locked;
use crate::{Access, Caller, Fault, Forge, IssueSettings};
use abide_core::issues::references::{self, Reference};
use abide_core::issues::text::excerpt;
use abide_core::issues::timeline::{CommitDetail, Detail};
use abide_core::issues::{Reason, State};
use abide_core::policy::{Action, IssueAction};
use abide_core::{Oid, RepoId, UserId};
use abide_git::read::Commit;
use abide_store::Tx;
use abide_store::accounts::users;
use abide_store::issues::timeline::NewEntry;
use abide_store::repos::{self, Repo};

/// A push to the default branch.
struct Pushed {
    repo: RepoId,
    pusher: UserId,
    old: Oid,
    new: Oid,
}

impl Pushed {
    /// `None`: an object id is invalid.
    fn of(search: KeywordSearch) -> Option<Self> {
        let KeywordSearch { repo_id, pusher, old, new } = search;
        Some(Self { repo: repo_id, pusher, old: old.parse().ok()?, new: new.parse().ok()? })
    }
}

/// Reads the commits of a push; adds references and closes issues in the pusher's name.
async fn run(forge: &Forge, pushed: Pushed) -> Result<(), Fault> {
    let mut conn = forge.store().read().await?;
    let repo = repos::by_id(&mut conn, pushed.repo, Some(pushed.pusher)).await?;
    let pusher = users::by_id(&mut conn, pushed.pusher).await?;
    drop(conn);
    let (Some(repo), Some(pusher)) = (repo.filter(Repo::is_live), pusher) else { return Ok(()) };
    let caller = Caller::of(pusher.actor(), None);
    for commit in commits(forge, &repo, &pushed).await? {
        for reference in references::in_text(&message(&commit)).issues {
            let unit = Unit {
                caller: caller.clone(),
                here: repo.id,
                commit: commit.oid,
                subject: excerpt(&String::from_utf8_lossy(&commit.subject), 100),
                reference,
                settings: forge.settings().issues.clone(),
            };
            let applied: Result<(), IssueError> =
                forge.store().write(unit, |tx, unit| Box::pin(apply_reference(tx, unit))).await;
            match applied {
                Ok(()) => {}
                Err(IssueError::Access(Access::Fault(fault))) => return Err(fault),
                // A commit may do no more than its pusher.
                Err(error) => {
                    tracing::debug!(%error, commit = %commit.oid, "a closing keyword in a commit could not be applied")
                }
            }
        }
    }
    Ok(())
}

fn message(commit: &Commit) -> String {
    format!("{}\n\n{}", String::from_utf8_lossy(&commit.subject), String::from_utf8_lossy(&commit.body))
}

/// New commits of a push, oldest first; only the latest ones, if they are too many.
async fn commits(forge: &Forge, repo: &Repo, pushed: &Pushed) -> Result<Vec<Commit>, Fault> {
    let browser = match crate::browse::of_repo(forge, &Caller::operator(), repo.clone()).await {
        Ok(browser) => browser,
        Err(Access::Fault(fault)) => return Err(fault),
        Err(_) => return Ok(Vec::new()),
    };
    let base = (!pushed.old.is_zero()).then_some(pushed.old);
    let (head, most, walk) = (pushed.new, forge.settings().issues.keyword_commits, forge.settings().browse.walk);
    match browser.read_heavy(move |reader| reader.brought(base, head, most, walk)).await {
        Ok(mut commits) => {
            commits.reverse();
            Ok(commits)
        }
        // The commits were pruned since, or are too far apart to compare.
        Err(error) => {
            tracing::warn!(%error, repo = repo.id.get(), "cannot read the commits of a push for closing keywords");
            Ok(Vec::new())
        }
    }
}

struct Unit {
    caller: Caller,
    here: RepoId,
    commit: Oid,
    subject: String,
    reference: Reference,
    settings: IssueSettings,
}

async fn apply_reference(tx: &mut Tx, unit: &Unit) -> Result<(), IssueError> {
    let Some(here) = repos::by_id(tx, unit.here, unit.caller.user_id()).await? else { return Ok(()) };
    let Some((there, issue)) = involve::target(tx, &unit.caller, &here, &unit.reference).await? else { return Ok(()) };
    open_locked(tx, &unit.caller, there.id, Action::IssueComment).await?;
    let (caller, settings) = (unit.caller.clone(), unit.settings.clone());
    let mut context =
        IssueContext::open(tx, &Target { caller, repo: there.id, number: issue.number, settings }).await?;
    let entry = NewEntry {
        kind: "referenced",
        detail: Detail::Commit(CommitDetail { subject: unit.subject.clone() }).stored(),
        source_repo: Some(here.id),
        commit: Some(unit.commit.to_string()),
        once: Some(format!("commit:{}:{}", here.id, unit.commit)),
        ..NewEntry::default()
    };
    if !context.append_entry(tx, entry).await? || !unit.reference.closes || context.issue.state == State::Closed {
        return Ok(());
    }
    if context.ensure(IssueAction::Close).is_ok() {
        let by = (context.repo.id == here.id).then_some(unit.commit);
        state::step(tx, &mut context, State::Closed, Some(Reason::Completed), by).await?;
    }
    Ok(())
}

/// The job.
pub(crate) async fn work(forge: &Forge, job: &Job) -> Result<(), JobError> {
    let lacking = || JobError::Final("the payload names no push; only a push can queue this job".into());
    let pushed = jobs::payload(job).and_then(Pushed::of).ok_or_else(lacking)?;
    Ok(run(forge, pushed).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_is_stored_as_ever() {
        let (old, new) = ("1".repeat(40), "2".repeat(40));
        let stored = format!(r#"{{"new":"{new}","old":"{old}","pusher":3,"repo_id":7}}"#);
        let search = KeywordSearch { repo_id: RepoId::new(7), pusher: UserId::new(3), old, new };
        jobs::assert_stored(&search, &stored);
        assert!(Pushed::of(search).is_some());
    }
}
