//! A large push and a large clone, and the server's memory meanwhile.

use super::clone::clone;
use super::data::Noise;
use super::memory::{Peak, Watch};
use super::{Bench, io, say};
use crate::Failure;
use crate::report::{Line, Report, Target, Unit};
use crate::samples::Samples;
use std::io::Write;
use std::time::Duration;

/// Target for the growth of the server's memory, in MiB.
const GROWTH: f64 = 64.0;

/// Half of the data is in blobs that git streams, half in smaller ones: git unpacks fewer than a hundred objects into
/// loose ones, which a typical large push does not do.
const LARGE_BLOB_MIB: u64 = 64;

/// Two rounds, because each is slow.
const ROUNDS: usize = 2;

/// One direction on one side.
#[derive(Default)]
struct Found {
    times: Samples,
    growth: Samples,
    peak: Samples,
    helpers: Samples,
}

impl Found {
    fn add(&mut self, took: Duration, peak: Option<Peak>) {
        self.times.push(took.as_secs_f64() * 1e3);
        if let Some(peak) = peak {
            self.growth.push(peak.own - peak.before);
            self.peak.push(peak.own);
            self.helpers.push(peak.helpers);
        }
    }

    fn throughput(&self, mib: u64) -> Samples {
        Samples::of(mib as f64 / (self.times.median() / 1e3))
    }
}

pub(crate) fn measure(bench: &Bench, mib: u64, report: &mut Report) -> Result<(), Failure> {
    say(&format!("push and clone of {mib} MiB"));
    let room = bench.room("large")?;
    let source = room.join("source");
    bench.client.import(&source, &|out| write(out, mib))?;
    let [mut our_push, mut their_push, mut our_clone, mut their_clone] = <[Found; 4]>::default();
    for round in 0..ROUNDS {
        let name = format!("large-{round}");
        let ours = bench.ours(&bench.create(&name)?);
        let theirs = bench.reference.as_ref().map(|other| other.create(&bench.client, &name)).transpose()?;
        let sides =
            [(Some(&ours), &mut our_push, &mut our_clone), (theirs.as_ref(), &mut their_push, &mut their_clone)];
        let ordered: Vec<_> = if round % 2 == 0 { sides.into() } else { sides.into_iter().rev().collect() };
        for (remote, push, pull) in ordered {
            let Some(remote) = remote else { continue };
            let watched = remote.url == ours.url;
            let (took, peak) = watch(bench, watched, || bench.push_all(&source, remote))?;
            push.add(took, peak);
            if watched {
                bench.server.settle()?;
            }
            let (took, peak) = watch(bench, watched, || clone(bench, &room, remote))?;
            pull.add(took, peak);
        }
        if let Some(other) = &bench.reference {
            std::fs::remove_dir_all(other.path(&name)).map_err(io("remove a repository"))?;
        }
    }
    let reference = bench.reference.is_some();
    for (what, ours, theirs) in [("push", our_push, their_push), ("clone", our_clone, their_clone)] {
        let theirs = reference.then_some(theirs);
        let their_times = theirs.as_ref().map(|found| found.times.clone());
        let their_rate = theirs.as_ref().map(|found| found.throughput(mib));
        report.add(Line::new(format!("{mib} MiB {what}"), Unit::Milliseconds, ours.times.clone()).beside(their_times));
        let rate = Line::new(format!("{mib} MiB {what}, throughput"), Unit::MebibytesPerSecond, ours.throughput(mib));
        report.add(rate.beside(their_rate));
        let growth = Samples::of(ours.growth.max());
        let growth = Line::new(format!("{mib} MiB {what}, server RSS growth"), Unit::Mebibytes, growth);
        report.add(growth.target(Target::Below(GROWTH)));
        let peak = Samples::of(ours.peak.max());
        report.add(Line::new(format!("{mib} MiB {what}, server RSS peak"), Unit::Mebibytes, peak));
        let helpers = Samples::of(ours.helpers.max());
        report.add(Line::new(format!("{mib} MiB {what}, git processes of the server"), Unit::Mebibytes, helpers));
    }
    Ok(())
}

fn watch(
    bench: &Bench,
    ours: bool,
    run: impl FnOnce() -> Result<Duration, Failure>,
) -> Result<(Duration, Option<Peak>), Failure> {
    bench.stop.check()?;
    let watch = ours.then(|| Watch::start(bench.server.id()));
    let took = run();
    let peak = watch.map(Watch::stop);
    Ok((took?, peak))
}

fn write(out: &mut dyn Write, mib: u64) -> std::io::Result<()> {
    let mut noise = Noise::new(mib);
    let mut piece = vec![0; 1 << 20];
    writeln!(out, "commit refs/heads/main\ncommitter Bench <bench@example.org> 1700000000 +0000\ndata 0\n")?;
    let mut left = mib;
    while left > 0 {
        let size = if left > mib / 2 { LARGE_BLOB_MIB.min(left - mib / 2) } else { 1 };
        writeln!(out, "M 100644 inline {left}.bin\ndata {}", size << 20)?;
        for _ in 0..size {
            noise.fill(&mut piece);
            out.write_all(&piece)?;
        }
        writeln!(out)?;
        left -= size;
    }
    Ok(())
}
