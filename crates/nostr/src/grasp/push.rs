//! Refs that a push may name, and pushes to `refs/nostr/<id>`.

use crate::{EventId, hexadecimal};
use abide_core::{Oid, RefName, RefUpdate};
use std::collections::HashMap;

/// Most event refs per push: each is looked up and stored separately.
pub const EVENT_REFS: usize = 50;

/// Refusal of a push, worded for the pusher: the fixed reason, then the next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushRefusal {
    /// The repository is not announced.
    #[error("no announcement: publish a repository announcement (kind 30617) that lists this server, then push")]
    NoAnnouncement,
    /// No state matches the push.
    #[error("no authorised state: publish a state (kind 30618) signed by a maintainer, then push")]
    NoState,
    /// The state has another value for the ref, or none.
    #[error("no authorised state: no maintainer's state has this value for {0}; publish a state with it first")]
    NotInState(RefName),
    /// The state needs an object that is neither here nor pushed.
    #[error("no authorised state: the state also lists {0}, whose object is missing; push it too")]
    Incomplete(RefName),
    /// The event with that id names another commit.
    #[error("commit mismatch: the event with this id references {0}")]
    CommitMismatch(String),
    /// The event with that id names other repositories.
    #[error(
        "other repository: the event with this id does not reference this repository; push to a repository in its \"a\" tags"
    )]
    OtherRepository,
    /// The ref is outside the allowed namespaces.
    #[error("foreign ref: push to refs/heads/, refs/tags/ or refs/nostr/<event id>")]
    Foreign(RefName),
    /// The push names a ref twice.
    #[error("listed more than once in this push")]
    Repeated(RefName),
    /// The push has too many event refs.
    #[error("a push may update at most {EVENT_REFS} refs in refs/nostr/; push the others separately")]
    TooManyEventRefs,
    /// The push deletes an event ref.
    #[error("refs in refs/nostr/ cannot be deleted by push; delete the event (kind 5) instead")]
    DeletesEventRef(RefName),
    #[error("repository is archived; pushes are disabled")]
    Archived,
    /// The event waits for its commit, and no repository that it names can take the commit.
    #[error(
        "no open repository: none that the event of this id names takes changes now; they wait for a first push, are \
         archived or belong to suspended accounts. Push again once one of them takes changes"
    )]
    NoneTakes,
    /// The account of the repository's owner key is suspended.
    #[error(
        "suspended: the account of the key that owns this repository is suspended; ask the administrator of this site"
    )]
    OwnerSuspended,
    /// The account of the key that signed the authorising event is suspended.
    #[error("suspended: the account of the key that signed this is suspended; ask the administrator of this site")]
    SignerSuspended,
}

/// Commands of a push, grouped by what decides about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Branches and tags: a signed state decides (see [`super::fit`]).
    pub state: Vec<RefUpdate>,
    /// Commits of PR events: the event with that id decides (see [`event_ref`]).
    pub events: Vec<RefUpdate>,
    /// Commands that no event can allow.
    pub refused: Vec<(RefName, PushRefusal)>,
}

/// Groups the commands of a push. Each is decided separately; a ref named twice is refused in all its commands.
///
/// A command from zero to zero deletes a ref that is already gone. This happens when a state arrives before its push
/// and deletes the ref: a client that lists refs in between has no old id to name.
pub fn sort(updates: &[RefUpdate]) -> Commands {
    let mut commands = Commands::default();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for update in updates {
        *times.entry(update.name.as_str()).or_default() += 1;
    }
    for update in updates {
        let name = update.name.as_str();
        let is_event = event_of(&update.name).is_some();
        let refusal = if times.get(name).is_some_and(|times| *times > 1) {
            PushRefusal::Repeated(update.name.clone())
        } else if crate::git::is_state_ref(name) {
            commands.state.push(update.clone());
            continue;
        } else if is_event && !update.is_delete() && commands.events.len() < EVENT_REFS {
            commands.events.push(update.clone());
            continue;
        } else if is_event && !update.is_delete() {
            PushRefusal::TooManyEventRefs
        } else if is_event {
            PushRefusal::DeletesEventRef(update.name.clone())
        } else {
            PushRefusal::Foreign(update.name.clone())
        };
        commands.refused.push((update.name.clone(), refusal));
    }
    commands
}

