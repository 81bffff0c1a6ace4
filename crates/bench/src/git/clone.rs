//! A clone of a medium repository: 50 MB in 10,000 commits.

use super::compare::Comparison;
use super::data::History;
use super::{Bench, Remote, io, say};
use crate::Failure;
use crate::report::Report;
use std::path::Path;
use std::time::Duration;

const SHAPE: History = History { commits: 10_000, files: 1_000, file_bytes: 5_000 };

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    say("clone of 50 MB in 10,000 commits");
    let room = bench.room("clone")?;
    let source = room.join("source");
    bench.client.import(&source, &|out| SHAPE.write(out))?;
    let repo = bench.create("clone")?;
    let ours = bench.ours(&repo);
    bench.push_all(&source, &ours)?;
    bench.server.maintain(&repo)?;
    let rounds = bench.rounds_over(4);
    let run = |_, remote: &Remote| clone(bench, &room, remote);
    let case = "clone, 50 MB, 10k commits";
    let compare = |case: &str, reference: Option<&Remote>, report: &mut Report| {
        Comparison { case, rounds, ours: &ours, reference, most: Some(1.1) }.measure(bench, report, run)
    };
    let Some(other) = &bench.reference else { return compare(case, None, report) };
    // The reference is measured twice: with its own maintenance, and with the files of our maintenance.
    let tidied = other.copy(&bench.client, "clone", &source)?;
    bench.client.text(&other.path("clone"), &["gc", "-q"])?;
    compare(case, Some(&tidied), report)?;
    let same = other.copy(&bench.client, "clone-same", &bench.server.path(&repo)?)?;
    compare(&format!("{case}, same packs"), Some(&same), report)
}

/// Clones without a working tree, whose checkout costs the same on both sides.
pub(crate) fn clone(bench: &Bench, room: &Path, remote: &Remote) -> Result<Duration, Failure> {
    let target = room.join("clone");
    let took = bench.client.time(room, remote, &["clone", "-q", "--bare", &remote.url, "clone"])?;
    std::fs::remove_dir_all(target).map_err(io("remove a clone"))?;
    Ok(took)
}
