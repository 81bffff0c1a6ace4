//! Live subscriptions: new events as the relay gets them.

use super::{ClientError, ClientSession, Lie, Source, Wish, message};
use crate::{Event, Filter};
use std::sync::Arc;

/// An open live subscription.
#[derive(Debug)]
pub(super) struct Live {
    pub name: Arc<str>,
    filters: Vec<Filter>,
    caught_up: bool,
}

impl ClientSession {
    /// Opens a live subscription, in exchange for one of the same name. With `since`, the relay first sends the stored
    /// events from that second on, as many as the `limit` of each filter. A connection forgets its subscriptions: open
    /// them again after [`ClientSession::on_connected`], with the time of the loss as `since`.
    pub fn subscribe(
        &mut self,
        name: &str,
        filters: Vec<Filter>,
        since: Option<u64>,
    ) -> Result<Vec<Wish>, ClientError> {
        if !self.is_up() {
            return Err(ClientError::NotConnected);
        }
        let most = self.limits.relay.filters;
        if filters.is_empty() || filters.len() > most {
            return Err(ClientError::Filters(most));
        }
        let mut wishes = self.unsubscribe(name);
        if self.live.len() >= self.limits.subscriptions {
            return Err(ClientError::TooManySubscriptions(self.limits.subscriptions));
        }
        let later = |filter: Filter| Filter { since: filter.since.max(since), ..filter };
        let filters: Vec<Filter> = filters.into_iter().map(later).collect();
        let serial = self.next_serial();
        wishes.push(Wish::Send(message::req(&super::wire_name(serial), &filters)));
        self.live.insert(serial, Live { name: name.into(), filters, caught_up: false });
        Ok(wishes)
    }

    /// Closes a live subscription, if it is open.
    pub fn unsubscribe(&mut self, name: &str) -> Vec<Wish> {
        let Some(serial) = self.live.iter().find(|(_, live)| &*live.name == name).map(|(serial, _)| *serial) else {
            return Vec::new();
        };
        self.live.remove(&serial);
        vec![Wish::Send(message::close(&super::wire_name(serial)))]
    }

    pub(super) fn on_live_event(&mut self, serial: u64, event: Box<Event>, wishes: &mut Vec<Wish>) -> Result<(), Lie> {
        let live = self.live.get(&serial).filter(|live| live.filters.iter().any(|filter| filter.matches(&event)));
        let live = live.ok_or(Lie::Unasked)?;
        wishes.push(Wish::Event(event, Source::Live(live.name.clone())));
        Ok(())
    }

    pub(super) fn on_live_eose(&mut self, serial: u64, wishes: &mut Vec<Wish>) {
        match self.live.get_mut(&serial) {
            Some(live) if !live.caught_up => {
                live.caught_up = true;
                wishes.push(Wish::CaughtUp(live.name.clone()));
            }
            _ => self.spent.chatter += 1,
        }
    }
}
