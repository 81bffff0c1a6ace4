//! All known attacks, one after the other and all at once, from several addresses, while an honest client at another address
//! goes on working.
//!
//! It takes all processors for minutes, so it is no part of the suite: `./test siege` runs it against the release binary and prints
//! how the honest client's times compare with those before the attacks. Attackers yield the processors to the server (nice 19):
//! real ones have their own.

mod asking;
mod attacks;
mod browsing;
mod holding;
mod honest;
mod memory;
mod pushing;
mod relay;
mod tally;
mod telling;
mod threads;
mod times;

use crate::support::{assert_healthy, crowded};
use abide_testkit::{Engine, Peak, Server};
use attacks::{ALL, Attack, Target};
use honest::Honest;
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

/// How long honest work may take under all attacks at once, mostly and once. Not a multiple of the idle time: there, the
/// attackers need so much of the processors that they share with the server that a factor would say more about the machine.
/// Under a single attack, `times::BOUNDS` hold.
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

/// Whether the times of this siege mean something.
fn is_measured() -> bool {
    is_release() && duration() >= MEASURED
}

#[rstest]
#[ignore = "takes minutes of all processors: ./test siege"]
fn heavy_an_honest_client_works_under_all_attacks_at_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut siege = Siege::begin(engine);
    let outcome = siege.attack(ALL, duration());
    eprintln!("{engine:?}: {} rounds in {:?}", outcome.rounds, duration());
    eprintln!("{}{}", outcome.times.beside(&siege.idle), outcome.peak.describe());
    for (attack, tally) in ALL.iter().zip(&outcome.tallies) {
        eprintln!("{:<24} {}", attack.name, tally.line());
    }
    for (attack, tally) in ALL.iter().zip(&outcome.tallies) {
        assert!(attack.counts(tally, duration()), "{} did not get where it wants to be: {}", attack.name, tally.line());
    }
    outcome.assert_memory();
    if is_measured() {
        assert_eq!(outcome.times.beyond(MEDIAN, WORST), [""; 0], "honest work takes too long");
    }
    assert_healthy(&siege.server);
}

#[rstest]
#[ignore = "takes minutes of all processors: ./test siege"]
fn heavy_an_honest_client_works_under_each_attack(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut siege = Siege::begin(engine);
    // A part of the time for each, so that both scenarios take about as long.
    let each = duration() / 8;
    let mut suffering = Vec::new();
    eprintln!("{engine:?}: median factors under one attack for {each:?}\n{:<24}{}  MiB", "", Times::kinds());
    for attack in ALL {
        let outcome = siege.attack(std::slice::from_ref(attack), each);
        let factors = outcome.times.factors(&siege.idle);
        eprintln!("{:<24}{factors} {:>4}   {}", attack.name, outcome.peak.bytes() >> 20, outcome.tallies[0].line());
        assert!(attack.counts(&outcome.tallies[0], each), "{} did not get where it wants to be", attack.name);
        outcome.assert_memory();
        let beyond = outcome.times.beyond_bounds(&siege.idle);
        suffering.extend(beyond.into_iter().map(|kind| format!("{}: {kind}", attack.name)));
    }
    // All attacks are tried first: the table shows how far the others are.
    assert!(!is_measured() || suffering.is_empty(), "honest work takes too long under\n{}", suffering.join("\n"));
    assert_healthy(&siege.server);
}

/// A server, its honest client, and the targets of the attackers.
struct Siege {
    server: Server,
    honest: Honest,
    target: Target,
    idle: Times,
}

/// What attacks did to the honest client and to the server's memory.
struct Outcome {
    rounds: u32,
    times: Times,
    tallies: Vec<Tally>,
    peak: Peak,
}

impl Outcome {
    fn assert_memory(&self) {
        assert!(self.peak.bytes() < MEMORY, "server and children hold {}", self.peak.describe());
    }
}

impl Siege {
    fn begin(engine: Engine) -> Self {
        let server = crowded(engine).start();
        let mut honest = Honest::arrive(&server);
        let target = Target::prepare(&server, &honest);
        let mut idle = Times::default();
        // The first round fills caches and is not counted.
        honest.round(&server, &mut Times::default());
        for _ in 0..(if duration() < MEASURED { 1 } else { 7 }) {
            honest.round(&server, &mut idle);
        }
        Self { server, honest, target, idle }
    }

    fn attack(&mut self, attacks: &[Attack], time: Duration) -> Outcome {
        let Self { server, honest, target, .. } = self;
        let tallies: Vec<Tally> = attacks.iter().map(|_| Tally::default()).collect();
        let (peak, mut times) = (Peak::default(), Times::default());
        target.over.store(false, Ordering::Relaxed);
        let rounds = thread::scope(|scope| {
            // Ends the attacks also when the honest client panics.
            let _end = EndOnDrop(&target.over);
            for (attack, tally) in attacks.iter().zip(&tallies) {
                let target = &*target;
                let builder = thread::Builder::new().name(attack.name.to_owned());
                builder.spawn_scoped(scope, move || attack.run(target, tally)).expect("a thread starts");
            }
            scope.spawn(|| peak.watch(server.pid(), &target.over));
            let all = || attacks.iter().zip(&tallies).all(|(attack, tally)| attack.counts(tally, time));
            rounds(server, honest, &mut times, time, all)
        });
        Outcome { rounds, times, tallies, peak }
    }
}

/// Rounds of honest work until the time is over and every attack got somewhere, at least two.
fn rounds(server: &Server, honest: &mut Honest, times: &mut Times, time: Duration, all: impl Fn() -> bool) -> u32 {
    #[allow(clippy::disallowed_methods, reason = "the attacks last for real seconds")]
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 2 || start.elapsed() < time || (!all() && start.elapsed() < time + PATIENCE) {
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
