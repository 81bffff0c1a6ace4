//! Finds the signed state that allows a push.

use super::push::PushRefusal;
use crate::PublicKey;
use crate::git::{ObjectId, RepoState};
use abide_core::{Oid, RefName, RefUpdate};
use std::collections::{BTreeMap, BTreeSet};

/// The target repository of a push, as the decision needs it.
pub trait Repository {
    /// Current value of a branch or tag.
    fn points_to(&self, name: &RefName) -> Option<Oid>;
    /// Whether the repository has this object.
    fn has(&self, oid: Oid) -> bool;
}

/// States that may apply to a repository.
#[derive(Clone, Debug)]
pub struct Candidates<'a> {
    /// Stored states of this identifier; the newest by a maintainer is authoritative.
    pub stored: &'a [RepoState],
    /// States in purgatory, in any order.
    pub waiting: &'a [RepoState],
    /// Keys whose states count.
    pub maintainers: &'a BTreeSet<PublicKey>,
}

/// Result of matching a push against states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit<'a> {
    /// The push changes nothing and needs no state.
    NoChange,
    /// The stored, authoritative state.
    Stored(&'a RepoState),
    /// A state in purgatory, which the push promotes.
    Waiting(&'a RepoState),
}

impl<'a> Candidates<'a> {
    /// The authoritative stored state: the newest by a maintainer. While it has no refs, no other stored state is
    /// authoritative: anyone could push again what an older one says, and so move the repository back.
    pub fn authoritative(&self) -> Option<&'a RepoState> {
        self.stored.iter().filter(|state| self.maintainers.contains(&state.author)).max_by_key(|state| state.rank)
    }

    /// Whether a stored state of a maintainer is newer than this one. A state without refs says that its author no longer
    /// tracks the repository (NIP-34), so it supersedes only states of its author.
    pub fn supersede(&self, state: &RepoState) -> bool {
        let of_maintainers = self.stored.iter().filter(|stored| self.maintainers.contains(&stored.author));
        let mut counts = of_maintainers.filter(|stored| stored.tracks() || stored.author == state.author);
        counts.any(|stored| stored.rank > state.rank)
    }

    /// States in purgatory that the repository may follow, newest first.
    pub fn waiting_in_order(&self) -> Vec<&'a RepoState> {
        let stored = |state: &RepoState| self.stored.iter().any(|stored| stored.rank == state.rank);
        let counts = |state: &&RepoState| {
            state.tracks() && self.maintainers.contains(&state.author) && !self.supersede(state) && !stored(state)
        };
        let mut waiting: Vec<&RepoState> = self.waiting.iter().filter(counts).collect();
        waiting.sort_by_key(|state| std::cmp::Reverse(state.rank));
        waiting
    }

    /// The authoritative stored state, if it has refs.
    pub fn followed(&self) -> Option<&'a RepoState> {
        self.authoritative().filter(|rules| rules.tracks())
    }

    /// States that a push may match: those in purgatory, newest first, then the stored one.
    fn in_order(&self) -> Vec<Fit<'a>> {
        let waiting = self.waiting_in_order().into_iter().map(Fit::Waiting);
        waiting.chain(self.followed().map(Fit::Stored)).collect()
    }
}

/// Finds the newest state that matches a push of branches and tags.
///
/// A state matches if it agrees with every command (a deleted ref is absent from it), every object it names is here or
/// pushed, and the push changes something. The refusal describes the newest state, which the pusher most likely meant.
pub fn fit<'a>(
    commands: &[RefUpdate],
    candidates: &Candidates<'a>,
    repository: &impl Repository,
) -> Result<Fit<'a>, PushRefusal> {
    let changes = |command: &RefUpdate| repository.points_to(&command.name).unwrap_or(Oid::ZERO) != command.new;
    if !commands.iter().any(changes) {
        return Ok(Fit::NoChange);
    }
    let mut refusal = None;
    for candidate in candidates.in_order() {
        let (Fit::Stored(state) | Fit::Waiting(state)) = candidate else { continue };
        match misfit(commands, state, repository) {
            None => return Ok(candidate),
            Some(reason) => _ = refusal.get_or_insert(reason),
        }
    }
    Err(refusal.unwrap_or(PushRefusal::NoState))
}

/// Refs of a state whose objects are not here yet. Empty for a state that can be served.
pub fn missing<'a>(
    state: &'a RepoState,
    repository: &impl Repository,
) -> impl Iterator<Item = (&'a RefName, ObjectId)> {
    let is_here = |id: &ObjectId| id.sha1().is_some_and(|oid| repository.has(oid));
    state.refs.iter().filter(move |(_, id)| !is_here(id)).map(|(name, id)| (name, *id))
}

