//! Processor time of one call, which stays on one thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A limit of processor time, counted from its creation.
#[derive(Debug)]
pub(super) struct Clock {
    end: Duration,
}

impl Clock {
    pub fn start(limit: Duration) -> Self {
        Self { end: busy().saturating_add(limit) }
    }

    pub fn is_over(&self) -> bool {
        busy() >= self.end
    }
}

/// Processor time of this thread so far.
fn busy() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.cast_unsigned(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
