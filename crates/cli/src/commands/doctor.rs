//! `abide doctor`

use super::with_forge;
use crate::config::Config;
use crate::failure::Failure;
use crate::show::{self, say};
use abide_forge::doctor::{self, Depth, Report};
use serde_json::json;
use std::process::ExitCode;

/// Exit code if the doctor found problems.
const SICK: u8 = 5;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Check every object reachable from any ref. Without it: the tips of all refs, and all objects of some repositories
    /// of at most 64 MiB.
    #[arg(long)]
    deep: bool,
    /// Repair first: finish interrupted work, and move (never delete) unknown files to quarantine.
    #[arg(long)]
    fix: bool,
}

pub(crate) async fn run(config: &Config, args: &Args) -> Result<ExitCode, Failure> {
    let depth = if args.deep { Depth::Deep } else { Depth::Sample };
    let (done, report) = with_forge(config, async |forge| {
        let done = if args.fix { doctor::fix_to(forge, depth).await? } else { Vec::new() };
        Ok((done, doctor::examine_to(forge, depth).await?))
    })
    .await?;
    if args.json {
        as_json(&done, &report)
    } else {
        as_lines(&done, &report)
    }
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(SICK) })
}

fn as_json(done: &[String], report: &Report) {
    let findings: Vec<_> =
        report.findings.iter().map(|found| json!({ "check": found.check, "message": found.message })).collect();
    show::json(&json!({
        "healthy": findings.is_empty(),
        "findings": findings,
        "fixed": done,
        "repositories": report.repos,
        "repositories_walked": report.walked,
        "repositories_too_large": report.too_large,
        "audit": { "sealed": report.chain.sealed, "unsealed": report.chain.unsealed, "broken_at": report.chain.broken_at },
        "events_unnumbered": report.events_unnumbered,
        "pushes_running": report.pushes_running,
        "purges_waiting": report.purges_waiting,
        "disk": report.disk,
    }));
}

fn as_lines(done: &[String], report: &Report) {
    for line in done {
        say!("FIXED  {line}");
    }
    say!("repositories  {} checked, {} of them completely", report.repos, report.walked);
    if report.too_large > 0 {
        say!(
            "              {} larger than 64 MiB: only the tips of their refs were checked; `abide doctor --deep` checks all objects",
            report.too_large
        );
    }
    say!("audit chain   {} rows sealed, {} pending", report.chain.sealed, report.chain.unsealed);
    say!("event log     {} waiting for their sequence number", report.events_unnumbered);
    say!("pushes        {} running", report.pushes_running);
    say!("removals      {} waiting for the next sweep", report.purges_waiting);
    if let Some(notice) = &report.disk {
        say!("disk          {notice}");
    }
    for found in &report.findings {
        say!("WRONG  {}: {}", found.check, found.message);
    }
    match report.findings.len() {
        0 => say!("Everything is in order."),
        1 => say!("1 problem found."),
        count => say!("{count} problems found."),
    }
}
