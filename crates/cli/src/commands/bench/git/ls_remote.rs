//! Listing refs: few and many.

use super::data::{self, History};
use super::{Bench, Remote, io, say, ssh};
use crate::commands::bench::report::{Line, Report, Target, Unit};
use crate::failure::Failure;

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    one(bench, 1_000, bench.rounds, report)?;
    one(bench, 50_000, bench.rounds_over(2), report)
}

fn one(bench: &Bench, refs: usize, rounds: usize, report: &mut Report) -> Result<(), Failure> {
    let shown = if refs < 10_000 { "1k refs" } else { "50k refs" };
    say(&format!("ls-remote, {shown}"));
    let name = format!("refs-{refs}");
    let source = bench.room(&name)?;
    bench.client.import(&source, &|out| History { commits: 100, files: 100, file_bytes: 200 }.write(out))?;
    let list = bench.client.text(&source, &["rev-list", "--reverse", "main"])?;
    let objects: Vec<_> = list.lines().collect();
    data::write_refs(&source, &objects, refs).map_err(io("write refs"))?;

    let repo = bench.server.create(&name)?;
    let ours = bench.server.http(&repo);
    bench.server.fill(&repo, &source)?;
    bench.server.maintain(&repo)?;
    let reference = bench.reference.as_ref().map(|other| other.copy(&bench.client, &name, &source)).transpose()?;
    if let Some(other) = &bench.reference {
        bench.client.text(&other.path(&name), &["gc", "-q"])?;
    }
    let run = |_, remote: &Remote| bench.client.time(&source, remote, &["ls-remote", "-q", &remote.url]);
    let (mine, theirs) = bench.in_turn(rounds, &ours, reference.as_ref(), &run)?;
    let case = format!("ls-remote, {shown}");
    report.add(Line::new(case.clone(), Unit::Milliseconds, mine).beside(theirs).target(Target::Ratio(1.1)));
    if let Some(command) = ssh::command(bench)? {
        let remote = bench.server.ssh(&repo, command);
        let (mine, _) = bench.in_turn(bench.rounds_over(3), &remote, None, &run)?;
        report.add(Line::new(format!("{case}, over SSH"), Unit::Milliseconds, mine));
    }
    Ok(())
}
