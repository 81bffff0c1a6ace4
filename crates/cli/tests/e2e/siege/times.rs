//! How long each kind of honest work takes, idle and under attack.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// How long one kind of work may take at the median while one attack goes on.
struct Bound {
    kind: &'static str,
    /// How many times as long as on an idle server.
    factor: f64,
    /// A median below it is well, whatever the factor: nobody notices it, and an idle time of a millisecond makes any
    /// factor large.
    floor: Duration,
}

const fn bound(kind: &'static str, factor: f64, floor: u64) -> Bound {
    Bound { kind, factor, floor: Duration::from_millis(floor) }
}

/// The kinds of work, in the order of their columns. Attackers and the honest client share the processors of the server
/// here, two on the machines that this runs on. An attack that uses all of its slots with all its processor time leaves
/// honest work a third of the processors at the same priority, and work of several processes in a row (clone, push) waits
/// at each of them. A factor above these means that honest work waits for the attacker, not only for the processor.
const BOUNDS: [Bound; 9] = [
    // Checked every few seconds by supervisors whose usual timeout is a second.
    bound("health", 10.0, 100),
    bound("page", 10.0, 250),
    bound("blame", 10.0, 250),
    // Several requests and git processes each.
    bound("clone over HTTP", 10.0, 1000),
    bound("clone over SSH", 10.0, 1000),
    bound("push over HTTP", 10.0, 1000),
    bound("push over SSH", 10.0, 1000),
    bound("publish", 10.0, 250),
    bound("relay connection", 10.0, 100),
];

/// Every measured time of each kind of work.
#[derive(Default)]
pub struct Times(BTreeMap<&'static str, Vec<Duration>>);

impl Times {
    /// Measures one piece of work.
    pub fn measure<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) {
        assert!(BOUNDS.iter().any(|bound| bound.kind == name), "{name} has no bound");
        #[allow(clippy::disallowed_methods, reason = "what is measured is real time")]
        let start = Instant::now();
        work();
        self.0.entry(name).or_default().push(start.elapsed());
    }

    fn median(&self, name: &str) -> Duration {
        let mut times = self.0.get(name).cloned().unwrap_or_default();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    fn worst(&self, name: &str) -> Duration {
        self.0.get(name).and_then(|times| times.iter().max().copied()).unwrap_or_default()
    }

    /// A table of these times and those of an idle server.
    pub fn beside(&self, idle: &Self) -> String {
        let mut text = String::from("work             idle ms   median ms    factor    worst ms    factor\n");
        for name in self.0.keys() {
            let before = idle.median(name);
            let row = |time: Duration| (time.as_secs_f64() * 1e3, factor(time, before));
            let ((median, median_factor), (worst, worst_factor)) = (row(self.median(name)), row(self.worst(name)));
            let idle_ms = before.as_secs_f64() * 1e3;
            let _ = writeln!(
                text,
                "{name:<16} {idle_ms:>7.1} {median:>11.1} {median_factor:>9.1} {worst:>11.1} {worst_factor:>9.1}"
            );
        }
        text
    }

    /// The head of a table of [`Self::factors`].
    pub fn kinds() -> String {
        let short = |kind: &str| kind.replace("over ", "").replace(" connection", "");
        BOUNDS.iter().map(|bound| format!("{:>11}", short(bound.kind))).collect()
    }

    /// How many times as long each kind of work takes at the median as on an idle server.
    pub fn factors(&self, idle: &Self) -> String {
        BOUNDS
            .iter()
            .map(|Bound { kind, .. }| format!("{:>11.1}", factor(self.median(kind), idle.median(kind))))
            .collect()
    }

    /// Kinds of work that took longer at the median than their bound allows beside the times of an idle server, with both
    /// medians.
    pub fn beyond_bounds(&self, idle: &Self) -> Vec<String> {
        let told = |Bound { kind, factor: most, floor }: &Bound| {
            let (now, before) = (self.median(kind), idle.median(kind));
            let suffers = now > *floor && factor(now, before) > *most;
            suffers.then(|| format!("{kind}: {now:?} instead of {before:?}"))
        };
        BOUNDS.iter().filter_map(told).collect()
    }

    /// Kinds of work that took longer than that, at the median or once.
    pub fn beyond(&self, median: Duration, worst: Duration) -> Vec<&'static str> {
        let suffers = |name: &&'static str| self.median(name) > median || self.worst(name) > worst;
        self.0.keys().copied().filter(suffers).collect()
    }
}

fn factor(time: Duration, before: Duration) -> f64 {
    time.as_secs_f64() / before.as_secs_f64().max(1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(milliseconds: &[u64]) -> Times {
        let all = |bound: &Bound| (bound.kind, milliseconds.iter().copied().map(Duration::from_millis).collect());
        Times(BOUNDS.iter().map(all).collect())
    }

    #[test]
    fn a_kind_fails_beyond_its_factor_and_its_floor_at_the_median() {
        let idle = times(&[150]);
        assert_eq!(times(&[1400]).beyond_bounds(&idle), [""; 0], "below the factor");
        assert_eq!(times(&[90]).beyond_bounds(&times(&[1])), [""; 0], "below every floor");
        assert_eq!(times(&[90, 90, 9000]).beyond_bounds(&times(&[1])), [""; 0], "the median counts");
        let slow = times(&[1600]).beyond_bounds(&idle);
        assert_eq!(slow.len(), BOUNDS.len());
        assert_eq!(slow[0], "health: 1.6s instead of 150ms");
    }
}