/// Event id of a ref `refs/nostr/<64 hexadecimal digits>`.
pub fn event_of(name: &RefName) -> Option<EventId> {
    let id = name.as_str().strip_prefix("refs/nostr/")?;
    hexadecimal::decode(id).map(EventId::from_byte_array)
}

/// The ref of an event.
pub fn ref_of(id: &EventId) -> RefName {
    format!("refs/nostr/{id}").parse().expect("hexadecimal digits are a ref name")
}

/// Knowledge about the event of a ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownEvent {
    Unknown,
    /// Only that a commit was pushed for it before.
    Placeholder(Oid),
    /// In purgatory, waiting for this commit; `None` if repositories here cannot hold it.
    Waiting(Option<Oid>),
    /// Waiting with the announcement of its repository; it names this commit.
    WaitingForRepository(Option<Oid>),
    /// Served, with this commit.
    Served(Option<Oid>),
    /// Served, but no PR event with a commit.
    OtherKind,
}

/// Effect of a push to an event ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRef {
    /// Take the objects and create the ref.
    Accept,
    /// Take the objects, create the ref, and promote the waiting event.
    Release,
    /// Keep the objects aside without a ref until the event arrives, replacing objects kept before.
    KeepAside {
        /// Whether another commit was kept before.
        replaces: bool,
    },
}

/// Whether an event names the target repository in an `a` tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// It does, or the event is unknown.
    Here,
    /// It does, and neither this repository nor another that it names takes changes now.
    Closed,
    /// It names only other repositories.
    Elsewhere,
}

