//! Repositories made by `git fast-import`, and random histories.

use crate::support::{feed, plain_git};
use abide_core::Oid;
use abide_git::Reader;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A bare repository.
pub struct Bare {
    dir: TempDir,
}

/// Object storage and commit-graph; results must not depend on them.
#[derive(Clone, Copy, Debug)]
pub enum Storage {
    Loose,
    Packed,
    PackedWithGraph,
}

impl Bare {
    pub fn new() -> Self {
        let bare = Self { dir: TempDir::new().unwrap() };
        bare.run(&["init", "-q", "--bare", "-b", "main", "."]);
        bare
    }

    /// Creates a repository from a `git fast-import` stream.
    pub fn import(script: &[u8], storage: Storage) -> Self {
        let bare = Self::new();
        bare.more(script, storage);
        bare
    }

    pub fn more(&self, script: &[u8], storage: Storage) {
        let unpack = format!("fastimport.unpackLimit={}", if matches!(storage, Storage::Loose) { 100_000 } else { 1 });
        feed(plain_git(self.path()).args(["-c", &unpack, "fast-import", "--quiet", "--force"]), script);
        if matches!(storage, Storage::PackedWithGraph) {
            self.run(&["commit-graph", "write", "--reachable", "--no-progress"]);
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn reader(&self) -> Reader {
        Reader::open(self.path()).unwrap()
    }

    pub fn bytes(&self, args: &[&str]) -> Vec<u8> {
        feed(plain_git(self.path()).args(args), b"")
    }

    pub fn run(&self, args: &[&str]) -> String {
        String::from_utf8(self.bytes(args)).unwrap().trim().to_owned()
    }

    /// As `run`, with this input on stdin.
    pub fn with_input(&self, args: &[&str], input: &[u8]) -> String {
        let mut git = plain_git(self.path());
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(args);
        String::from_utf8(feed(&mut git, input)).unwrap().trim().to_owned()
    }

    pub fn oid(&self, rev: &str) -> Oid {
        self.run(&["rev-parse", rev]).parse().unwrap()
    }

    pub fn oids(&self, args: &[&str]) -> Vec<Oid> {
        self.run(args).lines().map(|line| line.parse().unwrap()).collect()
    }

    pub fn objects(&self) -> PathBuf {
        self.path().join("objects")
    }
}

/// Builder of a `git fast-import` stream. Each commit's number is its mark.
#[derive(Default)]
pub struct Script(pub Vec<u8>, usize);

impl Script {
    fn line(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'\n');
    }

    fn data(&mut self, data: &[u8]) {
        self.line(&format!("data {}", data.len()));
        self.0.extend_from_slice(data);
        self.0.push(b'\n');
    }

    /// A commit on `branch` with these parents (marks), which changes these files: mode, path, content.
    pub fn commit(&mut self, branch: &str, time: i64, parents: &[usize], files: &[(&str, &[u8], &[u8])]) -> usize {
        self.commit_as(branch, time, parents, b"message\n", files)
    }

    pub fn commit_as(
        &mut self,
        branch: &str,
        time: i64,
        parents: &[usize],
        message: &[u8],
        files: &[(&str, &[u8], &[u8])],
    ) -> usize {
        self.1 += 1;
        if parents.is_empty() {
            self.line(&format!("reset refs/heads/{branch}"));
        }
        self.line(&format!("commit refs/heads/{branch}\nmark :{}", self.1));
        self.line(&format!("author Ann <ann@example.org> {time} +0200\ncommitter Cy <cy@example.org> {time} -0130"));
        self.data(message);
        for (index, parent) in parents.iter().enumerate() {
            self.line(&format!("{} :{parent}", if index == 0 { "from" } else { "merge" }));
        }
        for &(mode, path, content) in files {
            self.file(mode, path, content);
        }
        self.1
    }

    fn file(&mut self, mode: &str, path: &[u8], content: &[u8]) {
        let quoted: String = path.iter().map(|byte| format!("\\{byte:03o}")).collect();
        match mode {
            "D" => self.line(&format!("D \"{quoted}\"")),
            "160000" => self.line(&format!("M 160000 {} \"{quoted}\"", String::from_utf8_lossy(content))),
            _ => {
                self.line(&format!("M {mode} inline \"{quoted}\""));
                self.data(content);
            }
        }
    }
}

/// A commit of a random history.
#[derive(Clone, Debug)]
pub struct Step {
    /// Distances back to its parents; the first step has none.
    parents: Vec<prop::sample::Index>,
    /// Seconds since the previous commit; may be zero or negative.
    passed: i64,
    /// New contents of files; `None` deletes the file.
    changes: Vec<(u8, Option<u8>)>,
}

pub const FILES: [&str; 8] = ["a", "b.txt", "dir/a", "dir/b", "dir/sub/x", "dir/sub/y", "dir.x", "other/z"];

pub fn steps(length: usize, time: std::ops::Range<i64>) -> impl Strategy<Value = Vec<Step>> {
    let file = 0..u8::try_from(FILES.len()).unwrap();
    let step = (
        prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        time,
        prop::collection::vec((file, prop::option::weighted(0.8, 0..3_u8)), 0..3),
    );
    let step = step.prop_map(|(parents, passed, changes)| Step { parents, passed, changes });
    prop::collection::vec(step, 2..length)
}

/// Imports a random history; its last commit is `main`, and commit `n` is `refs/tags/n`.
pub fn random(steps: &[Step], storage: Storage) -> Bare {
    let mut script = Script::default();
    let mut time = 1_700_000_000;
    for (index, step) in steps.iter().enumerate() {
        time += step.passed;
        let mut parents: Vec<usize> = Vec::new();
        if index > 0 {
            for parent in &step.parents {
                // Mostly near parents: histories are long rather than wide.
                let mark = index - parent.index(index.min(4));
                if !parents.contains(&mark) {
                    parents.push(mark);
                }
            }
        }
        let contents: Vec<_> = step.changes.iter().map(|&(_, content)| format!("{content:?}\n")).collect();
        let files: Vec<(&str, &[u8], &[u8])> = step
            .changes
            .iter()
            .zip(&contents)
            .map(|(&(file, content), text)| {
                let mode = if content.is_none() { "D" } else { ["100644", "100755"][usize::from(content == Some(2))] };
                (mode, FILES[usize::from(file)].as_bytes(), text.as_bytes())
            })
            .collect();
        let message = format!("commit {index}\n");
        let mark = script.commit_as("main", time, &parents, message.as_bytes(), &files);
        script.line(&format!("reset refs/tags/{mark}\nfrom :{mark}\n"));
    }
    Bare::import(&script.0, storage)
}
