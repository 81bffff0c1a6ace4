//! Repositories in payloads.

use crate::Forge;
use crate::github::{Counted, Repository};
use abide_core::event::{Body, Payload, RepoSnapshot, RepoThen};
use abide_core::repo::{Governance, Visibility};
use abide_core::{RepoName, Timestamp, UserId, UserName};
use abide_store::events::Numbered;
use abide_store::repos::{Repo, Viewer};
use abide_store::repos::{forks, topics};
use abide_store::{StoreError, Tx, issues};
use percent_encoding::percent_decode_str;

/// A repository without its description, which is filled in before the first attempt. Only forks that everyone may read are
/// counted: the webhook's owner may not see private ones.
pub(super) async fn draft(tx: &mut Tx, forge: &Forge, repo: &Repo) -> Result<Repository, StoreError> {
    let stranger = Viewer { user: None, reads_everything: false };
    let forks = forks::counts(tx, &[repo.id], stranger).await?.remove(&repo.id).unwrap_or(0);
    let open_issues = issues::open_of_many(tx, &[repo.id]).await?.remove(&repo.id).unwrap_or(0);
    let topics = topics::of_repo(tx, repo.id).await?.iter().map(ToString::to_string).collect();
    let repo = Repo { description: String::new(), ..repo.clone() };
    Ok(Repository::new(forge, &repo, topics, Counted { forks, open_issues }, None))
}

/// A repository that was deleted, from its event: the snapshot of its last event, or the names that every event has.
pub(super) fn kept(event: &Numbered, body: &Body) -> Option<Repo> {
    if let Payload::RepoHardDeleted(deleted) = &body.payload
        && let Some(repo) = from_snapshot(&deleted.snapshot)
    {
        return Some(repo);
    }
    remembered(event, &body.repo)
}

fn remembered(event: &Numbered, repo: &RepoThen) -> Option<Repo> {
    let (owner, name) = repo.slug.as_deref()?.split_once('/')?;
    if owner.is_empty() {
        return None;
    }
    from_snapshot(&RepoSnapshot {
        id: repo.repo_id?,
        slug: format!("{owner}/{name}"),
        owner_id: UserId::new(0),
        name: name.to_owned(),
        visibility: if event.public { Visibility::Public } else { Visibility::Private },
        governance: Governance::Account,
        default_branch: "refs/heads/main".into(),
        fork_of: None,
        size_bytes: 0,
        star_count: 0,
        watcher_count: 0,
        created_at: None,
        updated_at: None,
        pushed_at: None,
        archived_at: None,
        deleted_at: None,
    })
}

fn from_snapshot(kept: &RepoSnapshot) -> Option<Repo> {
    let (owner, name) = kept.slug.split_once('/')?;
    let key = owner.starts_with("npub1").then(|| owner.to_owned());
    let identifier = key.as_ref().map(|_| percent_decode_str(name).decode_utf8_lossy().into_owned());
    Some(Repo {
        id: kept.id,
        owner_id: kept.owner_id,
        owner_name: (key.is_none() && !owner.starts_with('~')).then(|| UserName::from_stored(owner.to_owned())),
        owner_npub: key,
        identifier,
        name: RepoName::from_stored(kept.name.clone()),
        description: String::new(),
        visibility: kept.visibility,
        governance: kept.governance,
        default_branch: kept.default_branch.parse().ok()?,
        archived_at: kept.archived_at,
        deleted_at: kept.deleted_at,
        fork_of: kept.fork_of,
        refs_generation: 0,
        star_count: kept.star_count,
        watcher_count: kept.watcher_count,
        size_bytes: kept.size_bytes,
        pushed_at: kept.pushed_at,
        created_at: kept.created_at.unwrap_or(Timestamp::from_micros(0)),
        updated_at: kept.updated_at.or(kept.deleted_at).unwrap_or(Timestamp::from_micros(0)),
        role: None,
    })
}
