//! Answers of the relay to the requests of a round, and their absence.

use super::download::Seen;
use super::exchange::Step;
use super::fetch::Fetch;
use super::round::{HANG_UPS, NEG_SILENCE, REQ_SILENCE, Round, Stage};
use super::{Capability, ClientSession, Lie, Link, RoundOutcome, Source, Wish, message, wire_name};
use crate::Event;
use abide_core::Timestamp;

impl ClientSession {
    /// Counts a connection that was lost while the first reconciliation was unanswered.
    pub(super) fn count_hang_up(&mut self, wishes: &mut Vec<Wish>) {
        if self.awaits_first_answer() {
            self.hung_up = self.hung_up.saturating_add(1);
            if self.hung_up >= HANG_UPS {
                self.hung_up = 0;
                self.learn(Capability::PagingOnly, wishes);
            }
        }
    }

    /// Whether the connection's first reconciliation is unanswered: anything but an answer is a refusal then.
    fn awaits_first_answer(&self) -> bool {
        let compares = self.round.as_ref().is_some_and(|round| matches!(round.stage, Stage::Comparing { .. }));
        compares && self.link == Link::Up { reconciles: false }
    }

    pub(super) fn on_notice(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) {
        if self.awaits_first_answer() {
            self.leave_comparison(true, now, wishes);
        } else {
            self.spent.chatter += 1;
        }
    }

    pub(super) fn on_silence(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) {
        match self.round.as_ref().map(|round| &round.stage) {
            Some(Stage::Comparing { .. }) => self.leave_comparison(true, now, wishes),
            Some(Stage::Downloading(_)) => {
                self.close_request(wishes);
                self.cut_off(RoundOutcome::Silent, now, wishes);
            }
            Some(Stage::Between | Stage::Items { .. }) | None => {}
        }
    }

    /// The relay ended the round's request.
    pub(super) fn on_round_closed(&mut self, text: String, now: Timestamp, wishes: &mut Vec<Wish>) {
        match self.round.as_ref().map(|round| &round.stage) {
            Some(Stage::Comparing { .. }) => self.leave_comparison(false, now, wishes),
            Some(Stage::Downloading(_)) => self.cut_off(RoundOutcome::Refused(text), now, wishes),
            Some(Stage::Between | Stage::Items { .. }) | None => {}
        }
    }

    /// Pages the window instead of comparing it. If the relay has not reconciled on this connection, it is learned to
    /// be unable to.
    fn leave_comparison(&mut self, is_open: bool, now: Timestamp, wishes: &mut Vec<Wish>) {
        if is_open {
            self.close_request(wishes);
        }
        if self.awaits_first_answer() {
            self.learn(Capability::PagingOnly, wishes);
        }
        if let Some(Stage::Comparing { window, .. }) = self.round.as_mut().map(Round::take_stage) {
            self.page(window, now, wishes);
        }
    }

    /// Continues a request that ended without EOSE if it brought new events; otherwise ends the round.
    fn cut_off(&mut self, outcome: RoundOutcome, now: Timestamp, wishes: &mut Vec<Wish>) {
        let Some(Round { stage: Stage::Downloading(download), .. }) = &mut self.round else { return };
        if download.on_cut() {
            self.ask(now, wishes);
        } else {
            self.end_round(outcome, wishes);
        }
    }

    fn close_request(&mut self, wishes: &mut Vec<Wish>) {
        let Some(round) = &mut self.round else { return };
        let Some(open) = round.open.take() else { return };
        let name = wire_name(open.serial);
        let compares = matches!(round.stage, Stage::Comparing { .. });
        wishes.push(Wish::Send(if compares { message::neg_close(&name) } else { message::close(&name) }));
    }

    pub(super) fn on_round_event(
        &mut self,
        event: Box<Event>,
        now: Timestamp,
        wishes: &mut Vec<Wish>,
    ) -> Result<(), Lie> {
        let Some(Round { stage: Stage::Downloading(download), open, events, .. }) = &mut self.round else {
            return Err(Lie::Unasked);
        };
        if download.on_event(&event)? == Seen::First {
            *events += 1;
            if let Some(open) = open {
                open.deadline = now.plus(REQ_SILENCE);
            }
            wishes.push(Wish::Event(event, Source::Round));
        }
        if download.is_overfull() {
            // The rest of the answer is late by then, and the next request begins at its oldest event.
            self.close_request(wishes);
            self.cut_off(RoundOutcome::Silent, now, wishes);
            return Err(Lie::Excess);
        }
        Ok(())
    }

    pub(super) fn on_round_eose(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) -> Result<(), Lie> {
        let Some(Round { stage: Stage::Downloading(download), .. }) = &mut self.round else {
            self.spent.chatter += 1;
            return Ok(());
        };
        let ended = download.on_end();
        self.close_request(wishes);
        self.ask(now, wishes);
        ended
    }

    pub(super) fn on_round_neg_msg(&mut self, bytes: &[u8], now: Timestamp, wishes: &mut Vec<Wish>) -> Result<(), Lie> {
        let Some(Round { stage: Stage::Comparing { exchange, .. }, open, .. }) = &mut self.round else {
            self.spent.chatter += 1;
            return Ok(());
        };
        let step = exchange.on_message(bytes, self.limits.wanted);
        if step == Step::Bad {
            self.leave_comparison(true, now, wishes);
            return Err(Lie::BadReconciliation);
        }
        self.link = Link::Up { reconciles: true };
        self.hung_up = 0;
        if let (Step::Answer(answer), Some(open)) = (&step, open) {
            open.deadline = now.plus(NEG_SILENCE);
            wishes.push(Wish::Send(message::neg_msg(&wire_name(open.serial), answer)));
        }
        self.learn(Capability::Negentropy, wishes);
        match step {
            Step::Done => self.fetch(now, wishes),
            Step::TooMany => self.narrow(now, wishes),
            Step::Answer(_) | Step::Bad => {}
        }
        Ok(())
    }

    /// Downloads the ids that the comparison found.
    fn fetch(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) {
        self.close_request(wishes);
        let Some(round) = &mut self.round else { return };
        if let Stage::Comparing { window, exchange } = round.take_stage() {
            round.lacking += exchange.lacking();
            let fetch = Fetch::new(window.of(&round.layer, 0), exchange.into_wanted());
            round.stage = Stage::Downloading(Box::new(fetch));
            self.ask(now, wishes);
        }
    }

    /// Compares the halves of a window that lacks too many events. A single second cannot be halved, and is paged.
    fn narrow(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) {
        self.close_request(wishes);
        let Some(round) = &mut self.round else { return };
        if let Stage::Comparing { window, .. } = round.take_stage() {
            match round.windows.halve(window) {
                Ok(()) => self.begin_window(now, wishes),
                Err(second) => self.page(second, now, wishes),
            }
        }
    }
}
