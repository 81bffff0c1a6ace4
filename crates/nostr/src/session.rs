//! One relay connection, as a state machine without I/O.
//!
//! A text frame goes into [`Session::on_message`]; out come [`Action`]s for the owner of the socket, the store and the
//! other connections. Their results return through the other `on_…` methods, which yield further actions. No client
//! message closes the connection or breaks the session.

mod auth;
mod reconcile;

use crate::git::Service;
use crate::message::{self, ClientMessage, Count, MessageError, SubscriptionId};
use crate::{Event, EventId, Filter, PublicKey, RelayLimits, event};
use abide_core::Timestamp;
use reconcile::Reconciliation;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// One query of the client. A later query of the same name has another serial, so late answers to the earlier one are
/// recognised and dropped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId {
    pub subscription: SubscriptionId,
    /// Distinguishes queries of the same name.
    pub serial: u64,
}

/// An event ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    pub id: EventId,
    pub json: Arc<str>,
}

impl From<&Event> for Wire {
    fn from(event: &Event) -> Self {
        Self { id: event.id, json: event::to_json(event).into() }
    }
}

/// Work for the owner of the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send this frame.
    Send(String),
    /// Check for a duplicate, verify, decide and store; then call [`Session::on_admitted`].
    Admit(Box<Event>),
    /// Look up the account of this key, proved by the event with this id; then call [`Session::on_proved`].
    Prove(EventId, PublicKey),
    /// Register the filters for broadcasting **first**, then read the stored events: call [`Session::on_stored`] for
    /// each page and [`Session::on_stored_end`] after the last. New events go to [`Session::on_live`].
    Subscribe(QueryId, Arc<[Filter]>),
    /// Remove the filters; an unfinished read may stop.
    Unsubscribe(QueryId),
    /// Count the events that match any filter, each once, ignoring `limit`; then call [`Session::on_count`].
    Count(QueryId, Vec<Filter>),
    /// Find time and id of every stored event that matches, ignoring `limit`, up to `at_most` plus one; then call
    /// [`Session::on_reconcile_items`].
    Reconcile {
        query: QueryId,
        filter: Box<Filter>,
        /// Most events in the comparison.
        at_most: usize,
    },
}

/// A subscription. While its stored events are read, it holds the ids already sent, so that none is sent twice.
#[derive(Debug)]
struct Subscription {
    serial: u64,
    /// Total weight of its filters.
    weight: usize,
    loading: Option<HashSet<EventId>>,
}

#[derive(Debug)]
pub struct Session {
    limits: Arc<RelayLimits>,
    service: Service,
    challenge: String,
    proven: BTreeSet<PublicKey>,
    serial: u64,
    subscriptions: HashMap<SubscriptionId, Subscription>,
    counts: HashMap<SubscriptionId, u64>,
    reconciliations: HashMap<SubscriptionId, Reconciliation>,
    admitting: usize,
}

impl Session {
    /// A new connection to `service`, with an unguessable challenge.
    pub fn new(limits: Arc<RelayLimits>, service: Service, challenge: String) -> Self {
        Self {
            limits,
            service,
            challenge,
            proven: BTreeSet::new(),
            serial: 0,
            subscriptions: HashMap::new(),
            counts: HashMap::new(),
            reconciliations: HashMap::new(),
            admitting: 0,
        }
    }

    /// Keys that the client has proved.
    pub fn proven(&self) -> &BTreeSet<PublicKey> {
        &self.proven
    }

    /// Handles one text frame.
    pub fn on_message(&mut self, text: &str, now: Timestamp) -> Vec<Action> {
        match ClientMessage::parse(text, &self.limits) {
            Ok(message) => self.on_parsed(message, now),
            Err(MessageError::Notice(text)) => send(message::notice(&text)),
            Err(MessageError::Event(id, text)) => send(message::ok(&id, false, &text)),
            Err(MessageError::Subscription(id, text)) => self.refuse(id, &text),
            Err(MessageError::Reconciliation(id, text)) => self.end_reconciliation(&id, &text),
        }
    }

