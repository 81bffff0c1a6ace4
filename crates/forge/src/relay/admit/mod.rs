//! Admission of published events.
//!
//! All connections share one queue. Waiting events are taken as a batch. `screen.rs` answers duplicates, and checks
//! signatures on other threads while the previous batch is being committed. `related.rs` judges and stores the events
//! that only need a link to a repository, in one unit. Events that move repositories go to [`crate::grasp`], in order
//! for each connection (`lanes.rs`).

mod lanes;
mod related;
mod screen;

use super::RelaySettings;
use crate::{Forge, disk};
use abide_nostr::grasp::{Answer, Parsed, Prefix, Refusal};
use abide_nostr::{Event, EventId};
use lanes::Lanes;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Bytes that an event occupies in the queue in addition to its text.
const OVERHEAD: usize = 1024;

/// A published event.
pub(in crate::relay) struct Submission {
    pub event: Arc<Event>,
    pub from: Option<IpAddr>,
    /// Events of one lane keep their order.
    pub lane: u64,
    pub answer: mpsc::UnboundedSender<(EventId, Answer)>,
}

/// A submission that occupies room in the queue until it is answered.
struct Pending {
    submission: Submission,
    _room: Option<OwnedSemaphorePermit>,
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
pub(in crate::relay) struct Admissions {
    sender: mpsc::UnboundedSender<Pending>,
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Pending>>>,
    /// Free room, in units of [`OVERHEAD`].
    room: Arc<Semaphore>,
    places: usize,
    batch: usize,
    lanes: usize,
}

impl Admissions {
    pub(in crate::relay) fn new(settings: &RelaySettings) -> Self {
        let places = (settings.queue_bytes / OVERHEAD).clamp(1, Semaphore::MAX_PERMITS);
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            room: Arc::new(Semaphore::new(places)),
            places,
            batch: settings.batch.max(1),
            lanes: settings.lanes.max(1),
        }
    }

    /// Queues an event once there is room for it.
    pub(in crate::relay) async fn submit(&self, submission: Submission) {
        let bytes = submission.event.content.len() + tag_bytes(&submission.event);
        let places = (1 + bytes / OVERHEAD).min(self.places);
        let room = self.room.clone().acquire_many_owned(u32::try_from(places).unwrap_or(u32::MAX)).await.ok();
        if let Err(mpsc::error::SendError(pending)) = self.sender.send(Pending { submission, _room: room }) {
            pending.answer(stopping());
        }
        self.tell_length();
    }

    fn tell_length(&self) {
        let used = self.places.saturating_sub(self.room.available_permits());
        metrics::gauge!("abide_relay_queue_bytes").set((used * OVERHEAD) as f64);
    }
}

fn tag_bytes(event: &Event) -> usize {
    event.tags.iter().flat_map(|tag| tag.as_slice()).map(|text| text.len() + size_of::<String>()).sum()
}

fn stopping() -> Answer {
    Answer::Refused(Refusal::new(Prefix::Error, "the server is stopping; try again in a moment"))
}

fn failed(error: &crate::Fault) -> Answer {
    tracing::warn!(%error, "could not take an event");
    Answer::Refused(Refusal::new(Prefix::Error, error.told()))
}

/// Admits events until `stop` is cancelled and the queue is empty.
pub(in crate::relay) async fn run(forge: &Forge, stop: &CancellationToken) {
    let admissions = &forge.relay().admissions;
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
            admissions.tell_length();
        }
        drop(verified);
    };
    let committing = async {
        let lanes = Lanes::start(forge, admissions.lanes);
        while let Some(batch) = to_commit.recv().await {
            let (related, grasp): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|verified| matches!(verified.parsed, Parsed::Related | Parsed::Profile));
            related::admit(forge, related).await;
            lanes.take(grasp).await;
            admissions.tell_length();
        }
        lanes.finish().await;
    };
    tokio::join!(verifying, committing);
}