/// Reason why a push does not match a state.
fn misfit(commands: &[RefUpdate], state: &RepoState, repository: &impl Repository) -> Option<PushRefusal> {
    let pushed: BTreeMap<&RefName, Oid> = commands.iter().map(|command| (&command.name, command.new)).collect();
    let says = |name: &RefName| state.refs.get(name).map(|id| id.sha1());
    let contradicts = |(name, new): (&&RefName, &Oid)| match says(name) {
        Some(said) => said != Some(*new),
        None => !new.is_zero(),
    };
    if let Some((name, _)) = pushed.iter().find(|entry| contradicts(*entry)) {
        return Some(PushRefusal::NotInState((*name).clone()));
    }
    // Several refs may name the same object, of which one was pushed.
    let brought: BTreeSet<Oid> = pushed.values().copied().collect();
    let comes =
        |name: &RefName, id: ObjectId| pushed.contains_key(name) || id.sha1().is_some_and(|oid| brought.contains(&oid));
    let lacking = missing(state, repository).find(|(name, id)| !comes(name, *id));
    lacking.map(|(name, _)| PushRefusal::Incomplete(name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelayLimits;
    use crate::testing::{event, key};
    use proptest::collection::{btree_map, btree_set, vec};
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static MAINTAINERS: LazyLock<BTreeSet<PublicKey>> = LazyLock::new(|| [key(1), key(2)].into());

    struct Repo {
        refs: BTreeMap<RefName, Oid>,
        objects: BTreeSet<Oid>,
    }

    impl Repository for Repo {
        fn points_to(&self, name: &RefName) -> Option<Oid> {
            self.refs.get(name).copied()
        }

        fn has(&self, oid: Oid) -> bool {
            self.objects.contains(&oid)
        }
    }

    fn oid(n: u8) -> Oid {
        Oid::from_bytes([n; 20])
    }

    fn name(short: &str) -> RefName {
        format!("refs/heads/{short}").parse().unwrap()
    }

    fn repo(refs: &[(&str, u8)], objects: &[u8]) -> Repo {
        Repo {
            refs: refs.iter().map(|(short, n)| (name(short), oid(*n))).collect(),
            objects: refs.iter().map(|(_, n)| n).chain(objects).map(|n| oid(*n)).collect(),
        }
    }

    fn state(author: u8, at: i64, refs: &[(&str, u8)]) -> RepoState {
        let refs: Vec<[String; 2]> =
            refs.iter().map(|(short, n)| [name(short).to_string(), oid(*n).to_string()]).collect();
        let mut tags: Vec<Vec<&str>> = vec![vec!["d", "x"]];
        tags.extend(refs.iter().map(|tag| tag.iter().map(String::as_str).collect()));
        let tags: Vec<&[&str]> = tags.iter().map(Vec::as_slice).collect();
        RepoState::parse(&event(author, 30_618, at, &tags, ""), &RelayLimits::default()).unwrap()
    }

    /// Commands with `0` for a deleted ref. The client's old values do not matter.
    fn push(refs: &[(&str, u8)]) -> Vec<RefUpdate> {
        refs.iter().map(|(short, n)| RefUpdate { name: name(short), old: oid(9), new: oid(*n) }).collect()
    }

    fn judged<'a>(
        commands: &[(&str, u8)],
        stored: &'a [RepoState],
        waiting: &'a [RepoState],
        repo: &Repo,
    ) -> Result<Fit<'a>, PushRefusal> {
        fit(&push(commands), &Candidates { stored, waiting, maintainers: &MAINTAINERS }, repo)
    }

    #[test]
    fn a_first_push_fits_the_waiting_state_it_was_made_for() {
        let waiting = [state(1, 0, &[("main", 1)])];
        assert_eq!(judged(&[("main", 1)], &[], &waiting, &repo(&[], &[])), Ok(Fit::Waiting(&waiting[0])));
        assert_eq!(judged(&[("main", 2)], &[], &waiting, &repo(&[], &[])), Err(PushRefusal::NotInState(name("main"))));
        assert_eq!(judged(&[("main", 1)], &[], &[], &repo(&[], &[])), Err(PushRefusal::NoState));
    }

    #[test]
    fn every_ref_of_the_state_is_pushed_or_here() {
        let waiting = [state(1, 0, &[("main", 1), ("dev", 2)])];
        assert_eq!(judged(&[("main", 1)], &[], &waiting, &repo(&[], &[])), Err(PushRefusal::Incomplete(name("dev"))));
        assert!(judged(&[("main", 1)], &[], &waiting, &repo(&[], &[2])).is_ok());
        assert!(judged(&[("main", 1), ("dev", 2)], &[], &waiting, &repo(&[], &[])).is_ok());
        let none = judged(&[("main", 1), ("other", 2)], &[], &waiting, &repo(&[], &[2]));
        assert_eq!(none, Err(PushRefusal::NotInState(name("other"))));
    }

    #[test]
    fn what_is_missing_is_told_by_ref() {
        let state = state(1, 0, &[("main", 1), ("dev", 2), ("same", 2)]);
        let lacking =
            |objects: &[u8]| missing(&state, &repo(&[], objects)).map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(lacking(&[1]), [name("dev"), name("same")]);
        assert_eq!(lacking(&[1, 2]), []);
    }

    #[test]
    fn a_state_without_refs_allows_nothing_and_ends_older_ones() {
        let here = repo(&[("main", 1), ("dev", 2)], &[3]);
        let stored = [state(1, 10, &[]), state(2, 5, &[("main", 3)])];
        for commands in [&[("dev", 0)], &[("main", 3)]] {
            assert_eq!(judged(commands, &stored, &[], &here), Err(PushRefusal::NoState));
        }
        let waiting = [state(1, 20, &[]), state(1, 15, &[("main", 3)])];
        assert_eq!(judged(&[("main", 3)], &stored, &waiting, &here), Ok(Fit::Waiting(&waiting[1])), "it begins again");
    }

    #[test]
    fn a_state_without_refs_ends_only_the_states_of_its_author() {
        let here = repo(&[("main", 1)], &[3]);
        let stored = [state(1, 10, &[])];
        let (own, others) = ([state(1, 5, &[("main", 3)])], [state(2, 5, &[("main", 3)])]);
        assert_eq!(judged(&[("main", 3)], &stored, &own, &here), Err(PushRefusal::NoState));
        assert_eq!(judged(&[("main", 3)], &stored, &others, &here), Ok(Fit::Waiting(&others[0])));
        // The other maintainer's own stored state still supersedes it.
        let stored = [state(1, 10, &[]), state(2, 7, &[("main", 1)])];
        assert_eq!(judged(&[("main", 3)], &stored, &others, &here), Err(PushRefusal::NoState));
    }

    #[test]
    fn deleting_fits_a_state_without_the_ref() {
        let waiting = [state(1, 0, &[("main", 1)])];
        let here = repo(&[("main", 1), ("dev", 2)], &[]);
        assert!(judged(&[("dev", 0)], &[], &waiting, &here).is_ok());
        assert_eq!(judged(&[("main", 0)], &[], &waiting, &here), Err(PushRefusal::NotInState(name("main"))));
    }

    #[test]
    fn git_data_of_an_older_waiting_state_may_come_after_a_newer_one() {
        let waiting = [state(1, 10, &[("main", 2)]), state(1, 0, &[("main", 1)])];
        assert_eq!(judged(&[("main", 1)], &[], &waiting, &repo(&[], &[])), Ok(Fit::Waiting(&waiting[1])));
        assert_eq!(judged(&[("main", 2)], &[], &waiting, &repo(&[], &[])), Ok(Fit::Waiting(&waiting[0])));
    }

    #[test]
    fn only_a_stored_newer_state_of_a_maintainer_supersedes() {
        let waiting = [state(1, 0, &[("main", 1)])];
        let newer = |author| [state(author, 5, &[("main", 3)])];
        let (maintainers, strangers) = (newer(2), newer(7));
        let here = repo(&[("main", 3)], &[]);
        assert_eq!(judged(&[("main", 1)], &maintainers, &waiting, &here), Err(PushRefusal::NotInState(name("main"))));
        assert_eq!(judged(&[("main", 1)], &strangers, &waiting, &here), Ok(Fit::Waiting(&waiting[0])));
        // The stored state may be pushed again, to restore missing objects.
        assert_eq!(judged(&[("main", 3)], &maintainers, &waiting, &repo(&[], &[])), Ok(Fit::Stored(&maintainers[0])));
    }

    #[test]
    fn a_strangers_state_allows_nothing() {
        let waiting = [state(7, 0, &[("main", 1)])];
        assert_eq!(judged(&[("main", 1)], &[], &waiting, &repo(&[], &[])), Err(PushRefusal::NoState));
    }

    #[test]
    fn the_lowest_id_of_one_second_wins() {
        let mut waiting = [state(1, 0, &[("main", 1), ("a", 2)]), state(1, 0, &[("main", 1), ("b", 2)])];
        waiting.sort_by_key(|state| state.rank.id);
        assert_eq!(judged(&[("main", 1)], &[], &waiting, &repo(&[], &[2])), Ok(Fit::Waiting(&waiting[0])));
        waiting.reverse();
        assert_eq!(judged(&[("main", 1)], &[], &waiting, &repo(&[], &[2])), Ok(Fit::Waiting(&waiting[1])));
    }

    #[test]
    fn a_push_that_changes_nothing_is_accepted_without_a_state() {
        assert_eq!(judged(&[("main", 1)], &[], &[], &repo(&[("main", 1)], &[])), Ok(Fit::NoChange));
        assert_eq!(judged(&[("gone", 0)], &[], &[], &repo(&[], &[])), Ok(Fit::NoChange));
        assert_eq!(judged(&[], &[], &[], &repo(&[], &[])), Ok(Fit::NoChange));
    }

    const SHORT: [&str; 3] = ["a", "b", "c"];

    fn refs(values: std::ops::Range<u8>, least: usize) -> impl Strategy<Value = BTreeMap<usize, u8>> {
        btree_map(0..SHORT.len(), values, least..=SHORT.len())
    }

    fn named(refs: &BTreeMap<usize, u8>) -> Vec<(&'static str, u8)> {
        refs.iter().map(|(n, value)| (SHORT[*n], *value)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// The rule of the specification, written over plain maps, for every candidate.
        #[test]
        fn the_winner_is_the_newest_that_fits(
            stored in vec((1_u8..4, 0_i64..4, refs(1..4, 1)), 0..3),
            waiting in vec((1_u8..4, 0_i64..4, refs(1..4, 1)), 0..4),
            pushed in refs(0..4, 1),
            here in refs(1..4, 0),
            objects in btree_set(1_u8..4, 0..3),
        ) {
            let make = |all: &[(u8, i64, BTreeMap<usize, u8>)]| -> Vec<RepoState> {
                all.iter().map(|(author, at, refs)| state(*author, *at, &named(refs))).collect()
            };
            let (stored_states, waiting_states) = (make(&stored), make(&waiting));
            let repo = repo(&named(&here), &objects.iter().copied().collect::<Vec<_>>());
            let winner = judged(&named(&pushed), &stored_states, &waiting_states, &repo);

            let changes = pushed.iter().any(|(n, value)| here.get(n).copied().unwrap_or(0) != *value);
            if !changes {
                prop_assert_eq!(winner, Ok(Fit::NoChange));
                return Ok(());
            }
            let fits = |refs: &BTreeMap<usize, u8>| {
                let comes = |value: &u8| pushed.values().any(|other| other == value);
                let is_here = |value: &u8| {
                    objects.contains(value) || here.values().any(|other| other == value) || comes(value)
                };
                (0..SHORT.len()).all(|n| match pushed.get(&n) {
                    Some(value) => refs.get(&n).copied().unwrap_or(0) == *value,
                    None => refs.get(&n).is_none_or(is_here),
                })
            };
            let ranked = |n: usize, all: &[RepoState]| all[n].rank;
            let authorised = |author: u8| author == 1 || author == 2;
            let rules = (0..stored.len()).filter(|n| authorised(stored[*n].0));
            let rules = rules.max_by_key(|n| ranked(*n, &stored_states));
            let floor = rules.map(|n| ranked(n, &stored_states));
            let mut best = (0..waiting.len())
                .filter(|n| authorised(waiting[*n].0) && floor.is_none_or(|floor| ranked(*n, &waiting_states) > floor))
                .filter(|n| fits(&waiting[*n].2))
                .map(|n| ranked(n, &waiting_states))
                .max();
            if best.is_none() {
                best = rules.filter(|n| fits(&stored[*n].2)).map(|n| ranked(n, &stored_states));
            }
            let won = match winner {
                Ok(Fit::Stored(state) | Fit::Waiting(state)) => Some(state.rank),
                Ok(Fit::NoChange) => return Err(TestCaseError::fail("it changes something")),
                Err(_) => None,
            };
            prop_assert_eq!(won, best);
        }
    }
}
