//! One reconciliation (NIP-77) of a window, from our side: which of the relay's events we lack.

use crate::EventId;
use negentropy::{Error, Id, Negentropy, NegentropyStorageVector};

/// The smallest frame that the protocol allows.
const SMALLEST_FRAME: u64 = 4096;

/// Messages of a relay in one exchange. A full list of wanted ids takes about 55 messages of 60,000 bytes; a relay
/// that reaches this limit does not come to an end.
const MESSAGES: usize = 256;

/// A reconciliation that waits for the relay's next message.
#[derive(Debug)]
pub(super) struct Exchange {
    ours: Negentropy<'static, NegentropyStorageVector>,
    wanted: Vec<EventId>,
    lacking: u64,
    messages: usize,
}

/// Result of a relay's message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this.
    Answer(Vec<u8>),
    /// Both sides are compared.
    Done,
    /// The relay has more events that we lack than the limit.
    TooMany,
    /// The message is malformed, or the exchange does not end.
    Bad,
}

impl Exchange {
    /// Starts a reconciliation of our items, with the first message.
    pub fn open(items: Vec<(u64, EventId)>, frame: u64) -> Result<(Self, Vec<u8>), Error> {
        let mut storage = NegentropyStorageVector::with_capacity(items.len());
        for (at, id) in items {
            storage.insert(at, Id::from_byte_array(id.to_bytes()))?;
        }
        storage.seal()?;
        let mut ours = Negentropy::owned(storage, frame.max(SMALLEST_FRAME))?;
        let first = ours.initiate()?;
        Ok((Self { ours, wanted: Vec::new(), lacking: 0, messages: 0 }, first))
    }

    /// Handles a message of the relay. At most `at_most` wanted ids are kept.
    pub fn on_message(&mut self, bytes: &[u8], at_most: usize) -> Step {
        self.messages += 1;
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let answer = self.ours.reconcile_with_ids(bytes, &mut have, &mut need);
        self.lacking += u64::try_from(have.len()).unwrap_or(u64::MAX);
        let need = need.into_iter().map(|id| EventId::from_byte_array(id.to_bytes()));
        self.wanted.extend(need.take(at_most.saturating_add(1) - self.wanted.len()));
        if self.wanted.len() > at_most {
            return Step::TooMany;
        }
        match answer {
            Ok(None) => Step::Done,
            Ok(Some(answer)) if self.messages < MESSAGES => Step::Answer(answer),
            Ok(Some(_)) | Err(_) => Step::Bad,
        }
    }

    /// Events of ours that the relay lacks, as far as it is known.
    pub fn lacking(&self) -> u64 {
        self.lacking
    }

    /// The events that we lack, each once.
    pub fn into_wanted(mut self) -> Vec<EventId> {
        self.wanted.sort_unstable();
        self.wanted.dedup();
        self.wanted
    }

    /// Ids in memory.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.wanted.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn items(range: std::ops::Range<u32>) -> Vec<(u64, EventId)> {
        let id = |n: u32| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&n.wrapping_mul(2_654_435_761).to_be_bytes());
            EventId::from_byte_array(bytes)
        };
        range.map(|n| (u64::from(n / 3), id(n))).collect()
    }

    fn relay(items: Vec<(u64, EventId)>) -> Negentropy<'static, NegentropyStorageVector> {
        let mut storage = NegentropyStorageVector::new();
        for (at, id) in items {
            storage.insert(at, Id::from_byte_array(id.to_bytes())).unwrap();
        }
        storage.seal().unwrap();
        Negentropy::owned(storage, 4096).unwrap()
    }

    #[test]
    fn an_exchange_finds_each_missing_event_once() {
        let (mut exchange, mut message) = Exchange::open(items(0..900), 60_000).unwrap();
        let mut relay = relay(items(300..2000));
        loop {
            match exchange.on_message(&relay.reconcile(&message).unwrap(), 5_000) {
                Step::Answer(next) => message = next,
                step => break assert_eq!(step, Step::Done),
            }
        }
        assert_eq!(exchange.lacking(), 300);
        let wanted: BTreeSet<_> = exchange.into_wanted().into_iter().collect();
        assert_eq!(wanted, items(900..2000).into_iter().map(|(_, id)| id).collect());
    }

    #[test]
    fn more_wanted_events_than_the_limit_stop_the_exchange() {
        let (mut exchange, message) = Exchange::open(Vec::new(), 0).unwrap();
        let mut relay = relay(items(0..100));
        let answer = relay.reconcile(&message).unwrap();
        assert_eq!(exchange.on_message(&answer, 99), Step::TooMany);
        assert_eq!(exchange.held(), 100);
    }

    #[test]
    fn an_exchange_without_end_is_bad() {
        let (mut exchange, _) = Exchange::open(items(0..100), 0).unwrap();
        // A fingerprint of everything that never matches.
        let never = [&[0x61, 0x00, 0x00, 0x01][..], &[0xaa; 16]].concat();
        for _ in 1..MESSAGES {
            assert!(matches!(exchange.on_message(&never, 10), Step::Answer(_)));
        }
        assert_eq!(exchange.on_message(&never, 10), Step::Bad);
    }

    proptest! {
        #[test]
        fn no_message_panics(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..6)) {
            let (mut exchange, _) = Exchange::open(items(0..200), 0).unwrap();
            for message in messages {
                let message = [&[0x61], &message[..]].concat();
                exchange.on_message(&message, 50);
                prop_assert!(exchange.held() <= 51);
            }
        }
    }
}
