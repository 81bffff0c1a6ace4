//! When another relay is connected to, and when its events are compared anew.

use crate::Timestamp;
use crate::settings::value::{DAY, HOUR};
use std::time::Duration;

/// Pause after the first failure.
pub const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// Time without a connection within which live subscriptions make up for what was missed.
pub const RESUMED: Duration = Duration::from_secs(15 * 60);

/// Pause before the next connection: it doubles with each failure in a row, up to an hour. A relay without a steady connection
/// for a day is tried daily.
pub fn pause(failures: u32, failing_for: Duration) -> Duration {
    if failing_for >= DAY {
        return DAY;
    }
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(HOUR)
}

/// Whether all events of a relay are compared: they never were, not within a day, or the connection was lost for too long.
pub fn compares(reconciled_at: Option<Timestamp>, seen_at: Option<Timestamp>, now: Timestamp) -> bool {
    reconciled_at.is_none_or(|at| now.since(at) >= DAY) || seen_at.is_none_or(|at| now.since(at) > RESUMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn pauses_double_from_five_seconds_to_an_hour_and_a_dead_relay_is_tried_daily() {
        let seconds = |failures, hours| pause(failures, HOUR * hours).as_secs();
        assert_eq!(
            (0..11).map(|failures| seconds(failures, 1)).collect::<Vec<_>>(),
            [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]
        );
        assert_eq!(seconds(u32::MAX, 23), 3_600);
        assert_eq!((seconds(0, 24), seconds(u32::MAX, 1_000)), (86_400, 86_400));
    }

    #[test]
    fn events_are_compared_after_a_gap_of_more_than_fifteen_minutes_and_daily() {
        assert!(compares(None, Some(at(0)), at(0)) && compares(Some(at(0)), None, at(0)));
        assert!(!compares(Some(at(0)), Some(at(0)), at(900)));
        assert!(compares(Some(at(0)), Some(at(0)), at(901)));
        assert!(!compares(Some(at(0)), Some(at(86_399)), at(86_399)));
        assert!(compares(Some(at(0)), Some(at(86_400)), at(86_400)));
    }
}
