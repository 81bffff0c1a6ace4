//! Which refs a push may name, and what a push to `refs/nostr/<id>` does.

use crate::{EventId, hexadecimal};
use abide_core::{Oid, RefName, RefUpdate};
use std::collections::HashSet;

/// Why a push is refused, worded for whoever pushes: the fixed reason, then the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushRefusal {
    /// Nobody announced the repository.
    #[error("no announcement: publish a repository announcement (kind 30617) that lists this server, then push")]
    NoAnnouncement,
    /// There is no state that the push could follow.
    #[error("no authorised state: publish a state (kind 30618) signed by a maintainer, then push")]
    NoState,
    /// The state has the ref elsewhere, or not at all.
    #[error("no authorised state: {0} is not what any maintainer's state says; publish a state with this value first")]
    NotInState(RefName),
    /// The state needs an object that is neither here nor pushed.
    #[error("no authorised state: the state also names {0}, whose object is not here; push it too")]
    Incomplete(RefName),
    /// The event of that id is about another commit.
    #[error("commit mismatch: the event of this id names {0}")]
    CommitMismatch(String),
    /// Outside the namespaces.
    #[error("foreign ref: push below refs/heads/, refs/tags/ or to refs/nostr/<event id>")]
    Foreign(RefName),
    /// The same ref twice.
    #[error("named more than once in this push")]
    Repeated(RefName),
    /// Deleting what an event asked for.
    #[error("a ref of an event goes when its author deletes the event (kind 5)")]
    DeletesEventRef(RefName),
    /// The repository is archived.
    #[error("archived: this repository takes no changes")]
    Archived,
}

/// The commands of a push, by what decides about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Branches and tags: a signed state decides (see [`super::fit`]).
    pub state: Vec<RefUpdate>,
    /// Commits of proposals: the event of that id decides (see [`event_ref`]).
    pub events: Vec<(EventId, Oid)>,
}

/// Sorts the commands of a push. One that is not allowed refuses the whole push.
///
/// A command from nothing to nothing deletes what is gone already: a state that arrives before its push deletes the ref,
/// and a client that lists the refs in between has no old object to name.
pub fn sort(updates: &[RefUpdate]) -> Result<Commands, PushRefusal> {
    let mut commands = Commands::default();
    let mut seen = HashSet::new();
    for update in updates {
        let name = update.name.as_str();
        if !seen.insert(name) {
            return Err(PushRefusal::Repeated(update.name.clone()));
        }
        if crate::git::is_state_ref(name) {
            commands.state.push(update.clone());
        } else if let Some(id) = event_of(&update.name) {
            if update.is_delete() {
                return Err(PushRefusal::DeletesEventRef(update.name.clone()));
            }
            commands.events.push((id, update.new));
        } else {
            return Err(PushRefusal::Foreign(update.name.clone()));
        }
    }
    Ok(commands)
}

/// The event that a ref is named after: `refs/nostr/<64 hexadecimal digits>`.
pub fn event_of(name: &RefName) -> Option<EventId> {
    let id = name.as_str().strip_prefix("refs/nostr/")?;
    hexadecimal::decode(id).map(EventId::from_byte_array)
}

/// The ref of an event.
pub fn ref_of(id: &EventId) -> RefName {
    format!("refs/nostr/{id}").parse().expect("hexadecimal digits are a ref name")
}

/// What is known of the event that a ref is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownEvent {
    /// Nothing.
    Unknown,
    /// Only that a commit was pushed for it before.
    Placeholder(Oid),
    /// It waits for this commit; none if the repositories here cannot hold it.
    Waiting(Option<Oid>),
    /// It is served, with this commit.
    Served(Option<Oid>),
    /// It is served, and is no proposal with a commit.
    OtherKind,
}

/// What a push to the ref of an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRef {
    /// The objects come in and the ref is made.
    Accept,
    /// The same, and the waiting event is served.
    Release,
    /// The objects are kept aside without a ref until the event comes, in place of those kept before.
    KeepAside {
        /// Whether another commit was kept before.
        replaces: bool,
    },
}

