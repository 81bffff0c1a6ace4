//! A relay in memory with the server's session, an owner of the client's session, and an unreliable network.

use super::*;
use crate::git::Service;
use crate::session::Wire;
use crate::{Action, Session};
use std::collections::{BTreeSet, VecDeque};

/// How a relay answers a NEG-OPEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconciles {
    Yes,
    Notice,
    Closed,
    NegErr,
    Silence,
    HangsUp,
}

pub struct MemoryRelay {
    /// Newest first.
    events: Vec<Event>,
    session: Session,
    /// Most events of one answer.
    pub cap: usize,
    pub reconciles: Reconciles,
}

fn server_session() -> Session {
    let service = Service::parse("https://git.example.org").unwrap();
    Session::new(Arc::new(RelayLimits::default()), service, "chance".into())
}

impl MemoryRelay {
    pub fn new(mut events: Vec<Event>) -> Self {
        events.sort_by_key(|event| (std::cmp::Reverse(event.created_at), event.id));
        Self { events, session: server_session(), cap: 500, reconciles: Reconciles::Yes }
    }

    /// Answers of the relay; `None` if it closes the connection.
    fn receive(&mut self, frame: &str) -> Option<Vec<String>> {
        let parsed: Value = serde_json::from_str(frame).unwrap();
        if parsed[0] == "NEG-OPEN" {
            let id = &parsed[1];
            match self.reconciles {
                Reconciles::Yes => {}
                Reconciles::Notice => return Some(vec![r#"["NOTICE","ERROR: bad msg: unknown cmd"]"#.to_owned()]),
                Reconciles::Closed => return Some(vec![format!("[\"CLOSED\",{id},\"unsupported\"]")]),
                Reconciles::NegErr => return Some(vec![format!("[\"NEG-ERR\",{id},\"blocked: no\"]")]),
                Reconciles::Silence => return Some(Vec::new()),
                Reconciles::HangsUp => return None,
            }
        }
        let mut actions: VecDeque<Action> = self.session.on_message(frame, NOW).into();
        let mut answers = Vec::new();
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Send(text) => answers.push(text),
                Action::Subscribe(query, filters) => {
                    let stored = filters.iter().flat_map(|filter| {
                        let matching = self.events.iter().filter(|event| filter.matches(event));
                        matching.take(filter.limit.min(self.cap)).map(Wire::from)
                    });
                    let stored = stored.collect();
                    actions.extend(self.session.on_stored(&query, stored));
                    actions.extend(self.session.on_stored_end(&query));
                }
                Action::Reconcile { query, filter, .. } => {
                    let items = self.events.iter().filter(|event| filter.matches(event)).map(item).collect();
                    actions.extend(self.session.on_reconcile_items(&query, items));
                }
                Action::Unsubscribe(_) => {}
                other => panic!("{other:?}"),
            }
        }
        Some(answers)
    }
}

/// Effect of the network on the next frame of the relay.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    None,
    Doubled,
    /// The connection is lost, with all frames on their way.
    Lost,
    /// An earlier frame arrives once more, counted backwards.
    Late(usize),
}

pub struct Network {
    pub client: ClientSession,
    pub relay: MemoryRelay,
    /// Our events: time and id.
    pub own: BTreeSet<(u64, EventId)>,
    pub now: Timestamp,
    pub report: Option<RoundReport>,
    pub learned: Vec<Capability>,
    /// NEG frames in both directions.
    pub reconciliation: Vec<String>,
    /// REQ frames of the client.
    pub requests: usize,
    /// Events delivered, with those delivered again.
    pub delivered: usize,
    to_relay: VecDeque<String>,
    to_client: VecDeque<String>,
    past: Vec<String>,
}

impl Network {
    pub fn new(client: ClientSession, relay: MemoryRelay, own: &[Event]) -> Self {
        Self {
            client,
            relay,
            own: own.iter().map(item).collect(),
            now: NOW,
            report: None,
            learned: Vec::new(),
            reconciliation: Vec::new(),
            requests: 0,
            delivered: 0,
            to_relay: VecDeque::new(),
            to_client: VecDeque::new(),
            past: Vec::new(),
        }
    }

    fn grant(&mut self, wishes: Vec<Wish>) {
        for wish in wishes {
            match wish {
                Wish::Send(text) => {
                    self.requests += usize::from(text.starts_with("[\"REQ\""));
                    self.record(&text);
                    self.to_relay.push_back(text);
                }
                Wish::Event(event, source) => {
                    assert_eq!(source, Source::Round);
                    self.delivered += 1;
                    self.own.insert(item(&event));
                }
                Wish::NeedItems { request, filter } => {
                    // All of our events are of the layer.
                    let within = |at: u64| filter.since.unwrap_or(0) <= at && filter.until.unwrap() >= at;
                    let items = self.own.iter().rev().filter(|(at, _)| within(*at)).take(filter.limit);
                    let items = items.copied().collect();
                    let wishes = self.client.on_items(request, items, self.now);
                    self.grant(wishes);
                }
                Wish::Learned(capability) => self.learned.push(capability),
                Wish::RoundEnded(report) => assert!(self.report.replace(report).is_none(), "a round ends once"),
                other => panic!("{other:?}"),
            }
        }
    }

    fn record(&mut self, frame: &str) {
        if frame.starts_with("[\"NEG-") {
            self.reconciliation.push(frame.to_owned());
        }
    }

    fn reconnect(&mut self) {
        self.to_relay.clear();
        self.to_client.clear();
        let wishes = self.client.on_lost();
        self.grant(wishes);
        self.relay.session = server_session();
        let wishes = self.client.on_connected(self.now);
        self.grant(wishes);
    }

    fn deliver(&mut self, frame: &str) {
        let wishes = self.client.on_message(frame, self.now);
        self.grant(wishes);
    }

    /// Runs a round to its end. Faults meet one frame each; the network is reliable afterwards.
    pub fn round(&mut self, faults: &[Fault]) -> RoundReport {
        let wishes = self.client.start_round(layer(), self.now).unwrap();
        self.grant(wishes);
        self.reconnect();
        let mut faults = faults.iter();
        for _ in 0..200_000 {
            if let Some(report) = self.report.take() {
                return report;
            }
            if let Some(frame) = self.to_client.pop_front() {
                self.record(&frame);
                match faults.next().unwrap_or(&Fault::None) {
                    Fault::None => self.deliver(&frame),
                    Fault::Doubled => {
                        self.deliver(&frame);
                        self.deliver(&frame);
                    }
                    Fault::Lost => self.reconnect(),
                    Fault::Late(back) => {
                        let earlier = self.past.iter().rev().nth(*back).cloned();
                        earlier.into_iter().for_each(|earlier| self.deliver(&earlier));
                        self.deliver(&frame);
                    }
                }
                self.past.push(frame);
            } else if let Some(frame) = self.to_relay.pop_front() {
                match self.relay.receive(&frame) {
                    Some(answers) => self.to_client.extend(answers),
                    None => self.reconnect(),
                }
            } else {
                self.now = self.client.deadline().expect("the relay owes an answer");
                let wishes = self.client.on_tick(self.now);
                self.grant(wishes);
            }
        }
        panic!("the round does not end");
    }

    /// Events that the relay has and we lack.
    pub fn lacks(&self) -> usize {
        let of_layer = self.relay.events.iter().filter(|event| layer().matches(event));
        of_layer.filter(|event| !self.own.contains(&item(event))).count()
    }
}
