//! A small push: one commit with one small file onto an existing branch.

use super::compare::Comparison;
use super::data::History;
use super::{Bench, Remote, say, ssh};
use crate::Failure;
use crate::report::Report;
use std::path::Path;
use std::time::Duration;

/// Refs that exist before the first push.
const BEFORE: usize = 200;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), Failure> {
    say("small push");
    let source = bench.room("small-push")?;
    let shape = History { commits: BEFORE + 1 + bench.rounds, files: 100, file_bytes: 1000 };
    bench.client.import(&source, &|out| shape.write(out))?;
    let list = bench.client.text(&source, &["rev-list", "--reverse", "main"])?;
    let commits: Vec<_> = list.lines().collect();

    let repo = bench.create("small-push")?;
    let ours = bench.ours(&repo);
    let reference = bench.reference.as_ref().map(|other| other.create(&bench.client, "small-push")).transpose()?;
    for remote in [Some(&ours), reference.as_ref()].into_iter().flatten() {
        push(bench, &source, remote, commits[BEFORE - 1])?;
    }
    // Both sides start after maintenance, because our server runs it after the first push of a repository.
    bench.server.maintain(&repo)?;
    if let Some(other) = &bench.reference {
        bench.client.text(&other.path("small-push"), &["gc", "-q"])?;
    }
    let run = |round: usize, remote: &Remote| push(bench, &source, remote, commits[BEFORE + round]);
    let (rounds, reference) = (bench.rounds, reference.as_ref());
    let both = Comparison { case: "small push", rounds, ours: &ours, reference, most: Some(1.0) };
    both.measure(bench, report, run)?;

    if let Some(command) = ssh::command(bench)? {
        let repo = bench.server.create("small-push-ssh")?;
        let remote = bench.server.ssh(&repo, command);
        push(bench, &source, &remote, commits[BEFORE - 1])?;
        bench.server.maintain(&repo)?;
        let rounds = bench.rounds_over(2);
        let alone = Comparison { case: "small push over SSH", rounds, ours: &remote, reference: None, most: None };
        alone.measure(bench, report, run)?;
    }
    Ok(())
}

fn push(bench: &Bench, source: &Path, remote: &Remote, commit: &str) -> Result<Duration, Failure> {
    bench.allow(remote, &[("refs/heads/main", commit)])?;
    bench.client.time(source, remote, &["push", "-q", &remote.url, &format!("{commit}:refs/heads/main")])
}
