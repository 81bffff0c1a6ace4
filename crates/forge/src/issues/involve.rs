//! Effects of a text: mentions, references to issues, and subscriptions of participants.

use super::context::IssueContext;
use crate::Caller;
use crate::attention::watch;
use crate::open::viewer;
use abide_core::UserId;
use abide_core::issues::references::{self, Found, Reference};
use abide_core::policy::{self, Action};
use abide_store::accounts::users::{self, User};
use abide_store::issues::people::Why;
use abide_store::issues::timeline::NewEntry;
use abide_store::issues::{self, Issue};
use abide_store::repos::{self, Repo, collaborators};
use abide_store::{StoreError, Tx};

/// Makes an account a participant: subscribes it to the issue, and watches the repository at the level participating,
/// unless the account chose otherwise. Every involvement goes through here.
pub(super) async fn involved(
    tx: &mut Tx,
    user: UserId,
    repo: &Repo,
    issue: &Issue,
    why: Why,
) -> Result<(), StoreError> {
    debug_assert_eq!(repo.id, issue.repo_id, "an issue is one of its repository");
    issues::people::involve(tx, issue.id, user, why).await?;
    watch::on_involvement(tx, user, repo.id).await
}

/// Whether an account may read a repository and is not suspended.
pub(super) async fn reads(tx: &mut Tx, user: &User, repo: &Repo) -> Result<bool, StoreError> {
    let role = collaborators::role(tx, repo.id, user.id).await?;
    let allowed = policy::can(&user.actor(), Action::RepoRead, &repo.facts(), role).is_allowed();
    Ok(allowed && user.suspended_at.is_none())
}

/// Applies mentions and references of a text in an issue. `before` is the previous text.
/// Returns the newly mentioned accounts, for the event.
pub(super) async fn listen(
    tx: &mut Tx,
    context: &IssueContext,
    before: &str,
    text: &str,
) -> Result<Vec<UserId>, StoreError> {
    let (earlier, Found { people, issues }) = (references::in_markdown(before), references::in_markdown(text));
    let mut named = Vec::new();
    for name in people.iter().filter(|name| !earlier.people.contains(name)) {
        let Some(user) = users::by_name(tx, name).await? else { continue };
        // A user who may not read the repository does not learn of a mention in it.
        if reads(tx, &user, &context.repo).await? && Some(user.id) != context.who.user {
            involved(tx, user.id, &context.repo, &context.issue, Why::Mention).await?;
            issues::people::mention(tx, context.issue.id, user.id).await?;
            named.push(user.id);
        }
    }
    for reference in issues.iter().filter(|reference| !earlier.issues.contains(reference)) {
        if let Some((_, target)) = target(tx, &context.caller, &context.repo, reference).await?
            && target.id != context.issue.id
        {
            let entry = NewEntry {
                kind: "cross-referenced",
                source_repo: Some(context.repo.id),
                source_issue: Some(context.issue.id),
                once: Some(format!("issue:{}", context.issue.id)),
                ..NewEntry::default()
            };
            issues::timeline::append(tx, target.id, context.who.user, &entry).await?;
        }
    }
    Ok(named)
}

/// The issue that a text in a repository refers to, if the writer may comment there: its timeline gets the reference.
pub(super) async fn target(
    tx: &mut Tx,
    caller: &Caller,
    here: &Repo,
    reference: &Reference,
) -> Result<Option<(Repo, Issue)>, StoreError> {
    let repo = match &reference.repo {
        None => Some(here.clone()),
        Some((owner, name)) => repos::by_slug(tx, owner, name, viewer(caller)).await?,
    };
    let speaks = |repo: &Repo| policy::can(&caller.actor, Action::IssueComment, &repo.facts(), repo.role).is_allowed();
    let Some(repo) = repo.filter(speaks) else { return Ok(None) };
    let issue = issues::by_number(tx, repo.id, reference.number).await?;
    Ok(issue.map(|issue| (repo, issue)))
}
