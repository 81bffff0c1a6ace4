//! Output of lists: aligned columns, or JSON for programs.

use serde_json::Value;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _};

/// Prints a line to standard output, like `println!`. A closed pipe, such as to `head`, ends the command without an
/// error.
macro_rules! say {
    ($($argument:tt)*) => { $crate::show::line(format_args!($($argument)*)) };
}
pub(crate) use say;

pub(crate) fn line(text: Arguments<'_>) {
    let written = writeln!(io::stdout().lock(), "{text}");
    if written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

/// Prints rows under headings, each column as wide as its widest cell.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width));
        say!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(headings.to_vec());
    for row in rows {
        line(row.iter().map(String::as_str).collect());
    }
}

/// Prints JSON over several lines.
pub(crate) fn json(value: &Value) {
    say!("{value:#}");
}
