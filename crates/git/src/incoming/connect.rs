//! Proof that everything reachable from the new tips is present. Only a [`Connected`] can move objects into a
//! repository,
//! so every code path proves them first.

use super::Incoming;
use crate::error::blocking;
use crate::ration::Ration;
use crate::receive::RefusedTip;
use crate::runner::Call;
use crate::{Client, Git, GitError, Layout, Snapshot};
use abide_core::{Oid, RefUpdate};
use gix::ObjectId;
use gix::objs::Kind;
use gix::odb::Header;
use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Above this number of tips, a failure refuses all of them instead of checking each tip.
const CULPRITS: usize = 32;

const MISSING: &str = "the pushed objects are incomplete; run `git fsck` in your clone and push again";
const NOT_A_COMMIT: &str = "refs/heads/* takes commits only; push other objects as tags";

/// Objects whose tips were proved complete in one repository: everything reachable from them is present.
#[derive(Debug)]
pub struct Connected {
    git: Git,
    valid_in: ValidIn,
    /// The incoming area; `None` if all objects are in the repository already.
    incoming: Option<Incoming>,
    tips: HashSet<Oid>,
    client: Client,
}

/// Repositories in which a proof is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ValidIn {
    /// This repository only. Objects reachable from its refs count as complete, because maintenance never prunes them.
    In(PathBuf),
    /// Any repository: the objects depend on nothing outside themselves.
    Anywhere,
}

impl Incoming {
    /// Checks that every new tip exists, that branch tips are commits, and that everything reachable from the tips is
    /// present
    /// in the area or its alternate. The proof covers the tips that are not refused.
    pub async fn connect(self, updates: &[RefUpdate]) -> Result<(Connected, Vec<RefusedTip>), GitError> {
        let valid_in = if self.alone { ValidIn::Anywhere } else { ValidIn::In(self.repo.clone()) };
        let (git, client) = (self.git.clone(), self.client);
        let mut connected = Connected { git, valid_in, incoming: Some(self), tips: HashSet::new(), client };
        let refused = connected.extend(updates).await?;
        Ok((connected, refused))
    }
}

impl Connected {
    /// A proof for objects already in the repository. It covers no tip until [`Connected::extend`].
    pub fn in_place(git: &Git, repo: PathBuf) -> Self {
        let (git, valid_in) = (git.clone(), ValidIn::In(repo));
        Self { git, valid_in, incoming: None, tips: HashSet::new(), client: Client::SERVER }
    }

