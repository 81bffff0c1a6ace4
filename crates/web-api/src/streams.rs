//! Places for those who listen to events: so many in all, and so many of one account or address, so that nobody takes them
//! all.

use super::limit::{ApiLimits, Key};
use abide_forge::Caller;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places, and who holds how many.
#[derive(Clone)]
pub(crate) struct Streams {
    all: Arc<Semaphore>,
    each: usize,
    held: Arc<Mutex<HashMap<Key, usize>>>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// Everyone together has taken all.
    All,
    /// This one has taken as many as one may.
    Own(usize),
}

/// A place, until dropped.
pub(super) struct StreamSlot {
    key: Key,
    held: Arc<Mutex<HashMap<Key, usize>>>,
    _permit: OwnedSemaphorePermit,
}

impl Streams {
    pub(crate) fn new(limits: ApiLimits) -> Self {
        Self { all: Arc::new(Semaphore::new(limits.streams)), each: limits.streams_each, held: Arc::default() }
    }

    /// Takes a place for someone.
    pub(super) fn take(&self, caller: &Caller) -> Result<StreamSlot, Full> {
        let key = Key::of(caller);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let own = held.get(&key).copied().unwrap_or_default();
        if own >= self.each {
            return Err(Full::Own(self.each));
        }
        let permit = self.all.clone().try_acquire_owned().map_err(|_| Full::All)?;
        held.insert(key, own + 1);
        Ok(StreamSlot { key, held: self.held.clone(), _permit: permit })
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get_mut(&self.key) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(held.remove(&self.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn nobody_takes_the_places_of_all() {
        let streams = Streams::new(ApiLimits { streams: 3, streams_each: 2, ..ApiLimits::default() });
        let from = |ip: &str| Caller::anonymous(Some(ip.parse::<IpAddr>().unwrap()));
        let first = streams.take(&from("192.0.2.1")).unwrap();
        let _second = streams.take(&from("192.0.2.1")).unwrap();
        assert_eq!(streams.take(&from("192.0.2.1")).err(), Some(Full::Own(2)));
        let other = streams.take(&from("192.0.2.2")).unwrap();
        assert_eq!(streams.take(&from("192.0.2.3")).err(), Some(Full::All));
        drop((first, other));
        assert_eq!(streams.held.lock().unwrap().len(), 1, "who holds none is forgotten");
        let _again = streams.take(&from("192.0.2.1")).unwrap();
        assert!(streams.take(&from("192.0.2.3")).is_ok());
    }
}
