//! Cost of an idle server: time to start, memory, size on disk.

use super::server::Server;
use super::{Stop, io, memory, say};
use crate::Failure;
use crate::report::{Line, Report, Target, Unit};
use crate::samples::Samples;
use std::path::Path;
use std::time::Duration;

const STARTS: usize = 10;

/// Wait before a server counts as idle: the first polls of jobs and logs are over.
const REST: Duration = Duration::from_secs(3);

pub(crate) fn measure(binary: &Path, root: &Path, stop: &Stop, report: &mut Report) -> Result<(), Failure> {
    say("start, memory, size");
    let (mut fresh, mut again) = (Samples::default(), Samples::default());
    for round in 0..STARTS {
        stop.check()?;
        let data = root.join(format!("start-{round}"));
        for samples in [&mut fresh, &mut again] {
            let (server, took) = Server::start(binary, &data)?;
            samples.push(took.as_secs_f64() * 1e3);
            drop(server);
        }
    }
    let start = |case: &str, samples| Line::new(case, Unit::Milliseconds, samples).target(Target::Below(300.0));
    report.add(start("cold start, new data directory", fresh));
    report.add(start("cold start, existing data", again));

    let (server, _) = Server::start(binary, &root.join("idle"))?;
    std::thread::sleep(REST);
    let idle = memory::resident(server.id())
        .ok_or_else(|| Failure::failed("this system has no memory figures of processes in /proc"))?;
    report.add(Line::new("idle RSS", Unit::Mebibytes, Samples::of(idle)).target(Target::Below(60.0)));

    let file = std::fs::metadata(binary).map_err(io("look at the binary"))?;
    let size = Samples::of(file.len() as f64 / f64::from(1 << 20));
    report.add(Line::new("size of the binary", Unit::Mebibytes, size).target(Target::Below(60.0)));
    Ok(())
}
