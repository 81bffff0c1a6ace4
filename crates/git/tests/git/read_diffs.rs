//! Diffs: our hunks turn the old file into the new one, and the counts equal git's.

use crate::read_support::{Bare, Script, Storage, random, steps};
use abide_core::Oid;
use abide_git::ReadError;
use abide_git::bstr::ByteSlice;
use abide_git::read::diff::{Change, Content, FileChange, LineKind};
use abide_git::read::{Diff, DiffLimits};
use proptest::prelude::*;
use std::time::Duration;

fn unlimited() -> DiffLimits {
    DiffLimits {
        files: 10_000,
        file_lines: usize::MAX,
        file_bytes: 1 << 24,
        total_bytes: 1 << 30,
        rename_pairs: 0,
        processor: Duration::from_secs(3600),
    }
}

/// Applies our hunks as `patch` would, checking every number.
fn apply(old: &[u8], file: &FileChange) -> Vec<u8> {
    let Content::Text { hunks, truncated: false } = &file.content else { panic!("{file:?}") };
    let old: Vec<&[u8]> = old.lines_with_terminator().collect();
    let (mut new, mut at_old, mut at_new) = (Vec::new(), 0, 0);
    let (mut additions, mut deletions) = (0, 0);
    for hunk in hunks {
        let start = hunk.old_start as usize - usize::from(hunk.old_lines > 0);
        assert!(start >= at_old, "hunks do not overlap");
        at_new += start - at_old;
        new.extend(old[at_old..start].concat());
        at_old = start;
        assert_eq!(hunk.new_start as usize - usize::from(hunk.new_lines > 0), at_new);
        let (before_old, before_new) = (at_old, at_new);
        for line in &hunk.lines {
            let text = [line.text.as_slice(), if line.newline { b"\n" } else { b"" }].concat();
            if line.kind != LineKind::Added {
                assert_eq!((line.old, text.as_slice()), (Some(u32::try_from(at_old + 1).unwrap()), old[at_old]));
                at_old += 1;
            }
            if line.kind != LineKind::Deleted {
                assert_eq!(line.new, Some(u32::try_from(at_new + 1).unwrap()));
                at_new += 1;
                new.extend(text);
            }
            additions += usize::from(line.kind == LineKind::Added);
            deletions += usize::from(line.kind == LineKind::Deleted);
        }
        assert_eq!((at_old - before_old, at_new - before_new), (hunk.old_lines as usize, hunk.new_lines as usize));
    }
    new.extend(old[at_old..].concat());
    assert_eq!((additions, deletions), (file.additions, file.deletions));
    new
}

/// `path → (additions, deletions)`, `-` for binary files.
fn numstat(bare: &Bare, old: &str, new: &str) -> Vec<String> {
    let text = bare.run(&["diff", "--numstat", "--no-renames", old, new]);
    text.lines().map(str::to_owned).collect()
}

fn our_numstat(diff: &Diff) -> Vec<String> {
    let line = |file: &FileChange| {
        let path = file.change.path();
        match file.content {
            Content::Text { .. } => format!("{}\t{}\t{path}", file.additions, file.deletions),
            Content::Binary => format!("-\t-\t{path}"),
            Content::Omitted => format!("?\t?\t{path}"),
        }
    };
    diff.files.iter().map(line).collect()
}

fn assert_same_as_git(bare: &Bare, old: &str, new: &str) {
    let reader = bare.reader();
    let diff = reader.diff_trees(bare.oid(old), bare.oid(new), &unlimited()).unwrap();
    assert_eq!(our_numstat(&diff), numstat(bare, old, new));
    for file in &diff.files {
        let side = |side: Option<&abide_git::read::diff::Side>| {
            side.map(|side| reader.blob(side.oid, usize::MAX).unwrap().data).unwrap_or_default()
        };
        if matches!(file.content, Content::Text { .. }) {
            let (old, new) = (side(file.change.before()), side(file.change.after()));
            assert_eq!(apply(&old, file).as_bstr(), new.as_bstr());
        }
    }
}

