//! Slots for CPU-bound rendering: few in total, and fewer per network, so that one client's texts do not block others.
//!
//! A slot belongs to the work, not to the request: if a client disconnects, the slot stays taken until the work ends.
//!
//! The work runs on a few dedicated threads. A hostile text of 512 KiB takes more than 100 MiB while it is rendered,
//! and the allocator keeps freed memory per thread: few threads keep little. The threads have a lower priority, so that
//! responses without rendering get the CPU first.

use crate::Problem;
use abide_core::admission::{Network, share_of_one};
use abide_forge::Fault;
use abide_forge::queues::{NetworkQueues, NetworkSlot};
use axum::http::StatusCode;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Number of threads: one per CPU, within these bounds.
const AT_ONCE: std::ops::RangeInclusive<usize> = 2..=4;
/// Slots per network. Further work of a network waits in the queue of that network.
const OF_ONE: usize = 2;
/// Stack of a thread in bytes; nested texts are rendered by recursion.
const STACK: usize = 8 << 20;
/// The nice value of the threads.
const NICE: i32 = 5;
/// Time that a request waits for a slot.
const PATIENCE: Duration = Duration::from_secs(20);

type Job = Box<dyn FnOnce() + Send>;

/// The slots.
pub(crate) struct RenderPool {
    slots: Arc<Semaphore>,
    /// Slots per network.
    own: NetworkQueues,
    jobs: Sender<Job>,
}

/// A slot, until the work is done.
struct RenderSlot {
    _of_all: OwnedSemaphorePermit,
    _own: NetworkSlot,
}

impl RenderPool {
    pub(crate) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(*AT_ONCE.start(), usize::from);
        let at_once = cores.clamp(*AT_ONCE.start(), *AT_ONCE.end());
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..at_once {
            let queue = queue.clone();
            let thread = thread::Builder::new().name(format!("render-{number}")).stack_size(STACK);
            if let Err(error) = thread.spawn(move || work_off(&queue)) {
                tracing::error!(%error, "cannot start a rendering thread");
            }
        }
        let own = NetworkQueues::new(share_of_one(at_once, OF_ONE));
        Self { slots: Arc::new(Semaphore::new(at_once)), own, jobs }
    }

    /// Runs work of a client on a thread of the pool.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        client: Option<IpAddr>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let slot = tokio::time::timeout(PATIENCE, self.slot(client)).await.map_err(|_| crowded())??;
        let (done, result) = oneshot::channel();
        let job = move || {
            let _slot = slot;
            // The receiver is closed if the client disconnected.
            drop(done.send(work()));
        };
        let interrupted = || Problem::from(Fault::Internal("rendering was interrupted".into()));
        self.jobs.send(Box::new(job)).map_err(|_| interrupted())?;
        result.await.map_err(|_| interrupted())
    }

    async fn slot(&self, client: Option<IpAddr>) -> Result<RenderSlot, Problem> {
        let own = self.own.enter(client.map(Network::of)).await;
        let of_all = self.slots.clone().acquire_owned().await.map_err(|_| crowded())?;
        Ok(RenderSlot { _of_all: of_all, _own: own })
    }
}

/// Runs jobs until all senders are dropped.
fn work_off(queue: &Mutex<Receiver<Job>>) {
    // On Linux this sets the priority of this thread only.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "cannot lower the priority of a rendering thread");
    }
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("rendering a text panicked");
        }
    }
}

fn crowded() -> Problem {
    let detail = "The server is busy rendering other pages. Try again in a minute.";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retried_after(Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(ip: &str) -> Option<IpAddr> {
        Some(ip.parse().unwrap())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_that_nobody_waits_for_keeps_its_place_and_those_of_others_stay_free() {
        let render_pool = Arc::new(RenderPool::new());
        let at_once = render_pool.slots.available_permits();
        let (begun, begins) = mpsc::channel();
        let gates: Vec<_> = (0..render_pool.own.slots())
            .map(|_| {
                let (open, gate) = mpsc::channel::<()>();
                let (render_pool, begun) = (render_pool.clone(), begun.clone());
                let waiting = tokio::spawn(async move {
                    let work = move || {
                        begun.send(()).unwrap();
                        let _ = gate.recv();
                    };
                    render_pool.run(from("192.0.2.1"), work).await.is_ok()
                });
                (open, waiting)
            })
            .collect();
        for _ in 0..render_pool.own.slots() {
            begins.recv().unwrap();
        }
        // The callers go away; their work goes on.
        for (_, waiting) in &gates {
            waiting.abort();
        }
        assert_eq!(render_pool.slots.available_permits(), at_once - render_pool.own.slots());
        let network = from("192.0.2.1").map(Network::of);
        assert_eq!(render_pool.own.free(network), 0, "a third one of the same network waits");
        assert_eq!(render_pool.run(from("192.0.2.2"), || 7).await.unwrap(), 7, "another network does not");
        drop(gates);
        assert_eq!(render_pool.run(from("192.0.2.1"), || 8).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn work_that_panics_leaves_the_threads_to_others() {
        let render_pool = RenderPool::new();
        for _ in 0..2 * AT_ONCE.end() {
            assert!(render_pool.run(from("192.0.2.1"), || assert_eq!(1, 2)).await.is_err());
        }
        let named = render_pool.run(None, || thread::current().name().map(str::to_owned)).await.unwrap();
        assert!(named.unwrap().starts_with("render-"));
    }

    #[tokio::test]
    async fn a_network_that_nobody_works_for_is_forgotten() {
        let render_pool = RenderPool::new();
        for ip in ["192.0.2.1", "192.0.2.2", "2001:db8::1"] {
            render_pool.run(from(ip), || ()).await.unwrap();
        }
        render_pool.run(None, || ()).await.unwrap();
        // A thread gives its slot back after it has handed over its result.
        while render_pool.own.networks() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
