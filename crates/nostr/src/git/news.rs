//! Additions to a thread, and the domain events that report them.

use super::{Comment, PrEvent, PrKind, Root, Status, StatusEvent, thread};
use crate::event::values;
use crate::{Event, EventId, PublicKey, kinds, nip19};
use std::collections::BTreeSet;

/// Mentions read per text.
const MENTIONS: usize = 20;
/// Length of an npub.
const NPUB: usize = 63;

/// An addition to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addition {
    /// The first event of the thread.
    Opened,
    Comment,
    /// Another commit or patch of a PR event.
    Version,
    /// A status change.
    Status(Status),
}

/// Kind of thread that an event starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// Kind 1621.
    Issue,
    /// Kind 1617 or 1618.
    PrEvent,
}

impl ThreadKind {
    /// Thread kind of an event kind; `None` if such events start no thread.
    pub fn of(kind: u16) -> Option<Self> {
        match kind {
            kinds::ISSUE => Some(Self::Issue),
            kinds::PATCH | kinds::PULL_REQUEST => Some(Self::PrEvent),
            _ => None,
        }
    }
}

/// Thread of an event, and its addition; `None` for an event outside any thread.
pub fn addition(event: &Event) -> Option<(EventId, Addition)> {
    match event.kind.as_u16() {
        kinds::ISSUE => Some((event.id, Addition::Opened)),
        kinds::PATCH | kinds::PULL_REQUEST | kinds::PULL_REQUEST_UPDATE => {
            Some(match PrEvent::parse(event).ok()?.kind {
                PrKind::Update(root) => (root, Addition::Version),
                PrKind::PullRequest => (event.id, Addition::Opened),
                PrKind::Patch => match first_of_series(event) {
                    None => (event.id, Addition::Opened),
                    Some(root) => (root, Addition::Version),
                },
            })
        }
        kinds::COMMENT => match Comment::parse(event).ok()?.root {
            Root::Event(root) => Some((root, Addition::Comment)),
            Root::Coordinate(_) => None,
        },
        _ => {
            let said = StatusEvent::parse(event).ok()?;
            Some((said.root, Addition::Status(said.status)))
        }
    }
}

/// First patch of the series of this patch; `None` if this is the first.
fn first_of_series(event: &Event) -> Option<EventId> {
    if values(event, "t").any(|label| label == "root") { None } else { thread::root(event) }
}

/// A thread that a batch of events adds to, as far as it decides whether its beginning is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Whether an account adds to it.
    pub by_account: bool,
    /// Bytes that reading its beginning takes.
    pub bytes: u64,
}

/// The threads of a batch whose beginnings are read, by index: those that accounts add to before others, short ones
/// before long ones, until they have `most` bytes. Many long threads of strangers thus take no room from short ones.
pub fn read_first(threads: &[Weight], most: u64) -> BTreeSet<usize> {
    let mut order: Vec<(usize, &Weight)> = threads.iter().enumerate().collect();
    order.sort_by_key(|(index, weight)| (!weight.by_account, weight.bytes, *index));
    let mut left = most;
    let fits = |(_, weight): &(usize, &Weight)| match left.checked_sub(weight.bytes) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    order.into_iter().filter(fits).map(|(index, _)| index).collect()
}

/// Distinct keys mentioned as `nostr:npub1…`.
pub fn mentioned(text: &str) -> BTreeSet<PublicKey> {
    let word = |rest: &str| -> String { rest.chars().take_while(char::is_ascii_alphanumeric).take(NPUB).collect() };
    let keys = text.split("nostr:").skip(1).take(MENTIONS).map(word);
    keys.filter_map(|word| nip19::parse_npub(&word).ok()).collect()
}

/// A change of a thread that becomes a domain event, as for local issues and pull requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadEvent {
    IssueOpened,
    IssueCommented,
    IssueClosed,
    IssueReopened,
    PrOpened,
    PrCommented,
    PrSynchronized,
    PrClosed,
    PrMerged,
    PrReopened,
}

