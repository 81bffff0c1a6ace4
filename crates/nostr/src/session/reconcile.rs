//! Reconciliation (NIP-77): both sides find the events that the other lacks.

use super::{Action, Session, Ticket, send};
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
    Ready(NegentropyStorageVector),
}

impl Session {
    /// Whether the next message may take time proportional to our set of events.
    pub fn is_comparing(&self) -> bool {
        !self.reconciliations.is_empty()
    }

    pub(super) fn open_reconciliation(&mut self, id: SubscriptionId, filter: Filter, first: Vec<u8>) -> Vec<Action> {
        self.reconciliations.remove(&id);
        if self.reconciliations.len() >= self.limits.reconciliations {
            return send(message::neg_err(&id, "blocked: too many reconciliations; close one first"));
        }
        let ticket = self.ticket(id.clone());
        self.reconciliations.insert(id, Reconciliation { serial: ticket.serial, stage: Stage::Reading(first) });
        vec![Action::Reconcile { ticket, filter: Box::new(filter), at_most: self.limits.reconciled_events }]
    }

    /// Delivers our events: time in seconds and id of every match.
    pub fn on_reconcile_items(&mut self, ticket: &Ticket, items: Vec<(u64, EventId)>) -> Vec<Action> {
        let id = &ticket.subscription;
        let waits = |open: &Reconciliation| open.serial == ticket.serial && matches!(open.stage, Stage::Reading(_));
        if !self.reconciliations.get(id).is_some_and(waits) {
            return Vec::new();
        }
        if items.len() > self.limits.reconciled_events {
            let most = self.limits.reconciled_events;
            return self.end_reconciliation(id, &format!("blocked: more than {most} events match; narrow the filter"));
        }
        let mut storage = NegentropyStorageVector::with_capacity(items.len());
        let filled =
            items.into_iter().try_for_each(|(at, event)| storage.insert(at, Id::from_byte_array(event.to_bytes())));
        if filled.and_then(|()| storage.seal()).is_err() {
            return self.end_reconciliation(id, "error: the events could not be compared");
        }
        let Some(open) = self.reconciliations.get_mut(id) else { return Vec::new() };
        match std::mem::replace(&mut open.stage, Stage::Ready(storage)) {
            Stage::Reading(first) => self.continue_reconciliation(id, &first),
            Stage::Ready(_) => Vec::new(),
        }
    }

    /// Processes a message. Its cost is proportional to our set of events; the limits on number and size keep it small.
    pub(super) fn continue_reconciliation(&mut self, id: &SubscriptionId, bytes: &[u8]) -> Vec<Action> {
        let storage = match self.reconciliations.get(id).map(|open| &open.stage) {
            Some(Stage::Ready(storage)) => storage,
            Some(Stage::Reading(_)) => return self.end_reconciliation(id, "invalid: wait for the answer"),
            None => return send(message::neg_err(id, "closed: there is no reconciliation of this name")),
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

    pub(super) fn reconciliation_failed(&mut self, ticket: &Ticket) -> Vec<Action> {
        match self.reconciliations.get(&ticket.subscription) {
            Some(open) if open.serial == ticket.serial => {
                self.end_reconciliation(&ticket.subscription, "error: the events could not be read; try again")
            }
            _ => Vec::new(),
        }
    }
}
