//! Time of the processor that a piece of work may take. Not time on the wall: a busy machine makes no page plain.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time that is left to work on this thread.
#[derive(Debug)]
pub(crate) struct Budget {
    /// In nanoseconds of [`busy`]. Only one thread looks at it; what colours code wants to be shared.
    until: AtomicU64,
}

impl Budget {
    /// So much time from this moment on.
    pub(crate) fn new(allowed: Duration) -> Self {
        Self { until: AtomicU64::new(nanoseconds(busy() + allowed)) }
    }

    /// How much is left.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_nanos(self.until.load(Ordering::Relaxed)).saturating_sub(busy())
    }

    /// Whether no time is left.
    pub(crate) fn is_spent(&self) -> bool {
        self.left().is_zero()
    }

    /// Does something that is done once for all and counts for nobody.
    pub(crate) fn besides<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = busy();
        let made = work();
        self.until.fetch_add(nanoseconds(busy().saturating_sub(before)), Ordering::Relaxed);
        made
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How long this thread has had the processor.
fn busy() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