    /// The same proof, with its work counted against this client.
    pub fn of(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// A proof for a copy of everything that these tips reach. `pack-objects` fails at the first missing object, so the
    /// copy is
    /// complete.
    pub(crate) fn closed(incoming: Incoming, tips: impl IntoIterator<Item = Oid>) -> Self {
        let (git, client, tips) = (incoming.git.clone(), incoming.client, tips.into_iter().collect());
        Self { git, valid_in: ValidIn::Anywhere, incoming: Some(incoming), tips, client }
    }

    /// Whether this tip was proved complete for the repository in this directory.
    pub fn covers(&self, repo: &Path, tip: Oid) -> bool {
        self.holds_in(repo) && self.tips.contains(&tip)
    }

    /// Whether the proof is valid for the repository in this directory.
    pub fn holds_in(&self, repo: &Path) -> bool {
        match &self.valid_in {
            ValidIn::In(proved) => proved == repo,
            ValidIn::Anywhere => true,
        }
    }

    /// Directory of the incoming area.
    pub fn area(&self) -> Option<&Path> {
        self.incoming.as_ref().map(|incoming| incoming.area.path())
    }

    /// Proves further tips in the same object view. Returns tips that are incomplete, or not commits where commits are
    /// needed;
    /// they stay unproved.
    pub async fn extend(&mut self, updates: &[RefUpdate]) -> Result<Vec<RefusedTip>, GitError> {
        let tips: Vec<RefUpdate> = updates.iter().filter(|update| !update.is_delete()).cloned().collect();
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let (tips, mut refused) = self.kinds(tips).await?;
        let unproved: Vec<RefUpdate> = tips.into_iter().filter(|tip| !self.tips.contains(&tip.new)).collect();
        // A refused tip does not stop the check of the others: a non-atomic push may still apply them.
        if !unproved.is_empty() {
            let _slot = self.git.unpack_slot(self.client).await?;
            match self.walk(&unproved).await {
                Ok(()) => self.tips.extend(unproved.iter().map(|tip| tip.new)),
                Err(GitError::Failed { .. }) => {
                    let culprits = self.culprits(&unproved).await?;
                    let whole = unproved.iter().filter(|tip| !culprits.iter().any(|culprit| culprit.name == tip.name));
                    self.tips.extend(whole.map(|tip| tip.new));
                    refused.extend(culprits);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(refused)
    }

    /// Splits the tips into those that exist with an allowed object type, and refusals.
    async fn kinds(&self, tips: Vec<RefUpdate>) -> Result<(Vec<RefUpdate>, Vec<RefusedTip>), GitError> {
        let objects = self.object_directories();
        blocking(move || {
            let stores: Vec<_> = objects.into_iter().map(|dir| gix::odb::at(dir, gix::hash::Kind::Sha1)).collect();
            let kind = |oid: Oid| {
                let id = ObjectId::from_bytes_or_panic(oid.as_bytes());
                let stores = stores.iter().filter_map(|store| store.as_ref().ok());
                stores.filter_map(|store| store.try_header(&id).ok().flatten()).map(|header| header.kind()).next()
            };
            let (mut fine, mut refused) = (Vec::new(), Vec::new());
            for tip in tips {
                match refuse_kind(&tip, kind(tip.new)) {
                    None => fine.push(tip),
                    Some(refusal) => refused.push(refusal),
                }
            }
            Ok((fine, refused))
        })
        .await
    }

    /// Object directories of this view, the incoming area first.
    pub(crate) fn object_directories(&self) -> Vec<PathBuf> {
        let beside = self.incoming.as_ref().map(|incoming| [incoming.objects(), incoming.repo_objects()]);
        match (beside, &self.valid_in) {
            (Some(both), _) => both.to_vec(),
            (None, ValidIn::In(repo)) => vec![repo.join("objects")],
            (None, ValidIn::Anywhere) => Vec::new(),
        }
    }

    /// A git call that sees the repository and the incoming area.
    fn call(&self, what: &'static str) -> Call<'_> {
        match (&self.incoming, &self.valid_in) {
            (Some(incoming), _) => incoming.call(what, &[]),
            (None, ValidIn::In(repo)) => self.git.call(what, repo),
            (None, ValidIn::Anywhere) => unreachable!("a proof without a repository is about objects of its own"),
        }
    }

    /// Walks everything reachable from the tips but not from the refs; fails at the first missing object.
    async fn walk(&self, tips: &[RefUpdate]) -> Result<(), GitError> {
        let mut input = String::with_capacity(tips.len() * 41);
        for tip in tips {
            writeln!(input, "{}", tip.new).expect("writing to a string does not fail");
        }
        let limits = self.git.limits();
        let ration = self.git.ration_of(self.client);
        let call = self.call("rev-list").ration(Ration { processor: ration.processor.min(limits.check), ..ration });
        let call = call.args(["--objects", "--stdin", "--not", "--all", "--quiet"]);
        call.run(input.as_bytes(), limits.check).await.map(drop)
    }

    /// The incomplete tips among these. All of them, if there are too many to check or no single tip fails.
    async fn culprits(&self, tips: &[RefUpdate]) -> Result<Vec<RefusedTip>, GitError> {
        let mut culprits = Vec::new();
        for tip in tips {
            let broken = tips.len() > CULPRITS
                || tips.len() == 1
                || match self.walk(std::slice::from_ref(tip)).await {
                    Ok(()) => false,
                    Err(GitError::Failed { .. } | GitError::UsedUp { .. }) => true,
                    Err(error) => return Err(error),
                };
            if broken {
                culprits.push(incomplete(tip));
            }
        }
        if culprits.is_empty() {
            culprits.extend(tips.iter().map(incomplete));
        }
        Ok(culprits)
    }

    /// Copies the objects reachable from these proved tips, but not from the repository's refs, to a new area. Other
    /// received
    /// objects stay in this one. Durable on return.
    pub async fn select(&self, layout: &Layout, key: &str, tips: &[Oid]) -> Result<Self, GitError> {
        let Some(incoming) = &self.incoming else {
            return Ok(Self {
                git: self.git.clone(),
                valid_in: self.valid_in.clone(),
                incoming: None,
                tips: self.proved(tips),
                client: self.client,
            });
        };
        let mut area = Incoming::create_beside(&self.git, layout, incoming.repo.clone(), key).await?;
        (area.alone, area.client) = (incoming.alone, incoming.client);
        let known = refs_of(incoming.repo.clone()).await?;
        area.fill(&self.object_directories(), tips, &known).await?;
        let (git, valid_in, tips) = (self.git.clone(), self.valid_in.clone(), self.proved(tips));
        Ok(Self { git, valid_in, incoming: Some(area), tips, client: self.client })
    }

    fn proved(&self, tips: &[Oid]) -> HashSet<Oid> {
        tips.iter().copied().filter(|tip| self.tips.contains(tip)).collect()
    }

    /// Moves the objects into the repository in this directory, durable on return. Existing objects stay unchanged. The
    /// area
    /// keeps its copy until it is discarded, so an interrupted call can be repeated.
    pub async fn migrate(&self, repo: &Path) -> Result<(), GitError> {
        if !self.holds_in(repo) {
            return Err(GitError::Unproved(repo.to_owned()));
        }
        match &self.incoming {
            Some(incoming) => incoming.migrate_into(repo).await,
            None => Ok(()),
        }
    }

    /// Keeps the objects under another key without the proof, durable on return. `false` if there is no incoming area.
    pub async fn keep(self, layout: &Layout, key: &str) -> Result<bool, GitError> {
        match self.incoming {
            Some(incoming) => incoming.keep(layout, key).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Removes the area with every object that was not migrated.
    pub async fn discard(self) -> Result<(), GitError> {
        match self.incoming {
            Some(incoming) => incoming.discard().await,
            None => Ok(()),
        }
    }
}

/// Object ids of all refs of a repository.
async fn refs_of(repo: PathBuf) -> Result<Vec<Oid>, GitError> {
    blocking(move || Ok(Snapshot::read(&repo)?.refs.iter().map(|found| found.oid).collect())).await
}

fn incomplete(tip: &RefUpdate) -> RefusedTip {
    RefusedTip { name: tip.name.clone(), reason: MISSING }
}

fn refuse_kind(tip: &RefUpdate, kind: Option<Kind>) -> Option<RefusedTip> {
    let reason = match kind {
        None => MISSING,
        Some(kind) if kind != Kind::Commit && tip.name.as_branch().is_some() => NOT_A_COMMIT,
        Some(_) => return None,
    };
    Some(RefusedTip { name: tip.name.clone(), reason })
}
