//! When a delivery is tried again, when it is given up, and when a receiver that fails again and again is left in peace.

use crate::Timestamp;
use crate::settings::count;
use std::time::Duration;

/// How a try ended, as far as the schedule is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// It arrived.
    Yes,
    /// Not now: nobody was there, or they were busy or broken.
    NotNow,
    /// No: asking again would be answered the same.
    No,
}

impl Answered {
    /// Result by status. Redirects are not followed, so they count as failures.
    pub fn by_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Yes,
            408 | 429 | 500..=599 => Self::NotNow,
            _ => Self::No,
        }
    }
}

crate::settings! {
    /// Attempts, retries and suspension.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Schedule in "webhooks" {
        /// Attempts per delivery.
        tries: i64 = "8", count(1..);
        /// Failed deliveries in a row that suspend a webhook.
        failures: i64 = "5", count(1..);
    }
    with {
        /// The pause after the first attempt; it doubles with each.
        first_pause: Duration = Duration::from_secs(30);
        /// The longest pause.
        longest_pause: Duration = Duration::from_secs(3600);
        /// How often a suspended hook's oldest delivery is tried.
        probe: Duration = Duration::from_secs(15 * 60);
    }
}

/// Whether a receiver is believed to be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Breaker {
    /// Deliveries that failed since one arrived.
    pub failures: i64,
    /// Since when only probes are sent.
    pub open_since: Option<Timestamp>,
}

/// Next state of a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It arrived.
    Arrived,
    /// It is given up, and the next one goes.
    Failed,
    /// It stays in the queue and is tried again then.
    Again(Timestamp),
}

/// Effect of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// For the delivery.
    pub outcome: Outcome,
    /// For its hook.
    pub breaker: Breaker,
    /// When the hook's oldest delivery is tried, whichever that is then.
    pub next: Timestamp,
}

impl Schedule {
    /// The pause after so many tries. `spread`, between 0 and 255, moves it by up to a fifth either way, so that what
    /// failed together does not come back together.
    pub fn pause(&self, tries: i64, spread: u8) -> Duration {
        let doublings = u32::try_from(tries.clamp(1, 30) - 1).unwrap_or(0);
        let pause = self.first_pause.saturating_mul(1 << doublings).min(self.longest_pause);
        pause.mul_f64(0.8 + 0.4 * f64::from(spread) / 255.0).min(self.longest_pause)
    }

