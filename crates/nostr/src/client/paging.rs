//! Download of all events of a window, page by page, newest first: for relays without NIP-77.
//!
//! A page ends where the next begins: `until` is the time of the oldest event seen, inclusive, because more events may
//! have that time. Relays may serve fewer events than asked for, so only a page without new events is the last.

use super::Lie;
use super::download::{Download, Gaps, Seen};
use super::windows::Window;
use crate::{Event, EventId, Filter};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Events of a page.
pub(super) const PAGE: usize = 500;

/// Events that a request may bring before it is cut off: stored events, and new ones that arrive in the meantime.
const OVERFULL: usize = 2 * PAGE;

/// Events of one second that are remembered while its pages are read.
const REMEMBERED: usize = 20_000;

/// The pages of a window.
#[derive(Debug)]
pub(super) struct Paging {
    layer: Filter,
    /// The part that is not read yet; `None` at the end.
    rest: Option<Window>,
    /// Filter of the open request.
    filter: Filter,
    /// Time of each event on the open page.
    page: HashMap<EventId, u64>,
    /// New events on the open page.
    new: usize,
    /// Events seen at the newest second of the rest.
    known: HashSet<EventId>,
    /// Events of an answer that the relay cut short, as older events proved.
    served: Option<usize>,
    /// Events of the previous answer, if it was complete.
    previous: Option<usize>,
    /// Whether the previous answer had events of a single second, and the next begins below it.
    doubtful: bool,
    skipped: u64,
}

impl Paging {
    pub fn new(layer: Filter, window: Window) -> Self {
        Self {
            filter: window.of(&layer, PAGE),
            layer,
            rest: Some(window),
            page: HashMap::new(),
            new: 0,
            known: HashSet::new(),
            served: None,
            previous: None,
            doubtful: false,
            skipped: 0,
        }
    }

    /// Continues at the time of the oldest event of the page.
    fn turn(&mut self) {
        let oldest = self.page.values().min().copied();
        if let Some((oldest, rest)) = oldest.zip(self.rest.as_mut()) {
            if oldest < rest.until {
                self.known.clear();
                rest.until = oldest;
            }
            self.known.extend(self.page.iter().filter(|(_, at)| **at == oldest).map(|(id, _)| *id));
        }
        self.page.clear();
        self.new = 0;
    }

    /// Continues below the newest second of the rest.
    fn step_over(&mut self) {
        self.known.clear();
        self.rest = self.rest.filter(|rest| rest.until > rest.since);
        if let Some(rest) = &mut self.rest {
            rest.until -= 1;
        }
    }

    /// Learns from a complete answer whether the previous one was cut short.
    fn learn(&mut self, events: usize) {
        if self.doubtful && events > 0 {
            // The relay has older events, so it cut the previous answer within that second.
            self.skipped += 1;
        }
        if self.new > 0 {
            self.served = self.served.max(self.previous);
        }
        self.doubtful = false;
        self.previous = Some(events);
    }
}

impl Download for Paging {
    fn request(&mut self) -> Option<Filter> {
        self.filter = self.rest?.of(&self.layer, PAGE);
        Some(self.filter.clone())
    }

    fn on_event(&mut self, event: &Event) -> Result<Seen, Lie> {
        if !self.filter.matches(event) {
            return Err(Lie::Unasked);
        }
        if self.page.insert(event.id, event.created_at.as_secs()).is_some() || self.known.contains(&event.id) {
            return Ok(Seen::Again);
        }
        self.new += 1;
        Ok(Seen::First)
    }

    fn is_overfull(&self) -> bool {
        self.page.len() >= OVERFULL
    }

    fn on_end(&mut self) -> Result<(), Lie> {
        let events = self.page.len();
        self.learn(events);
        if events == 0 {
            self.rest = None;
            return Ok(());
        }
        let times: BTreeSet<u64> = self.page.values().copied().collect();
        let full = events >= PAGE || self.served.is_some_and(|served| events >= served);
        let stuck = times.len() == 1 && (self.new == 0 || events >= PAGE);
        self.turn();
        if stuck || self.known.len() >= REMEMBERED {
            self.step_over();
            if full {
                self.skipped += 1;
            } else {
                self.doubtful = true;
            }
        }
        Ok(())
    }

    fn on_cut(&mut self) -> bool {
        let (progress, overfull) = (self.new > 0, self.is_overfull());
        self.previous = None;
        self.turn();
        if self.known.len() >= REMEMBERED || (overfull && !progress) {
            self.step_over();
            self.skipped += 1;
        }
        progress || overfull
    }

    fn gaps(&self) -> Gaps {
        Gaps { missing: 0, seconds: self.skipped }
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.page.len() + self.known.len()
    }
}

#[cfg(test)]
mod tests;
