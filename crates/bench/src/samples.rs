//! Measured values and their quantiles.

use crate::Failure;
use std::time::Duration;

/// Values of one case on one side, all in one unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn of(value: f64) -> Self {
        Self(vec![value])
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    /// Quantile of the values, interpolated between two neighbours.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
        let at = share.clamp(0.0, 1.0) * last as f64;
        let (below, above) = (at.floor() as usize, at.ceil() as usize);
        sorted[below] + (sorted[above] - sorted[below]) * at.fract()
    }
}

/// Runs every side in each round and returns the milliseconds of each. `run` gets the side and the round.
///
/// The sides alternate, and each round reverses the order, so that other load of the machine affects all sides equally.
/// Round 0 warms caches and is not counted.
pub(crate) fn in_turn(
    rounds: usize,
    sides: usize,
    mut run: impl FnMut(usize, usize) -> Result<Duration, Failure>,
) -> Result<Vec<Samples>, Failure> {
    let mut samples = vec![Samples::default(); sides];
    for round in 0..=rounds {
        for turn in 0..sides {
            let side = if round % 2 == 0 { turn } else { sides - 1 - turn };
            let took = run(side, round)?;
            if round > 0 {
                samples[side].push(took.as_secs_f64() * 1e3);
            }
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let samples = Samples(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!(samples.median(), 2.5);
        assert_eq!((samples.quantile(0.0), samples.max()), (1.0, 4.0));
        assert!(Samples::default().median().is_nan());
    }

    #[test]
    fn sides_alternate_and_the_first_round_is_not_counted() {
        let mut order = Vec::new();
        let samples = in_turn(2, 2, |side, round| {
            order.push(side);
            Ok(Duration::from_millis(if side == 0 { round as u64 } else { 7 }))
        })
        .unwrap();
        assert_eq!(order, [0, 1, 1, 0, 0, 1]);
        assert_eq!((samples[0].len(), samples[0].median(), samples[1].median()), (2, 1.5, 7.0));
    }
}
