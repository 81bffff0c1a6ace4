//! Slots of event streams: a total, and a share per account or address, so that no client takes all of them.

use super::limit::{ApiLimits, Key};
use abide_core::admission::{self, Slot, Slots};
use abide_forge::Caller;

#[derive(Clone)]
pub(crate) struct Streams {
    slots: Slots<Key>,
    each: usize,
}

/// The limit that refused a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    All,
    /// `api.streams_each`, which the caller has reached.
    Own(usize),
}

/// Kept as long as the stream is open.
pub(super) type StreamSlot = Slot<Key>;

impl Streams {
    pub(crate) fn new(limits: ApiLimits) -> Self {
        Self { slots: Slots::new(limits.streams, limits.streams_each), each: limits.streams_each }
    }

    pub(super) fn take(&self, caller: &Caller) -> Result<StreamSlot, Full> {
        self.slots.take(Key::of(caller)).map_err(|full| match full {
            admission::Full::InAll => Full::All,
            admission::Full::ForKey => Full::Own(self.each),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn nobody_takes_the_slots_of_all() {
        let streams = Streams::new(ApiLimits { streams: 3, streams_each: 2, ..ApiLimits::default() });
        let from = |ip: &str| Caller::anonymous(Some(ip.parse::<IpAddr>().unwrap()));
        let first = streams.take(&from("192.0.2.1")).unwrap();
        let _second = streams.take(&from("192.0.2.1")).unwrap();
        assert_eq!(streams.take(&from("192.0.2.1")).err(), Some(Full::Own(2)));
        let other = streams.take(&from("192.0.2.2")).unwrap();
        assert_eq!(streams.take(&from("192.0.2.3")).err(), Some(Full::All));
        drop((first, other));
        assert_eq!(streams.slots.used(), 1, "dropped slots are given back");
        let _again = streams.take(&from("192.0.2.1")).unwrap();
        assert!(streams.take(&from("192.0.2.3")).is_ok());
    }
}
