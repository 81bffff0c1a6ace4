//! Download of events by their ids, in batches.

use super::Lie;
use super::download::{Download, Gaps, Seen};
use crate::{Event, EventId, Filter};
use std::collections::BTreeSet;

/// Most ids of one request.
pub(super) const BATCH: usize = 200;

/// Fewest ids of one request, unless no more are wanted. Keeps a relay that serves one event per request from making
/// us send a long request for each.
const SMALLEST_BATCH: usize = 20;

/// Ids that a reconciliation found, until the relay has served them.
#[derive(Debug)]
pub(super) struct Fetch {
    /// Filter of the window. The listed ids must be events of it.
    filter: Filter,
    wanted: Vec<EventId>,
    asked: BTreeSet<EventId>,
    got: BTreeSet<EventId>,
    batch: usize,
    missing: u64,
}

impl Fetch {
    /// A download of these ids, which are events of the filter.
    pub fn new(filter: Filter, wanted: Vec<EventId>) -> Self {
        Self { filter, wanted, asked: BTreeSet::new(), got: BTreeSet::new(), batch: BATCH, missing: 0 }
    }

    /// Returns ids that are not served yet to the wanted ones, and forgets the open request: whether it brought any.
    fn again(&mut self) -> bool {
        let asked = std::mem::take(&mut self.asked);
        let got = std::mem::take(&mut self.got);
        self.wanted.extend(asked.difference(&got));
        !got.is_empty()
    }
}

impl Download for Fetch {
    fn request(&mut self) -> Option<Filter> {
        self.again();
        let rest = self.wanted.len().saturating_sub(self.batch);
        self.asked = self.wanted.split_off(rest).into_iter().collect();
        let filter = Filter { ids: Some(self.asked.clone()), limit: self.asked.len(), ..Filter::default() };
        (!self.asked.is_empty()).then_some(filter)
    }

    fn on_event(&mut self, event: &Event) -> Result<Seen, Lie> {
        if !self.asked.contains(&event.id) || !self.filter.matches(event) {
            return Err(Lie::Unasked);
        }
        Ok(if self.got.insert(event.id) { Seen::First } else { Seen::Again })
    }

    fn is_overfull(&self) -> bool {
        false
    }

    /// Relays may serve fewer events than asked for. A request is repeated for the rest until one brings nothing; then
    /// its ids are missing.
    fn on_end(&mut self) -> Result<(), Lie> {
        if self.got.is_empty() {
            self.missing += u64::try_from(self.asked.len()).unwrap_or(u64::MAX);
            self.asked.clear();
            return Err(Lie::Withheld);
        }
        if self.got.len() < self.asked.len() {
            self.batch = self.got.len().max(SMALLEST_BATCH);
        }
        self.again();
        Ok(())
    }

    fn on_cut(&mut self) -> bool {
        self.again()
    }

    fn gaps(&self) -> Gaps {
        Gaps { missing: self.missing, seconds: 0 }
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.wanted.len() + self.asked.len() + self.got.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::event;

    fn numbered(count: i64) -> Vec<Event> {
        (0..count).map(|n| event(1, 1, n, &[], "")).collect()
    }

    fn fetch(events: &[Event]) -> Fetch {
        let kinds = Some([1].into());
        Fetch::new(Filter { kinds, ..Filter::default() }, events.iter().map(|event| event.id).collect())
    }

    /// Serves at most `cap` of the events per request; returns the size of each request.
    fn serve(fetch: &mut Fetch, events: &[Event], cap: usize) -> Vec<usize> {
        let mut sizes = Vec::new();
        while let Some(filter) = fetch.request() {
            sizes.push(filter.ids.as_ref().unwrap().len());
            assert_eq!(filter.limit, *sizes.last().unwrap());
            for event in events.iter().filter(|event| filter.matches(event)).take(cap) {
                assert_eq!(fetch.on_event(event), Ok(Seen::First));
                assert_eq!(fetch.on_event(event), Ok(Seen::Again));
            }
            let _ = fetch.on_end();
        }
        sizes
    }

    #[test]
    fn ids_are_asked_for_in_batches() {
        let events = numbered(450);
        let mut fetch = fetch(&events);
        assert_eq!(serve(&mut fetch, &events, 500), [200, 200, 50]);
        assert_eq!((fetch.gaps(), fetch.held()), (Gaps::default(), 0));
    }

    #[test]
    fn a_relay_that_serves_fewer_is_asked_for_fewer() {
        let events = numbered(300);
        let mut fetch = fetch(&events);
        assert_eq!(serve(&mut fetch, &events, 60), [200, 60, 60, 60, 60]);
        assert_eq!(fetch.gaps(), Gaps::default());
    }

    #[test]
    fn ids_that_are_not_served_are_missing() {
        let events = numbered(30);
        let mut fetch = fetch(&events);
        assert_eq!(serve(&mut fetch, &events[..25], 500), [30, 5]);
        assert_eq!(fetch.gaps().missing, 5);
        let mut fetch = self::fetch(&events);
        fetch.request();
        assert_eq!(fetch.on_end(), Err(Lie::Withheld));
    }

    #[test]
    fn a_batch_that_is_cut_off_is_asked_for_again() {
        let events = numbered(5);
        let mut fetch = fetch(&events);
        fetch.request();
        assert!(!fetch.on_cut(), "nothing came");
        fetch.request();
        assert_eq!(fetch.on_event(&events[0]), Ok(Seen::First));
        assert!(fetch.on_cut());
        assert_eq!(serve(&mut fetch, &events, 500), [4]);
    }

    #[test]
    fn events_beside_the_ids_or_the_layer_are_lies() {
        let other = event(1, 2, 0, &[], "");
        let mut fetch = fetch(&[event(1, 1, 0, &[], ""), other.clone()]);
        fetch.request();
        assert_eq!(fetch.on_event(&event(1, 1, 9, &[], "")), Err(Lie::Unasked));
        assert_eq!(fetch.on_event(&other), Err(Lie::Unasked), "listed, but not of the layer");
    }
}
