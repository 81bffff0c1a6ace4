//! Places for work that takes the processor: few at once, and few of them for one client, so that nobody's text keeps
//! others waiting.
//!
//! A place belongs to the work, not to whoever waits for it: a client that closes its connection leaves the work where it
//! is, and the next one waits until it is done.

use crate::pages::Problem;
use abide_core::admission::Network;
use abide_forge::Fault;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pieces of work at once.
const AT_ONCE: usize = 4;
/// Pieces of work of one network at once. Its others wait for each other, not among those of everyone.
const OF_ONE: usize = 2;
/// How long someone waits for a place.
const PATIENCE: Duration = Duration::from_secs(20);

type Queues = Arc<Mutex<HashMap<Option<Network>, Weak<Semaphore>>>>;

/// The places.
pub(crate) struct Workshop {
    places: Arc<Semaphore>,
    queues: Queues,
}

/// A place, until the work is done.
struct Place {
    _of_all: OwnedSemaphorePermit,
    _own: Own,
}

/// A place among those of one network.
struct Own {
    permit: Option<OwnedSemaphorePermit>,
    network: Option<Network>,
    queues: Queues,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.permit = None;
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        // Networks that nobody works for are forgotten.
        if queues.get(&self.network).is_some_and(|queue| queue.strong_count() == 0) {
            queues.remove(&self.network);
        }
    }
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)), queues: Queues::default() }
    }

    /// Does a piece of work for someone, on a thread that may be busy for a while.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        client: Option<IpAddr>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let place = tokio::time::timeout(PATIENCE, self.place(client)).await.map_err(|_| crowded())??;
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.map_err(|error| Fault::Internal(format!("rendering was interrupted: {error}")).into())
    }

    async fn place(&self, client: Option<IpAddr>) -> Result<Place, Problem> {
        let network = client.map(Network::of);
        let permit = self.queue(network).acquire_owned().await.map_err(|_| crowded())?;
        let own = Own { permit: Some(permit), network, queues: self.queues.clone() };
        let of_all = self.places.clone().acquire_owned().await.map_err(|_| crowded())?;
        Ok(Place { _of_all: of_all, _own: own })
    }

    fn queue(&self, network: Option<Network>) -> Arc<Semaphore> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(&network).and_then(Weak::upgrade) {
            return queue;
        }
        let queue = Arc::new(Semaphore::new(OF_ONE));
        queues.insert(network, Arc::downgrade(&queue));
        queue
    }
}

fn crowded() -> Problem {
    let detail = "So many pages are being rendered that this one had to wait too long. Try again in a minute.";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retried_after(Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn from(ip: &str) -> Option<IpAddr> {
        Some(ip.parse().unwrap())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_that_nobody_waits_for_keeps_its_place_and_those_of_others_stay_free() {
        let workshop = Arc::new(Workshop::new());
        let (begun, begins) = mpsc::channel();
        let gates: Vec<_> = (0..OF_ONE)
            .map(|_| {
                let (open, gate) = mpsc::channel::<()>();
                let (workshop, begun) = (workshop.clone(), begun.clone());
                let waiting = tokio::spawn(async move {
                    let work = move || {
                        begun.send(()).unwrap();
                        let _ = gate.recv();
                    };
                    workshop.run(from("192.0.2.1"), work).await.is_ok()
                });
                (open, waiting)
            })
            .collect();
        for _ in 0..OF_ONE {
            begins.recv().unwrap();
        }
        // Whoever asked goes away; their work goes on.
        for (_, waiting) in &gates {
            waiting.abort();
        }
        assert_eq!(workshop.places.available_permits(), AT_ONCE - OF_ONE);
        let own = workshop.queue(Some(Network::of("192.0.2.1".parse().unwrap())));
        assert_eq!(own.available_permits(), 0, "a third one of the same network waits");
        assert_eq!(workshop.run(from("192.0.2.2"), || 7).await.unwrap(), 7, "another network does not");
        drop((own, gates));
        assert_eq!(workshop.run(from("192.0.2.1"), || 8).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn a_network_that_nobody_works_for_is_forgotten() {
        let workshop = Workshop::new();
        for ip in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
            workshop.run(from(ip), || ()).await.unwrap();
        }
        workshop.run(None, || ()).await.unwrap();
        assert!(workshop.queues.lock().unwrap().is_empty());
    }
}
