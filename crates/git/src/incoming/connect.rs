//! Whether all that the new tips need is here.

use super::Incoming;
use crate::GitError;
use crate::error::blocking;
use crate::ration::Ration;
use crate::receive::{ReceiveError, RefusedTip};
use abide_core::{Oid, RefUpdate};
use gix::ObjectId;
use gix::objs::Kind;
use gix::odb::Header;
use std::fmt::Write;
use std::time::Duration;

/// With more tips than this, a failure is reported for all of them rather than looked for one by one.
const CULPRITS: usize = 32;

/// Processor time of one walk for a push without an account.
const STRANGERS_TIME: Duration = Duration::from_secs(120);

const MISSING: &str = "the pushed objects are incomplete; run `git fsck` in your clone and push again";
const NOT_A_COMMIT: &str = "refs/heads/* takes commits only; push other objects as tags";

impl Incoming {
    /// Checks that every new tip exists, that branches are commits, and that nothing reachable from them is missing.
    ///
    /// What the existing refs reach is taken for complete: nothing is ever pruned below them.
    pub async fn check_connected(&self, updates: &[RefUpdate]) -> Result<(), ReceiveError> {
        let tips: Vec<RefUpdate> = updates.iter().filter(|update| !update.is_delete()).cloned().collect();
        if tips.is_empty() {
            return Ok(());
        }
        let (waiting, present) = (self.objects(), self.repo_objects());
        let (tips, mut refused) = blocking(move || {
            let stores = [waiting, present].map(|dir| gix::odb::at(dir, gix::hash::Kind::Sha1));
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
            Ok::<_, GitError>((fine, refused))
        })
        .await?;
        // Those that are left may still be taken, so they are looked at whatever became of the others.
        if !tips.is_empty() {
            let _place = self.git.unpack_place(self.client).await?;
            match self.walk(&tips).await {
                Err(GitError::Failed { .. }) => refused.extend(self.culprits(&tips).await?),
                Err(GitError::UsedUp { of, .. }) => return Err(ReceiveError::TooDear(of)),
                result => result?,
            }
        }
        if refused.is_empty() { Ok(()) } else { Err(ReceiveError::Tips(refused)) }
    }

    /// Walks everything that the tips reach and the refs do not; fails at the first object that is not there.
    async fn walk(&self, tips: &[RefUpdate]) -> Result<(), GitError> {
        let mut input = String::with_capacity(tips.len() * 41);
        for tip in tips {
            writeln!(input, "{}", tip.new).expect("writing to a string does not fail");
        }
        let limits = self.git.limits();
        let ration = match self.client.is_stranger() {
            true => Ration { memory: limits.stranger_memory, processor: limits.check.min(STRANGERS_TIME) },
            false => Ration { memory: limits.memory, processor: limits.check },
        };
        let call = self.call("rev-list", &[]).ration(ration);
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
