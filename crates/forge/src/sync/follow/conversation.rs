//! An open connection to a relay: frames go in and out, and the wishes of the session are carried out.

use super::interest::{Interest, STATES};
use super::task::{failed, renew, word};
use crate::relay::reading;
use crate::{Fault, Forge};
use abide_core::Timestamp;
use abide_core::settings::value::{DAY, HOUR};
use abide_core::sync::relays::{RESUMED, compares};
use abide_nostr::client::{ClientSession, RestReason, RoundOutcome, RoundReport, Wish};
use abide_nostr::event::seconds;
use abide_nostr::grasp::Answer;
use abide_nostr::{Event, EventId, Filter};
use abide_outbound::Socket;
use abide_outbound::tungstenite::{Error, Message};
use abide_store::StoreError;
use abide_store::sync::relays::{self, Ended, Refused, Relay};
use futures_util::{SinkExt as _, StreamExt as _};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// Events of one relay that are being admitted, and their bytes. No frame is read while there are more.
const UNDER_WAY: usize = 64;
const UNDER_WAY_BYTES: usize = 4 << 20;

/// Interval of looking at the time and, of the rest, at its own times.
const TICK: Duration = Duration::from_millis(500);
const RENEWING: Duration = Duration::from_secs(8);
const LOOKING: Duration = Duration::from_secs(2);
const ROOTS: Duration = Duration::from_secs(30);
const PINGING: Duration = Duration::from_secs(30);

/// Silence after which a connection counts as lost, and time after which it counts as steady.
const SILENCE: Duration = Duration::from_secs(90);
const STEADY: Duration = Duration::from_secs(60);

/// Pause before everything is compared again because an event could not be admitted for the moment. It doubles each time, up
/// to an hour: a quota may be the reason.
const LACK_PAUSE: Duration = Duration::from_secs(60);

/// Longest time that the relay takes to accept a frame, and to answer about waiting announcements.
const SENDING: Duration = Duration::from_secs(10);
const ASKING: Duration = Duration::from_secs(30);

/// Overlap of a resumed subscription with the time before.
const OVERLAP: Duration = Duration::from_secs(60);

