//! Admits the events that move repositories one by one, in the order in which a connection sent them. A state that
//! directly follows its announcement must find it.
//!
//! Each connection has a queue of its own. Its events take turns: so many at once in all, and half as many for one network
//! and one key. The loop that commits hands events over and never waits here.

use super::{Pending, Verified, failed, stopping};
use crate::{Fault, Forge, grasp};
use abide_core::admission::{Full, Network, Slot, Slots};
use abide_git::{Client, Pool};
use abide_nostr::EventId;
use abide_nostr::grasp::{Answer, Parsed, Prefix, Refusal};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// Events of one network, or one key, that wait for their turn or have it: as many as one connection may have under way.
const OF_ONE: usize = 1_000;

/// The same in all. The room of the queue bounds their bytes.
const IN_ALL: usize = 8_000;

/// How long an event waits for its turn while others have theirs.
const TURN: Duration = Duration::from_secs(60);

/// The network or key that an event counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Who {
    Network(Option<Network>),
    Key([u8; 32]),
}

/// An event in the queue of its connection.
struct Waiting {
    pending: Pending,
    parsed: Parsed,
    _counted: Vec<Slot<Who>>,
}

pub(super) struct Lanes {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

struct Shared {
    forge: Forge,
    turns: Pool,
    waiting: Slots<Who>,
    /// Connections with a task that walks their queue.
    queues: Mutex<HashMap<u64, VecDeque<Waiting>>>,
    /// The server stops: what has not had its turn is answered so.
    stops: AtomicBool,
}

impl Lanes {
    pub(super) fn start(forge: &Forge, count: usize) -> Self {
        let count = count.max(1);
        let shared = Shared {
            forge: forge.clone(),
            turns: Pool::new("events", count, count.div_ceil(2)),
            // One for the network and one for the key of each.
            waiting: Slots::new(2 * IN_ALL, OF_ONE),
            queues: Mutex::default(),
            stops: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared), tasks: TaskTracker::new() }
    }

    /// Takes events over. One that is too many is answered at once.
    pub(super) fn take(&self, events: Vec<Verified>) {
        for Verified { pending, parsed } in events {
            let who = vec![
                Who::Network(pending.submission.from.map(Network::of)),
                Who::Key(pending.event().pubkey.to_bytes()),
            ];
            match self.shared.waiting.take_all(who) {
                Ok(counted) => self.queue(Waiting { pending, parsed, _counted: counted }),
                Err(full) => pending.answer(too_many(full)),
            }
        }
    }

    fn queue(&self, event: Waiting) {
        let connection = event.pending.submission.lane;
        let mut queues = self.shared.queues();
        if let Some(queue) = queues.get_mut(&connection) {
            queue.push_back(event);
            return;
        }
        queues.insert(connection, VecDeque::from([event]));
        drop(queues);
        self.tasks.spawn(walk(self.shared.clone(), connection));
    }

    /// Ends what is under way. Everything else is answered without its turn: there may be minutes of it.
    pub(super) async fn finish(self) {
        self.shared.stops.store(true, Ordering::Relaxed);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Shared {
    fn queues(&self) -> MutexGuard<'_, HashMap<u64, VecDeque<Waiting>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next event of a connection; without one, its queue is forgotten in the same moment.
    fn next(&self, connection: u64) -> Option<Waiting> {
        let mut queues = self.queues();
        let next = queues.get_mut(&connection)?.pop_front();
        if next.is_none() {
            queues.remove(&connection);
        }
        next
    }
}

fn too_many(full: Full) -> Answer {
    let reason = match full {
        Full::ForKey => {
            format!(
                "{OF_ONE} announcements, states, pull requests and deletions of one IP address or key may be under way"
            )
        }
        Full::InAll => "too many announcements, states, pull requests and deletions are under way".to_owned(),
    };
    Answer::Refused(Refusal::new(Prefix::RateLimited, format!("{reason}; publish this one again in a moment")))
}

async fn walk(shared: Arc<Shared>, connection: u64) {
    while let Some(Waiting { pending, parsed, _counted }) = shared.next(connection) {
        let event = Arc::clone(pending.event());
        let (id, from, origin) = (event.id, pending.submission.from, pending.submission.origin);
        let whose = Client::signer(from, None, event.pubkey.to_bytes());
        if shared.stops.load(Ordering::Relaxed) {
            pending.answer(stopping());
            continue;
        }
        let Ok(_turn) = shared.turns.enter(whose, TURN).await else {
            pending.answer(too_many(Full::InAll));
            continue;
        };
        // In a task of its own: a panic takes one event down, not the queue.
        let admitting = {
            let forge = shared.forge.clone();
            tokio::spawn(async move { grasp::admit(&forge, &event, parsed, (from, origin)).await })
        };
        let answer = match admitting.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(fault)) => after_failure(&shared.forge, &id, &fault).await,
            Err(error) => after_failure(&shared.forge, &id, &Fault::Internal(error.to_string())).await,
        };
        pending.answer(answer);
    }
}

/// An event with a committed row is never reported as refused: the server must repair a failure after the commit.
async fn after_failure(forge: &Forge, id: &EventId, fault: &Fault) -> Answer {
    match grasp::kept(forge, id).await {
        Ok(Some(answer)) => {
            tracing::warn!(error = %fault, event = %id, "an event is stored, but its effects failed; a job retries them");
            answer
        }
        Ok(None) | Err(_) => failed(fault),
    }
}
