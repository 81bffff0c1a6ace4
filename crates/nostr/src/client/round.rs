//! A round: all events of one layer that the relay has and we lack, window by window.

use super::download::{Download, Gaps};
use super::exchange::Exchange;
use super::paging::Paging;
use super::windows::{Window, Windows};
use super::{Capability, ClientError, ClientSession, Wish, message, wire_name};
use crate::{EventId, Filter, event};
use abide_core::Timestamp;
use std::time::Duration;

/// Silence after which a relay does not answer a reconciliation message.
pub(super) const NEG_SILENCE: Duration = Duration::from_secs(10);

/// Silence after which a relay does not answer a REQ. Only a new event or the end of the answer breaks it.
pub(super) const REQ_SILENCE: Duration = Duration::from_secs(30);

/// Connections lost in a row while the first reconciliation is unanswered, after which it counts as refused: some
/// relays close the connection at an unknown message.
pub(super) const HANG_UPS: u8 = 2;

/// End of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundOutcome {
    /// The relay served each window to its end.
    Finished,
    /// The relay refused a request, in its own words.
    Refused(String),
    /// The relay did not answer a request.
    Silent,
}

/// Result of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundReport {
    pub outcome: RoundOutcome,
    /// Events downloaded.
    pub events: u64,
    /// Events of ours that the relay lacks, as far as it was compared.
    pub lacking: u64,
    /// Ids that the relay listed and did not serve.
    pub missing: u64,
    /// Seconds with more events than the relay serves in one answer. Some of them were not downloaded.
    pub crowded_seconds: u64,
}

impl RoundReport {
    /// Whether we have been sent all events of the relay in this layer.
    pub fn is_complete(&self) -> bool {
        self.outcome == RoundOutcome::Finished && self.missing == 0 && self.crowded_seconds == 0
    }
}

#[derive(Debug)]
pub(super) enum Stage {
    /// The next window starts with the next connection.
    Between,
    /// The owner reads our items.
    Items {
        request: u64,
        window: Window,
    },
    Comparing {
        window: Window,
        exchange: Box<Exchange>,
    },
    Downloading(Box<dyn Download>),
}

/// The request that the relay has to answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub serial: u64,
    pub deadline: Timestamp,
}

#[derive(Debug)]
pub(super) struct Round {
    pub layer: Filter,
    pub windows: Windows,
    pub stage: Stage,
    pub open: Option<Open>,
    pub events: u64,
    pub lacking: u64,
    gaps: Gaps,
}

impl Round {
    /// Leaves the stage, and forgets the open request.
    pub fn take_stage(&mut self) -> Stage {
        self.open = None;
        std::mem::replace(&mut self.stage, Stage::Between)
    }

    fn count(&mut self, gaps: Gaps) {
        self.gaps.missing += gaps.missing;
        self.gaps.seconds += gaps.seconds;
    }

    /// Ids in memory.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        match &self.stage {
            Stage::Between | Stage::Items { .. } => 0,
            Stage::Comparing { exchange, .. } => exchange.held(),
            Stage::Downloading(download) => download.held(),
        }
    }
}

impl ClientSession {
    /// Starts a round of one layer. It begins with the connection, and ends with [`Wish::RoundEnded`]. The filter's
    /// `limit` is ignored.
    pub fn start_round(&mut self, layer: Filter, now: Timestamp) -> Result<Vec<Wish>, ClientError> {
        if self.round.is_some() {
            return Err(ClientError::RoundInProgress);
        }
        // Admission refuses later events.
        let latest = event::seconds(now).saturating_add(self.limits.relay.ahead.as_secs());
        let windows = Windows::new(&layer, latest);
        let (stage, gaps) = (Stage::Between, Gaps::default());
        self.round = Some(Round { layer, windows, stage, open: None, events: 0, lacking: 0, gaps });
        let mut wishes = Vec::new();
        if self.is_up() {
            self.begin_window(now, &mut wishes);
        }
        Ok(wishes)
    }

    /// Abandons the round, if any.
    pub fn stop_round(&mut self) -> Vec<Wish> {
        let Some((round, open)) = self.round.take().and_then(|round| round.open.map(|open| (round, open))) else {
            return Vec::new();
        };
        let name = wire_name(open.serial);
        let compares = matches!(round.stage, Stage::Comparing { .. });
        vec![Wish::Send(if compares { message::neg_close(&name) } else { message::close(&name) })]
    }

