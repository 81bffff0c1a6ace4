//! A clone of a middling repository: 50 MB in 10,000 commits.

use super::data::History;
use super::{Bench, Remote, io, say};
use crate::commands::bench::report::{Line, Report, Target, Unit};
use crate::failure::Failure;
use std::path::Path;
use std::time::Duration;

const SHAPE: History = History { commits: 10_000, files: 1_000, file_bytes: 5_000 };

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    say("clone of 50 MB in 10,000 commits");
    let room = bench.room("clone")?;
    let source = room.join("source");
    bench.client.import(&source, &|out| SHAPE.write(out))?;
    let repo = bench.server.create("clone")?;
    let ours = bench.server.http(&repo);
    bench.client.push_all(&source, &ours)?;
    bench.server.maintain(&repo)?;
    let rounds = bench.rounds_over(4);
    let run = |_, remote: &Remote| clone(bench, &room, remote);
    let case = "clone, 50 MB, 10k commits";
    let line =
        |case: &str, mine, theirs| Line::new(case, Unit::Milliseconds, mine).beside(theirs).target(Target::Ratio(1.1));
    let Some(other) = &bench.reference else {
        let (mine, _) = bench.in_turn(rounds, &ours, None, &run)?;
        report.add(line(case, mine, None));
        return Ok(());
    };
    // Each side tidied its own way, and then the reference with the very files that we made.
    let tidied = other.copy(&bench.client, "clone", &source)?;
    bench.client.text(&other.path("clone"), &["gc", "-q"])?;
    let same = other.copy(&bench.client, "clone-same", &bench.server.path(&repo)?)?;
    for (case, reference) in [(case.to_owned(), tidied), (format!("{case}, same packs"), same)] {
        let (mine, theirs) = bench.in_turn(rounds, &ours, Some(&reference), &run)?;
        report.add(line(&case, mine, theirs));
    }
    Ok(())
}

/// Clones without a working tree, which would be the same work of the client on both sides.
pub(super) fn clone(bench: &Bench, room: &Path, remote: &Remote) -> Result<Duration, Failure> {
    let target = room.join("clone");
    let took = bench.client.time(room, remote, &["clone", "-q", "--bare", &remote.url, "clone"])?;
    std::fs::remove_dir_all(target).map_err(io("remove a clone"))?;
    Ok(took)
}
