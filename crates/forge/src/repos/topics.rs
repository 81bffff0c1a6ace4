//! Topics of a repository, always replaced as a set.

use crate::emit::{AuditAction, Subject, Who, audit_repo, emit};
use crate::open::open_locked;
use crate::{Access, Caller, Fault, Forge};
use abide_core::event::{Payload, TopicsChanged};
use abide_core::policy::Action;
use abide_core::topics::{self as rules, InvalidTopics};
use abide_core::{InputError, RepoId, Topic};
use abide_macros::boxed;
use abide_store::repos::Repo;
use abide_store::repos::topics;
use abide_store::{StoreError, Tx};
use serde_json::{Value as Json, json};
use std::collections::HashMap;

/// Why nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum TopicsError {
    /// The caller lacks permission, or the repository does not exist.
    #[error(transparent)]
    Access(#[from] Access),
    /// A topic breaks a rule, or there are too many.
    #[error(transparent)]
    Invalid(#[from] InvalidTopics),
}

impl InputError for TopicsError {
    fn field(&self) -> Option<&'static str> {
        match self {
            Self::Invalid(_) => Some("names"),
            Self::Access(_) => None,
        }
    }
}

impl From<StoreError> for TopicsError {
    fn from(error: StoreError) -> Self {
        Self::Access(error.into())
    }
}

/// The topics of an opened repository.
#[boxed]
pub async fn of(forge: &Forge, repo: &Repo) -> Result<Vec<Topic>, Fault> {
    Ok(topics::of_repo(&mut *forge.store().read().await?, repo.id).await?)
}

/// The topics of several repositories; repositories without topics are absent.
#[boxed]
pub async fn of_many(forge: &Forge, repos: &[RepoId]) -> Result<HashMap<RepoId, Vec<Topic>>, Fault> {
    Ok(topics::of_many(&mut *forge.store().read().await?, repos).await?)
}

/// Replaces the topics of a repository. A set that holds already changes nothing and emits nothing.
#[boxed]
pub async fn replace(forge: &Forge, caller: &Caller, repo: &Repo, typed: &[String]) -> Result<Vec<Topic>, TopicsError> {
    let unit = Unit { repo: repo.id, caller: caller.clone(), topics: rules::topics(typed)? };
    forge.store().write(unit, |tx, unit| Box::pin(write(tx, unit))).await
}

struct Unit {
    repo: RepoId,
    caller: Caller,
    topics: Vec<Topic>,
}

async fn write(tx: &mut Tx, unit: &Unit) -> Result<Vec<Topic>, TopicsError> {
    let who = Who::from(&unit.caller);
    let repo = open_locked(tx, &unit.caller, unit.repo, Action::RepoEdit).await?;
    let before = topics::of_repo(tx, repo.id).await?;
    if before != unit.topics {
        topics::replace(tx, repo.id, &unit.topics).await?;
        let meta = json!({ "before": words(&before), "after": words(&unit.topics) });
        audit_repo(tx, &who, AuditAction::RepoTopicsChanged, &repo, meta).await?;
        let topics = unit.topics.iter().map(ToString::to_string).collect();
        let payload = Payload::RepoTopicsChanged(TopicsChanged { topics });
        emit(tx, &who, Subject::Repo(&repo), repo.visibility.into(), payload).await?;
    }
    Ok(unit.topics.clone())
}

fn words(topics: &[Topic]) -> Json {
    topics.iter().map(Topic::as_str).collect()
}
