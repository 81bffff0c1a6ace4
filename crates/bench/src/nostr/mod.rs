//! `abide bench nostr`
//!
//! `ingest.rs`: events over real sockets, durable when they are answered, compared with a loop that only checks
//! signatures; `steps.rs`: cost of each step. `ask.rs`: queries over many stored events, and one event to many
//! subscriptions. `events.rs` makes and signs events, `client.rs` is the client.

mod ask;
mod client;
pub(crate) mod events;
mod ingest;
mod steps;

pub(crate) use client::Client as Relay;

use super::common::memory::{self, Watch};
use super::common::scratch::Scratch;
use super::common::server::Server;
use super::report::{Line, Report, Unit};
use super::samples::Samples;
use super::{Stop, io, temporary};
use crate::{Failure, Machine, Output};
use abide_core::time::SystemClock;
use abide_nostr::Event;
use abide_store::{Options, Store, StoreError, nostr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(clap::Args)]
pub struct Args {
    /// Events to publish.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..))]
    events: u32,
    /// Connections to publish over.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    connections: u32,
    /// Stored events when queries are measured.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    stored: u32,
    /// Subscriptions that receive each new event.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(20..=20_000))]
    subscriptions: u32,
    /// Parent of the temporary directory: use a disk like the one for the data.
    #[arg(long, value_name = "DIR")]
    temp: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The measured server, and the address of its database.
struct Site {
    server: Server,
    options: Options,
}

pub(crate) async fn run(machine: &Machine, args: Args) -> Result<Output, Failure> {
    let stop = Stop::on_signals()?;
    let mut report = Report::default();
    let dir = temporary(args.temp.as_deref())?;
    eprintln!("signing {} events …", args.events);
    let batch = events::signed(args.events as usize);
    let data = dir.path().join("sqlite");
    let options = Options::sqlite(data.join("abide.db"));
    measure("SQLite", start(&data, options, None)?, &batch, &args, &stop, &mut report).await?;
    match machine.database.as_deref() {
        None => report.note("no PostgreSQL: --database postgres://… names a server where databases may be created"),
        Some(url) => {
            let scratch = Scratch::create(url).await?;
            let site = start(&dir.path().join("postgres"), Options::postgres(scratch.url()), Some(scratch.url()))?;
            let done = measure("PostgreSQL", site, &batch, &args, &stop, &mut report).await;
            scratch.remove().await?;
            done?;
        }
    }
    report.note(format!("ingest: issues and comments of about 600 bytes over {} connections", args.connections));
    report.note("the clients run on the same machine and take their share of its cores");
    report.note(format!("questions: {} events stored, one client, up to 100 events each", args.stored));
    Ok(report.output(args.json))
}

fn start(data: &Path, options: Options, database: Option<&str>) -> Result<Site, Failure> {
    let binary = std::env::current_exe().map_err(io("find this binary"))?;
    let mut settings = vec![
        ("ABIDE_RELAY__EVENTS_PER_IP", "1000000000"),
        ("ABIDE_RELAY__CONNECTIONS_PER_IP", "1000"),
        ("ABIDE_SERVER__CONNECTIONS_PER_IP", "2000"),
        ("ABIDE_GRASP__ANNOUNCE", "open"),
        ("ABIDE_QUOTA__KEY_EVENTS", "1000000000"),
        ("ABIDE_QUOTA__KEY_BYTES", "1000GiB"),
        ("ABIDE_QUOTA__ADDRESS_BYTES_PER_DAY", "1000GiB"),
        ("ABIDE_QUOTA__STRANGERS_BYTES", "1000GiB"),
    ];
    settings.extend(database.map(|url| ("ABIDE_SERVER__DATABASE", url)));
    let (server, _) = Server::start_with(&binary, data, &settings)?;
    Ok(Site { server, options })
}

async fn measure(
    engine: &'static str,
    site: Site,
    batch: &events::Batch,
    args: &Args,
    stop: &Stop,
    report: &mut Report,
) -> Result<(), Failure> {
    let pid = site.server.id();
    let idle = memory::resident(pid).unwrap_or(f64::NAN);
    store(&site.options, std::slice::from_ref(&batch.announcement)).await?;
    eprintln!("{engine}, ingest …");
    let watch = Watch::start(pid);
    ingest::measure(engine, &site, batch, args, report)?;
    stop.check()?;
    eprintln!("{engine}, each step …");
    steps::measure(engine, &site, batch, report).await?;
    stop.check()?;
    eprintln!("{engine}, questions: storing {} events …", args.stored);
    store(&site.options, &events::filling(args.stored as usize)).await?;
    ask::questions(engine, &site, batch, report)?;
    stop.check()?;
    eprintln!("{engine}, {} subscriptions …", args.subscriptions);
    ask::fan_out(engine, &site, batch, args, report)?;
    let peak = watch.stop();
    report.add(Line::new(format!("{engine}, memory, idle"), Unit::Mebibytes, Samples::of(idle)));
    report.add(Line::new(format!("{engine}, memory, at most"), Unit::Mebibytes, Samples::of(peak.own)));
    Ok(())
}

/// Writes events into the database, without the rules.
async fn store(options: &Options, events: &[Event]) -> Result<(), Failure> {
    let options = Options { connections: 1, ..options.clone() };
    let store = Store::open(&options, Arc::new(SystemClock)).await.map_err(failed)?;
    for part in events.chunks(500) {
        let records: Vec<_> = part.iter().map(abide_forge::relay::to_record).collect();
        let written: Result<_, StoreError> =
            store.write(records, |tx, records| Box::pin(nostr::events::insert_many(tx, records))).await;
        written.map_err(failed)?;
    }
    store.close().await;
    Ok(())
}

fn failed(error: StoreError) -> Failure {
    Failure::failed(error.to_string())
}