/// Why following ends.
pub(super) enum Stop {
    Ended(Ended),
    /// Another task has the relay.
    Lost,
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

/// A comparison of everything.
struct Full {
    began: Timestamp,
    /// An event could not be admitted for the moment.
    lacks: bool,
}

/// An event that is being admitted.
pub(super) struct UnderWay {
    pub event: Arc<Event>,
    pub bytes: usize,
    pub since: Instant,
}

/// The connection.
pub(super) struct Conversation<'a> {
    pub(super) forge: &'a Forge,
    pub(super) relay: &'a Relay,
    socket: Socket,
    pub(super) session: ClientSession,
    pub(super) lane: u64,
    pub(super) answer_to: mpsc::UnboundedSender<(EventId, Answer)>,
    answers: mpsc::UnboundedReceiver<(EventId, Answer)>,
    pub(super) under_way: HashMap<EventId, UnderWay>,
    pub(super) bytes: usize,
    interest: Interest,
    rounds: VecDeque<Filter>,
    full: Option<Full>,
    next_full: Option<Timestamp>,
    /// Pause before everything is compared again because an event could not be admitted for the moment.
    lack_pause: Duration,
    /// Everything was compared. An announcement that makes refused events acceptable revokes that in the store.
    reconciled: bool,
    /// All stored states of waiting announcements were sent.
    states_sent: bool,
    /// A root was stored, so its thread is asked for too.
    pub(super) roots_changed: bool,
    /// Events and refusals since the last renewal.
    pub(super) counts: (i64, i64),
    pub(super) refused: Vec<Refused>,
    pub(super) replicas: BTreeMap<relays::Coordinate, ([u8; 32], i64)>,
    opened: Instant,
    steady: bool,
    heard: Instant,
    pinged: Instant,
    renewed: Instant,
    looked: Instant,
    rooted: Instant,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(
        forge: &'a Forge,
        relay: &'a Relay,
        socket: Socket,
        mut session: ClientSession,
        lane: u64,
    ) -> Self {
        let (answer_to, answers) = mpsc::unbounded_channel();
        let now = Instant::now();
        // A round of the connection before starts anew with the others.
        session.stop_round();
        Self {
            forge,
            relay,
            socket,
            session,
            lane,
            answer_to,
            answers,
            under_way: HashMap::new(),
            bytes: 0,
            interest: Interest::default(),
            rounds: VecDeque::new(),
            full: None,
            next_full: None,
            lack_pause: LACK_PAUSE,
            reconciled: relay.reconciled_at.is_some(),
            states_sent: false,
            roots_changed: false,
            counts: (0, 0),
            refused: Vec::new(),
            replicas: BTreeMap::new(),
            opened: now,
            steady: false,
            heard: now,
            pinged: now,
            renewed: now,
            looked: now,
            rooted: now,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.forge.clock().now()
    }

    /// Follows the relay until the connection ends.
    pub(super) async fn hold(&mut self, interest: Interest) -> Result<Ended, Stop> {
        let now = self.now();
        let wishes = self.session.on_connected(now);
        self.act(wishes).await?;
        let from = self.relay.seen_at.filter(|seen| now.since(*seen) <= RESUMED).unwrap_or(now);
        self.subscribe(&interest, from).await?;
        self.interest = interest;
        if self.interest.serves_nothing() {
            tracing::debug!(relay = self.relay.url, "asking a relay for states of waiting announcements");
        } else if compares(self.relay.reconciled_at, self.relay.seen_at, now) {
            self.compare_all().await?;
        } else {
            self.next_full = self.relay.reconciled_at.map(|at| at.plus(DAY));
        }
        loop {
            self.attend().await?;
            if let Some(ended) = self.end_of_asking().await? {
                return Ok(ended);
            }
            let has_room = self.under_way.len() < UNDER_WAY && self.bytes < UNDER_WAY_BYTES;
            if !has_room {
                // The silence is ours.
                self.heard = Instant::now();
            }
            tokio::select! {
                biased;
                Some((id, answer)) = self.answers.recv() => self.on_answer(&id, &answer).await?,
                frame = self.socket.next(), if has_room => self.on_frame(frame).await?,
                () = tokio::time::sleep(TICK) => {
                    if has_room {
                        let wishes = self.session.on_tick(self.forge.clock().now());
                        self.act(wishes).await?;
                    }
                }
            }
        }
    }

    /// Ends the connection; the session waits for the next one.
    pub(super) async fn leave(mut self) -> ClientSession {
        for wish in self.session.on_lost() {
            if let Wish::Learned(capability) = wish {
                let _ = self.store_capability(word(capability)).await;
            }
        }
        if let Err(fault) = self.flush().await {
            tracing::warn!(error = %fault, relay = self.relay.url, "cannot store refused events of a relay");
        }
        let _ = renew(self.forge, self.relay, std::mem::take(&mut self.counts)).await;
        let _ = timeout(Duration::from_secs(1), self.socket.close(None)).await;
        self.session
    }

    fn failed(&self, reason: impl Into<String>) -> Stop {
        Stop::Ended(failed(self.relay, self.now(), reason))
    }

    async fn on_frame(&mut self, frame: Option<Result<Message, Error>>) -> Result<(), Stop> {
        self.heard = Instant::now();
        let now = self.now();
        let wishes = match frame {
            Some(Ok(Message::Text(text))) => self.session.on_message(&text, now),
            Some(Ok(Message::Binary(bytes))) => self.session.on_binary(bytes.len(), now),
            Some(Ok(Message::Close(_))) | None => return Err(self.failed("the relay closed the connection")),
            Some(Ok(_)) => return Ok(()),
            Some(Err(Error::Capacity(_))) => {
                let wishes = self.session.on_binary(0, now);
                self.act(wishes).await?;
                return Err(self.failed("the relay sent a message that is too large"));
            }
            Some(Err(_)) => return Err(self.failed("the connection was lost")),
        };
        self.act(wishes).await
    }

    /// Carries out wishes of the session.
    pub(super) async fn act(&mut self, wishes: Vec<Wish>) -> Result<(), Stop> {
        let mut wishes = VecDeque::from(wishes);
        while let Some(wish) = wishes.pop_front() {
            match wish {
                Wish::Send(text) => self.send(Message::text(text)).await?,
                Wish::Event(event, _) => self.submit(*event).await,
                Wish::NeedItems { request, filter } => {
                    let items = self.items(&filter).await?;
                    wishes.extend(self.session.on_items(request, items, self.forge.clock().now()));
                }
                Wish::CaughtUp(name) => self.states_sent |= &*name == STATES,
                Wish::Unsubscribed(name, text) => {
                    tracing::debug!(relay = self.relay.url, %name, text, "a relay ended a subscription");
                    self.states_sent |= &*name == STATES;
                }
                Wish::Learned(capability) => self.store_capability(word(capability)).await?,
                Wish::RoundEnded(report) => {
                    self.on_round_ended(&report);
                    wishes.extend(self.next_round());
                }
                Wish::Rest(until, reason) => return Err(Stop::Ended(Ended::Rests(until, rest(reason)))),
            }
        }
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), Stop> {
        match timeout(SENDING, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.failed("the connection was lost")),
            Err(_) => Err(self.failed("the relay reads too slowly")),
        }
    }