    /// Handles a binary frame.
    pub fn on_binary(&mut self) -> Vec<Action> {
        send(message::notice("invalid: messages must be JSON in text frames"))
    }

    fn on_parsed(&mut self, message: ClientMessage, now: Timestamp) -> Vec<Action> {
        match message {
            ClientMessage::Event(event) => self.publish(event, now),
            ClientMessage::Req(id, filters) => self.subscribe(id, filters),
            ClientMessage::Close(id) => self.forget(&id).into_iter().collect(),
            ClientMessage::Count(id, filters) => self.count(id, filters),
            ClientMessage::Auth(event) => self.on_auth(&event, now),
            ClientMessage::NegOpen(id, filter, bytes) => self.open_reconciliation(id, filter, bytes),
            ClientMessage::NegMsg(id, bytes) => self.continue_reconciliation(&id, &bytes),
            ClientMessage::NegClose(id) => {
                self.reconciliations.remove(&id);
                Vec::new()
            }
        }
    }

    fn publish(&mut self, event: Box<Event>, now: Timestamp) -> Vec<Action> {
        let refuse = |text: &str| send(message::ok(&event.id, false, text));
        if event::is_ahead(&event, now, &self.limits) {
            let minutes = self.limits.ahead.as_secs() / 60;
            return refuse(&format!(
                "invalid: created_at is more than {minutes} minutes in the future; check the clock"
            ));
        }
        if event::is_expired(&event, now) {
            return refuse("invalid: the event has expired");
        }
        if event.kind.as_u16() == crate::kinds::RELAY_AUTH {
            return refuse("invalid: send authentication events with AUTH instead of publishing them");
        }
        if self.admitting >= self.limits.events_under_way {
            return refuse("rate-limited: too many events in progress; wait for their OK");
        }
        self.admitting += 1;
        vec![Action::Admit(event)]
    }

    /// Reports the decision on an event; an accepted event is durable.
    pub fn on_admitted(&mut self, id: &EventId, answer: &crate::grasp::Answer) -> Vec<Action> {
        self.admitting = self.admitting.saturating_sub(1);
        send(message::ok(id, answer.accepted(), &answer.to_string()))
    }

    fn query(&mut self, subscription: SubscriptionId) -> QueryId {
        self.serial += 1;
        QueryId { subscription, serial: self.serial }
    }

    fn subscribe(&mut self, id: SubscriptionId, filters: Vec<Filter>) -> Vec<Action> {
        let mut actions: Vec<Action> = self.forget(&id).into_iter().collect();
        if self.subscriptions.len() >= self.limits.subscriptions {
            let rule =
                format!("rate-limited: the limit is {} subscriptions; close one first", self.limits.subscriptions);
            actions.push(Action::Send(message::closed(&id, &rule)));
            return actions;
        }
        let weight = filters.iter().map(Filter::weight).sum();
        let held: usize = self.subscriptions.values().map(|open| open.weight).sum();
        if held.saturating_add(weight) > self.limits.subscribed_values {
            let most = self.limits.subscribed_values;
            let rule = format!("rate-limited: the limit is {most} values over all filters; close a subscription first");
            actions.push(Action::Send(message::closed(&id, &rule)));
            return actions;
        }
        let query = self.query(id.clone());
        self.subscriptions.insert(id, Subscription { serial: query.serial, weight, loading: Some(HashSet::new()) });
        actions.push(Action::Subscribe(query, filters.into()));
        actions
    }

    /// Removes a subscription of this name, if any.
    fn forget(&mut self, id: &SubscriptionId) -> Option<Action> {
        let gone = self.subscriptions.remove(id)?;
        Some(Action::Unsubscribe(QueryId { subscription: id.clone(), serial: gone.serial }))
    }

    /// Refuses a request. It would have replaced an earlier subscription of this name, so that one is closed too.
    fn refuse(&mut self, id: SubscriptionId, text: &str) -> Vec<Action> {
        self.forget(&id).into_iter().chain([Action::Send(message::closed(&id, text))]).collect()
    }

