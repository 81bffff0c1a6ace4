//! Keywords in commits: `fixes #12` on the default branch closes the issue, `#12` adds a reference.
//!
//! The end of a push queues a job. Each commit is referenced in an issue once, by a key in its timeline, so a job that runs
//! again, or a commit that comes again, changes nothing.

use super::context::{IssueContext, Target};
use super::{IssueError, involve, state};
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
use serde_json::Value as Json;

/// Payload of the job.
struct Brought {
    repo: RepoId,
    pusher: UserId,
    old: Oid,
    new: Oid,
}

impl Brought {
    fn parse(payload: &Json) -> Option<Self> {
        let oid = |name: &str| payload[name].as_str()?.parse().ok();
        Some(Self {
            repo: RepoId::new(payload["repo_id"].as_i64()?),
            pusher: UserId::new(payload["pusher"].as_i64()?),
            old: oid("old")?,
            new: oid("new")?,
        })
    }
}

/// Reads the commits of a push; adds references and closes issues in the pusher's name. `false`: the payload is invalid.
async fn run(forge: &Forge, payload: &Json) -> Result<bool, Fault> {
    let Some(brought) = Brought::parse(payload) else { return Ok(false) };
    let mut conn = forge.store().read().await?;
    let repo = repos::by_id(&mut conn, brought.repo, Some(brought.pusher)).await?;
    let pusher = users::by_id(&mut conn, brought.pusher).await?;
    drop(conn);
    let (Some(repo), Some(pusher)) = (repo.filter(Repo::is_live), pusher) else { return Ok(true) };
    let caller = Caller::of(pusher.actor(), None);
    for commit in commits(forge, &repo, &brought).await? {
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
    Ok(true)
}

fn message(commit: &Commit) -> String {
    format!("{}\n\n{}", String::from_utf8_lossy(&commit.subject), String::from_utf8_lossy(&commit.body))
}

/// The commits that a push brought, the oldest first; the latest ones, if they are too many.
async fn commits(forge: &Forge, repo: &Repo, brought: &Brought) -> Result<Vec<Commit>, Fault> {
    let browser = match crate::browse::of_repo(forge, &Caller::operator(), repo.clone()).await {
        Ok(browser) => browser,
        Err(Access::Fault(fault)) => return Err(fault),
        Err(_) => return Ok(Vec::new()),
    };
    let base = (!brought.old.is_zero()).then_some(brought.old);
    let (head, most, walk) = (brought.new, forge.settings().issues.keyword_commits, forge.settings().browse.walk);
    match browser.read_heavy(move |reader| reader.brought(base, head, most, walk)).await {
        Ok(mut commits) => {
            commits.reverse();
            Ok(commits)
        }
        // Rewritten and cleaned away meanwhile, or too far apart to compare: nothing to read.
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
    match run(forge, &jobs::payload(job)).await? {
        true => Ok(()),
        false => Err(JobError::Final("the payload names no push; only a push can queue this job".into())),
    }
}
