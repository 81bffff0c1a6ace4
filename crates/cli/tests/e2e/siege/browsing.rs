//! Attacks that read what a stranger may have stored: wide directories, and lists of very many refs.

use super::asking::{again, answer};
use super::attacks::Front;
use super::holding::{hold, silent, taking};
use crate::support::Person;
use abide_testkit::Server;
use abide_testkit::http::Request;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Entries of the directories: one as large as a push may bring, and one that is still read.
const WIDEST: u32 = 900_000;
const WIDE: u32 = 600_000;
/// Commits of each, which have the directory in common.
const COMMITS: usize = 10;
/// Refs of a repository.
const REFS: usize = 100_000;

/// A repository with wide directories and one with many refs; returns commits of the first.
pub fn prepare(server: &Server, owner: &Person) -> Vec<String> {
    owner.create(server, "wide", false);
    let dir = owner.git.init_work_tree();
    let commits: Vec<String> = [WIDEST, WIDE].iter().flat_map(|entries| wide(owner, &dir, *entries)).collect();
    let refs: Vec<String> =
        commits.iter().enumerate().map(|(at, commit)| format!("{commit}:refs/heads/wide{at}")).collect();
    let url = server.http_url("alice", "wide");
    let push: Vec<&str> = ["push", "-q", &url].into_iter().chain(refs.iter().map(String::as_str)).collect();
    owner.git.ok(&dir, &push);

    owner.create(server, "refs", false);
    let dir = owner.git.init_work_tree();
    let tip = owner.git.commit_file(&dir, "file", "text", "one");
    // Over HTTP, git's own client needs time that grows with the square of the number of refs.
    let url = server.ssh_url("alice", "refs");
    // The commands of a push have at most 4 MiB.
    for part in 0..REFS / 25_000 {
        let updates: Vec<String> = (0..25_000).map(|at| format!("create refs/heads/r{part}/{at:06} {tip}\n")).collect();
        owner.git.feed(&dir, &["update-ref", "--stdin"], move |input| input.write_all(updates.concat().as_bytes()));
        owner.git.ok(&dir, &["push", "-q", &url, &format!("refs/heads/r{part}/*:refs/heads/r{part}/*")]);
    }
    commits
}

/// Commits of one directory with so many files of the same blob.
fn wide(owner: &Person, dir: &Path, entries: u32) -> Vec<String> {
    let git = &owner.git;
    let blob = git.feed(dir, &["hash-object", "-w", "--stdin"], |input| input.write_all(b"text"));
    let oid: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&blob[2 * at..2 * at + 2], 16).expect("digits")).collect();
    let tree = git.feed(dir, &["hash-object", "-w", "-t", "tree", "--stdin"], move |input| {
        (0..entries).try_for_each(|number| {
            input.write_all(format!("100644 {number:08}\0").as_bytes()).and_then(|()| input.write_all(&oid))
        })
    });
    let commit =
        |at: usize| git.ok(dir, &["commit-tree", "-m", &format!("commit {at}"), tree.trim()]).trim().to_owned();
    (0..COMMITS).map(commit).collect()
}

/// Pages and answers about wide directories, each of another commit.
pub fn wide_directories(front: &Front) {
    let number = AtomicU32::new(0);
    again(front, 16, || {
        let at = number.fetch_add(1, Ordering::Relaxed) as usize;
        let commit = &front.target.wide[at % front.target.wide.len()];
        let path = match at % 5 {
            0 => format!("/alice/wide/tree/{commit}"),
            1 => format!("/alice/wide/blob/{commit}/{:08}", at % WIDE as usize),
            2 => format!("/api/v3/repos/alice/wide/contents?ref={commit}"),
            3 => format!("/alice/wide/raw/{commit}/{:08}", at % WIDE as usize),
            _ => format!("/api/v3/repos/alice/wide/git/trees/{commit}?recursive=1"),
        };
        front.tally.tries();
        if let Some(answer) = answer(front, &Request::new("GET", &path)) {
            front.tally.is_told(matches!(answer.status, 200 | 422), &answer.status.to_string());
        }
    });
}

/// Lists of many refs that are asked for and not read.
pub fn refs_not_read(front: &Front) {
    let ask = Request::new("GET", "/alice/refs.git/info/refs?service=git-upload-pack").to_bytes(front.target.addr);
    hold(front, &taking(silent(front, 150, &ask, b""), b"HTTP/1.1 200"));
}