    fn current(&mut self, query: &QueryId) -> Option<&mut Subscription> {
        self.subscriptions.get_mut(&query.subscription).filter(|open| open.serial == query.serial)
    }

    /// Delivers matching stored events, newest first.
    pub fn on_stored(&mut self, query: &QueryId, page: Vec<Wire>) -> Vec<Action> {
        page.into_iter().filter_map(|wire| self.deliver(query, &wire)).collect()
    }

    /// Delivers a new matching event.
    pub fn on_live(&mut self, query: &QueryId, wire: &Wire) -> Vec<Action> {
        self.deliver(query, wire).into_iter().collect()
    }

    fn deliver(&mut self, query: &QueryId, wire: &Wire) -> Option<Action> {
        let remembered = self.limits.remembered_ids;
        let open = self.current(query)?;
        if let Some(sent) = &mut open.loading {
            if sent.contains(&wire.id) {
                return None;
            }
            if sent.len() < remembered {
                sent.insert(wire.id);
            }
        }
        Some(Action::Send(message::event(&query.subscription, &wire.json)))
    }

    /// Reports that all stored events were delivered.
    pub fn on_stored_end(&mut self, query: &QueryId) -> Vec<Action> {
        match self.current(query).and_then(|open| open.loading.take()) {
            Some(_) => send(message::eose(&query.subscription)),
            None => Vec::new(),
        }
    }

    /// Reports that the stored events could not be read.
    pub fn on_query_failed(&mut self, query: &QueryId) -> Vec<Action> {
        if self.current(query).is_some() {
            return self.refuse(query.subscription.clone(), "error: the events could not be read; try again");
        }
        if self.counts.get(&query.subscription) == Some(&query.serial) {
            self.counts.remove(&query.subscription);
            return send(message::closed(&query.subscription, "error: the events could not be counted; try again"));
        }
        self.reconciliation_refused(query, "error: the events could not be read; try again")
    }

    /// A question is not answered, for a reason that begins with its prefix.
    pub fn on_refused(&mut self, query: &QueryId, text: &str) -> Vec<Action> {
        if self.current(query).is_some() {
            return self.refuse(query.subscription.clone(), text);
        }
        if self.counts.get(&query.subscription) == Some(&query.serial) {
            self.counts.remove(&query.subscription);
            return send(message::closed(&query.subscription, text));
        }
        self.reconciliation_refused(query, text)
    }

    /// Whether a question is still open: a subscription that listens, a count that is taken, a reconciliation.
    pub fn goes_on(&self, query: &QueryId) -> bool {
        let name = &query.subscription;
        let serials = [
            self.subscriptions.get(name).map(|open| open.serial),
            self.counts.get(name).copied(),
            self.reconciliations.get(name).map(Reconciliation::serial),
        ];
        serials.contains(&Some(query.serial))
    }

    fn count(&mut self, id: SubscriptionId, filters: Vec<Filter>) -> Vec<Action> {
        if self.counts.len() >= self.limits.counts_under_way && !self.counts.contains_key(&id) {
            return send(message::closed(&id, "rate-limited: too many counts in progress; wait for their answers"));
        }
        let query = self.query(id.clone());
        self.counts.insert(id, query.serial);
        vec![Action::Count(query, filters)]
    }

    /// Delivers the result of a count.
    pub fn on_count(&mut self, query: &QueryId, count: Count) -> Vec<Action> {
        if self.counts.get(&query.subscription) != Some(&query.serial) {
            return Vec::new();
        }
        self.counts.remove(&query.subscription);
        send(message::count(&query.subscription, count))
    }

    /// Number of open subscriptions.
    pub fn subscriptions(&self) -> usize {
        self.subscriptions.len()
    }
}

fn send(text: String) -> Vec<Action> {
    vec![Action::Send(text)]
}

#[cfg(test)]
mod tests;
