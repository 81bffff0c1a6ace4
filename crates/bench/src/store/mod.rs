//! `abide bench store`
//!
//! A unit has the rows of a small use case: a domain event, an audit row, and the repository's row. `seed.rs` fills a
//! fresh database, `ours.rs` uses `abide_store::Store`, `bare.rs` runs the same statements on bare connections.

mod bare;
mod ours;
mod seed;

use super::common::bare::At;
use super::common::scratch::Scratch;
use super::report::{Line, Report, Unit};
use super::samples::Samples;
use super::{Stop, temporary};
use crate::{Failure, Machine, Output};
use abide_core::time::SystemClock;
use abide_store::{Options, Store};
use bare::Bare;
use seed::Seed;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Pieces of a measurement, which alternate with those of the other side.
const PIECES: u32 = 4;

/// Largest group commit of SQLite's writer, and so the batch of the bare SQL it is compared with.
const BATCH: usize = 64;

#[derive(clap::Args)]
pub struct Args {
    /// Concurrent writers or readers, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64], value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=512))]
    writers: Vec<u16>,
    /// Duration of each measurement.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Parent of the temporary directory: use a disk like the one for the database.
    #[arg(long, value_name = "DIR")]
    temp: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(machine: &Machine, args: Args) -> Result<Output, Failure> {
    let stop = Stop::on_signals()?;
    let mut report = Report::default();
    report.note("a unit: one domain event, one audit row, one repository's row updated; durable when it returns");
    sqlite(&args, &stop, &mut report).await?;
    match machine.database.as_deref() {
        None => report.note("no PostgreSQL: --database postgres://… names a server where databases may be created"),
        Some(url) => postgres(&args, url, &stop, &mut report).await?,
    }
    Ok(report.output(args.json))
}

async fn sqlite(args: &Args, stop: &Stop, report: &mut Report) -> Result<(), Failure> {
    let dir = temporary(args.temp.as_deref())?;
    // A file each: neither side waits for the other's lock or reads what the other wrote.
    let [mine, theirs] = ["ours.db", "bare.db"].map(|name| Options::sqlite(dir.path().join(name)));
    let mut pair = Pair::open("SQLite", &mine, &theirs, Bare::new(At::sqlite(&theirs.sqlite_file))).await?;
    pair.measure(args, stop, report).await?;
    report.note(format!(
        "bare SQLite: one connection, BEGIN IMMEDIATE … COMMIT at synchronous=FULL; as upper bound {BATCH} units each"
    ));
    pair.close().await;
    Ok(())
}

async fn postgres(args: &Args, url: &str, stop: &Stop, report: &mut Report) -> Result<(), Failure> {
    let (mine, theirs) = (Scratch::create(url).await?, Scratch::create(url).await?);
    let measured = async {
        let (ours, bare) = (Options::postgres(mine.url()), Options::postgres(theirs.url()));
        let mut pair = Pair::open("PostgreSQL", &ours, &bare, Bare::new(At::postgres(theirs.url())?)).await?;
        let measured = pair.measure(args, stop, report).await;
        pair.close().await;
        measured
    };
    let measured = measured.await;
    // The databases are removed after failures too.
    let dropped = [mine.remove().await, theirs.remove().await];
    measured?;
    dropped.into_iter().collect::<Result<(), _>>()?;
    report.note("bare PostgreSQL: a connection for each writer and reader, a transaction for each unit");
    report.note(format!("ours shares {} connections", Options::postgres("").connections));
    Ok(())
}

/// The two sides on one engine.
struct Pair {
    engine: &'static str,
    ours: Store,
    seed: Arc<Seed>,
    bare: Bare,
    bare_seed: Arc<Seed>,
}

impl Pair {
    async fn open(engine: &'static str, ours: &Options, theirs: &Options, bare: Bare) -> Result<Self, Failure> {
        let open = async |options| Store::open(options, Arc::new(SystemClock)).await.map_err(failed);
        let (ours, theirs) = (open(ours).await?, open(theirs).await?);
        let (seed, bare_seed) = (Seed::plant(&ours).await?, Seed::plant(&theirs).await?);
        // The store created schema and rows; from here on that side uses bare connections.
        theirs.close().await;
        Ok(Self { engine, ours, seed: Arc::new(seed), bare, bare_seed: Arc::new(bare_seed) })
    }

    async fn measure(&mut self, args: &Args, stop: &Stop, report: &mut Report) -> Result<(), Failure> {
        let piece = Duration::from_secs(args.seconds) / PIECES;
        let engine = self.engine;
        for &count in &args.writers {
            let count = usize::from(count);
            eprintln!("{engine}, {count} at once …");
            let [mut ours, mut bare, mut batched] = <[Samples; 3]>::default();
            for _ in 0..PIECES {
                stop.check()?;
                ours.push(ours::write(&self.ours, &self.seed, count, piece).await?);
                bare.push(self.bare.write(&self.bare_seed, count, 1, piece).await?);
                if self.bare.has_one_writer() {
                    batched.push(self.bare.write(&self.bare_seed, count, BATCH, piece).await?);
                }
            }
            let line = Line::new(format!("{engine}, units, {count} writing"), Unit::PerSecond, ours.clone());
            report.add(line.beside(Some(bare)));
            if batched.len() > 0 {
                let case = format!("{engine}, units, {count} writing, beside {BATCH} in a transaction");
                report.add(Line::new(case, Unit::PerSecond, ours).beside(Some(batched)));
            }
            let [mut ours, mut bare] = <[Samples; 2]>::default();
            for _ in 0..PIECES {
                stop.check()?;
                ours.push(ours::read(&self.ours, &self.seed, count, piece).await?);
                bare.push(self.bare.read(&self.bare_seed, count, piece).await?);
            }
            let line = Line::new(format!("{engine}, repository by slug, {count} reading"), Unit::PerSecond, ours);
            report.add(line.beside(Some(bare)));
        }
        Ok(())
    }

    async fn close(self) {
        self.ours.close().await;
        self.bare.close().await;
    }
}

/// Runs `workers` workers until the time is over, and returns their operations per second.
pub(crate) async fn per_second<F>(
    workers: usize,
    time: Duration,
    work: impl Fn(usize, Instant) -> F,
) -> Result<f64, Failure>
where
    F: Future<Output = Result<usize, Failure>> + Send + 'static,
{
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for worker in 0..workers {
        tasks.spawn(work(worker, start + time));
    }
    let mut done = 0;
    while let Some(ended) = tasks.join_next().await {
        done += ended.map_err(failed)??;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

/// A statement that failed measures nothing.
pub(crate) fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("the database failed: {error}"))
}