fn two_files(old: &[u8], new: &[u8]) -> Bare {
    let mut script = Script::default();
    let one = script.commit("main", 1, &[], &[("100644", b"f", old)]);
    script.commit("main", 2, &[one], &[("100644", b"f", new)]);
    Bare::import(&script.0, Storage::Packed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn our_hunks_turn_the_old_file_into_the_new_one(
        old in prop::collection::vec("[a-e]{0,2}\r?", 0..60),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, "[a-h]{0,2}"), 0..8),
        ends in any::<(bool, bool)>(),
    ) {
        let mut new = old.clone();
        for (at, what, text) in edits {
            let at = at.index(new.len() + 1);
            match what {
                0 if at < new.len() => drop(new.remove(at)),
                1 if at < new.len() => new[at] = text,
                _ => new.insert(at, text),
            }
        }
        let text = |lines: &[String], end: bool| lines.join("\n") + if end { "\n" } else { "" };
        let (old, new) = (text(&old, ends.0), text(&new, ends.1));
        prop_assume!(old != new);
        assert_same_as_git(&two_files(old.as_bytes(), new.as_bytes()), "main^", "main");
    }

    #[test]
    fn random_histories_differ_as_git_says(steps in steps(10, 1..9)) {
        let bare = random(&steps, Storage::Packed);
        for tag in 1..=steps.len() {
            assert_same_as_git(&bare, &tag.to_string(), "main");
        }
    }
}

#[test]
fn every_kind_of_change_is_told() {
    let mut script = Script::default();
    let many: String = (0..50).map(|line| format!("line {line}\n")).collect();
    let moved = many.replace("line 7\n", "line seven\n");
    let files: [(&str, &[u8], &[u8]); 7] = [
        ("100644", b"gone", b"x\n"),
        ("100644", b"mode", b"x\n"),
        ("100644", b"kind", b"target"),
        ("100644", b"old/name", many.as_bytes()),
        ("100644", b"exact", b"the same bytes\n"),
        ("100644", b"binary", b"a\0"),
        ("160000", b"module", b"0123456789012345678901234567890123456789"),
    ];
    let one = script.commit("main", 1, &[], &files);
    let files: [(&str, &[u8], &[u8]); 10] = [
        ("D", b"gone", b""),
        ("100755", b"mode", b"x\n"),
        ("120000", b"kind", b"target"),
        ("D", b"old/name", b""),
        ("100644", b"new/name", moved.as_bytes()),
        ("D", b"exact", b""),
        ("100755", b"moved/exact", b"the same bytes\n"),
        ("100644", b"binary", b"b\0"),
        ("160000", b"module", b"1123456789012345678901234567890123456789"),
        ("100644", b"n\xffw", b"no newline"),
    ];
    script.commit("main", 2, &[one], &files);
    let bare = Bare::import(&script.0, Storage::Packed);
    let diff = bare.reader().diff(bare.oid("main"), &DiffLimits::default()).unwrap();
    let reported: Vec<_> = diff
        .files
        .iter()
        .map(|file| {
            let path = |side: &abide_git::read::diff::Side| side.path.to_str_lossy().into_owned();
            let what = match &file.change {
                Change::Added(new) => format!("+ {}", path(new)),
                Change::Deleted(old) => format!("- {}", path(old)),
                Change::Modified(old, new) => format!("{} {}>{}", path(new), old.kind.mode(), new.kind.mode()),
                Change::Renamed(old, new, score) => format!("{} > {} {score}", path(old), path(new)),
            };
            format!(
                "{what} +{} -{}{}",
                file.additions,
                file.deletions,
                if file.content == Content::Binary { " binary" } else { "" }
            )
        })
        .collect();
    let wanted = [
        "binary 100644>100644 +0 -0 binary",
        "- gone +0 -1",
        "kind 100644>120000 +0 -0",
        "mode 100644>100755 +0 -0",
        "module 160000>160000 +1 -1",
        "exact > moved/exact 100 +0 -0",
        "+ n\u{fffd}w +1 -0",
        "old/name > new/name 97 +1 -1",
    ];
    assert_eq!(reported.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), wanted.into());
    assert_eq!((diff.additions, diff.deletions, diff.truncated), (3, 3, false));
    let git = bare.run(&["diff", "-M", "--raw", "main^", "main", "--", "old", "new"]);
    assert!(git.contains("R097") || git.contains("R098"), "{git}");
    let root = bare.reader().diff(bare.oid("main^"), &DiffLimits::default()).unwrap();
    assert!(root.files.len() == 7 && root.files.iter().all(|file| matches!(file.change, Change::Added(_))));
}