    /// The time of the next [`ClientSession::on_tick`], if the relay owes an answer.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.round.as_ref()?.open.map(|open| open.deadline)
    }

    /// Delivers our items for [`Wish::NeedItems`]: time in seconds and id, newest first. A late answer to an earlier
    /// request is ignored.
    pub fn on_items(&mut self, request: u64, mut items: Vec<(u64, EventId)>, now: Timestamp) -> Vec<Wish> {
        let mut wishes = Vec::new();
        let is_up = self.is_up();
        let serial = self.serial + 1;
        let Some(round) = &mut self.round else { return wishes };
        let window = match round.stage {
            Stage::Items { request: current, window } if current == request => window,
            _ => return wishes,
        };
        round.take_stage();
        if !is_up {
            round.windows.again(window);
            return wishes;
        }
        let window = round.windows.fit(window, &mut items, self.limits.window_items);
        match Exchange::open(items, self.limits.relay.reconciliation_frame) {
            Ok((exchange, first)) => {
                self.serial = serial;
                round.stage = Stage::Comparing { window, exchange: Box::new(exchange) };
                round.open = Some(Open { serial, deadline: now.plus(NEG_SILENCE) });
                let filter = window.of(&round.layer, 0);
                wishes.push(Wish::Send(message::neg_open(&wire_name(serial), &filter, &first)));
            }
            Err(_) => self.page(window, now, &mut wishes),
        }
        wishes
    }

    pub(super) fn is_open_in_round(&self, serial: u64) -> bool {
        self.round.as_ref().and_then(|round| round.open).is_some_and(|open| open.serial == serial)
    }

    pub(super) fn begin_window(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) {
        let Some(round) = &mut self.round else { return };
        let Some(window) = round.windows.next() else {
            return self.end_round(RoundOutcome::Finished, wishes);
        };
        if self.capability == Capability::PagingOnly {
            return self.page(window, now, wishes);
        }
        self.serial += 1;
        round.stage = Stage::Items { request: self.serial, window };
        // One more than fits shows that there are more.
        let filter = Box::new(window.of(&round.layer, self.limits.window_items.saturating_add(1)));
        wishes.push(Wish::NeedItems { request: self.serial, filter });
    }

    pub(super) fn page(&mut self, window: Window, now: Timestamp, wishes: &mut Vec<Wish>) {
        let Some(round) = &mut self.round else { return };
        round.stage = Stage::Downloading(Box::new(Paging::new(round.layer.clone(), window)));
        self.ask(now, wishes);
    }

    /// Sends the next request of a download, or ends it.
    pub(super) fn ask(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) {
        let serial = self.serial + 1;
        let Some(round) = &mut self.round else { return };
        let Stage::Downloading(download) = &mut round.stage else { return };
        if let Some(filter) = download.request() {
            self.serial = serial;
            round.open = Some(Open { serial, deadline: now.plus(REQ_SILENCE) });
            wishes.push(Wish::Send(message::req(&wire_name(serial), &[filter])));
            return;
        }
        let gaps = download.gaps();
        round.count(gaps);
        round.take_stage();
        self.begin_window(now, wishes);
    }

    pub(super) fn end_round(&mut self, outcome: RoundOutcome, wishes: &mut Vec<Wish>) {
        let Some(mut round) = self.round.take() else { return };
        if let Stage::Downloading(download) = &round.stage {
            let gaps = download.gaps();
            round.count(gaps);
        }
        wishes.push(Wish::RoundEnded(RoundReport {
            outcome,
            events: round.events,
            lacking: round.lacking,
            missing: round.gaps.missing,
            crowded_seconds: round.gaps.seconds,
        }));
    }

    pub(super) fn resume_round(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) {
        match self.round.as_ref().map(|round| &round.stage) {
            Some(Stage::Between) => self.begin_window(now, wishes),
            Some(Stage::Downloading(_)) => self.ask(now, wishes),
            Some(Stage::Items { .. } | Stage::Comparing { .. }) | None => {}
        }
    }

    /// Keeps the round for the next connection. A comparison starts again; a download continues.
    pub(super) fn pause_round(&mut self) {
        let Some(round) = &mut self.round else { return };
        round.open = None;
        match &mut round.stage {
            Stage::Comparing { window, .. } => {
                let window = *window;
                round.windows.again(window);
                round.stage = Stage::Between;
            }
            Stage::Downloading(download) => {
                // Without progress the same request is sent again; the owner delays the next connection.
                download.on_cut();
            }
            Stage::Between | Stage::Items { .. } => {}
        }
    }
}
