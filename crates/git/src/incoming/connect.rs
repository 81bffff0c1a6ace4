//! The proof that everything the new tips need is here. Only a [`Connected`] can give objects to a repository, so none
//! enters one unproved, whatever the road.

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
use std::time::Duration;

/// With more tips than this, a failure is reported for all of them rather than looked for one by one.
const CULPRITS: usize = 32;

/// Processor time of one walk for a push without an account.
const STRANGERS_TIME: Duration = Duration::from_secs(120);

const MISSING: &str = "the pushed objects are incomplete; run `git fsck` in your clone and push again";
const NOT_A_COMMIT: &str = "refs/heads/* takes commits only; push other objects as tags";

/// Objects whose tips were proved complete in one repository: nothing that the tips reach is missing there.
#[derive(Debug)]
pub struct Connected {
    git: Git,
    place: Place,
    /// Objects beside the repository; `None`: all of them are in it.
    incoming: Option<Incoming>,
    tips: HashSet<Oid>,
}

/// Where a proof holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// In this repository: what its refs reach is taken for complete, because nothing is ever pruned below them.
    In(PathBuf),
    /// In every repository: the objects need nothing that is not among them.
    Anywhere,
}

impl Incoming {
    /// Checks that every new tip exists, that branches are commits, and that nothing reachable from the tips is missing
    /// in the repository that the area borrows from. The proof covers the tips that are not refused.
    pub async fn connect(self, updates: &[RefUpdate]) -> Result<(Connected, Vec<RefusedTip>), GitError> {
        let place = if self.alone { Place::Anywhere } else { Place::In(self.repo.clone()) };
        let mut connected = Connected { git: self.git.clone(), place, incoming: Some(self), tips: HashSet::new() };
        let refused = connected.extend(updates).await?;
        Ok((connected, refused))
    }
}

impl Connected {
    /// A proof about objects that are in the repository already; it covers no tip before [`Connected::extend`].
    pub fn in_place(git: &Git, repo: PathBuf) -> Self {
        Self { git: git.clone(), place: Place::In(repo), incoming: None, tips: HashSet::new() }
    }

    /// What the refs of one repository reach, copied beside another: the copy is closed, because packing fails at the
    /// first object that is missing.
    pub(crate) fn closed(incoming: Incoming, tips: impl IntoIterator<Item = Oid>) -> Self {
        let git = incoming.git.clone();
        Self { git, place: Place::Anywhere, incoming: Some(incoming), tips: tips.into_iter().collect() }
    }

    /// Whether a tip was proved complete in the repository in this directory.
    pub fn covers(&self, repo: &Path, tip: Oid) -> bool {
        self.holds_in(repo) && self.tips.contains(&tip)
    }

    /// Whether the proof is about the repository in this directory.
    pub fn holds_in(&self, repo: &Path) -> bool {
        match &self.place {
            Place::In(proved) => proved == repo,
            Place::Anywhere => true,
        }
    }

    /// The directory whose `objects` are beside the repository.
    pub fn area(&self) -> Option<&Path> {
        self.incoming.as_ref().map(|incoming| incoming.area.path())
    }