    /// Effect of an attempt, the `tries`th of its delivery.
    ///
    /// While a hook is suspended its oldest delivery is the probe and stays first in the queue until the receiver responds.
    /// A receiver that is there and says no again and again means this one delivery: then the next is the probe.
    pub fn after(&self, breaker: Breaker, tries: i64, answered: Answered, now: Timestamp, spread: u8) -> Step {
        let probe = now.plus(self.probe);
        match (answered, breaker.open_since) {
            (Answered::Yes, _) => Step { outcome: Outcome::Arrived, breaker: Breaker::default(), next: now },
            (Answered::No, Some(_)) if tries >= self.tries => Step { outcome: Outcome::Failed, breaker, next: probe },
            (_, Some(_)) => Step { outcome: Outcome::Again(probe), breaker, next: probe },
            (Answered::NotNow, None) if tries < self.tries => {
                let again = now.plus(self.pause(tries, spread));
                Step { outcome: Outcome::Again(again), breaker, next: again }
            }
            (Answered::NotNow | Answered::No, None) => {
                let failures = breaker.failures.saturating_add(1);
                let opens = failures >= self.failures;
                let breaker = Breaker { failures, open_since: opens.then_some(now) };
                Step { outcome: Outcome::Failed, breaker, next: if opens { probe } else { now } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);
    const MIDDLE: u8 = 127;

    fn open(since: Timestamp) -> Breaker {
        Breaker { failures: 5, open_since: Some(since) }
    }

    #[test]
    fn every_status_means_one_of_three_things() {
        for status in 0..1000 {
            let expected = match status {
                200..=299 => Answered::Yes,
                408 | 429 => Answered::NotNow,
                500..=599 => Answered::NotNow,
                _ => Answered::No,
            };
            assert_eq!(Answered::by_status(status), expected, "{status}");
        }
    }

    #[test]
    fn pauses_double_from_half_a_minute_up_to_an_hour() {
        let schedule = Schedule::default();
        for (tries, seconds) in [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480), (6, 960), (7, 1920), (8, 3600)] {
            let expected = Duration::from_secs(seconds);
            assert!(schedule.pause(tries, MIDDLE).abs_diff(expected) < expected / 100, "{tries}");
            assert_eq!(schedule.pause(tries, 0), expected.mul_f64(0.8), "{tries}");
        }
        assert_eq!(schedule.pause(3, 255), Duration::from_secs(144));
        assert_eq!(schedule.pause(i64::MAX, 255), Duration::from_secs(3600));
    }

    #[test]
    fn the_eighth_try_is_the_last() {
        let schedule = Schedule::default();
        for tries in 1..8 {
            let step = schedule.after(Breaker::default(), tries, Answered::NotNow, NOW, 0);
            let again = NOW.plus(schedule.pause(tries, 0));
            assert_eq!(step, Step { outcome: Outcome::Again(again), breaker: Breaker::default(), next: again });
        }
        let step = schedule.after(Breaker::default(), 8, Answered::NotNow, NOW, 0);
        let breaker = Breaker { failures: 1, open_since: None };
        assert_eq!(step, Step { outcome: Outcome::Failed, breaker, next: NOW });
    }

    #[test]
    fn a_no_is_final_at_once() {
        let step = Schedule::default().after(Breaker::default(), 1, Answered::No, NOW, 0);
        assert_eq!((step.outcome, step.breaker.failures, step.next), (Outcome::Failed, 1, NOW));
    }

    #[test]
    fn the_fifth_failure_in_a_row_suspends_and_any_arrival_begins_anew() {
        let schedule = Schedule::default();
        let mut breaker = Breaker::default();
        for failed in 1..=5 {
            let step = schedule.after(breaker, 1, Answered::No, NOW, 0);
            breaker = step.breaker;
            assert_eq!(breaker, Breaker { failures: failed, open_since: (failed == 5).then_some(NOW) });
            assert_eq!(step.next, if failed == 5 { NOW.plus(schedule.probe) } else { NOW });
        }
        let arrived = schedule.after(Breaker { failures: 4, open_since: None }, 3, Answered::Yes, NOW, 0);
        assert_eq!(arrived, Step { outcome: Outcome::Arrived, breaker: Breaker::default(), next: NOW });
        assert_eq!(schedule.after(breaker, 99, Answered::Yes, NOW, 0).breaker, Breaker::default());
    }

    #[test]
    fn a_probe_that_nobody_takes_keeps_its_place_for_ever() {
        let schedule = Schedule::default();
        let probe = NOW.plus(schedule.probe);
        for tries in [1, 7, 8, 9, 1000] {
            let step = schedule.after(open(NOW), tries, Answered::NotNow, NOW, 0);
            assert_eq!(step, Step { outcome: Outcome::Again(probe), breaker: open(NOW), next: probe });
        }
    }

    #[test]
    fn a_probe_that_is_refused_eight_times_lets_the_next_one_try() {
        let schedule = Schedule::default();
        let probe = NOW.plus(schedule.probe);
        let outcome = |tries| schedule.after(open(NOW), tries, Answered::No, NOW, 0);
        assert_eq!(outcome(7), Step { outcome: Outcome::Again(probe), breaker: open(NOW), next: probe });
        assert_eq!(outcome(8), Step { outcome: Outcome::Failed, breaker: open(NOW), next: probe });
    }

    proptest! {
        /// Whatever a receiver does, every delivery ends or waits for a time to come, and the breaker is open exactly
        /// from the fifth failure in a row until the next arrival.
        #[test]
        fn any_receiver(answers in proptest::collection::vec(0..3u8, 1..200), spread: u8) {
            let schedule = Schedule::default();
            let (mut breaker, mut tries, mut failed_in_row) = (Breaker::default(), 0, 0);
            for (n, answer) in answers.iter().enumerate() {
                let now = NOW.plus(Duration::from_secs(n as u64));
                tries += 1;
                let answered = [Answered::Yes, Answered::NotNow, Answered::No][usize::from(*answer)];
                let step = schedule.after(breaker, tries, answered, now, spread);
                match step.outcome {
                    Outcome::Arrived => failed_in_row = 0,
                    Outcome::Failed => failed_in_row += 1,
                    Outcome::Again(at) => prop_assert!(at > now && at == step.next),
                }
                if !matches!(step.outcome, Outcome::Again(_)) {
                    tries = 0;
                }
                prop_assert_eq!(step.breaker.open_since.is_some(), failed_in_row >= schedule.failures);
                prop_assert!(step.next >= now);
                breaker = step.breaker;
            }
        }
    }
}
