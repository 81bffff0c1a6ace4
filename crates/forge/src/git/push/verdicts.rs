//! The verdict on each ref of a push.

use crate::git::snapshots::Refs;
use abide_core::push::{self, CurrentRefs, RefAction};
use abide_core::{Oid, RefName, RefUpdate};
use abide_git::report::RefResult;
use std::collections::{HashMap, HashSet};

/// Verdicts on the updates of a push, as far as known.
pub(crate) struct Verdicts {
    updates: Vec<RefUpdate>,
    refused: Vec<Option<String>>,
    /// Refs to delete that are already gone.
    gone: Vec<bool>,
    atomic: bool,
    /// Reason for refusing the whole push, even one without updates.
    whole: Option<String>,
}

impl Verdicts {
    pub(crate) fn of(updates: Vec<RefUpdate>, atomic: bool) -> Self {
        let count = updates.len();
        Self { updates, refused: vec![None; count], gone: vec![false; count], atomic, whole: None }
    }

    /// Judges the updates still accepted against the current refs.
    pub(crate) fn refuse_by_rule(&mut self, default_branch: &RefName, refs: &Refs) {
        let verdicts = push::judge(&self.updates, default_branch, &At(refs));
        for ((slot, gone), verdict) in self.refused.iter_mut().zip(&mut self.gone).zip(verdicts) {
            *gone = verdict == Ok(RefAction::AlreadyGone);
            if let (None, Err(refusal)) = (&slot, verdict) {
                *slot = Some(refusal.to_string());
            }
        }
        self.all_or_nothing();
    }

    /// Notes which refs that were to be deleted were not among these, once all is done. A signed state can ask for more than the
    /// commands of a push, so over git this only informs the client.
    pub(crate) fn note_gone(&mut self, refs: &Refs) {
        for (gone, update) in self.gone.iter_mut().zip(&self.updates) {
            *gone = update.is_delete() && At(refs).get(update.name.as_str()).is_none();
        }
    }

    /// Refuses one ref.
    pub(crate) fn refuse(&mut self, name: &RefName, reason: &str) {
        self.refuse_late(name, reason);
        self.all_or_nothing();
    }

    /// Refuses one ref once others have moved: those stay accepted, whatever the client asked for.
    pub(crate) fn refuse_late(&mut self, name: &RefName, reason: &str) {
        for (slot, update) in self.refused.iter_mut().zip(&self.updates) {
            if slot.is_none() && update.name == *name {
                *slot = Some(reason.to_owned());
            }
        }
    }

    /// Refuses several refs, each for its own reason.
    pub(crate) fn refuse_each(&mut self, reasons: &HashMap<RefName, String>) {
        for (slot, update) in self.refused.iter_mut().zip(&self.updates) {
            if slot.is_none() {
                *slot = reasons.get(&update.name).cloned();
            }
        }
        self.all_or_nothing();
    }

    /// Names of the refused refs.
    pub(crate) fn refused_names(&self) -> HashSet<RefName> {
        let refused = self.updates.iter().zip(&self.refused).filter(|(_, refused)| refused.is_some());
        refused.map(|(update, _)| update.name.clone()).collect()
    }

    /// Whether a refused ref would have brought objects.
    pub(crate) fn refuses_objects(&self) -> bool {
        self.updates.iter().zip(&self.refused).any(|(update, refused)| refused.is_some() && !update.is_delete())
    }

    /// Refuses everything still accepted.
    pub(crate) fn refuse_rest(&mut self, reason: &str) {
        for slot in self.refused.iter_mut().filter(|slot| slot.is_none()) {
            *slot = Some(reason.to_owned());
        }
    }

    /// Refuses everything, even a push without updates.
    pub(crate) fn refuse_all(&mut self, reason: &str) {
        self.refuse_rest(reason);
        self.whole = Some(reason.to_owned());
    }

    fn all_or_nothing(&mut self) {
        if self.atomic && self.refused.iter().any(Option::is_some) {
            self.refuse_rest("atomic push: another ref was refused");
        }
    }

    pub(crate) fn none_left(&self) -> bool {
        self.open().all(|(_, gone)| gone)
    }

    /// Updates to make.
    pub(crate) fn accepted(&self) -> Vec<RefUpdate> {
        self.open().filter(|(_, gone)| !gone).map(|(update, _)| update.clone()).collect()
    }

    /// Updates not refused, and whether their refs are already gone.
    fn open(&self) -> impl Iterator<Item = (&RefUpdate, bool)> {
        let all = self.updates.iter().zip(&self.gone).zip(&self.refused);
        all.filter(|(_, refused)| refused.is_none()).map(|((update, gone), _)| (update, *gone))
    }

    /// Warnings about refs that were already gone.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let gone = self.open().filter(|(_, gone)| *gone);
        gone.map(|(update, _)| format!("warning: deleting a non-existent ref: {}", update.name)).collect()
    }

    /// Reason of the first refusal.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.whole.as_deref().or_else(|| self.refused.iter().find_map(Option::as_deref))
    }

    pub(crate) fn results(self) -> Vec<RefResult> {
        self.refused.into_iter().map(|refused| refused.map_or(RefResult::Ok, RefResult::Ng)).collect()
    }
}

/// A snapshot as input of the rule.
struct At<'a>(&'a Refs);

impl CurrentRefs for At<'_> {
    fn get(&self, name: &str) -> Option<Oid> {
        self.0.get(name.as_bytes()).map(|found| found.oid)
    }

    fn any_below(&self, name: &str) -> bool {
        self.0.prefixed(format!("{name}/").as_bytes()).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(atomic: bool) -> Verdicts {
        let update = |name: &str| RefUpdate {
            name: name.parse().expect("a ref name"),
            old: Oid::ZERO,
            new: Oid::from_bytes([1; 20]),
        };
        Verdicts::of(["refs/heads/main", "refs/nostr/x"].map(update).to_vec(), atomic)
    }

    #[test]
    fn one_refusal_takes_an_atomic_push_along_until_the_first_ref_moved() {
        let refused: RefName = "refs/nostr/x".parse().expect("a ref name");
        for (atomic, late, main) in
            [(false, false, true), (true, false, false), (false, true, true), (true, true, true)]
        {
            let mut verdicts = verdicts(atomic);
            match late {
                true => verdicts.refuse_late(&refused, "no"),
                false => verdicts.refuse(&refused, "no"),
            }
            let results = verdicts.results();
            assert_eq!(results[0] == RefResult::Ok, main, "atomic {atomic}, late {late}");
            assert_eq!(results[1], RefResult::Ng("no".to_owned()));
        }
    }
}
