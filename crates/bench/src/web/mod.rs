//! `abide bench web`
//!
//! A private server of this binary with generated repositories, and requests for pages over keep-alive connections
//! (`visitor.rs`). The reference of each page is the git command line for the same content, including process starts.

mod repos;
mod visitor;

use super::common::client::Client;
use super::common::memory;
use super::common::server::{Repo, Server};
use super::report::{Line, Report, Target, Unit};
use super::samples::Samples;
use super::{Stop, io, temporary};
use crate::{Failure, Machine, Output};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use visitor::Visitor;

#[derive(clap::Args)]
pub struct Args {
    /// Requests per page.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(5..))]
    rounds: u16,
    /// Files in the large directory.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    files: u32,
    /// Commits in the long history.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    commits: u32,
    /// Concurrent visitors.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    visitors: u16,
    /// Duration of the load test.
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..))]
    load_time: u16,
    /// Parent of the temporary directory.
    #[arg(long, value_name = "DIR")]
    temp: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(machine: &Machine, args: Args) -> Result<Output, Failure> {
    let stop = Stop::on_signals()?;
    let git = machine.git.clone();
    let measured =
        tokio::task::spawn_blocking(move || measure(&args, &git, stop).map(|report| report.output(args.json)));
    measured.await.map_err(|error| Failure::failed(format!("the benchmark ended early: {error}")))?
}

struct Bench<'a> {
    args: &'a Args,
    client: Client,
    server: Server,
    root: &'a Path,
}

fn measure(args: &Args, git: &str, stop: Stop) -> Result<Report, Failure> {
    let root = temporary(args.temp.as_deref())?;
    let client = Client::new(git, root.path(), stop)?;
    let binary = std::env::current_exe().map_err(io("find this binary"))?;
    let server = Server::start(&binary, &root.path().join("data"))?.0.with_account()?;
    let bench = Bench { args, client, server, root: root.path() };
    let mut report = Report::default();
    directory(&bench, &mut report)?;
    history(&bench, &mut report)?;
    home(&bench, &mut report)?;
    let resident = memory::resident(bench.server.id()).unwrap_or(f64::NAN);
    report.add(
        Line::new("server RSS after all of it", Unit::Mebibytes, Samples::of(resident)).target(Target::Below(200.0)),
    );
    report.note("pages are asked for over one kept connection, without a cookie; values are 95th percentiles");
    report.note("the reference is the git command line with the same answer, started anew each time, as its median");
    Ok(report)
}

impl Bench<'_> {
    /// Fills a repository of the server with generated content, and runs its maintenance.
    fn fill(
        &self,
        name: &str,
        write: &dyn Fn(&mut dyn std::io::Write) -> std::io::Result<()>,
    ) -> Result<(Repo, PathBuf), Failure> {
        let source = self.root.join(format!("{name}-source"));
        self.client.import(&source, write)?;
        let repo = self.server.create(name)?;
        self.server.fill(&repo, &source)?;
        self.server.maintain(&repo)?;
        let path = self.server.path(&repo)?;
        Ok((repo, path))
    }

    /// Milliseconds of repeated requests for a page; the first one is listed separately.
    fn ask(&self, path: &str) -> Result<(f64, Samples), Failure> {
        let mut visitor = Visitor::new(self.server.address())?;
        let first = visitor.get(path)?;
        let mut samples = Samples::default();
        for _ in 0..self.args.rounds {
            samples.push(visitor.get(path)?.as_secs_f64() * 1e3);
        }
        Ok((first.as_secs_f64() * 1e3, samples))
    }

    /// Milliseconds that git commands take, one after the other.
    fn git(&self, dir: &Path, rounds: usize, commands: &[&[&str]]) -> Result<Samples, Failure> {
        let mut samples = Samples::default();
        for _ in 0..rounds {
            let start = Instant::now();
            for command in commands {
                self.client.text(dir, command)?;
            }
            samples.push(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(samples)
    }
}

fn directory(bench: &Bench<'_>, report: &mut Report) -> Result<(), Failure> {
    let files = bench.args.files as usize;
    eprintln!("a directory of {files} files …");
    let (repo, path) = bench.fill("wide", &|out| repos::wide(files, out))?;
    let page = format!("{}/tree/main/many", bench.server.page(&repo));
    let (first, samples) = bench.ask(&page)?;
    let log: &[&str] = &["log", "--format=%H %ct %s", "--name-only", "main", "--", "many"];
    let reference = bench.git(&path, 3, &[&["ls-tree", "main:many"], log])?;
    let name = format!("tree page, {files} files with last commits");
    report.add(
        Line::new(format!("{name}, first"), Unit::Milliseconds, Samples::of(first)).beside(Some(reference.clone())),
    );
    let p95 = Samples::of(samples.quantile(0.95));
    report.add(Line::new(name, Unit::Milliseconds, p95).beside(Some(reference)).target(Target::Below(100.0)));
    Ok(())
}

fn history(bench: &Bench<'_>, report: &mut Report) -> Result<(), Failure> {
    let commits = bench.args.commits as usize;
    eprintln!("a history of {commits} commits …");
    let (repo, path) = bench.fill("deep", &|out| repos::deep(commits, out))?;
    let page = bench.server.page(&repo);
    let skip = (commits / 2).to_string();
    for (name, address, skip) in [
        ("commit list", format!("{page}/commits/main"), "0"),
        ("commit list, half way back", format!("{page}/commits/main?page={}", commits / 60), skip.as_str()),
    ] {
        let (first, samples) = bench.ask(&address)?;
        let skip = format!("--skip={skip}");
        let reference = bench.git(
            &path,
            10,
            &[&["log", "-30", &skip, "--format=%H %an %ct %s", "main"], &["rev-parse", "main"]],
        )?;
        let name = format!("{name} of {commits} commits");
        report.add(
            Line::new(format!("{name}, first"), Unit::Milliseconds, Samples::of(first))
                .beside(Some(reference.clone()))
                .target(Target::Below(50.0)),
        );
        let p95 = Samples::of(samples.quantile(0.95));
        report.add(Line::new(name, Unit::Milliseconds, p95).beside(Some(reference)).target(Target::Below(50.0)));
    }
    Ok(())
}

fn home(bench: &Bench<'_>, report: &mut Report) -> Result<(), Failure> {
    eprintln!("many visitors at one repository's home …");
    let (repo, path) = bench.fill("home", &repos::home)?;
    let page = bench.server.page(&repo);
    let (_, _) = bench.ask(&page)?;
    let time = Duration::from_secs(bench.args.load_time.into());
    let ours = visitor::load(bench.server.address(), &page, bench.args.visitors.into(), time)?;
    let commands: [&[&str]; 4] = [
        &["ls-tree", "main"],
        &["log", "--format=%H %ct %s", "--name-only", "main"],
        &["rev-list", "--count", "main"],
        &["show", "main:README.md"],
    ];
    let one = bench.git(&path, 20, &commands)?.median() / 1e3;
    // One process per core is the highest throughput of starting processes.
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    report.add(
        Line::new("repository home, requests", Unit::PerSecond, Samples::of(ours))
            .beside(Some(Samples::of(cores / one)))
            .target(Target::AtLeast(1500.0)),
    );
    Ok(())
}
