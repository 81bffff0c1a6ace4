//! Connections to the relay ([`Client`]), and admission of the events that they publish.
//!
//! All connections share one queue, with a share of its room for each network (`room.rs`). Whatever waits is taken
//! together: those that are here already are answered
//! (`screen.rs`), signatures are checked on other threads while the batch before is being committed, what only has to be
//! linked to a repository is judged and stored in one unit (`related.rs`), and what moves repositories goes to
//! [`crate::grasp`], in order for each connection (`lanes.rs`).

mod client;
mod lanes;
mod related;
mod room;
mod screen;

use crate::relay::tail;
use crate::{Forge, RelaySettings, disk};
use abide_core::admission::Network;
use abide_core::sync::attempts::Origin;
use abide_macros::boxed;
use abide_nostr::grasp::{Answer, Parsed, Prefix, Refusal};
use abide_nostr::{Event, EventId};
use lanes::Lanes;
use room::{Held, Room};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use client::{Client, Ended, Frames};

/// An event that is to be admitted.
pub(crate) struct Submission {
    pub event: Arc<Event>,
    /// Address of the publisher; `None` for an event of another relay.
    pub from: Option<IpAddr>,
    pub origin: Origin,
    /// Events of one lane keep their order.
    pub lane: u64,
    pub answer: mpsc::UnboundedSender<(EventId, Answer)>,
}

/// A submission that occupies room in the queue until it is answered.
struct Pending {
    submission: Submission,
    _room: Option<Held>,
}

impl Pending {
    fn event(&self) -> &Arc<Event> {
        &self.submission.event
    }

    fn answer(self, answer: Answer) {
        let word = match &answer {
            Answer::Stored => "stored",
            Answer::Waiting => "waiting",
            Answer::DuplicateStored | Answer::DuplicateWaiting => "duplicate",
            Answer::Refused(Refusal { prefix: Prefix::Error, .. }) => "error",
            Answer::Refused(_) => "refused",
        };
        metrics::counter!("abide_relay_events_total", "answer" => word).increment(1);
        // The publisher may have disconnected.
        let _ = self.submission.answer.send((self.submission.event.id, answer));
    }
}

/// An event with a valid signature, parsed for the rules.
struct Verified {
    pending: Pending,
    parsed: Parsed,
}

/// The admission queue.
pub(crate) struct Admissions {
    sender: mpsc::UnboundedSender<Pending>,
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Pending>>>,
    room: Room,
    batch: usize,
    lanes: usize,
}

impl Admissions {
    /// The one of this forge.
    pub(crate) fn of(forge: &Forge) -> &Self {
        forge.part()
    }

    pub(crate) fn new(settings: &RelaySettings) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            room: Room::new(settings.queue_bytes),
            batch: settings.batch.max(1),
            lanes: settings.lanes.max(1),
        }
    }

    /// Queues an event once there is room for it, or answers that there was none for too long.
    pub(crate) async fn submit(&self, submission: Submission) {
        let bytes = submission.event.content.len() + tag_bytes(&submission.event);
        let room = self.room.take(submission.from.map(Network::of), bytes).await;
        let is_full = room.is_none();
        let pending = Pending { submission, _room: room };
        if is_full {
            pending.answer(no_room());
        } else if let Err(mpsc::error::SendError(pending)) = self.sender.send(pending) {
            pending.answer(stopping());
        }
        self.report_queue_bytes();
    }

    fn report_queue_bytes(&self) {
        metrics::gauge!("abide_relay_queue_bytes").set(self.room.used() as f64);
    }
}

fn tag_bytes(event: &Event) -> usize {
    event.tags.iter().flat_map(|tag| tag.as_slice()).map(|text| text.len() + size_of::<String>()).sum()
}

fn no_room() -> Answer {
    let reason = "the queue of events from your IP address, or of all clients, is full; wait for the pending OK messages, \
                  then publish this event again";
    Answer::Refused(Refusal::new(Prefix::RateLimited, reason))
}

fn stopping() -> Answer {
    Answer::Refused(Refusal::new(Prefix::Error, "the server is shutting down; try again in a moment"))
}

fn failed(error: &crate::Fault) -> Answer {
    tracing::warn!(%error, "cannot process an event");
    Answer::Refused(Refusal::new(Prefix::Error, error.public_message()))
}

/// Admits published events and follows the events of other nodes, until `stop` is cancelled and no work is left.
#[boxed]
pub async fn run(forge: Forge, stop: CancellationToken) {
    tokio::join!(admit(&forge, &stop), tail::run(&forge, &stop));
}

/// Admits events until `stop` is cancelled and the queue is empty.
async fn admit(forge: &Forge, stop: &CancellationToken) {
    let admissions = Admissions::of(forge);
    let taken = admissions.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut receiver) = taken else { return };
    // One batch is verified while another is committed.
    let (verified, mut to_commit) = mpsc::channel::<Vec<Verified>>(1);
    let verifying = async {
        let mut batch = Vec::new();
        loop {
            let more = tokio::select! {
                biased;
                count = receiver.recv_many(&mut batch, admissions.batch) => count > 0,
                () = stop.cancelled() => false,
            };
            if !more {
                break;
            }
            if let Err(full) = disk::ensure_room(forge, disk::Writer::Account) {
                std::mem::take(&mut batch).into_iter().for_each(|pending| pending.answer(failed(&full)));
                continue;
            }
            let fresh = screen::screen(forge, std::mem::take(&mut batch)).await;
            if !fresh.is_empty() && verified.send(fresh).await.is_err() {
                break;
            }
            admissions.report_queue_bytes();
        }
        drop(verified);
    };
    let committing = async {
        let lanes = Lanes::start(forge, admissions.lanes);
        while let Some(batch) = to_commit.recv().await {
            let (related, grasp): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|verified| matches!(verified.parsed, Parsed::Related | Parsed::Profile));
            related::admit(forge, related).await;
            lanes.take(grasp);
            admissions.report_queue_bytes();
        }
        lanes.finish().await;
    };
    tokio::join!(verifying, committing);
}
