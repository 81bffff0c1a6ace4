//! Attacks on the memory of git processes that read: blame of a file that was large, files that git holds while they are
//! read, and clones of directories that contain each other.

use super::asking::{again, answer};
use super::attacks::Front;
use super::holding::{hold, silent, taking};
use crate::git::bombs::noise;
use crate::git::raw::packet;
use crate::support::Person;
use abide_testkit::Server;
use abide_testkit::http::Request;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Former size of the files that are small now.
const PAST: usize = 60 << 20;
/// Files with that past, and commits that have them.
const FILES: usize = 10;
const COMMITS: usize = 12;
/// Size of a file that is stored as a delta.
const HALF_READ: usize = 20 << 20;
/// Directories that contain each other, and the entries of each: 7 MiB.
const NESTED: usize = 10;
const ENTRIES: u32 = 190_000;

/// Repositories that the attacks read.
pub struct Stored {
    past: Vec<String>,
    half_read: String,
    nested: String,
}

/// A repository with all three.
pub fn prepare(server: &Server, owner: &Person) -> Stored {
    owner.create(server, "memory", false);
    let (git, dir, url) = (&owner.git, owner.git.init_work_tree(), server.http_url("alice", "memory"));
    let large = "a line that was there before\n".repeat(PAST / 29);
    let named = |file: usize| format!("f{file}");
    for file in 0..FILES {
        std::fs::write(dir.join(named(file)), &large).expect("writable");
    }
    git.ok(&dir, &["add", "."]);
    git.ok(&dir, &["commit", "-q", "-m", "large"]);
    for file in 0..FILES {
        std::fs::write(dir.join(named(file)), "small\n").expect("writable");
    }
    git.ok(&dir, &["add", "."]);
    git.ok(&dir, &["commit", "-q", "-m", "small"]);
    let past = (0..COMMITS).map(|at| git.commit_file(&dir, "other", at.to_string(), "more")).collect();

    // The shorter version becomes the delta.
    let content = noise(HALF_READ);
    let half_read = git.commit_file(&dir, "noise", &content[..HALF_READ - 100], "noise");
    git.commit_file(&dir, "noise", &content, "more noise");
    git.ok(&dir, &["push", "-q", &url, "main"]);
    let nested = nested(owner, &dir);
    git.ok(&dir, &["push", "-q", &url, &format!("{nested}:refs/heads/nested")]);
    Stored { past, half_read, nested }
}

/// A commit of directories that contain each other, with many files of the same blob in each.
fn nested(owner: &Person, dir: &Path) -> String {
    let git = &owner.git;
    let bytes = |oid: &str| -> Vec<u8> {
        (0..20).map(|at| u8::from_str_radix(&oid[2 * at..2 * at + 2], 16).expect("digits")).collect()
    };
    let blob = bytes(&git.feed(dir, &["hash-object", "-w", "--stdin"], |input| input.write_all(b"text")));
    let mut inner: Option<String> = None;
    for _ in 0..NESTED {
        let (blob, child) = (blob.clone(), inner.as_deref().map(bytes));
        let tree = git.feed(dir, &["hash-object", "-w", "-t", "tree", "--stdin"], move |input| {
            if let Some(child) = child {
                input.write_all(b"40000 d\0").and_then(|()| input.write_all(&child))?;
            }
            (0..ENTRIES).try_for_each(|number| {
                input.write_all(format!("100644 f{number:08}\0").as_bytes()).and_then(|()| input.write_all(&blob))
            })
        });
        inner = Some(tree.trim().to_owned());
    }
    let tree = inner.expect("there are some");
    git.ok(dir, &["commit-tree", "-m", "nested", &tree]).trim().to_owned()
}

/// Blame of a file whose past takes git far more memory than its present.
pub fn blame_of_a_large_past(front: &Front) {
    let number = AtomicU32::new(0);
    again(front, 6, || {
        let at = number.fetch_add(1, Ordering::Relaxed) as usize;
        let past = &front.target.stored.past;
        let (commit, file) = (&past[at / FILES % past.len()], at % FILES);
        front.tally.tries();
        if let Some(answer) = answer(front, &Request::new("GET", &format!("/alice/memory/blame/{commit}/f{file}"))) {
            // Over its limit, git ends and the page says so.
            let is_over = answer.status == 503 && answer.text().contains("memory");
            front.tally.is_told(answer.status == 200 || is_over, &answer.status.to_string());
        }
    });
}

/// Files that git holds in memory, of which only the beginning is read.
pub fn half_read_downloads(front: &Front) {
    let path = format!("/alice/memory/raw/{}/noise", front.target.stored.half_read);
    let ask = Request::new("GET", &path).to_bytes(front.target.addr);
    hold(front, &taking(silent(front, 24, &ask, b""), b"HTTP/1.1 200"));
}

/// Clones of directories of which git holds a whole path at once.
pub fn nested_clones(front: &Front) {
    let wanted = format!("want {}\n", front.target.stored.nested);
    let body =
        [packet("command=fetch\n"), b"0001".to_vec(), packet(&wanted), packet("done\n"), b"0000".to_vec()].concat();
    let ask = Request::new("POST", "/alice/memory.git/git-upload-pack")
        .header("Content-Type", "application/x-git-upload-pack-request")
        .header("Git-Protocol", "version=2")
        .body(body);
    again(front, 8, || {
        front.tally.tries();
        if let Some(answer) = answer(front, &ask) {
            front.tally.is_told(answer.status == 200, &answer.status.to_string());
        }
    });
}