    /// Our events within a filter, with the refused events of its time, newest first.
    async fn items(&mut self, filter: &Filter) -> Result<Vec<(u64, EventId)>, Fault> {
        let mut items = reading::ours(self.forge, filter).await?;
        let second = |at: Option<u64>, otherwise| at.map_or(otherwise, |at| i64::try_from(at).unwrap_or(i64::MAX));
        let window = (second(filter.since, 0), second(filter.until, i64::MAX));
        let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
        let mut conn = self.forge.store().read().await?;
        let refused = relays::refused(&mut conn, &self.relay.url, window, limit).await?;
        drop(conn);
        if !refused.is_empty() {
            items.extend(refused.into_iter().map(|(at, id)| (at.unsigned_abs(), EventId::from_byte_array(id))));
            items.sort_unstable_by(|one, other| other.cmp(one));
            items.dedup();
            items.truncate(filter.limit);
        }
        Ok(items)
    }

    async fn store_capability(&mut self, word: &'static str) -> Result<(), Fault> {
        let stored: Result<(), StoreError> = self
            .forge
            .store()
            .write((self.relay.url.clone(), word), |tx, (url, word)| Box::pin(relays::learned(tx, url, word)))
            .await;
        Ok(stored?)
    }

    /// Opens the live subscriptions that are new or changed, and closes the others.
    async fn subscribe(&mut self, interest: &Interest, from: Timestamp) -> Result<(), Stop> {
        let filters = |interest: &Interest| -> BTreeMap<String, Vec<Filter>> {
            interest.live(0).into_iter().map(|one| (one.name, one.filters)).collect()
        };
        let (before, after) = (filters(&self.interest), filters(interest));
        let mut wishes = Vec::new();
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            wishes.extend(self.session.unsubscribe(name));
        }
        for one in interest.live(seconds(from.minus(OVERLAP))) {
            if before.get(&one.name) == after.get(&one.name) {
                continue;
            }
            match self.session.subscribe(&one.name, one.filters, None) {
                Ok(more) => wishes.extend(more),
                Err(error) => {
                    tracing::debug!(relay = self.relay.url, %error, "cannot subscribe; rounds find the events")
                }
            }
        }
        self.act(wishes).await
    }

    /// Starts to compare everything.
    async fn compare_all(&mut self) -> Result<(), Stop> {
        (self.next_full, self.reconciled) = (None, false);
        self.full = Some(Full { began: self.now(), lacks: false });
        self.rounds = self.interest.rounds().into();
        let wishes = self.next_round();
        self.act(wishes).await
    }

    /// Starts the next round if none is in progress.
    fn next_round(&mut self) -> Vec<Wish> {
        if self.session.has_round() {
            return Vec::new();
        }
        let Some(filter) = self.rounds.pop_front() else { return Vec::new() };
        let now = self.forge.clock().now();
        self.session.start_round(filter, now).expect("no round is in progress")
    }

    fn on_round_ended(&mut self, report: &RoundReport) {
        tracing::debug!(relay = self.relay.url, ?report, "a round ended");
        let pause = match report.outcome {
            RoundOutcome::Finished => return,
            RoundOutcome::Refused(_) => DAY,
            RoundOutcome::Silent => HOUR,
        };
        self.rounds.clear();
        self.full = None;
        self.next_full = Some(self.now().plus(pause));
    }

    /// Notes that an event could not be admitted for the moment.
    pub(super) fn lacks_an_event(&mut self) {
        match &mut self.full {
            Some(full) => full.lacks = true,
            None => {
                let soon = self.now().plus(self.lack_pause);
                self.next_full = Some(self.next_full.map_or(soon, |next| next.min(soon)));
            }
        }
    }

    /// Does what is due by time.
    async fn attend(&mut self) -> Result<(), Stop> {
        let now = Instant::now();
        if now.duration_since(self.heard) > SILENCE {
            return Err(self.failed("the relay fell silent"));
        }
        if now.duration_since(self.pinged) > PINGING {
            self.pinged = now;
            self.send(Message::Ping(Vec::new().into())).await?;
        }
        if now.duration_since(self.renewed) > RENEWING {
            self.renewed = now;
            self.under_way.retain(|_, event| now.duration_since(event.since) < SILENCE);
            self.bytes = self.under_way.values().map(|event| event.bytes).sum();
            if !renew(self.forge, self.relay, std::mem::take(&mut self.counts)).await? {
                return Err(Stop::Lost);
            }
        }
        if !self.steady && now.duration_since(self.opened) > STEADY {
            self.steady = true;
            let steady: Result<(), StoreError> =
                self.forge.store().write(self.relay.clone(), |tx, relay| Box::pin(relays::steady(tx, relay))).await;
            steady?;
        }
        if now.duration_since(self.looked) > LOOKING {
            self.looked = now;
            self.flush().await?;
            self.look().await?;
            self.finish_comparison().await?;
        }
        Ok(())
    }

    /// Asks for what became of interest since the last look.
    async fn look(&mut self) -> Result<(), Stop> {
        let (mut fresh, _) = Interest::load(self.forge, self.relay).await?;
        let is_new = fresh.coordinates != self.interest.coordinates;
        if is_new || self.roots_changed || self.rooted.elapsed() > ROOTS {
            (self.rooted, self.roots_changed) = (Instant::now(), false);
            fresh.load_roots(self.forge).await?;
        } else {
            fresh.roots.clone_from(&self.interest.roots);
        }
        if self.reconciled {
            let row = relays::by_url(&mut *self.forge.store().read().await?, &self.relay.url).await?;
            if row.is_some_and(|row| row.reconciled_at.is_none()) {
                self.compare_all().await?;
            }
        }
        if fresh == self.interest {
            return Ok(());
        }
        if fresh == Interest::default() {
            return Err(Stop::Ended(Ended::Idle(self.now())));
        }
        self.subscribe(&fresh, self.now()).await?;
        let begins = self.interest.serves_nothing() && !fresh.serves_nothing();
        let rounds = fresh.beyond(&self.interest).rounds();
        self.interest = fresh;
        if begins {
            return self.compare_all().await;
        }
        self.rounds.extend(rounds);
        let wishes = self.next_round();
        self.act(wishes).await
    }

    /// Stores that everything was compared, once the last event is admitted; starts anew when that is due.
    async fn finish_comparison(&mut self) -> Result<(), Stop> {
        let is_done = !self.session.has_round() && self.rounds.is_empty() && self.under_way.is_empty();
        if is_done && let Some(Full { began, lacks }) = self.full.take() {
            let now = self.now();
            if lacks {
                self.next_full = Some(now.plus(self.lack_pause));
                self.lack_pause = (self.lack_pause * 2).min(HOUR);
                return Ok(());
            }
            self.lack_pause = LACK_PAUSE;
            self.next_full = Some(began.plus(DAY));
            let stored: Result<(), StoreError> = self
                .forge
                .store()
                .write((self.relay.url.clone(), began), |tx, (url, at)| Box::pin(relays::reconciled(tx, url, *at)))
                .await;
            stored?;
            self.reconciled = true;
        }
        if self.full.is_none() && self.next_full.is_some_and(|next| next <= self.now()) {
            self.compare_all().await?;
        }
        Ok(())
    }

    /// The end of a connection that only asks for the states of waiting announcements.
    async fn end_of_asking(&mut self) -> Result<Option<Ended>, Stop> {
        if !self.interest.serves_nothing() {
            return Ok(None);
        }
        if !self.states_sent || !self.under_way.is_empty() {
            let is_late = self.opened.elapsed() > ASKING;
            return if is_late { Err(self.failed("the relay does not answer")) } else { Ok(None) };
        }
        let asked: Vec<relays::Coordinate> = self.interest.asked().cloned().collect();
        let stored: Result<(), StoreError> = self
            .forge
            .store()
            .write((self.relay.url.clone(), asked), |tx, (url, asked)| {
                Box::pin(async move {
                    for coordinate in asked {
                        relays::asked(tx, url, coordinate).await?;
                    }
                    Ok(())
                })
            })
            .await;
        stored?;
        // The next look finds the time of the next question.
        Ok(Some(Ended::Idle(self.now().plus(TICK))))
    }
}

fn rest(reason: RestReason) -> String {
    match reason {
        RestReason::Events => "the relay sent more events than it may in an hour".into(),
        RestReason::Bytes => "the relay sent more bytes than it may in an hour".into(),
        RestReason::Lies(lie) => format!("the relay sent too many invalid frames in an hour; the last: {lie:?}"),
    }
}
