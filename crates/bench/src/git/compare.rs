//! One case on both sides.

use super::Bench;
use super::client::Remote;
use crate::Failure;
use crate::report::{Line, Report, Target, Unit};
use crate::samples::in_turn;
use std::time::Duration;

/// A command that runs on both sides, and its number of rounds.
pub(crate) struct Comparison<'a> {
    pub case: &'a str,
    pub rounds: usize,
    pub ours: &'a Remote,
    /// `None` without a reference on this machine.
    pub reference: Option<&'a Remote>,
    /// Target: maximum ratio to the reference.
    pub most: Option<f64>,
}

impl Comparison<'_> {
    /// Runs it. `run` gets the round and the side's URL.
    pub(crate) fn measure(
        &self,
        bench: &Bench,
        report: &mut Report,
        run: impl Fn(usize, &Remote) -> Result<Duration, Failure>,
    ) -> Result<(), Failure> {
        let sides: Vec<_> = [Some(self.ours), self.reference].into_iter().flatten().collect();
        let times = in_turn(self.rounds, sides.len(), |side, round| {
            bench.stop.check()?;
            run(round, sides[side])
        })?;
        let mut times = times.into_iter();
        let mut line = Line::new(self.case, Unit::Milliseconds, times.next().unwrap_or_default()).beside(times.next());
        if let Some(most) = self.most {
            line = line.target(Target::Ratio(most));
        }
        report.add(line);
        Ok(())
    }
}