#[test]
fn limits_cut_and_say_so() {
    let mut script = Script::default();
    let long: String = (0..1000).map(|line| format!("{line}\n")).collect();
    let names: Vec<_> = (0..20).map(|name| format!("f{name:02}")).collect();
    let one = script.commit("main", 1, &[], &[]);
    let files: Vec<_> = names.iter().map(|name| ("100644", name.as_bytes(), long.as_bytes())).collect();
    script.commit("main", 2, &[one], &files);
    let bare = Bare::import(&script.0, Storage::Packed);
    let diff = |limits: &DiffLimits| bare.reader().diff(bare.oid("main"), limits).unwrap();
    let few = diff(&DiffLimits { files: 5, ..DiffLimits::default() });
    assert!(few.truncated && few.files.len() == 5);
    let short = diff(&DiffLimits { file_lines: 10, ..DiffLimits::default() });
    for file in &short.files {
        let Content::Text { hunks, truncated: true } = &file.content else { panic!() };
        assert_eq!((hunks.len(), hunks[0].lines.len(), hunks[0].new_lines, file.additions), (1, 10, 1000, 1000));
    }
    let small = diff(&DiffLimits { file_bytes: 100, ..DiffLimits::default() });
    assert!(small.files.iter().all(|file| file.content == Content::Omitted) && small.additions == 0);
    let total = diff(&DiffLimits { total_bytes: 3 * long.len() as u64, ..DiffLimits::default() });
    assert_eq!(total.files.iter().filter(|file| file.content == Content::Omitted).count(), 17);
}

#[test]
fn a_diff_ends_with_its_processor_time_and_says_so() {
    let mut script = Script::default();
    let one = script.commit("main", 1, &[], &[]);
    let names: Vec<_> = (0..300).map(|name| format!("f{name:03}")).collect();
    let mut files: Vec<_> = names.iter().map(|name| ("100644", name.as_bytes(), b"text\n".as_slice())).collect();
    script.commit("wide", 2, &[one], &files);
    files.truncate(3);
    files.push(("100644", b"dir/below", b"text\n"));
    script.commit("main", 3, &[one], &files);
    let bare = Bare::import(&script.0, Storage::Packed);
    let diff = |branch: &str, processor: Duration| {
        bare.reader().diff(bare.oid(branch), &DiffLimits { processor, ..DiffLimits::default() }).unwrap()
    };
    // Directories are not entered, and files are listed without their lines.
    let spent = diff("main", Duration::ZERO);
    let paths: Vec<_> = spent.files.iter().map(|file| file.change.path().to_string()).collect();
    assert_eq!((paths, spent.truncated, spent.timed_out), (names[..3].to_vec(), true, true));
    assert!(spent.files.iter().all(|file| file.content == Content::Omitted) && spent.additions == 0);
    // A directory is not read to its end.
    let spent = diff("wide", Duration::ZERO);
    assert!(spent.files.len() < 100 && spent.truncated && spent.timed_out, "{}", spent.files.len());
    for branch in ["main", "wide"] {
        let whole = diff(branch, Duration::from_secs(3600));
        assert!(!whole.timed_out && whole.files.iter().all(|file| file.content != Content::Omitted));
    }
}

#[test]
fn a_comparison_starts_where_the_two_parted() {
    let mut script = Script::default();
    let root = script.commit("main", 1, &[], &[("100644", b"f", b"0\n")]);
    script.commit("main", 2, &[root], &[("100644", b"only-main", b"0\n")]);
    let one = script.commit("side", 3, &[root], &[("100644", b"f", b"1\n")]);
    script.commit("side", 4, &[one], &[("100644", b"g", b"1\n")]);
    script.commit("lone", 4, &[], &[]);
    let bare = Bare::import(&script.0, Storage::Packed);
    let compare = |base: &str, head: &str| bare.reader().compare(bare.oid(base), bare.oid(head), 10, 100, &unlimited());
    let found = compare("main", "side").unwrap();
    assert_eq!(found.merge_base, bare.oid("main^"));
    assert_eq!((found.distance.ahead, found.distance.behind), (2, 1));
    assert_eq!(
        found.commits.iter().map(|commit| commit.oid).collect::<Vec<_>>(),
        bare.oids(&["rev-list", "main..side"])
    );
    assert_eq!(our_numstat(&found.diff), numstat(&bare, "main...side", "--"));
    let same = compare("side", "side").unwrap();
    assert!(same.commits.is_empty() && same.diff.files.is_empty() && same.distance.ahead == 0);
    assert!(matches!(compare("main", "lone"), Err(ReadError::Unrelated)));
    let missing = bare.reader().compare(Oid::ZERO, bare.oid("main"), 1, 10, &unlimited());
    assert!(matches!(missing, Err(ReadError::NotFound)));
}