/// Decides about a push of `pushed` to the ref of an event.
pub fn event_ref(known: KnownEvent, named: Named, pushed: Oid) -> Result<EventRef, PushRefusal> {
    let same = |wanted: Option<Oid>, decision| match wanted {
        Some(oid) if oid == pushed => Ok(decision),
        Some(oid) => Err(PushRefusal::CommitMismatch(oid.to_string())),
        None => Err(PushRefusal::CommitMismatch("another commit".to_owned())),
    };
    let proposes =
        matches!(known, KnownEvent::Waiting(_) | KnownEvent::WaitingForRepository(_) | KnownEvent::Served(_));
    if proposes && named == Named::Elsewhere {
        return Err(PushRefusal::OtherRepository);
    }
    match known {
        KnownEvent::Unknown => Ok(EventRef::KeepAside { replaces: false }),
        KnownEvent::Placeholder(before) => Ok(EventRef::KeepAside { replaces: before != pushed }),
        // Nothing would be kept of the commit: there is no repository to release it in, and its event is here.
        KnownEvent::Waiting(Some(wanted)) if wanted == pushed && named == Named::Closed => Err(PushRefusal::NoneTakes),
        KnownEvent::Waiting(wanted) => same(wanted, EventRef::Release),
        KnownEvent::WaitingForRepository(wanted) => same(wanted, EventRef::KeepAside { replaces: false }),
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
        let commands = sort(&updates);
        assert_eq!(commands.state, [updates[0].clone(), updates[2].clone()]);
        assert_eq!(commands.events, [updates[1].clone()]);
        assert_eq!(commands.refused, []);
        let id: EventId = event.parse().unwrap();
        assert_eq!((event_of(&updates[1].name), ref_of(&id)), (Some(id), updates[1].name.clone()));
    }

    #[test]
    fn a_foreign_ref_is_refused_by_itself() {
        let foreign =
            ["refs/notes/x", "refs/pull/1/head", "refs/abide/x", "refs/headsx/y", "refs/nostr/abc", "refs/replace/x"];
        let upper = format!("refs/nostr/{}", "AB".repeat(32));
        let below = format!("refs/nostr/{}/x", "ab".repeat(32));
        for name in foreign.into_iter().chain([upper.as_str(), below.as_str()]) {
            let push = [update("refs/heads/main", Oid::ZERO, A), update(name, Oid::ZERO, A)];
            let (commands, refused): (_, RefName) = (sort(&push), name.parse().unwrap());
            assert_eq!(commands.refused, [(refused.clone(), PushRefusal::Foreign(refused))], "{name}");
            assert_eq!(commands.state, push[..1]);
        }
    }

    #[test]
    fn repeated_commands_and_those_that_delete_event_refs_are_refused() {
        let [main, other] = ["refs/heads/main", "refs/heads/other"].map(|name| update(name, Oid::ZERO, A));
        let commands = sort(&[main.clone(), other.clone(), main]);
        assert!(commands.refused.len() == 2 && matches!(commands.refused[0].1, PushRefusal::Repeated(_)));
        assert_eq!(commands.state, [other]);
        let event = format!("refs/nostr/{}", "ab".repeat(32));
        for old in [A, Oid::ZERO] {
            let refused = sort(&[update(&event, old, Oid::ZERO)]).refused;
            assert!(matches!(refused[..], [(_, PushRefusal::DeletesEventRef(_))]));
        }
    }

    #[test]
    fn refs_of_events_are_bounded() {
        let many: Vec<_> = (0..EVENT_REFS + 2).map(|n| update(&format!("refs/nostr/{n:064x}"), Oid::ZERO, A)).collect();
        let commands = sort(&many);
        assert_eq!(commands.events, many[..EVENT_REFS]);
        assert_eq!(commands.refused.len(), 2);
    }

    #[test]
    fn deleting_what_is_gone_already_is_for_the_state_to_allow() {
        let gone = [update("refs/heads/x", Oid::ZERO, Oid::ZERO)];
        assert_eq!(sort(&gone).state, gone);
    }

    #[test]
    fn a_known_event_decides_and_an_unknown_one_is_awaited() {
        let here = |known| event_ref(known, Named::Here, A);
        assert_eq!(here(KnownEvent::Unknown), Ok(EventRef::KeepAside { replaces: false }));
        assert_eq!(here(KnownEvent::Placeholder(A)), Ok(EventRef::KeepAside { replaces: false }));
        assert_eq!(here(KnownEvent::Placeholder(B)), Ok(EventRef::KeepAside { replaces: true }));
        assert_eq!(here(KnownEvent::Waiting(Some(A))), Ok(EventRef::Release));
        assert_eq!(here(KnownEvent::WaitingForRepository(Some(A))), Ok(EventRef::KeepAside { replaces: false }));
        assert_eq!(here(KnownEvent::Served(Some(A))), Ok(EventRef::Accept));
        for known in [
            KnownEvent::Waiting(Some(B)),
            KnownEvent::WaitingForRepository(Some(B)),
            KnownEvent::Served(Some(B)),
            KnownEvent::Waiting(None),
            KnownEvent::OtherKind,
        ] {
            let refused = here(known).unwrap_err();
            assert!(refused.to_string().starts_with("commit mismatch: "), "{known:?}");
        }
    }

    #[test]
    fn an_event_is_for_the_repositories_that_it_names() {
        let commit = Some(A);
        for known in [KnownEvent::Waiting(commit), KnownEvent::WaitingForRepository(commit), KnownEvent::Served(commit)]
        {
            assert_eq!(event_ref(known, Named::Elsewhere, A), Err(PushRefusal::OtherRepository));
        }
        assert!(event_ref(KnownEvent::Unknown, Named::Elsewhere, A).is_ok());
    }

    #[test]
    fn an_archived_repository_is_called_so_on_every_road() {
        let said = format!("repository is archived; {}", abide_core::policy::Action::GitPush.disabled());
        assert_eq!(PushRefusal::Archived.to_string(), said);
    }

    #[test]
    fn a_commit_that_no_repository_takes_is_not_acknowledged() {
        let closed = |known| event_ref(known, Named::Closed, A);
        assert_eq!(closed(KnownEvent::Waiting(Some(A))), Err(PushRefusal::NoneTakes));
        assert!(matches!(closed(KnownEvent::Waiting(Some(B))), Err(PushRefusal::CommitMismatch(_))));
        assert!(matches!(closed(KnownEvent::Waiting(None)), Err(PushRefusal::CommitMismatch(_))));
        // These are kept aside until a repository takes them.
        for known in [KnownEvent::Unknown, KnownEvent::Placeholder(A), KnownEvent::WaitingForRepository(Some(A))] {
            assert_eq!(closed(known), Ok(EventRef::KeepAside { replaces: false }));
        }
        assert_eq!(closed(KnownEvent::Served(Some(A))), Ok(EventRef::Accept));
    }
}
