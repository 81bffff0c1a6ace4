//! Attacks that push packs, without an account.

use super::asking::{again, answer};
use super::attacks::{Front, TIP};
use crate::git::raw::{NONE, packet};
use abide_testkit::http::Request;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A pack with one tree that is larger than any may be.
pub fn huge_trees(front: &Front) {
    pushes(front, 2, &front.target.huge_tree);
}

/// A pack with one tree that git takes into memory as a whole and looks through.
pub fn wide_trees(front: &Front) {
    pushes(front, 3, &front.target.wide_tree);
}

/// A pack whose few bytes become gigabytes.
pub fn delta_bombs(front: &Front) {
    pushes(front, 4, &front.target.delta_bomb);
}

/// A pack that becomes as much as a stranger's pack may.
pub fn lesser_bombs(front: &Front) {
    pushes(front, 2, &front.target.lesser_bomb);
}

fn pushes(front: &Front, at_once: usize, pack: &[u8]) {
    let body = [commands(), pack.to_vec()].concat();
    let number = AtomicUsize::new(0);
    again(front, at_once, || {
        let path = front.target.push_path(number.fetch_add(1, Ordering::Relaxed));
        let request = Request::new("POST", &path)
            .header("Content-Type", "application/x-git-receive-pack-request")
            .body(body.clone());
        front.tally.tries();
        if let Some(answer) = answer(front, &request) {
            // A report is given by the part of the server that looks through packs, or by git.
            let text = answer.text();
            front.tally.is_told(answer.status == 200 && text.contains("unpack"), &format!("{} {text}", answer.status));
        }
    });
}

/// A push that makes a branch.
pub fn commands() -> Vec<u8> {
    let mut commands = packet(&format!("{NONE} {TIP} refs/heads/main\0report-status"));
    commands.extend(b"0000");
    commands
}