    /// Proves further tips in the same view. Those that are not complete, or no commit where one is needed, are returned
    /// and stay unproved.
    pub async fn extend(&mut self, updates: &[RefUpdate]) -> Result<Vec<RefusedTip>, GitError> {
        let tips: Vec<RefUpdate> = updates.iter().filter(|update| !update.is_delete()).cloned().collect();
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let (tips, mut refused) = self.kinds(tips).await?;
        let unproved: Vec<RefUpdate> = tips.into_iter().filter(|tip| !self.tips.contains(&tip.new)).collect();
        // Those that are left may still be taken, so they are looked at whatever became of the others.
        if !unproved.is_empty() {
            let _place = self.git.unpack_place(self.client()).await?;
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

    /// Tells the tips that exist and may be where they shall be from the others.
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

    /// Where the objects of this view are, those beside the repository first.
    pub(crate) fn object_directories(&self) -> Vec<PathBuf> {
        let beside = self.incoming.as_ref().map(|incoming| [incoming.objects(), incoming.repo_objects()]);
        match (beside, &self.place) {
            (Some(both), _) => both.to_vec(),
            (None, Place::In(repo)) => vec![repo.join("objects")],
            (None, Place::Anywhere) => Vec::new(),
        }
    }

    /// Whose push it is.
    fn client(&self) -> Client {
        self.incoming.as_ref().map_or(Client::SERVER, |incoming| incoming.client)
    }

    /// A call that sees the repository with the objects beside it.
    fn call(&self, what: &'static str) -> Call<'_> {
        match (&self.incoming, &self.place) {
            (Some(incoming), _) => incoming.call(what, &[]),
            (None, Place::In(repo)) => self.git.call(what, repo),
            (None, Place::Anywhere) => unreachable!("a proof without a repository is about objects of its own"),
        }
    }

    /// Walks everything that the tips reach and the refs do not; fails at the first object that is not there.
    async fn walk(&self, tips: &[RefUpdate]) -> Result<(), GitError> {
        let mut input = String::with_capacity(tips.len() * 41);
        for tip in tips {
            writeln!(input, "{}", tip.new).expect("writing to a string does not fail");
        }
        let limits = self.git.limits();
        let ration = match self.client().is_stranger() {
            true => {
                Ration { memory: limits.stranger_memory, processor: limits.check.min(STRANGERS_TIME), yields: true }
            }
            false => Ration { memory: limits.memory, processor: limits.check, yields: false },
        };
        let call = self.call("rev-list").ration(ration);
        let call = call.args(["--objects", "--stdin", "--not", "--all", "--quiet"]);
        call.run(input.as_bytes(), self.git.limits().check).await.map(drop)
    }

    /// Which of these tips are incomplete; all of them, if none can be told from the others.
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

    /// What these proved tips reach beyond the refs of the repository, in an area of its own: the rest of what was
    /// received stays where it is. Durable when this returns.
    pub async fn select(&self, layout: &Layout, key: &str, tips: &[Oid]) -> Result<Self, GitError> {
        let Some(incoming) = &self.incoming else {
            return Ok(Self {
                git: self.git.clone(),
                place: self.place.clone(),
                incoming: None,
                tips: self.proved(tips),
            });
        };
        let mut area = Incoming::create_beside(&self.git, layout, incoming.repo.clone(), key).await?;
        (area.alone, area.client) = (incoming.alone, incoming.client);
        let known = refs_of(incoming.repo.clone()).await?;
        area.fill(&self.object_directories(), tips, &known).await?;
        Ok(Self { git: self.git.clone(), place: self.place.clone(), incoming: Some(area), tips: self.proved(tips) })
    }

    fn proved(&self, tips: &[Oid]) -> HashSet<Oid> {
        tips.iter().copied().filter(|tip| self.tips.contains(tip)).collect()
    }

    /// Gives the objects to the repository in this directory, durable when this returns. Objects that are there already
    /// stay as they are. The area keeps its copy until it is discarded, so a call that was cut short can be repeated.
    pub async fn migrate(&self, repo: &Path) -> Result<(), GitError> {
        if !self.holds_in(repo) {
            return Err(GitError::Unproved(repo.to_owned()));
        }
        match &self.incoming {
            Some(incoming) => incoming.migrate_into(repo).await,
            None => Ok(()),
        }
    }

    /// Keeps the objects under another key without the proof, durable when this returns. `false`: there were none.
    pub async fn keep(self, layout: &Layout, key: &str) -> Result<bool, GitError> {
        match self.incoming {
            Some(incoming) => incoming.keep(layout, key).await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Removes the area, and with it every object that was not migrated.
    pub async fn discard(self) -> Result<(), GitError> {
        match self.incoming {
            Some(incoming) => incoming.discard().await,
            None => Ok(()),
        }
    }
}

/// What the refs of a repository point to.
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
