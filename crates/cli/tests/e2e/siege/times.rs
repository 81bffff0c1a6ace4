//! How long each kind of honest work takes, idle and under attack.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The kinds of work, in the order of their columns.
const KINDS: [&str; 9] = [
    "health",
    "page",
    "blame",
    "clone over HTTP",
    "clone over SSH",
    "push over HTTP",
    "push over SSH",
    "publish",
    "relay connection",
];

/// Every measured time of each kind of work.
#[derive(Default)]
pub struct Times(BTreeMap<&'static str, Vec<Duration>>);

impl Times {
    /// Measures one piece of work.
    pub fn measure<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) {
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
        KINDS.iter().map(|name| format!("{:>11}", name.replace("over ", "").replace(" connection", ""))).collect()
    }

    /// How many times as long each kind of work takes at the median as on an idle server.
    pub fn factors(&self, idle: &Self) -> String {
        KINDS.iter().map(|name| format!("{:>11.1}", factor(self.median(name), idle.median(name)))).collect()
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