/// The change that an addition makes; `None` if nothing changed. `before` and `after` are the thread's status around it.
pub fn thread_event(kind: ThreadKind, addition: Addition, before: Status, after: Status) -> Option<ThreadEvent> {
    use ThreadKind::{Issue, PrEvent};
    let is_open = |status| matches!(status, Status::Open | Status::Draft);
    match (kind, addition) {
        (Issue, Addition::Opened) => Some(ThreadEvent::IssueOpened),
        (Issue, Addition::Comment) => Some(ThreadEvent::IssueCommented),
        (Issue, Addition::Version) => None,
        (PrEvent, Addition::Opened) => Some(ThreadEvent::PrOpened),
        (PrEvent, Addition::Comment) => Some(ThreadEvent::PrCommented),
        (PrEvent, Addition::Version) => Some(ThreadEvent::PrSynchronized),
        (_, Addition::Status(_)) if is_open(before) == is_open(after) => match (kind, after) {
            // A closed PR event is now marked as merged.
            (PrEvent, Status::Applied) if before != Status::Applied => Some(ThreadEvent::PrMerged),
            _ => None,
        },
        (Issue, Addition::Status(_)) if is_open(after) => Some(ThreadEvent::IssueReopened),
        (Issue, Addition::Status(_)) => Some(ThreadEvent::IssueClosed),
        (PrEvent, Addition::Status(_)) if is_open(after) => Some(ThreadEvent::PrReopened),
        (PrEvent, Addition::Status(_)) if after == Status::Applied => Some(ThreadEvent::PrMerged),
        (PrEvent, Addition::Status(_)) => Some(ThreadEvent::PrClosed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{event, key, sample};

    #[test]
    fn events_of_a_published_client_add_to_their_threads() {
        let of = |kind| addition(&sample(kind)).map(|(root, what)| (root == sample(kind).id, what));
        assert_eq!(of(1621), Some((true, Addition::Opened)));
        assert_eq!(of(1618), Some((true, Addition::Opened)));
        assert_eq!(addition(&sample(1619)), Some((sample(1618).id, Addition::Version)));
        assert_eq!(addition(&sample(1631)), Some((sample(1618).id, Addition::Status(Status::Applied))));
        assert_eq!(of(30_617), None);
        assert_eq!(of(30_618), None);
    }

    #[test]
    fn the_first_patch_begins_a_thread_and_the_others_follow() {
        let first = "ab".repeat(32);
        let of = |tags: &[&[&str]]| {
            let patch = event(1, 1617, 0, tags, "");
            addition(&patch).map(|(root, what)| (root == patch.id, root.to_hex() == first, what))
        };
        assert_eq!(of(&[]), Some((true, false, Addition::Opened)));
        assert_eq!(of(&[&["t", "root"], &["e", &first]]), Some((true, false, Addition::Opened)));
        assert_eq!(of(&[&["e", &first, "", "root"]]), Some((false, true, Addition::Version)));
    }

    #[test]
    fn a_comment_belongs_to_the_event_that_it_hangs_on() {
        let (root, repo) = ("ab".repeat(32), format!("30617:{}:x", "cd".repeat(32)));
        let of = |tag: &[&str]| addition(&event(1, 1111, 0, &[tag], "")).map(|(root, what)| (root.to_hex(), what));
        assert_eq!(of(&["E", &root]), Some((root.clone(), Addition::Comment)));
        assert_eq!(of(&["A", &repo]), None);
        assert_eq!(of(&["p", &root]), None);
    }

    #[test]
    fn keys_are_mentioned_as_nostr_addresses_each_once_and_bounded() {
        let (one, two) = (nip19::npub(&key(1)), nip19::npub(&key(2)));
        let text = format!("nostr:{one}, nostr:{two}! and nostr:{one} but not {two} nor nostr:npub1xyz nor nostr:");
        assert_eq!(mentioned(&text), BTreeSet::from([key(1), key(2)]));
        let many: String = (1..=40).map(|n| format!("nostr:{} ", nip19::npub(&key(n)))).collect();
        assert_eq!(mentioned(&many).len(), MENTIONS);
    }

    #[test]
    fn short_threads_and_those_of_accounts_are_read_first() {
        let of = |by_account, bytes| Weight { by_account, bytes };
        let read = |threads: &[Weight], most| read_first(threads, most).into_iter().collect::<Vec<_>>();
        let threads = [of(false, 600), of(false, 10), of(true, 500), of(false, 400), of(false, 0)];
        assert_eq!(read(&threads, 0), [4]);
        assert_eq!(read(&threads, 499), [1, 3, 4], "one that does not fit leaves the room to the next");
        assert_eq!(read(&threads, 510), [1, 2, 4]);
        assert_eq!(read(&threads, 910), [1, 2, 3, 4]);
        assert_eq!(read(&threads, 5000), [0, 1, 2, 3, 4]);
        assert_eq!(read(&[], 5), [0; 0]);
        assert_eq!(read(&[of(false, u64::MAX), of(false, u64::MAX)], u64::MAX), [0], "equal ones in their order");
    }

    #[test]
    fn every_change_is_one_event_and_no_change_is_none() {
        let all = [Status::Open, Status::Applied, Status::Closed, Status::Draft];
        let change = |kind, before, after| thread_event(kind, Addition::Status(after), before, after);
        for before in all {
            for after in all {
                let open = |status| matches!(status, Status::Open | Status::Draft);
                let issue = match (open(before), open(after)) {
                    (true, false) => Some(ThreadEvent::IssueClosed),
                    (false, true) => Some(ThreadEvent::IssueReopened),
                    _ => None,
                };
                assert_eq!(change(ThreadKind::Issue, before, after), issue, "{before:?} {after:?}");
                let pr_event = match (before, after) {
                    (Status::Applied, Status::Applied) => None,
                    (_, Status::Applied) => Some(ThreadEvent::PrMerged),
                    (Status::Open | Status::Draft, Status::Closed) => Some(ThreadEvent::PrClosed),
                    (Status::Applied | Status::Closed, Status::Open | Status::Draft) => Some(ThreadEvent::PrReopened),
                    _ => None,
                };
                assert_eq!(change(ThreadKind::PrEvent, before, after), pr_event, "{before:?} {after:?}");
            }
        }
        let plain = |kind, what| thread_event(kind, what, Status::Open, Status::Open);
        assert_eq!(plain(ThreadKind::Issue, Addition::Opened), Some(ThreadEvent::IssueOpened));
        assert_eq!(plain(ThreadKind::Issue, Addition::Comment), Some(ThreadEvent::IssueCommented));
        assert_eq!(plain(ThreadKind::Issue, Addition::Version), None);
        assert_eq!(plain(ThreadKind::PrEvent, Addition::Opened), Some(ThreadEvent::PrOpened));
        assert_eq!(plain(ThreadKind::PrEvent, Addition::Comment), Some(ThreadEvent::PrCommented));
        assert_eq!(plain(ThreadKind::PrEvent, Addition::Version), Some(ThreadEvent::PrSynchronized));
    }
}
