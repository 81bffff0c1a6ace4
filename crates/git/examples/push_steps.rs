//! Measures each step of a small push: `cargo run --release -p abide-git --example push_steps`.
//!
//! Fifty pushes of three objects each (commit, tree, blob); prints the median and the slowest in milliseconds.

use abide_core::{Oid, RefUpdate, RepoId};
use abide_git::{Git, GitLimits, Incoming, Layout, ReceiveLimits, Snapshot, advertise, bare, reftx};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const PUSHES: usize = 50;

#[tokio::main]
async fn main() {
    let data = tempfile::tempdir_in(std::env::args().nth(1).unwrap_or_else(|| "/var/tmp".to_owned())).expect("a place");
    let layout = Layout::new(data.path());
    let git = Git::detect(Path::new("git"), &layout, GitLimits::default()).await.expect("git");
    let id = RepoId::new(1);
    let main = "refs/heads/main".parse().expect("a ref name");
    bare::init_bare(&layout, id, &main).await.expect("a repository");
    let work = data.path().join("work");
    client(data.path(), &["init", "-q", "-b", "main", "work"], b"");
    let mut times: [Vec<f64>; 7] = Default::default();
    let mut old = Oid::ZERO;
    for number in 0..PUSHES {
        std::fs::write(work.join("file"), format!("{number}\n")).expect("a file");
        client(&work, &["add", "."], b"");
        client(&work, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"], b"");
        let new = Oid::from_hex(client(&work, &["rev-parse", "HEAD"], b"").trim_ascii()).expect("an object id");
        let revs = if old.is_zero() { format!("{new}\n") } else { format!("{new}\n^{old}\n") };
        let pack = client(&work, &["pack-objects", "--stdout", "--revs", "--thin", "-q"], revs.as_bytes());
        let updates = [RefUpdate { name: main.clone(), old, new }];

        let mut clock = Clock::new(&mut times);
        let incoming = Incoming::create(&git, &layout, id, "bench").await.expect("an area");
        clock.lap();
        incoming.receive(&pack[..], &ReceiveLimits::default(), None).await.expect("a pack");
        clock.lap();
        let (connected, _) = incoming.connect(&updates).await.expect("complete");
        clock.lap();
        connected.migrate(&layout.repo(id)).await.expect("migrated");
        clock.lap();
        reftx::update_refs(&git, &layout.repo(id), &updates).await.expect("moved");
        clock.lap();
        connected.discard().await.expect("discarded");
        clock.lap();
        let snapshot = Snapshot::read(&layout.repo(id)).expect("refs");
        let capabilities = git.upload_capabilities().await.expect("git tells");
        advertise::upload_pack(&snapshot, capabilities, Default::default(), true).into_bytes();
        clock.lap();
        old = new;
    }
    let names =
        ["create area", "unpack-objects + flush", "connectivity", "migrate", "update-ref", "discard", "snapshot"];
    let mut total = 0.0;
    for (name, mut times) in names.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        total += times[PUSHES / 2];
        println!("{name:24} median {:6.2} ms   slowest {:6.2} ms", times[PUSHES / 2], times[PUSHES - 1]);
    }
    println!("{:24} median {total:6.2} ms", "together");
}

struct Clock<'a> {
    start: Instant,
    steps: std::slice::IterMut<'a, Vec<f64>>,
}

impl<'a> Clock<'a> {
    fn new(times: &'a mut [Vec<f64>; 7]) -> Self {
        Self { start: Instant::now(), steps: times.iter_mut() }
    }

    fn lap(&mut self) {
        self.steps.next().expect("a step").push(self.start.elapsed().as_secs_f64() * 1000.0);
        self.start = Instant::now();
    }
}

fn client(dir: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    let piped = command.current_dir(dir).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().expect("git");
    child.stdin.take().expect("piped").write_all(input).expect("written");
    child.wait_with_output().expect("git").stdout
}
