//! `abide bench attention`
//!
//! `stars.rs`: starring and unstarring, compared with the same rows written by bare SQL. `fan_out.rs`: cost of an event
//! with many recipients. `deliveries.rs`: webhooks to a receiver in this process. `home.rs`: the home feed of a user
//! who watches many repositories, over a long log.

mod deliveries;
mod fan_out;
mod home;
mod stars;

use super::common::bare::At;
use super::common::scratch::Scratch;
use super::report::Report;
use super::{Stop, temporary};
use crate::{Failure, Machine, Output};
use abide_store::Options;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// Events in the log of the home feed.
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u32).range(10_000..))]
    events: u32,
    /// Repositories that the reader of the home feed watches.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    watched: u32,
    /// Recipients of each event.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    watchers: u32,
    /// Number of events, and of deliveries.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Duration of the star runs, with one and with eight writers.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Only these parts: stars, fan-out, deliveries, home.
    #[arg(long, value_delimiter = ',', value_parser = ["stars", "fan-out", "deliveries", "home"])]
    only: Vec<String>,
    /// Parent of the temporary directory: use a disk like the one for the data.
    #[arg(long, value_name = "DIR")]
    temp: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// An engine, and the location of its databases.
enum BenchDatabase<'a> {
    Sqlite(PathBuf),
    Postgres(&'a str),
}

pub(crate) async fn run(machine: &Machine, args: Args) -> Result<Output, Failure> {
    let stop = Stop::on_signals()?;
    let mut report = Report::default();
    let dir = temporary(args.temp.as_deref())?;
    measure("SQLite", &BenchDatabase::Sqlite(dir.path().join("sqlite")), &args, &stop, &mut report).await?;
    match machine.database.as_deref() {
        None => report.note("no PostgreSQL: --database postgres://… names a server where databases may be created"),
        Some(url) => measure("PostgreSQL", &BenchDatabase::Postgres(url), &args, &stop, &mut report).await?,
    }
    report.note("stars: one row, one event and one audit row; ours also judges, counts against the limit and locks");
    report.note(format!("fan-out: an issue is opened; {} watchers get a notification, without mail", args.watchers));
    report.note("deliveries: one hook, so one at a time and in order, each written before and after it is sent");
    report.note(format!("home: {} events, {} repositories watched, 50 people followed", args.events, args.watched));
    Ok(report.output(args.json))
}

async fn measure(
    engine: &'static str,
    database: &BenchDatabase<'_>,
    args: &Args,
    stop: &Stop,
    report: &mut Report,
) -> Result<(), Failure> {
    let wanted = |part: &str| args.only.is_empty() || args.only.iter().any(|only| only == part);
    if wanted("stars") {
        eprintln!("{engine}, stars …");
        with_database(database, "stars", async |site| stars::measure(engine, &site, args, stop, report).await).await?;
    }
    if wanted("fan-out") {
        eprintln!("{engine}, fan-out …");
        with_database(database, "fan-out", async |site| fan_out::measure(engine, &site, args, stop, report).await)
            .await?;
    }
    if wanted("deliveries") {
        eprintln!("{engine}, deliveries …");
        let run = async |site: Site| deliveries::measure(engine, &site, args, stop, report).await;
        with_database(database, "deliveries", run).await?;
    }
    if wanted("home") {
        eprintln!("{engine}, home feed: filling the log …");
        with_database(database, "home", async |site| home::measure(engine, &site, args, stop, report).await).await?;
    }
    Ok(())
}

/// An empty database: the options of the forge, the options of bare connections, and the directory of the repositories.
struct Site {
    options: Options,
    bare: At,
    data: PathBuf,
}

/// Runs a benchmark on a temporary database.
async fn with_database(
    database: &BenchDatabase<'_>,
    part: &str,
    run: impl AsyncFnOnce(Site) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match database {
        BenchDatabase::Sqlite(dir) => {
            let data = dir.join(part);
            std::fs::create_dir_all(&data).map_err(super::io("make a data directory"))?;
            let file = data.join("abide.db");
            let done = run(Site { bare: At::sqlite(&file), options: Options::sqlite(file), data: data.clone() }).await;
            // The next part needs the room.
            std::fs::remove_dir_all(&data).map_err(super::io("remove a data directory"))?;
            done
        }
        BenchDatabase::Postgres(url) => {
            let (scratch, dir) = (Scratch::create(url).await?, temporary(None)?);
            let bare = At::postgres(scratch.url())?;
            let site = Site { options: Options::postgres(scratch.url()), bare, data: dir.path().to_owned() };
            let done = run(site).await;
            scratch.remove().await?;
            done
        }
    }
}
