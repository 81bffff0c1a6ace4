//! All known attacks at once, from several addresses, while an honest client at another address goes on working.
//!
//! It takes all processors for minutes, so it is no part of the suite: `./test siege` runs it for two minutes against the release
//! binary, prints how the honest client's times compare with those before the attacks, and holds them against a bound.

mod asking;
mod attacks;
mod holding;
mod honest;
mod memory;
mod pushing;
mod tally;
mod telling;
mod times;

use crate::support::{assert_healthy, crowded};
use abide_testkit::{Engine, Server};
use attacks::{ALL, Target};
use honest::Honest;
use memory::Peak;
use rstest::rstest;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tally::Tally;
use times::Times;

/// Memory of the server and all processes below it.
const MEMORY: u64 = 600 << 20;

/// How long the attacks go on beyond their time if one of them has not got anywhere yet.
const PATIENCE: Duration = Duration::from_secs(90);

/// A siege of at least so long on a release build is one whose times mean something.
const MEASURED: Duration = Duration::from_secs(60);

/// How long honest work may take, mostly and once. Not a multiple of the idle time: the attackers share the processors of the
/// server here, so how many times as long something takes says as much about the machine as about the server.
const MEDIAN: Duration = Duration::from_secs(5);
const WORST: Duration = Duration::from_secs(20);

/// How long the attacks last.
fn duration() -> Duration {
    let seconds = std::env::var("ABIDE_SIEGE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5))
}

/// Whether the binary under test is a release build.
fn is_release() -> bool {
    let named = std::env::var_os("ABIDE_TEST_BINARY");
    named.is_some_and(|path| Path::new(&path).parent().is_some_and(|directory| directory.ends_with("release")))
}

#[rstest]
#[ignore = "takes minutes of all processors: ./test siege"]
fn heavy_an_honest_client_works_under_all_attacks_at_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = crowded(engine).start();
    let mut honest = Honest::arrive(&server);
    let target = Target::prepare(&server, &honest);
    let mut idle = Times::default();
    // The first round fills caches and is not counted.
    honest.round(&server, &mut Times::default());
    for _ in 0..(if duration() < MEASURED { 1 } else { 7 }) {
        honest.round(&server, &mut idle);
    }
    let tallies: Vec<Tally> = ALL.iter().map(|_| Tally::default()).collect();
    let peak = Peak::default();
    let mut times = Times::default();
    let rounds = thread::scope(|scope| {
        // Ends the attacks also when the honest client panics.
        let _end = EndOnDrop(&target.over);
        for (attack, tally) in ALL.iter().zip(&tallies) {
            let target = &target;
            let builder = thread::Builder::new().name(attack.name.to_owned());
            builder.spawn_scoped(scope, move || attack.run(target, tally)).expect("a thread starts");
        }
        scope.spawn(|| peak.watch(server.pid(), &target.over));
        besiege(&server, &mut honest, &mut times, &tallies)
    });
    eprintln!("{engine:?}: {rounds} rounds in {:?}", duration());
    eprintln!("{}{}", times.beside(&idle), peak.told());
    for (attack, tally) in ALL.iter().zip(&tallies) {
        eprintln!("{:<24} {}", attack.name, tally.line());
    }
    for (attack, tally) in ALL.iter().zip(&tallies) {
        assert!(attack.counts(tally, duration()), "{} did not get where it wants to be: {}", attack.name, tally.line());
    }
    assert!(peak.bytes() < MEMORY, "server and children hold {}", peak.told());
    if is_release() && duration() >= MEASURED {
        assert_eq!(times.beyond(MEDIAN, WORST), [""; 0], "honest work takes too long");
    }
    assert_healthy(&server);
}

/// Rounds of honest work until the time is over and every attack got somewhere, at least two.
fn besiege(server: &Server, honest: &mut Honest, times: &mut Times, tallies: &[Tally]) -> u32 {
    #[allow(clippy::disallowed_methods, reason = "the attacks last for real seconds")]
    let start = Instant::now();
    let all = || ALL.iter().zip(tallies).all(|(attack, tally)| attack.counts(tally, duration()));
    let mut rounds = 0;
    while rounds < 2 || start.elapsed() < duration() || (!all() && start.elapsed() < duration() + PATIENCE) {
        honest.round(server, times);
        rounds += 1;
    }
    rounds
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
