//! The clone URLs that one run tries, and the outcomes of trying them.

use crate::words::words;
use std::collections::{BTreeSet, VecDeque};

words! {
    /// Result of an attempt at one URL.
    SourceOutcome {
        /// An event is served with objects from there.
        Served = "served",
        /// Objects came, and others are still missing.
        Incomplete = "incomplete",
        /// It has none of the missing objects.
        Absent = "absent",
        /// Its objects, or the request for them, were refused.
        Refused = "refused",
        /// The host cannot be reached.
        Unreachable = "unreachable",
        /// It does not speak git's protocol.
        Protocol = "protocol",
        /// It was not asked: its domain rests, or has had its requests.
        Postponed = "postponed",
    }
}

/// URLs of one announcement, or of one PR event, that one run tries.
pub const PER_EVENT: usize = 8;
/// URLs of one identifier that one run tries.
pub const PER_RUN: usize = 32;

/// Clone URLs of one event, in the order in which its author lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub urls: Vec<String>,
    /// The author's key belongs to an account here.
    pub account: bool,
}

/// The URLs to try, each once: accounts first, then strangers, and within both the first URL of each event before the
/// second of any. So an event with many URLs delays the others by one attempt each.
pub fn in_turn(events: Vec<Listed>) -> Vec<String> {
    let (accounts, strangers): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| event.account);
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    for events in [accounts, strangers] {
        let queue = |event: Listed| -> VecDeque<String> { event.urls.into_iter().take(PER_EVENT).collect() };
        let mut queues: VecDeque<VecDeque<String>> = events.into_iter().map(queue).collect();
        while let Some(mut urls) = queues.pop_front() {
            let Some(url) = urls.pop_front() else { continue };
            queues.push_back(urls);
            if order.len() < PER_RUN && seen.insert(url.clone()) {
                order.push(url);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn listed(account: bool, urls: &[&str]) -> Listed {
        Listed { urls: urls.iter().map(|url| (*url).to_owned()).collect(), account }
    }

    #[test]
    fn events_take_turns_and_accounts_come_first() {
        let events = vec![
            listed(false, &["s1", "s2", "s3"]),
            listed(true, &["a1", "a2"]),
            listed(false, &["t1", "a1"]),
            listed(true, &["b1"]),
        ];
        assert_eq!(in_turn(events), ["a1", "b1", "a2", "s1", "t1", "s2", "s3"]);
    }

    #[test]
    fn an_event_has_eight_urls_and_a_run_thirty_two() {
        let many: Vec<String> = (0..20).map(|n| format!("u{n}")).collect();
        assert_eq!(in_turn(vec![Listed { urls: many.clone(), account: false }]), &many[..8]);
        let events = (0..10).map(|n| Listed { urls: (0..8).map(|m| format!("{n}.{m}")).collect(), account: false });
        assert_eq!(in_turn(events.collect()).len(), PER_RUN);
    }

    proptest! {
        #[test]
        fn every_event_has_its_first_url_tried_unless_the_run_is_full(
            events in vec((any::<bool>(), vec(0_u8..60, 1..12)), 1..30),
        ) {
            let events: Vec<_> = events
                .into_iter()
                .map(|(account, urls)| Listed { account, urls: urls.iter().map(u8::to_string).collect() })
                .collect();
            let order = in_turn(events.clone());
            prop_assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), order.len(), "each once");
            prop_assert!(order.len() <= PER_RUN);
            for event in &events {
                prop_assert!(order.len() == PER_RUN || order.contains(&event.urls[0]));
            }
        }
    }
}
