//! Whether all that the new tips need is here.

use super::Incoming;
use crate::GitError;
use crate::error::blocking;
use crate::receive::{ReceiveError, RefusedTip};
use abide_core::{Oid, RefUpdate};
use gix::ObjectId;
use gix::objs::Kind;
use gix::odb::Header;
use std::fmt::Write;

/// With more tips than this, a failure is reported for all of them rather than looked for one by one.
const CULPRITS: usize = 32;

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
        let tips = blocking(move || {
            let stores = [waiting, present].map(|dir| gix::odb::at(dir, gix::hash::Kind::Sha1));
            let kind = |oid: Oid| {
                let id = ObjectId::from_bytes_or_panic(oid.as_bytes());
                let stores = stores.iter().filter_map(|store| store.as_ref().ok());
                stores.filter_map(|store| store.try_header(&id).ok().flatten()).map(|header| header.kind()).next()
            };
            let refused: Vec<_> = tips.iter().filter_map(|tip| refuse_kind(tip, kind(tip.new))).collect();
            if refused.is_empty() { Ok(tips) } else { Err(ReceiveError::Tips(refused)) }
        })
        .await?;
        let _place = self.git.heavy_place().await?;
        match self.walk(&tips).await {
            Err(GitError::Failed { .. }) => Err(ReceiveError::Tips(self.culprits(&tips).await?)),
            result => Ok(result?),
        }
    }

    /// Walks everything that the tips reach and the refs do not; fails at the first object that is not there.
    async fn walk(&self, tips: &[RefUpdate]) -> Result<(), GitError> {
        let mut input = String::with_capacity(tips.len() * 41);
        for tip in tips {
            writeln!(input, "{}", tip.new).expect("writing to a string does not fail");
        }
        let call = self.call("rev-list", &[]).args(["--objects", "--stdin", "--not", "--all", "--quiet"]);
        call.run(input.as_bytes(), self.git.limits().check).await.map(drop)
    }

    async fn culprits(&self, tips: &[RefUpdate]) -> Result<Vec<RefusedTip>, GitError> {
        let mut culprits = Vec::new();
        for tip in tips {
            let broken = tips.len() > CULPRITS
                || tips.len() == 1
                || match self.walk(std::slice::from_ref(tip)).await {
                    Ok(()) => false,
                    Err(GitError::Failed { .. }) => true,
                    Err(error) => return Err(error),
                };
            if broken {
                culprits.push(RefusedTip { name: tip.name.clone(), reason: MISSING });
            }
        }
        Ok(culprits)
    }
}

fn refuse_kind(tip: &RefUpdate, kind: Option<Kind>) -> Option<RefusedTip> {
    let reason = match kind {
        None => MISSING,
        Some(kind) if kind != Kind::Commit && tip.name.as_branch().is_some() => NOT_A_COMMIT,
        Some(_) => return None,
    };
    Some(RefusedTip { name: tip.name.clone(), reason })
}