/// Decides about a push of `pushed` to the ref of an event.
pub fn event_ref(known: KnownEvent, pushed: Oid) -> Result<EventRef, PushRefusal> {
    let same = |wanted: Option<Oid>, decision| match wanted {
        Some(oid) if oid == pushed => Ok(decision),
        Some(oid) => Err(PushRefusal::CommitMismatch(oid.to_string())),
        None => Err(PushRefusal::CommitMismatch("another commit".to_owned())),
    };
    match known {
        KnownEvent::Unknown => Ok(EventRef::KeepAside { replaces: false }),
        KnownEvent::Placeholder(before) => Ok(EventRef::KeepAside { replaces: before != pushed }),
        KnownEvent::Waiting(wanted) => same(wanted, EventRef::Release),
        KnownEvent::Served(wanted) => same(wanted, EventRef::Accept),
        KnownEvent::OtherKind => same(None, EventRef::Accept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Oid = Oid::from_bytes([1; 20]);
    const B: Oid = Oid::from_bytes([2; 20]);

    fn update(name: &str, old: Oid, new: Oid) -> RefUpdate {
        RefUpdate { name: name.parse().unwrap(), old, new }
    }

    #[test]
    fn commands_are_sorted_by_what_decides_about_them() {
        let event = "ab".repeat(32);
        let updates = [
            update("refs/heads/main", Oid::ZERO, A),
            update(&format!("refs/nostr/{event}"), Oid::ZERO, B),
            update("refs/tags/v1", A, Oid::ZERO),
        ];
        let commands = sort(&updates).unwrap();
        assert_eq!(commands.state, [updates[0].clone(), updates[2].clone()]);
        assert_eq!(commands.events, [(event.parse().unwrap(), B)]);
        assert_eq!(ref_of(&commands.events[0].0), updates[1].name);
    }

    #[test]
    fn one_foreign_ref_refuses_the_whole_push() {
        let foreign =
            ["refs/notes/x", "refs/pull/1/head", "refs/abide/x", "refs/headsx/y", "refs/nostr/abc", "refs/replace/x"];
        let upper = format!("refs/nostr/{}", "AB".repeat(32));
        let below = format!("refs/nostr/{}/x", "ab".repeat(32));
        for name in foreign.into_iter().chain([upper.as_str(), below.as_str()]) {
            let push = [update("refs/heads/main", Oid::ZERO, A), update(name, Oid::ZERO, A)];
            assert_eq!(sort(&push), Err(PushRefusal::Foreign(name.parse().unwrap())), "{name}");
        }
    }

    #[test]
    fn repeated_commands_and_those_that_delete_event_refs_are_refused() {
        let main = update("refs/heads/main", Oid::ZERO, A);
        assert!(matches!(sort(&[main.clone(), main]), Err(PushRefusal::Repeated(_))));
        let event = format!("refs/nostr/{}", "ab".repeat(32));
        for old in [A, Oid::ZERO] {
            assert!(matches!(sort(&[update(&event, old, Oid::ZERO)]), Err(PushRefusal::DeletesEventRef(_))));
        }
    }

    #[test]
    fn deleting_what_is_gone_already_is_for_the_state_to_allow() {
        let gone = [update("refs/heads/x", Oid::ZERO, Oid::ZERO)];
        assert_eq!(sort(&gone).unwrap().state, gone);
    }

    #[test]
    fn a_known_event_decides_and_an_unknown_one_is_awaited() {
        assert_eq!(event_ref(KnownEvent::Unknown, A), Ok(EventRef::KeepAside { replaces: false }));
        assert_eq!(event_ref(KnownEvent::Placeholder(A), A), Ok(EventRef::KeepAside { replaces: false }));
        assert_eq!(event_ref(KnownEvent::Placeholder(B), A), Ok(EventRef::KeepAside { replaces: true }));
        assert_eq!(event_ref(KnownEvent::Waiting(Some(A)), A), Ok(EventRef::Release));
        assert_eq!(event_ref(KnownEvent::Served(Some(A)), A), Ok(EventRef::Accept));
        for known in [
            KnownEvent::Waiting(Some(B)),
            KnownEvent::Served(Some(B)),
            KnownEvent::Waiting(None),
            KnownEvent::OtherKind,
        ] {
            let refused = event_ref(known, A).unwrap_err();
            assert!(refused.to_string().starts_with("commit mismatch: "), "{known:?}");
        }
    }
}
