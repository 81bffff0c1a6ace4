//! `abide bench lifecycle`
//!
//! Every operation of a repository's life through its use case, durable when it returns: on a large and an empty
//! repository, where the ratio should be about one because nothing on disk moves, and with several writers at once.
//! Permanent deletion is the only operation that changes the disk, so it may cost more.

use super::common::client::Client;
use super::common::data::History;
use super::common::scratch::Scratch;
use super::common::site::{self, failed};
use super::report::{Line, Report, Target, Unit};
use super::samples::Samples;
use super::{Stop, io, temporary};
use crate::{Failure, Machine, Output};
use abide_core::repo::Visibility;
use abide_core::transfer::Answer;
use abide_forge::repos::{Repo, delete, marks, purge, rename, restore, transfer};
use abide_forge::{Caller, Forge};
use abide_git::Layout;
use abide_store::Options;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

#[derive(clap::Args)]
pub struct Args {
    /// Size of the large repository, in MiB.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    mebibytes: u32,
    /// Rounds of each operation on each repository.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Concurrent workers.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    writers: u16,
    /// Full lifecycles per worker.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    lives: u32,
    /// Parent of the temporary directory: use a disk like the one for the data.
    #[arg(long, value_name = "DIR")]
    temp: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(machine: &Machine, args: Args) -> Result<Output, Failure> {
    let stop = Stop::on_signals()?;
    let mut report = Report::default();
    let dir = temporary(args.temp.as_deref())?;
    let client = Client::new(&machine.git, dir.path(), stop.clone())?;
    eprintln!("making {} MiB …", args.mebibytes);
    let large = dir.path().join("large");
    let size = History { commits: args.mebibytes as usize, files: 64, file_bytes: 1 << 20 };
    client.import(&large, &|out| size.write(out))?;

    let options = Options::sqlite(dir.path().join("abide.db"));
    measure("SQLite", &options, &dir.path().join("sqlite"), &large, &args, &stop, &mut report).await?;
    match machine.database.as_deref() {
        None => report.note("no PostgreSQL: --database postgres://… names a server where databases may be created"),
        Some(url) => {
            let scratch = Scratch::create(url).await?;
            let options = Options::postgres(scratch.url());
            let data = dir.path().join("postgres");
            let measured = measure("PostgreSQL", &options, &data, &large, &args, &stop, &mut report).await;
            let dropped = scratch.remove().await;
            measured?;
            dropped?;
        }
    }
    report.note(format!("ours: a repository of {} MiB; reference: an empty one; medians of both", args.mebibytes));
    report.note("removal for good: the directory goes with it, so it may take longer; nobody waits for it");
    Ok(report.output(args.json))
}

/// Measured operations, in an order that ends in the initial state.
const OPERATIONS: [&str; 9] =
    ["rename", "archive", "unarchive", "make private", "make public", "offer", "accept", "soft delete", "restore"];

async fn measure(
    engine: &str,
    options: &Options,
    data: &Path,
    large: &Path,
    args: &Args,
    stop: &Stop,
    report: &mut Report,
) -> Result<(), Failure> {
    eprintln!("{engine} …");
    let site = Site::open(options, data).await?;
    let big = site.repo("big").await?;
    fill(&site.layout.repo(big.id), large)?;
    let mut sides = [big, site.repo("empty").await?];
    let mut samples = vec![<[Samples; 2]>::default(); OPERATIONS.len()];
    for round in 0..=args.rounds {
        for turn in [0, 1] {
            let side = if round % 2 == 0 { turn } else { 1 - turn };
            stop.check()?;
            let took = site.live(&mut sides[side], round).await?;
            // The first round only warms up.
            if round > 0 {
                took.iter().zip(&mut samples).for_each(|(took, samples)| samples[side].push(millis(*took)));
            }
        }
    }
    for (name, [ours, reference]) in OPERATIONS.iter().zip(samples) {
        let line = Line::new(format!("{engine}, {name}"), Unit::Milliseconds, ours);
        report.add(line.beside(Some(reference)).target(Target::Ratio(1.2)));
    }
    let [big, empty] = &sides;
    let (big, empty) = (site.remove(big).await?, site.remove(empty).await?);
    let line = Line::new(format!("{engine}, removal for good"), Unit::Milliseconds, Samples::of(millis(big)));
    report.add(line.beside(Some(Samples::of(millis(empty)))));
    crowd(engine, &site, args, stop, report).await?;
    site.forge.close().await;
    Ok(())
}

/// Full lifecycles of many repositories in parallel.
async fn crowd(engine: &str, site: &Site, args: &Args, stop: &Stop, report: &mut Report) -> Result<(), Failure> {
    let mut tasks = JoinSet::new();
    for writer in 0..args.writers {
        let (site, lives, stop) = (site.clone(), args.lives, stop.clone());
        let mut repo = site.repo(&format!("crowd-{writer}")).await?;
        tasks.spawn(async move {
            let mut all = Vec::new();
            for round in 0..lives {
                stop.check()?;
                all.push(site.live(&mut repo, round).await?);
            }
            Ok::<_, Failure>(all)
        });
    }
    let mut samples = vec![Samples::default(); OPERATIONS.len()];
    while let Some(ended) = tasks.join_next().await {
        for took in ended.map_err(|error| Failure::failed(error.to_string()))?? {
            took.iter().zip(&mut samples).for_each(|(took, samples)| samples.push(millis(*took)));
        }
    }
    for (name, samples) in OPERATIONS.iter().zip(samples) {
        let p99 = Samples::of(samples.quantile(0.99));
        let case = format!("{engine}, {name}, p99 with {} writers", args.writers);
        report.add(Line::new(case, Unit::Milliseconds, p99));
    }
    Ok(())
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

/// Copies the objects of one repository into another.
fn fill(repo: &Path, from: &Path) -> Result<(), Failure> {
    let packs = std::fs::read_dir(from.join("objects/pack")).map_err(io("read what was made"))?;
    for pack in packs {
        let pack = pack.map_err(io("read what was made"))?;
        let target = repo.join("objects/pack").join(pack.file_name());
        std::fs::copy(pack.path(), target).map_err(io("put the objects in place"))?;
    }
    let head = std::fs::read(from.join("refs/heads/main")).map_err(io("read what was made"))?;
    std::fs::write(repo.join("refs/heads/main"), head).map_err(io("set the branch"))
}

/// A forge with two people.
#[derive(Clone)]
struct Site {
    forge: Forge,
    layout: Layout,
    alice: Caller,
    bob: Caller,
}

impl Site {
    async fn open(options: &Options, data: &Path) -> Result<Self, Failure> {
        let (forge, layout) = site::open(options, data).await?;
        let (alice, bob) = (site::person(&forge, "alice").await?, site::person(&forge, "bob").await?);
        Ok(Self { forge, layout, alice, bob })
    }

    async fn repo(&self, name: &str) -> Result<Repo, Failure> {
        site::repo(&self.forge, &self.alice, name).await
    }

    /// One round of [`OPERATIONS`], with the time of each. Alice and Bob own the repository in turn.
    async fn live(&self, repo: &mut Repo, round: u32) -> Result<Vec<Duration>, Failure> {
        let forge = &self.forge;
        let (owner, other, to) = match repo.owner_id == self.alice.user_id().unwrap_or(repo.owner_id) {
            true => (&self.alice, &self.bob, "bob"),
            false => (&self.bob, &self.alice, "alice"),
        };
        let name = format!("life-{}-{}", repo.id, round % 2);
        let mut took = Vec::with_capacity(OPERATIONS.len());
        let mut start = Instant::now();
        let mut lap = || {
            let now = Instant::now();
            took.push(now - start);
            start = now;
        };
        rename::rename(forge, owner, repo, &name).await.map_err(failed)?;
        lap();
        marks::archive(forge, owner, repo).await.map_err(failed)?;
        lap();
        marks::unarchive(forge, owner, repo).await.map_err(failed)?;
        lap();
        marks::set_visibility(forge, owner, repo, Visibility::Private).await.map_err(failed)?;
        lap();
        marks::set_visibility(forge, owner, repo, Visibility::Public).await.map_err(failed)?;
        lap();
        let offer = transfer::offer(forge, owner, repo, to).await.map_err(failed)?;
        lap();
        let id = offer.transfer.id.to_string();
        *repo = transfer::answer(forge, other, &id, Answer::Accept).await.map_err(failed)?.repo;
        lap();
        delete::delete(forge, other, repo).await.map_err(failed)?;
        lap();
        *repo = restore::restore(forge, other, &repo.id.to_string(), None).await.map_err(failed)?;
        lap();
        Ok(took)
    }

    /// Deletes a repository permanently, and returns the time.
    async fn remove(&self, repo: &Repo) -> Result<Duration, Failure> {
        let operator = Caller::operator();
        delete::delete(&self.forge, &operator, repo).await.map_err(failed)?;
        let start = Instant::now();
        purge::purge(&self.forge, &operator, repo).await.map_err(failed)?;
        Ok(start.elapsed())
    }
}
