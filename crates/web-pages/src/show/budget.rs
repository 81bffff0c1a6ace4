//! CPU time for rendering a page. Wall time would leave texts unrendered on a busy machine.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Remaining CPU time of work on this thread.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Limit in nanoseconds of [`busy`]. Only one thread reads it; atomic because the highlighter of comrak must be
    /// `Sync`.
    until: AtomicU64,
}

impl Budget {
    /// A budget that starts now.
    pub(crate) fn new(allowed: Duration) -> Self {
        Self { until: AtomicU64::new(nanoseconds(busy() + allowed)) }
    }

    pub(crate) fn left(&self) -> Duration {
        Duration::from_nanos(self.until.load(Ordering::Relaxed)).saturating_sub(busy())
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left().is_zero()
    }

    /// Runs work that is shared by all pages, such as loading syntaxes, outside the budget.
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

/// CPU time of this thread.
fn busy() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
