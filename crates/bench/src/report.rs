//! Result of a benchmark: a line per case, as a table or as JSON.

use super::samples::Samples;
use serde_json::{Value, json};

/// Unit of the values of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Milliseconds,
    Mebibytes,
    MebibytesPerSecond,
    PerSecond,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            _ if value.is_nan() => "-".to_owned(),
            Self::Milliseconds if value < 1000.0 => format!("{value:.1} ms"),
            Self::Milliseconds => format!("{:.2} s", value / 1000.0),
            Self::Mebibytes => format!("{value:.1} MiB"),
            Self::MebibytesPerSecond => format!("{value:.0} MiB/s"),
            Self::PerSecond => format!("{value:.0}/s"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Mebibytes => "MiB",
            Self::MebibytesPerSecond => "MiB/s",
            Self::PerSecond => "1/s",
        }
    }
}

/// Target of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// At most so many times the reference.
    Ratio(f64),
    /// Less than this, in the unit of the line.
    Below(f64),
    /// At least this, in the unit of the line.
    AtLeast(f64),
}

/// One case.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    case: String,
    unit: Unit,
    ours: Samples,
    reference: Option<Samples>,
    target: Option<Target>,
}

impl Line {
    pub(crate) fn new(case: impl Into<String>, unit: Unit, ours: Samples) -> Self {
        Self { case: case.into(), unit, ours, reference: None, target: None }
    }

    pub(crate) fn beside(self, reference: Option<Samples>) -> Self {
        Self { reference, ..self }
    }

    pub(crate) fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    /// Ratio of the medians, ours to the reference.
    fn ratio(&self) -> Option<f64> {
        self.reference.as_ref().map(|reference| self.ours.median() / reference.median())
    }

    /// `None` without a target, or without the reference that the target needs.
    fn reached(&self) -> Option<bool> {
        match self.target? {
            Target::Ratio(most) => self.ratio().map(|ratio| ratio <= most),
            Target::Below(limit) => Some(self.ours.median() < limit),
            Target::AtLeast(limit) => Some(self.ours.median() >= limit),
        }
    }

    fn cells(&self) -> Vec<String> {
        let dash = || "-".to_owned();
        let shown = |samples: &Samples| self.unit.show(samples.median());
        vec![
            self.case.clone(),
            shown(&self.ours),
            self.reference.as_ref().map_or_else(dash, shown),
            self.ratio().map_or_else(dash, |ratio| format!("{ratio:.2}x")),
            match self.target {
                Some(Target::Ratio(most)) => format!("<= {most:.1}x"),
                Some(Target::Below(limit)) => format!("< {}", self.unit.show(limit)),
                Some(Target::AtLeast(limit)) => format!(">= {}", self.unit.show(limit)),
                None => dash(),
            },
            match self.reached() {
                Some(true) => "ok".to_owned(),
                Some(false) => "MISSED".to_owned(),
                None => dash(),
            },
        ]
    }

    fn json(&self) -> Value {
        let side = |samples: &Samples| {
            json!({
                "median": samples.median(), "q1": samples.quantile(0.25), "q3": samples.quantile(0.75),
                "max": samples.max(), "samples": samples.len(),
            })
        };
        let target = self.target.map(|target| match target {
            Target::Ratio(most) => json!({ "ratio_at_most": most }),
            Target::Below(limit) => json!({ "below": limit }),
            Target::AtLeast(limit) => json!({ "at_least": limit }),
        });
        json!({
            "case": self.case, "unit": self.unit.name(), "ours": side(&self.ours),
            "reference": self.reference.as_ref().map(side), "ratio": self.ratio(), "target": target,
            "reached": self.reached(),
        })
    }
}

/// All cases, with notes on the machine and the method.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
    notes: Vec<String>,
}

impl Report {
    pub(crate) fn add(&mut self, line: Line) {
        self.lines.push(line);
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(crate) fn output(self, as_json: bool) -> Output {
        if as_json {
            let lines: Vec<_> = self.lines.iter().map(Line::json).collect();
            return Output::Json(json!({ "lines": lines, "notes": self.notes }));
        }
        let rows = self.lines.iter().map(Line::cells).collect();
        Output::Table { headings: HEADINGS, rows, notes: self.notes }
    }
}

const HEADINGS: &[&str] = &["CASE", "OURS", "REFERENCE", "RATIO", "TARGET", "VERDICT"];

/// The result of a benchmark, for the command to print.
#[derive(Debug)]
pub enum Output {
    /// One row per case, and notes to judge them by.
    Table {
        headings: &'static [&'static str],
        /// Cells, as many per row as there are headings.
        rows: Vec<Vec<String>>,
        notes: Vec<String>,
    },
    Json(Value),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_judged_by_what_it_speaks_of() {
        let line = |ours, reference: Option<f64>, target| {
            let line = Line::new("case", Unit::Milliseconds, Samples::of(ours));
            line.beside(reference.map(Samples::of)).target(target).reached()
        };
        assert_eq!(line(11.0, Some(10.0), Target::Ratio(1.1)), Some(true));
        assert_eq!(line(11.1, Some(10.0), Target::Ratio(1.1)), Some(false));
        assert_eq!(line(11.1, None, Target::Ratio(1.1)), None);
        assert_eq!(line(300.0, None, Target::Below(300.0)), Some(false));
        assert_eq!(line(300.0, None, Target::AtLeast(300.0)), Some(true));
    }
}
