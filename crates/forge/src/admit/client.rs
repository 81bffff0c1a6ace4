//! One connection to the relay, independent of the transport: text goes in, text comes out.
//!
//! [`Session`] decides; this module carries out its actions. Queries are answered one after another, and each page is
//! read only after the client took the previous one.

use super::{Admissions, Submission};
use crate::relay::connections::RelaySlot;
use crate::relay::hub::Live;
use crate::relay::memory::{self, Held};
use crate::relay::reading::{self, Asked, Found};
use crate::relay::{Relay, TooMany, is_suspended};
use crate::{Fault, Forge};
use abide_core::sync::attempts::Origin;
use abide_nostr::git::Service;
use abide_nostr::grasp::{Answer, Prefix, Refusal, signer};
use abide_nostr::session::QueryId;
use abide_nostr::{Action, Event, EventId, PublicKey, Session};
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// New events came faster than the client read them.
    #[error("you read events too slowly; reconnect")]
    TooSlow,
    /// The account of a key that was proved here is suspended.
    #[error("the account of your key is suspended; ask the site administrator")]
    Suspended,
}

/// Frames for the client. The bytes that were taken for them are given back when this is dropped, once they are sent.
#[derive(Default)]
pub struct Frames {
    /// The frames, in order.
    pub texts: Vec<String>,
    _held: Option<Arc<Held>>,
}

/// A connection.
pub struct Client {
    forge: Forge,
    session: Session,
    ip: Option<IpAddr>,
    number: u64,
    live: mpsc::Receiver<Live>,
    answers: mpsc::UnboundedReceiver<(EventId, Answer)>,
    answer_to: mpsc::UnboundedSender<(EventId, Answer)>,
    found: mpsc::Receiver<(QueryId, Found)>,
    found_to: mpsc::Sender<(QueryId, Found)>,
    questions: VecDeque<(QueryId, Asked)>,
    running: Option<(QueryId, JoinHandle<()>)>,
    open: HashSet<QueryId>,
    /// Bytes of the filters of subscriptions and counts, and of our side of reconciliations, for as long as they go on.
    held: HashMap<QueryId, Vec<Held>>,
    _slot: RelaySlot,
}

impl Client {
    /// Opens a connection, if a slot is free.
    pub fn connect(forge: &Forge, ip: Option<IpAddr>) -> Result<Self, TooMany> {
        let relay = Relay::of(forge);
        let slot = relay.admission.enter(ip)?;
        let (number, live) = relay.hub.join(ip);
        let (answer_to, answers) = mpsc::unbounded_channel();
        let (found_to, found) = mpsc::channel(1);
        let service = relay.service.clone().unwrap_or_else(nowhere);
        Ok(Self {
            session: Session::new(relay.limits().clone(), service, forge.random_token()),
            forge: forge.clone(),
            ip,
            number,
            live,
            answers,
            answer_to,
            found,
            found_to,
            questions: VecDeque::new(),
            running: None,
            open: HashSet::new(),
            held: HashMap::new(),
            _slot: slot,
        })
    }

    /// Whether another message can be taken. The number of waiting queries is limited.
    pub fn ready(&self) -> bool {
        let limits = Relay::of(&self.forge).limits();
        self.questions.len() < limits.subscriptions + limits.counts_under_way + limits.reconciliations
    }

    /// Handles a text frame.
    pub async fn on_text(&mut self, text: &str) -> Frames {
        let now = self.forge.clock().now();
        let actions = match self.session.is_comparing() {
            true => aside(|| self.session.on_message(text, now)),
            false => self.session.on_message(text, now),
        };
        Frames { texts: self.act(actions, text.len()).await, _held: None }
    }

    /// Handles a frame that is not text.
    pub async fn on_binary(&mut self) -> Frames {
        let actions = self.session.on_binary();
        Frames { texts: self.act(actions, 0).await, _held: None }
    }

