//! All known attacks at once, from one address, while an honest client at another address goes on working.
//!
//! Part of the suite for a few seconds; `./test siege` runs it for two minutes against the release binary and prints how
//! the honest client's times compare with those before the attacks.

mod attacks;
mod honest;
mod memory;
mod packs;

use crate::support::{assert_healthy, crowded};
use abide_testkit::{Engine, Server};
use honest::Honest;
use rstest::rstest;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Memory of the server and all processes below it.
const MEMORY: u64 = 600 << 20;

/// How long the attacks last.
fn duration() -> Duration {
    let seconds = std::env::var("ABIDE_SIEGE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5))
}

#[rstest]
fn heavy_an_honest_client_works_under_all_attacks_at_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = crowded(engine).start();
    let mut honest = Honest::arrive(&server);
    let before = honest.round(&server);
    let target = attacks::Target::prepare(&server);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Ends the attacks also when the honest client panics.
        let _end = EndOnDrop(&over);
        for (name, attack) in attacks::ALL {
            let (target, over) = (&target, &over);
            thread::Builder::new()
                .name((*name).to_owned())
                .spawn_scoped(scope, move || {
                    let tries = attack(target, over);
                    eprintln!("{name}: {tries} tries");
                })
                .expect("a thread starts");
        }
        besiege(&server, &mut honest, &before);
    });
    assert_healthy(&server);
}

/// Rounds of honest work until the time is over, at least two.
fn besiege(server: &Server, honest: &mut Honest, before: &honest::Times) {
    #[allow(clippy::disallowed_methods, reason = "the attacks last for real seconds")]
    let start = Instant::now();
    let mut worst = honest::Times::default();
    let mut most = 0;
    let mut rounds = 0;
    while rounds < 2 || start.elapsed() < duration() {
        worst = worst.max(&honest.round(server));
        most = most.max(memory::of_tree(server.pid()));
        assert!(most < MEMORY, "server and children hold {} MiB", most >> 20);
        rounds += 1;
    }
    eprintln!("{rounds} rounds in {:?}, at most {} MiB", start.elapsed(), most >> 20);
    eprintln!("{}", worst.beside(before));
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
