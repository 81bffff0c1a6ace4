//! One relay as its client sees it, as a state machine without I/O: the counterpart of [`crate::session`].
//!
//! Frames of the relay go into [`ClientSession::on_message`], time into [`ClientSession::on_tick`]; out come [`Wish`]es
//! for the owner of the socket and the store. The session lives as long as the relay is of interest: it survives lost
//! connections, continues its round on the next one, and keeps the relay's budget.
//!
//! * [`message`]: frames of the relay. [`budget`]: its cost per hour. `live`: new events.
//! * `round`: all events of one layer, in `windows` of time. `answers`: the relay's part in it. `exchange` finds the
//!   missing ids by NIP-77 and `fetch` downloads them; `paging` serves relays without NIP-77.
//!
//! The relay is a stranger. The session stores no events, bounds each list of ids, believes no text, and checks each
//! event against the filter that asked for it. Signatures are left to admission.

mod answers;
pub mod budget;
mod download;
mod exchange;
mod fetch;
mod live;
pub mod message;
mod paging;
mod round;
mod windows;

pub use budget::{Budget, RestReason, Spending};
pub use message::{Lie, RelayMessage};
pub use round::{RoundOutcome, RoundReport};

use crate::message::SubscriptionId;
use crate::{Event, Filter, RelayLimits};
use abide_core::Timestamp;
use live::Live;
use round::Round;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a relay's events are listed. Learned by trying, never from its description; the owner stores it per relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Capability {
    #[default]
    Unknown,
    /// NIP-77.
    Negentropy,
    /// REQ with `until`, page by page. The owner returns to `Unknown` after a day, to try again.
    PagingOnly,
}

/// Limits of one relay's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Sizes of frames and events.
    pub relay: Arc<RelayLimits>,
    /// Cost of the relay per hour.
    pub budget: Budget,
    /// Our events in one window of a round: 40 bytes each while the window is compared.
    pub window_items: usize,
    /// Ids that a window may lack: 32 bytes each until they are downloaded. A window that lacks more is halved.
    pub wanted: usize,
    /// Live subscriptions. The round takes one more.
    pub subscriptions: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            relay: Arc::new(RelayLimits::default()),
            budget: Budget::default(),
            window_items: 20_000,
            wanted: 100_000,
            subscriptions: 16,
        }
    }
}

/// The request that an event answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The live subscription of this name.
    Live(Arc<str>),
    /// The round.
    Round,
}

/// Work for the owner of the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Send this frame.
    Send(String),
    /// An event that was asked for, with an unverified signature. The owner reads no further frame while it has no room
    /// for more.
    Event(Box<Event>, Source),
    /// Find time and id of our newest events that match, as many as the filter's `limit`; then call
    /// [`ClientSession::on_items`]. Events that were refused may be among them: items are not downloaded again.
    NeedItems { request: u64, filter: Box<Filter> },
    /// The relay sent all stored events of the live subscription of this name.
    CaughtUp(Arc<str>),
    /// The relay ended or refused the live subscription of this name. The text is its own, for operators.
    Unsubscribed(Arc<str>, String),
    /// Store this for the relay.
    Learned(Capability),
    /// The round is over.
    RoundEnded(RoundReport),
    /// The relay exceeded its budget: close the connection and do not connect before this time. A round continues then.
    Rest(Timestamp, RestReason),
}

/// Reason why a request of the owner is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("the relay is not connected; subscribe after it is")]
    NotConnected,
    #[error("a subscription must have 1 to {0} filters")]
    Filters(usize),
    #[error("the limit is {0} live subscriptions per relay; close one first")]
    TooManySubscriptions(usize),
    #[error("a round is in progress; wait for its end")]
    RoundInProgress,
}

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down,
    Up {
        /// Whether the relay has sent a usable reconciliation message on this connection.
        reconciles: bool,
    },
    Resting(Timestamp, RestReason),
}

/// Subscription of a frame.
enum Route {
    Live(u64),
    Round,
    /// Closed by us; frames may still be on their way.
    Late,
    /// Never opened by us.
    Invented,
}

/// Name of a subscription on the wire. Serials are never reused, so late frames are recognised.
fn wire_name(serial: u64) -> String {
    format!("s{serial}")
}

/// The session of one relay.
#[derive(Debug)]
pub struct ClientSession {
    limits: ClientLimits,
    capability: Capability,
    spent: Spending,
    link: Link,
    serial: u64,
    live: BTreeMap<u64, Live>,
    round: Option<Round>,
    /// Connections in a row that ended while the first reconciliation was unanswered.
    hung_up: u8,
}

impl ClientSession {
    /// A relay without a connection, of which this was learned before.
    pub fn new(limits: ClientLimits, capability: Capability) -> Self {
        Self {
            limits,
            capability,
            spent: Spending::default(),
            link: Link::Down,
            serial: 0,
            live: BTreeMap::new(),
            round: None,
            hung_up: 0,
        }
    }

    /// The capability, as far as it was learned.
    pub fn capability(&self) -> Capability {
        self.capability
    }

    /// Cost of the relay in this hour.
    pub fn spent(&self) -> &Spending {
        &self.spent
    }

    /// Whether a round is in progress.
    pub fn has_round(&self) -> bool {
        self.round.is_some()
    }