    /// Waits for answers, stored events and new events. Cancel-safe: nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<Frames, Ended> {
        let mut held = None;
        let actions = tokio::select! {
            biased;
            Some((id, answer)) = self.answers.recv() => {
                let mut actions = self.session.on_admitted(&id, &answer);
                while let Ok((id, answer)) = self.answers.try_recv() {
                    actions.extend(self.session.on_admitted(&id, &answer));
                }
                actions
            }
            live = self.live.recv() => match live {
                Some(Live { query, wire, held: bytes }) => {
                    held = bytes;
                    self.session.on_live(&query, &wire)
                }
                None => return Err(Ended::TooSlow),
            },
            Some((query, found)) = self.found.recv() => {
                let (actions, bytes) = self.on_found(&query, found);
                held = bytes.map(Arc::new);
                actions
            }
        };
        Ok(Frames { texts: self.act(actions, 0).await, _held: held })
    }

    /// Checks that no key proved here is suspended. Call it from time to time: a connection may outlive a suspension.
    pub async fn ensure_welcome(&self) -> Result<(), Ended> {
        for key in self.session.proven() {
            match is_suspended(&self.forge, key).await {
                Ok(false) => (),
                Ok(true) => return Err(Ended::Suspended),
                Err(error) => tracing::warn!(%error, "cannot check whether an account is suspended"),
            }
        }
        Ok(())
    }

    /// The actions that follow from an answer, and the bytes of the part of it that is sent.
    fn on_found(&mut self, query: &QueryId, found: Found) -> (Vec<Action>, Option<Held>) {
        // Late results of a cancelled query must not end the query that runs now.
        if !matches!(found, Found::Page(..)) {
            self.running.take_if(|(running, _)| running == query);
        }
        let mut held = None;
        let actions = match found {
            Found::Page(page, bytes) => {
                held = Some(bytes);
                self.session.on_stored(query, page)
            }
            Found::End => self.session.on_stored_end(query),
            Found::Count(count) => self.session.on_count(query, count),
            Found::Items(items, bytes) => {
                self.held.entry(query.clone()).or_default().push(bytes);
                aside(|| self.session.on_reconcile_items(query, items))
            }
            Found::Full => self.session.on_refused(query, &memory::full()),
            Found::Failed => self.session.on_query_failed(query),
        };
        self.ask_next();
        (actions, held)
    }

    /// Does what the session wants done after a message of so many bytes.
    async fn act(&mut self, actions: Vec<Action>, bytes: usize) -> Vec<String> {
        let mut frames = Vec::with_capacity(actions.len());
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            if let Action::Subscribe(query, _) | Action::Count(query, _) | Action::Reconcile { query, .. } = &action {
                match Relay::of(&self.forge).memory.take(self.ip, bytes) {
                    Some(held) => self.held.entry(query.clone()).or_default().push(held),
                    None => {
                        actions.extend(self.session.on_refused(query, &memory::full()));
                        continue;
                    }
                }
            }
            match action {
                Action::Send(text) => frames.push(text),
                Action::Admit(event) => self.admit(event).await,
                Action::Prove(id, key) => {
                    let judged = judge_key(&self.forge.clone(), key).await;
                    let actions = self.session.on_proved(&id, key, judged);
                    frames.extend(actions.into_iter().filter_map(|action| match action {
                        Action::Send(text) => Some(text),
                        _ => None,
                    }));
                }
                Action::Subscribe(query, filters) => {
                    Relay::of(&self.forge).hub.subscribe(self.number, query.clone(), filters.clone());
                    self.open.insert(query.clone());
                    self.ask(query, Asked::Events(filters));
                }
                Action::Unsubscribe(query) => self.unsubscribe(query),
                Action::Count(query, filters) => self.ask(query, Asked::Count(filters)),
                Action::Reconcile { query, filter, at_most } => {
                    self.ask(query, Asked::Reconcile { filter, at_most });
                }
            }
        }
        self.held.retain(|query, _| self.session.goes_on(query));
        frames
    }

    /// Submits an event. Waits while the queue is full, so that the client has to wait too.
    async fn admit(&mut self, event: Box<Event>) {
        let relay = Relay::of(&self.forge);
        if !relay.admission.event(self.ip, self.forge.clock().now()) {
            let refusal = Refusal::new(Prefix::RateLimited, "too many events from this IP address; slow down");
            let _ = self.answer_to.send((event.id, Answer::Refused(refusal)));
            return;
        }
        let submission = Submission {
            event: Arc::from(event),
            from: self.ip,
            origin: Origin::Published,
            lane: self.number,
            answer: self.answer_to.clone(),
        };
        Admissions::of(&self.forge).submit(submission).await;
    }

    fn unsubscribe(&mut self, query: QueryId) {
        self.questions.retain(|(waiting, _)| *waiting != query);
        if let Some((_, task)) = self.running.take_if(|(running, _)| *running == query) {
            task.abort();
            self.ask_next();
        }
        self.open.remove(&query);
        Relay::of(&self.forge).hub.unsubscribe(self.number, query);
    }

    fn ask(&mut self, query: QueryId, asked: Asked) {
        self.questions.push_back((query, asked));
        self.ask_next();
    }

    /// Starts the next query if none is running.
    fn ask_next(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some((query, asked)) = self.questions.pop_front() else { return };
        let task = reading::read(self.forge.clone(), self.ip, query.clone(), asked, self.found_to.clone());
        self.running = Some((query, tokio::spawn(task)));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some((_, task)) = self.running.take() {
            task.abort();
        }
        Relay::of(&self.forge).hub.leave(self.number, self.open.drain());
    }
}

/// Whether a proved key is accepted here.
async fn judge_key(forge: &Forge, key: PublicKey) -> Result<(), Refusal> {
    let found = async { Ok::<_, Fault>(crate::relay::signer(&mut *forge.store().read().await?, key).await?) };
    match found.await {
        Ok(signer) => signer::admit(signer),
        Err(fault) => {
            tracing::warn!(error = %fault, "could not look up the account of a key");
            Err(Refusal::new(Prefix::Error, fault.public_message()))
        }
    }
}

/// A comparison takes milliseconds for each hundred thousand events. On a multi-threaded runtime, `block_in_place` lets
/// other threads serve the other connections meanwhile.
fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Stands for a public URL that cannot be parsed, so that no proof of a key ever matches it.
fn nowhere() -> Service {
    Service::parse("http://invalid").expect("this is an address")
}
