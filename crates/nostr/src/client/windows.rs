//! Windows of `created_at`: the parts of a round that are compared one after the other, newest first.

use crate::{EventId, Filter};

/// A range of `created_at` in seconds, inclusive on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub since: u64,
    pub until: u64,
}

impl Window {
    /// The part of a layer in this window, with a limit of stored events.
    pub fn of(self, layer: &Filter, limit: usize) -> Filter {
        // Relays need not be asked for "since 0".
        let since = (self.since > 0).then_some(self.since);
        Filter { since, until: Some(self.until), limit, ..layer.clone() }
    }
}

/// Windows that are not compared yet; the newest is the last. Each split adds one and at least halves a range or takes
/// a second off it, and only the last is ever split: the list stays below a hundred.
#[derive(Debug)]
pub(super) struct Windows(Vec<Window>);

impl Windows {
    /// The whole range of a layer, up to the latest time that events may have.
    pub fn new(layer: &Filter, latest: u64) -> Self {
        let since = layer.since.unwrap_or(0);
        let until = layer.until.unwrap_or(latest).min(latest);
        Self(if since > until { Vec::new() } else { vec![Window { since, until }] })
    }

    /// Takes the newest window.
    pub fn next(&mut self) -> Option<Window> {
        self.0.pop()
    }

    /// Returns a window that has to be compared again.
    pub fn again(&mut self, window: Window) {
        self.0.push(window);
    }

    /// Cuts a window in two halves. A window of one second has none: it is returned.
    pub fn halve(&mut self, window: Window) -> Result<(), Window> {
        if window.since == window.until {
            return Err(window);
        }
        let middle = window.since.midpoint(window.until);
        self.0.push(Window { until: middle, ..window });
        self.0.push(Window { since: middle + 1, ..window });
        Ok(())
    }

    /// Fits a window to our newest `items` in it. If there are more than `at_most`, the window shrinks to the seconds
    /// whose items are all present, and the older part is left for later.
    ///
    /// A second with more than `at_most` items is a window of its own with some of them. An item left out costs one
    /// download that was not needed, and hides nothing that the relay has.
    pub fn fit(&mut self, window: Window, items: &mut Vec<(u64, EventId)>, at_most: usize) -> Window {
        items.retain(|(at, _)| (window.since..=window.until).contains(at));
        if items.len() <= at_most || window.since == window.until {
            items.truncate(at_most);
            return window;
        }
        let oldest = items.iter().map(|(at, _)| *at).min().unwrap_or(window.since);
        if oldest == window.until {
            items.truncate(at_most);
            self.0.push(Window { until: window.until - 1, ..window });
            return Window { since: window.until, ..window };
        }
        items.retain(|(at, _)| *at > oldest);
        items.truncate(at_most);
        self.0.push(Window { until: oldest, ..window });
        Window { since: oldest + 1, ..window }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn items(times: &[u64]) -> Vec<(u64, EventId)> {
        let id = |n: usize| EventId::from_byte_array([u8::try_from(n).unwrap(); 32]);
        times.iter().enumerate().map(|(n, at)| (*at, id(n))).collect()
    }

    #[test]
    fn a_layer_without_times_reaches_to_the_latest_time() {
        let layer = |since, until| Filter { since, until, ..Filter::default() };
        let first = |layer: &Filter| Windows::new(layer, 100).next();
        assert_eq!(first(&layer(None, None)), Some(Window { since: 0, until: 100 }));
        assert_eq!(first(&layer(Some(3), Some(200))), Some(Window { since: 3, until: 100 }));
        assert_eq!(first(&layer(Some(7), Some(5))), None);
        let part = Window { since: 3, until: 9 }.of(&layer(None, None), 5);
        assert_eq!((part.since, part.until, part.limit), (Some(3), Some(9), 5));
        assert_eq!(Window { since: 0, until: 9 }.of(&layer(None, None), 5).since, None);
    }

    #[test]
    fn a_window_with_too_many_items_keeps_its_whole_seconds() {
        let mut windows = Windows(Vec::new());
        let mut some = items(&[9, 8, 8, 7]);
        let window = Window { since: 0, until: 10 };
        assert_eq!(windows.fit(window, &mut some, 4), window, "just so many");
        assert_eq!(windows.fit(window, &mut some, 3), Window { since: 8, until: 10 });
        assert_eq!(some.len(), 3);
        assert_eq!(windows.next(), Some(Window { since: 0, until: 7 }));
        let mut some = items(&[9, 8, 8]);
        assert_eq!(windows.fit(window, &mut some, 2), Window { since: 9, until: 10 });
        assert_eq!(some.len(), 1);
    }

    #[test]
    fn a_crowded_second_becomes_a_window_with_some_of_its_items() {
        let mut windows = Windows(Vec::new());
        let mut some = items(&[10, 10, 10]);
        assert_eq!(windows.fit(Window { since: 0, until: 10 }, &mut some, 2), Window { since: 10, until: 10 });
        assert_eq!(some.len(), 2);
        assert_eq!(windows.next(), Some(Window { since: 0, until: 9 }));
        let second = Window { since: 7, until: 7 };
        assert_eq!(windows.halve(second), Err(second));
    }

    proptest! {
        /// For any items, the windows cover each second once and each has at most so many items.
        #[test]
        fn windows_cover_every_second_once(times in prop::collection::vec(0_u64..40, 0..60), at_most in 1_usize..10) {
            let mut all = items(&times);
            all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
            let mut windows = Windows::new(&Filter::default(), 45);
            let mut covered = BTreeMap::new();
            let mut steps = 0;
            while let Some(window) = windows.next() {
                prop_assert!(windows.0.len() < 100);
                let within = |(at, _): &&(u64, EventId)| (window.since..=window.until).contains(at);
                let mut part: Vec<_> = all.iter().filter(within).take(at_most + 1).copied().collect();
                let fitted = windows.fit(window, &mut part, at_most);
                prop_assert!(part.len() <= at_most);
                // Every third window has too much on the other side.
                steps += 1;
                if steps % 3 == 0 && windows.halve(fitted).is_ok() {
                    continue;
                }
                for second in fitted.since..=fitted.until {
                    *covered.entry(second).or_insert(0) += 1;
                }
            }
            prop_assert_eq!(covered, (0..=45).map(|second| (second, 1)).collect());
        }
    }
}
