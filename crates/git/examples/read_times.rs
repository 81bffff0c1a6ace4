//! Measures reads against the same query by the `git` command line.
//!
//! `cargo run --release -p abide-git --example read_times`

#![allow(clippy::unwrap_used, reason = "an example fails by panicking")]

use abide_core::Oid;
use abide_git::Reader;
use abide_git::read::{DiffLimits, Known};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 10_000;
const COMMITS: usize = 100_000;

fn main() {
    long_history();
    directory("10k files, 4,000 commits of which half touch it", &directory_script(4_000, 200));
    directory("10k files, each by its own commit", &directory_script(0, 1));
}

/// A fast-import script that adds files `batch` at a time. Then come this many commits, every other one to a file of
/// the
/// directory.
fn directory_script(commits: usize, batch: usize) -> String {
    let mut script = String::new();
    let mut time = 1_700_000_000;
    let mut begin = |script: &mut String| {
        time += 60;
        write!(script, "commit refs/heads/main\ncommitter a <a@example.org> {time} +0000\ndata 2\nc\n\n").unwrap();
    };
    for first in (0..FILES).step_by(batch) {
        begin(&mut script);
        for file in first..first + batch {
            write!(script, "M 100644 inline src/file{file:05}.txt\ndata 5\n{file:05}\n").unwrap();
        }
    }
    let mut random = 12345_usize;
    for number in 0..commits {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        begin(&mut script);
        let file = (random >> 33) % FILES;
        let path = if number % 2 == 0 { format!("src/file{file:05}.txt") } else { format!("doc/{}.md", file % 50) };
        write!(script, "M 100644 inline {path}\ndata 8\n{number:08}\n").unwrap();
    }
    script
}

fn directory(what: &str, script: &str) {
    let dir = tempfile::tempdir().unwrap();
    println!("\n{what}");
    let main = import(dir.path(), script);
    for graph in ["without commit-graph", "with commit-graph"] {
        let cold = Instant::now();
        let reader = Reader::open(dir.path()).unwrap();
        let found = reader.last_commits(main, b"src", None, far()).unwrap();
        println!("  last_commits, {graph}, first   {:>9.2?}  ({} entries)", cold.elapsed(), found.entries.len());
        best("  last_commits, again", || reader.last_commits(main, b"src", None, far()).unwrap());
        let before = git(dir.path(), &["rev-parse", "main~20"]);
        let before = Oid::from_hex(before.trim_ascii()).unwrap();
        let earlier = reader.last_commits(before, b"src", None, far()).unwrap();
        let known = Some(Known { commit: before, found: &earlier });
        best("  last_commits, 20 commits later", || reader.last_commits(main, b"src", known, far()).unwrap());
        let mut oids: Vec<Oid> = found.entries.values().copied().collect();
        oids.sort_unstable();
        oids.dedup();
        best(&format!("  reading these {} commits", oids.len()), || reader.commits(&oids).unwrap());
        git(dir.path(), &["commit-graph", "write", "--reachable"]);
    }
    let reader = Reader::open(dir.path()).unwrap();
    best("  tree", || reader.tree(main, b"src", FILES).unwrap());
    let mut listing = reader.tree(main, b"src", FILES).unwrap();
    best("  add_sizes", || reader.add_sizes(&mut listing).unwrap());
    best("  diff of the last commit", || reader.diff(main, &DiffLimits::default()).unwrap());
    let asked = Instant::now();
    git(dir.path(), &["log", "--format=%H", "--name-only", "--no-renames", "main", "--", "src"]);
    println!("  git log --name-only -- src       {:>9.2?}", asked.elapsed());
    let asked = Instant::now();
    git(dir.path(), &["log", "-1", "--format=%H", "main", "--", "src/file00001.txt"]);
    println!("  git log -1 -- one file           {:>9.2?}", asked.elapsed());
}

fn long_history() {
    let dir = tempfile::tempdir().unwrap();
    println!("\n{COMMITS} commits");
    let mut script = String::new();
    for number in 0..COMMITS {
        let time = 1_600_000_000 + number * 60;
        write!(script, "commit refs/heads/main\ncommitter a <a@example.org> {time} +0000\ndata 2\nc\n\n").unwrap();
        write!(script, "M 100644 inline d{}/f{}\ndata 8\n{number:08}\n", number % 30, number % 300).unwrap();
    }
    let main = import(dir.path(), &script);
    for graph in ["without commit-graph", "with commit-graph"] {
        println!("  {graph}");
        let reader = Reader::open(dir.path()).unwrap();
        best("  log, page 1 of 50", || reader.log(main, 0, 50).unwrap());
        best("  log, last page", || reader.log(main, COMMITS - 50, 50).unwrap());
        best("  count", || reader.count(main, usize::MAX).unwrap());
        best("  last_commits of the root", || reader.last_commits(main, b"", None, far()).unwrap());
        let root = reader.log(main, COMMITS - 1, 1).unwrap().commits[0].oid;
        best("  is_ancestor, the root", || reader.is_ancestor(root, main, COMMITS + 1).unwrap());
        for (what, args) in [
            ("  git log -50", &["log", "-50", "main"][..]),
            ("  git log --skip (last page)", &["log", "--skip=99950", "-50", "main"]),
            ("  git rev-list --count", &["rev-list", "--count", "main"]),
        ] {
            best(what, || git(dir.path(), args));
        }
        git(dir.path(), &["commit-graph", "write", "--reachable"]);
    }
    best("  opening and page 1", || Reader::open(dir.path()).unwrap().log(main, 0, 50).unwrap());
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

/// Best of five runs, with the CPU time of this thread: the machine may be busy with other work.
fn best<T>(what: &str, mut work: impl FnMut() -> T) {
    let times = (0..5).map(|_| {
        let (start, ran) = (Instant::now(), running());
        work();
        (start.elapsed(), running() - ran)
    });
    let (wall, cpu) = times.min().unwrap();
    println!("  {what:<32} {wall:>9.2?}  (running {cpu:.2?})");
}

fn running() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

fn import(dir: &Path, script: &str) -> Oid {
    git(dir, &["init", "-q", "--bare", "-b", "main", "."]);
    let mut child =
        Command::new("git").args(["fast-import", "--quiet"]).current_dir(dir).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    git(dir, &["repack", "-adfq", "--write-bitmap-index"]);
    String::from_utf8(git(dir, &["rev-parse", "main"])).unwrap().trim().parse().unwrap()
}

fn git(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git").args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
