//! Requests to one domain, or to one network address, within a sliding window.

use crate::Timestamp;
use crate::settings::value::TICK;
use crate::settings::{count, duration};
use std::time::Duration;

crate::settings! {
    /// How often one domain is asked.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct DomainLimits in "sync" {
        /// Maximum requests for git data to one domain (host and port) per `sync.domain_window`.
        requests as domain_requests: u64 = "5", count(1..=1_000);
        /// Sliding window of `sync.domain_requests`.
        window as domain_window: Duration = "30s", duration(TICK..=Duration::from_secs(3_600));
        /// Maximum concurrent requests for git data to one domain.
        at_once as domain_concurrency: u64 = "2", count(1..=100);
    }
    with {
        /// Requests to one network address per window: several domains may lead to it.
        address_requests: u64 = 20;
        /// How long a domain rests after a failure of name lookup, TLS or protocol.
        rest: Duration = Duration::from_secs(12 * 3_600);
    }
}

/// Why no request may be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttled {
    /// The window is full until this time.
    Until(Timestamp),
    /// As many requests run as may run at once; one of them has to end first.
    Busy,
}

/// Whether another request fits. `made` has the times of the requests of the last window, oldest first.
pub fn judge(
    made: &[Timestamp],
    running: u64,
    limit: u64,
    limits: &DomainLimits,
    now: Timestamp,
) -> Result<(), Throttled> {
    let begin = now.minus(limits.window);
    let counted = made.iter().filter(|at| **at > begin).count();
    let over = counted as u64 + 1;
    if over > limit {
        // The request that has to leave the window, so that one fewer than the limit remains.
        let blocking = usize::try_from(over - limit).unwrap_or(usize::MAX) - 1;
        let leaves = made.iter().filter(|at| **at > begin).nth(blocking);
        return Err(Throttled::Until(leaves.map_or(now, |at| at.plus(limits.window))));
    }
    if running >= limits.at_once { Err(Throttled::Busy) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    const LIMITS: DomainLimits = DomainLimits {
        requests: 5,
        window: Duration::from_secs(30),
        at_once: 2,
        address_requests: 20,
        rest: Duration::from_secs(12 * 3_600),
    };

    fn ask(made: &[i64], running: u64, now: i64) -> Result<(), Throttled> {
        let made: Vec<_> = made.iter().map(|second| at(*second)).collect();
        judge(&made, running, LIMITS.requests, &LIMITS, at(now))
    }

    #[test]
    fn five_requests_fit_into_thirty_seconds_and_the_window_slides() {
        assert_eq!(ask(&[], 0, 0), Ok(()));
        assert_eq!(ask(&[0, 1, 2, 3], 0, 4), Ok(()));
        assert_eq!(ask(&[0, 1, 2, 3, 4], 0, 4), Err(Throttled::Until(at(30))));
        assert_eq!(ask(&[0, 1, 2, 3, 4], 0, 29), Err(Throttled::Until(at(30))));
        assert_eq!(ask(&[0, 1, 2, 3, 4], 0, 30), Ok(()), "the first has left the window");
        assert_eq!(ask(&[1, 2, 3, 4, 30], 0, 30), Err(Throttled::Until(at(31))));
        assert_eq!(ask(&[0, 0, 0, 10, 11, 12], 0, 12), Err(Throttled::Until(at(30))), "more than fit were made before");
    }

    #[test]
    fn so_many_requests_run_at_once() {
        assert_eq!(ask(&[0], 1, 1), Ok(()));
        assert_eq!(ask(&[0], 2, 1), Err(Throttled::Busy));
        assert_eq!(ask(&[0, 0, 0, 0, 0], 2, 1), Err(Throttled::Until(at(30))), "the window is named first");
    }

    proptest! {
        /// Requests that are made whenever they may be, at any rhythm of questions.
        #[test]
        fn no_window_ever_has_more_than_its_limit(pauses in vec(0_i64..20, 1..200)) {
            let (mut now, mut made) = (0, Vec::new());
            for pause in pauses {
                now += pause;
                match ask(&made, 0, now) {
                    Ok(()) => made.push(now),
                    Err(Throttled::Until(until)) => prop_assert!(until > at(now) && until <= at(now + 30)),
                    Err(Throttled::Busy) => prop_assert!(false),
                }
            }
            for start in 0..=now {
                let inside = made.iter().filter(|at| (start..start + 30).contains(*at)).count();
                prop_assert!(inside <= 5, "{inside} from {start}: {made:?}");
            }
        }

        #[test]
        fn a_request_fits_at_the_named_time(mut made in vec(0_i64..60, 0..20), now in 60_i64..90) {
            made.sort_unstable();
            if let Err(Throttled::Until(until)) = ask(&made, 0, now) {
                prop_assert_eq!(ask(&made, 0, until.micros() / 1_000_000), Ok(()));
            }
        }
    }
}
