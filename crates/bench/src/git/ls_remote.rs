//! Listing refs: few and many.

use super::compare::Comparison;
use super::data::{self, History};
use super::{Bench, Remote, io, say, ssh};
use crate::Failure;
use crate::report::Report;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    one(bench, 1_000, bench.rounds, report)?;
    if bench.signer.is_some() {
        report.note("50,000 refs are more than a signed state may name");
        return Ok(());
    }
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

    let repo = bench.create(&name)?;
    let ours = bench.ours(&repo);
    match bench.signer {
        // A signed repository exists only after a push, so the server has read its refs and it cannot be filled on
        // disk.
        Some(_) => drop(bench.push_all(&source, &ours)?),
        None => bench.server.fill(&repo, &source)?,
    }
    bench.server.maintain(&repo)?;
    let reference = bench.reference.as_ref().map(|other| other.copy(&bench.client, &name, &source)).transpose()?;
    if let Some(other) = &bench.reference {
        bench.client.text(&other.path(&name), &["gc", "-q"])?;
    }
    let run = |_, remote: &Remote| bench.client.time(&source, remote, &["ls-remote", "-q", &remote.url]);
    let case = format!("ls-remote, {shown}");
    let both = Comparison { case: &case, rounds, ours: &ours, reference: reference.as_ref(), most: Some(1.1) };
    both.measure(bench, report, run)?;
    if let Some(command) = ssh::command(bench)? {
        let (case, rounds) = (format!("{case}, over SSH"), bench.rounds_over(3));
        let remote = bench.server.ssh(&repo, command);
        let alone = Comparison { case: &case, rounds, ours: &remote, reference: None, most: None };
        alone.measure(bench, report, run)?;
    }
    Ok(())
}
