//! Reconciliation (NIP-77): both sides find the events that the other lacks.

use super::{Action, QueryId, Session, send};
use crate::message::{self, SubscriptionId};
use crate::{EventId, Filter};
use negentropy::{Id, Negentropy, NegentropyStorageVector};

/// A reconciliation: first our events are read, then messages alternate.
#[derive(Debug)]
pub(super) struct Reconciliation {
    serial: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The client's first message, kept while our events are read.
    Reading(Vec<u8>),
    Ready {
        storage: NegentropyStorageVector,
        events: usize,
    },
}

impl Reconciliation {
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// Events on our side, as far as it is known.
    fn events(&self) -> usize {
        match &self.stage {
            Stage::Reading(_) => 0,
            Stage::Ready { events, .. } => *events,
        }
    }
}

impl Session {
    /// Events that the reconciliations of this connection may still take. All of them share one limit.
    fn reconcilable(&self) -> usize {
        let used: usize = self.reconciliations.values().map(Reconciliation::events).sum();
        self.limits.reconciled_events.saturating_sub(used)
    }

    /// Whether the next message may take time proportional to our set of events.
    pub fn is_comparing(&self) -> bool {
        !self.reconciliations.is_empty()
    }

    pub(super) fn open_reconciliation(&mut self, id: SubscriptionId, filter: Filter, first: Vec<u8>) -> Vec<Action> {
        self.reconciliations.remove(&id);
        if self.reconciliations.len() >= self.limits.reconciliations {
            return send(message::neg_err(&id, "blocked: too many reconciliations; close one first"));
        }
        let query = self.query(id.clone());
        self.reconciliations.insert(id, Reconciliation { serial: query.serial, stage: Stage::Reading(first) });
        vec![Action::Reconcile { query, filter: Box::new(filter), at_most: self.reconcilable() }]
    }

    /// Delivers our events: time in seconds and id of every match.
    pub fn on_reconcile_items(&mut self, query: &QueryId, items: Vec<(u64, EventId)>) -> Vec<Action> {
        let id = &query.subscription;
        let waits = |open: &Reconciliation| open.serial == query.serial && matches!(open.stage, Stage::Reading(_));
        if !self.reconciliations.get(id).is_some_and(waits) {
            return Vec::new();
        }
        if items.len() > self.limits.reconciled_events {
            let most = self.limits.reconciled_events;
            return self.end_reconciliation(id, &format!("blocked: more than {most} events match; narrow the filter"));
        }
        if items.len() > self.reconcilable() {
            let most = self.limits.reconciled_events;
            let rule = format!(
                "blocked: the reconciliations of one connection compare {most} events together; close another one first"
            );
            return self.end_reconciliation(id, &rule);
        }
        let events = items.len();
        let mut storage = NegentropyStorageVector::with_capacity(items.len());
        let filled =
            items.into_iter().try_for_each(|(at, event)| storage.insert(at, Id::from_byte_array(event.to_bytes())));
        if filled.and_then(|()| storage.seal()).is_err() {
            return self.end_reconciliation(id, "error: the events could not be compared");
        }
        let Some(open) = self.reconciliations.get_mut(id) else { return Vec::new() };
        match std::mem::replace(&mut open.stage, Stage::Ready { storage, events }) {
            Stage::Reading(first) => self.continue_reconciliation(id, &first),
            Stage::Ready { .. } => Vec::new(),
        }
    }

    /// Processes a message. Its cost is proportional to our set of events; the limits on number and size keep it small.
    pub(super) fn continue_reconciliation(&mut self, id: &SubscriptionId, bytes: &[u8]) -> Vec<Action> {
        let storage = match self.reconciliations.get(id).map(|open| &open.stage) {
            Some(Stage::Ready { storage, .. }) => storage,
            Some(Stage::Reading(_)) => return self.end_reconciliation(id, "invalid: wait for the previous answer"),
            None => return send(message::neg_err(id, "closed: unknown reconciliation id")),
        };
        let frame = self.limits.reconciliation_frame;
        match Negentropy::borrowed(storage, frame).and_then(|mut ours| ours.reconcile(bytes)) {
            Ok(answer) => send(message::neg_msg(id, &answer)),
            Err(error) => self.end_reconciliation(id, &format!("invalid: {error}")),
        }
    }

    /// Ends a reconciliation with an error.
    pub(super) fn end_reconciliation(&mut self, id: &SubscriptionId, text: &str) -> Vec<Action> {
        self.reconciliations.remove(id);
        send(message::neg_err(id, text))
    }

    pub(super) fn reconciliation_refused(&mut self, query: &QueryId, text: &str) -> Vec<Action> {
        match self.reconciliations.get(&query.subscription) {
            Some(open) if open.serial == query.serial => self.end_reconciliation(&query.subscription, text),
            _ => Vec::new(),
        }
    }
}
