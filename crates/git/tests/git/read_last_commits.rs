//! The last commit of each entry equals `git log -1 -- <entry>`.

use crate::read_support::{Bare, Script, Storage, random, steps};
use abide_core::Oid;
use abide_git::ReadError;
use abide_git::read::{Known, LastCommits};
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn last(bare: &Bare, commit: Oid, dir: &str) -> LastCommits {
    bare.reader().last_commits(commit, dir.as_bytes(), None, soon()).unwrap()
}

/// Runs git for each entry separately.
fn assert_same_as_git(bare: &Bare, rev: &str, dir: &str) {
    let names = bare.run(&["ls-tree", "--name-only", &format!("{rev}:{dir}")]);
    let found = last(bare, bare.oid(rev), dir);
    assert!(found.complete);
    assert_eq!(found.entries.len(), names.lines().count());
    for name in names.lines() {
        let path = if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
        let wanted = bare.oid(&bare.run(&["--literal-pathspecs", "log", "-1", "--format=%H", rev, "--", &path]));
        assert_eq!(found.entries.get(name.as_bytes()), Some(&wanted), "{path} at {rev}");
    }
}

fn has_dir(bare: &Bare, dir: &str) -> bool {
    let kind = bare.run(&["ls-tree", "main", dir]);
    kind.contains(" tree ")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn random_histories_give_git_s_answers(steps in steps(24, -100..300)) {
        for storage in [Storage::Packed, Storage::PackedWithGraph] {
            let bare = random(&steps, storage);
            for dir in ["", "dir", "dir/sub", "other"] {
                if dir.is_empty() || has_dir(&bare, dir) {
                    assert_same_as_git(&bare, "main", dir);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// A known result, complete or not, for any commit, does not change the answer.
    #[test]
    fn what_is_known_changes_nothing(steps in steps(20, 0..300), at: prop::sample::Index, kept: u8) {
        let bare = random(&steps, Storage::Packed);
        let (reader, main) = (bare.reader(), bare.oid("main"));
        let earlier = bare.oid(&(at.index(steps.len()) + 1).to_string());
        let mut found = reader.last_commits(earlier, b"", None, soon()).unwrap();
        let mut number = 0;
        found.entries.retain(|_, _| {
            number += 1;
            (kept >> (number % 8)) & 1 == 1
        });
        let known = Known { commit: earlier, found: &found };
        let answer = reader.last_commits(main, b"", Some(known), soon()).unwrap();
        prop_assert_eq!(answer, last(&bare, main, ""));
    }
}

/// Large enough that versions are compared by their bytes.
#[test]
fn a_large_directory_gives_git_s_answers_too() {
    let mut script = Script::default();
    let names: Vec<_> = (0..300).map(|name| format!("d/{:03}", name * 7 % 300)).collect();
    let all: Vec<_> = names.iter().map(|name| ("100644", name.as_bytes(), &b"0"[..])).collect();
    let mut last = script.commit("main", 1, &[], &all[..290]);
    for step in 0..60_usize {
        let text = (step / 2).to_string();
        let name = names[step * step % 300].as_bytes();
        let change = [("100644", name, text.as_bytes()), (["100644", "D"][step % 2], all[step].1, b"x")];
        let side = script.commit("main", 1, &[last], &change[..1 + step % 2]);
        last = if step % 5 == 0 { script.commit("main", 1, &[side, last], &[("100644", b"d/zz", b"z")]) } else { side };
    }
    for storage in [Storage::Packed, Storage::PackedWithGraph] {
        assert_same_as_git(&Bare::import(&script.0, storage), "main", "d");
    }
}

#[test]
fn ten_thousand_files_give_git_s_answers_too() {
    let mut script = Script::default();
    let names: Vec<_> = (0..10_000).map(|name| format!("d/{name:05}")).collect();
    let all: Vec<_> = names.iter().map(|name| ("100644", name.as_bytes(), &b"0"[..])).collect();
    let mut latest = script.commit("main", 1, &[], &all);
    for step in 1..50_usize {
        let name = names[step * 7919 % 10_000].as_bytes();
        latest = script.commit("main", 1, &[latest], &[("100644", name, step.to_string().as_bytes())]);
    }
    let bare = Bare::import(&script.0, Storage::Packed);
    let found = last(&bare, bare.oid("main"), "d");
    // The history is linear, so git's first mention of a file is its last change.
    let log = bare.run(&["log", "--format=commit %H", "--name-only", "--no-renames", "main", "--", "d"]);
    let mut wanted = std::collections::HashMap::new();
    let mut commit = Oid::ZERO;
    for line in log.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("commit ") {
            Some(oid) => commit = oid.parse().unwrap(),
            None => drop(wanted.entry(line.strip_prefix("d/").unwrap().into()).or_insert(commit)),
        }
    }
    assert_eq!(wanted.len(), 10_000);
    assert_eq!(found, LastCommits { entries: wanted, complete: true });
}

#[test]
fn a_merge_that_took_one_side_leads_into_that_side() {
    let mut script = Script::default();
    let root = script.commit("main", 1, &[], &[("100644", b"f", b"0"), ("100644", b"g", b"0")]);
    let left = script.commit("main", 2, &[root], &[("100644", b"f", b"left")]);
    let right = script.commit("side", 3, &[root], &[("100644", b"f", b"right"), ("100644", b"g", b"1")]);
    // The merge keeps the left `f`, takes the right `g`, and has its own `h`.
    script.commit("main", 4, &[left, right], &[("100644", b"g", b"1"), ("100644", b"h", b"0")]);
    let bare = Bare::import(&script.0, Storage::Packed);
    let found = last(&bare, bare.oid("main"), "");
    assert_eq!(found.entries[&b"f"[..]], bare.oid("main^1"));
    assert_eq!(found.entries[&b"g"[..]], bare.oid("main^2"));
    assert_eq!(found.entries[&b"h"[..]], bare.oid("main"));
    assert_same_as_git(&bare, "main", "");
}

#[test]
fn a_file_that_became_a_directory_is_another_entry() {
    let mut script = Script::default();
    let one =
        script.commit("main", 1, &[], &[("100644", b"x", b"0"), ("100644", b"x.c", b"0"), ("100644", b"x-", b"0")]);
    let two = script.commit("main", 2, &[one], &[("D", b"x", b""), ("100644", b"x/y", b"0")]);
    let three = script.commit("main", 3, &[two], &[("100755", b"x.c", b"0")]);
    script.commit("main", 4, &[three], &[("120000", b"x-", b"0")]);
    let bare = Bare::import(&script.0, Storage::Loose);
    assert_same_as_git(&bare, "main", "");
    assert_same_as_git(&bare, "main", "x");
}

#[test]
fn what_is_not_reached_in_time_is_left_out() {
    let mut script = Script::default();
    script.commit("main", 1, &[], &[("100644", b"f", b"0")]);
    let bare = Bare::import(&script.0, Storage::Packed);
    let late = bare.reader().last_commits(bare.oid("main"), b"", None, Instant::now()).unwrap();
    assert!(!late.complete && late.entries.is_empty());
}

#[test]
fn only_directories_have_last_commits() {
    let mut script = Script::default();
    script.commit("main", 1, &[], &[("100644", b"d/f", b"0")]);
    let bare = Bare::import(&script.0, Storage::Packed);
    let (reader, main) = (bare.reader(), bare.oid("main"));
    assert!(matches!(reader.last_commits(main, b"d/f", None, soon()), Err(ReadError::NotADirectory)));
    assert!(matches!(reader.last_commits(main, b"nothing", None, soon()), Err(ReadError::NotFound)));
    assert!(matches!(reader.last_commits(Oid::ZERO, b"", None, soon()), Err(ReadError::NotFound)));
}