    /// A connection is open. A round in progress continues.
    pub fn on_connected(&mut self, now: Timestamp) -> Vec<Wish> {
        if let Link::Resting(until, reason) = self.link
            && now < until
        {
            return vec![Wish::Rest(until, reason)];
        }
        let mut wishes = self.on_lost();
        self.link = Link::Up { reconciles: false };
        self.resume_round(now, &mut wishes);
        wishes
    }

    /// The connection is lost or closed. Live subscriptions are gone; a round waits for the next connection.
    pub fn on_lost(&mut self) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if self.is_up() {
            self.count_hang_up(&mut wishes);
            self.disconnect(Link::Down);
        }
        wishes
    }

    /// Handles one text frame. Frames after [`Wish::Rest`] are ignored.
    pub fn on_message(&mut self, text: &str, now: Timestamp) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if !self.is_up() {
            return wishes;
        }
        self.spent.frame(text.len(), now);
        let message = RelayMessage::parse(text, &self.limits.relay);
        if matches!(message, Ok(RelayMessage::Event(..))) {
            self.spent.event();
        }
        // A frame beyond the budget has no effect: a round asks for its event again.
        if self.spent.exceeds(&self.limits.budget).is_none() {
            let handled = message.and_then(|message| self.on_parsed(message, now, &mut wishes));
            if let Err(lie) = handled {
                self.spent.lie(lie);
            }
        }
        self.rest_if_exceeded(now, &mut wishes);
        wishes
    }

    /// Handles a binary frame of this size, or a frame that the socket refused to buffer.
    pub fn on_binary(&mut self, bytes: usize, now: Timestamp) -> Vec<Wish> {
        if !self.is_up() {
            return Vec::new();
        }
        self.spent.frame(bytes, now);
        self.count_lie(Lie::Oversized, now)
    }

    /// Reports that admission found an event of this relay to be forged.
    pub fn on_forged(&mut self, now: Timestamp) -> Vec<Wish> {
        if self.is_up() { self.count_lie(Lie::Forged, now) } else { Vec::new() }
    }

    /// Time has passed while no frame was waiting to be read. An owner that pauses reading calls this only after it has
    /// read the frames that arrived in the meantime, or it takes its own pause for silence of the relay.
    pub fn on_tick(&mut self, now: Timestamp) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.on_silence(now, &mut wishes);
        }
        wishes
    }

    /// Ids in memory.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.round.as_ref().map_or(0, Round::held)
    }

    fn is_up(&self) -> bool {
        matches!(self.link, Link::Up { .. })
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn learn(&mut self, capability: Capability, wishes: &mut Vec<Wish>) {
        if self.capability != capability {
            self.capability = capability;
            wishes.push(Wish::Learned(capability));
        }
    }

    fn disconnect(&mut self, link: Link) {
        self.link = link;
        self.live.clear();
        self.pause_round();
    }

    fn count_lie(&mut self, lie: Lie, now: Timestamp) -> Vec<Wish> {
        let mut wishes = Vec::new();
        self.spent.lie(lie);
        self.rest_if_exceeded(now, &mut wishes);
        wishes
    }

    fn rest_if_exceeded(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) {
        if let Some(reason) = self.spent.exceeds(&self.limits.budget) {
            let until = now.plus(budget::HOUR);
            self.disconnect(Link::Resting(until, reason));
            wishes.push(Wish::Rest(until, reason));
        }
    }

    fn route(&self, id: &SubscriptionId) -> Route {
        match id.as_str().strip_prefix('s').and_then(|serial| serial.parse::<u64>().ok()) {
            Some(serial) if self.live.contains_key(&serial) => Route::Live(serial),
            Some(serial) if self.is_open_in_round(serial) => Route::Round,
            Some(serial) if (1..=self.serial).contains(&serial) => Route::Late,
            _ => Route::Invented,
        }
    }

    fn on_parsed(&mut self, message: RelayMessage, now: Timestamp, wishes: &mut Vec<Wish>) -> Result<(), Lie> {
        match message {
            RelayMessage::Event(id, event) => match self.route(&id) {
                Route::Live(serial) => return self.on_live_event(serial, event, wishes),
                Route::Round => return self.on_round_event(event, now, wishes),
                Route::Late => self.spent.chatter += 1,
                Route::Invented => return Err(Lie::Unasked),
            },
            RelayMessage::Eose(id) => match self.route(&id) {
                Route::Live(serial) => self.on_live_eose(serial, wishes),
                Route::Round => return self.on_round_eose(now, wishes),
                Route::Late | Route::Invented => self.spent.chatter += 1,
            },
            RelayMessage::Closed(id, text) => match self.route(&id) {
                Route::Live(serial) => {
                    wishes.extend(self.live.remove(&serial).map(|live| Wish::Unsubscribed(live.name, text)));
                }
                Route::Round => self.on_round_closed(text, now, wishes),
                Route::Late | Route::Invented => self.spent.chatter += 1,
            },
            RelayMessage::NegMsg(id, bytes) => match self.route(&id) {
                Route::Round => return self.on_round_neg_msg(&bytes, now, wishes),
                Route::Live(_) | Route::Late | Route::Invented => self.spent.chatter += 1,
            },
            RelayMessage::NegErr(id, text) => match self.route(&id) {
                Route::Round => self.on_round_closed(text, now, wishes),
                Route::Live(_) | Route::Late | Route::Invented => self.spent.chatter += 1,
            },
            RelayMessage::Notice(_) => self.on_notice(now, wishes),
            RelayMessage::Ok(..) | RelayMessage::Auth | RelayMessage::Count(_) | RelayMessage::Unknown => {
                self.spent.chatter += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
