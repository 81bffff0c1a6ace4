//! Logs, counts and merge bases equal git's, with and without a commit-graph.

use crate::read_support::{Bare, Script, Storage, random, steps};
use abide_core::Oid;
use abide_git::ReadError;
use abide_git::read::Count;
use proptest::prelude::*;
use rstest::rstest;

const ALL: usize = 10_000;

fn assert_same_as_git(bare: &Bare, tips: usize) {
    let reader = bare.reader();
    let main = bare.oid("main");
    let all = bare.oids(&["rev-list", "main"]);
    let ids = |skip, limit| {
        let page = reader.log(main, skip, limit).unwrap();
        (page.commits.into_iter().map(|commit| commit.oid).collect::<Vec<_>>(), page.more)
    };
    assert_eq!(ids(0, ALL), (all.clone(), false));
    assert_eq!(ids(1, 2), (all.iter().copied().skip(1).take(2).collect(), all.len() > 3));
    assert_eq!(reader.count(main, ALL).unwrap(), Count { commits: all.len(), exact: true });
    assert_eq!(reader.count(main, 1).unwrap(), Count { commits: 1, exact: all.len() == 1 });
    let tags: Vec<Oid> = (1..=tips).map(|tag| bare.oid(&tag.to_string())).collect();
    let base = tags[tags.len() / 2];
    for &tag in &tags {
        let (a, b) = (tag.to_string(), base.to_string());
        let found = reader.merge_base(tag, base, ALL).unwrap();
        let bases = merge_bases(bare, &a, &b);
        match found {
            Some(found) => assert!(bases.contains(&found), "{found} is none of {bases:?}"),
            None => assert!(bases.is_empty(), "none, but git has {bases:?}"),
        }
        let is_ancestor = reader.is_ancestor(tag, base, ALL).unwrap();
        assert_eq!(is_ancestor, bases.contains(&tag), "{a} {b}");
        let counts = bare.run(&["rev-list", "--left-right", "--count", &format!("{b}...{a}")]);
        let (behind, ahead) = counts.split_once('\t').unwrap();
        let distance = reader.ahead_behind(base, tag, ALL).unwrap();
        assert_eq!((distance.behind.to_string(), distance.ahead.to_string()), (behind.into(), ahead.into()));
        assert!(distance.exact);
    }
}

fn merge_bases(bare: &Bare, a: &str, b: &str) -> Vec<Oid> {
    let output = crate::support::plain_git(bare.path()).args(["merge-base", "--all", a, b]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn random_histories_read_as_git_reads_them(steps in steps(14, 0..50)) {
        assert_same_as_git(&random(&steps, Storage::Packed), steps.len());
        assert_same_as_git(&random(&steps, Storage::PackedWithGraph), steps.len());
    }

    #[test]
    fn clocks_that_go_backwards_do_no_harm(steps in steps(14, -500..500)) {
        assert_same_as_git(&random(&steps, Storage::Loose), steps.len());
        assert_same_as_git(&random(&steps, Storage::PackedWithGraph), steps.len());
    }
}

#[rstest]
fn commits_beyond_the_graph_are_found_too(#[values(Storage::Loose, Storage::Packed)] later: Storage) {
    let mut script = Script::default();
    let one = script.commit("main", 1, &[], &[("100644", b"a", b"1")]);
    script.commit("main", 2, &[one], &[("100644", b"a", b"2")]);
    let bare = Bare::import(&script.0, Storage::PackedWithGraph);
    let reader = bare.reader();
    let old = bare.oid("main");
    assert_eq!(reader.count(old, 10).unwrap().commits, 2);
    let mut more = Script::default();
    more.commit("side", 3, &[], &[("100644", b"b", b"1")]);
    bare.more(&more.0, later);
    let import = format!(
        "commit refs/heads/main\ncommitter a <a@b> 5 +0000\ndata 2\nx\nfrom {old}\nmerge {}\n",
        bare.oid("side")
    );
    bare.more(import.as_bytes(), later);
    // The reader was opened before these commits existed.
    let new = bare.oid("main");
    assert_eq!(reader.count(new, 10).unwrap().commits, 4);
    assert!(reader.is_ancestor(old, new, 10).unwrap());
    assert!(!reader.is_ancestor(new, old, 10).unwrap());
    assert_eq!(reader.merge_base(new, bare.oid("side"), 10).unwrap(), Some(bare.oid("side")));
    assert_eq!(reader.merge_base(old, bare.oid("side"), 10).unwrap(), None);
}

#[test]
fn an_octopus_has_all_its_parents() {
    let mut script = Script::default();
    let root = script.commit("main", 1, &[], &[("100644", b"a", b"0")]);
    let sides: Vec<_> =
        (0..5).map(|n| script.commit("side", 2 + n, &[root], &[("100644", &[b'a' + n as u8], b"1")])).collect();
    script.commit("main", 100, &sides, &[]);
    for storage in [Storage::Packed, Storage::PackedWithGraph] {
        let bare = Bare::import(&script.0, storage);
        let page = bare.reader().log(bare.oid("main"), 0, 100).unwrap();
        assert_eq!(page.commits[0].parents, bare.oids(&["rev-parse", "main^@"]));
        assert_eq!(page.commits.iter().map(|commit| commit.oid).collect::<Vec<_>>(), bare.oids(&["rev-list", "main"]));
    }
}

#[test]
fn walks_end_at_their_limit() {
    let mut script = Script::default();
    let mut last = script.commit("main", 1, &[], &[]);
    for time in 2..=50 {
        last = script.commit("main", time, &[last], &[]);
    }
    script.commit("other", 1, &[], &[]);
    let bare = Bare::import(&script.0, Storage::Packed);
    let (reader, main, root) = (bare.reader(), bare.oid("main"), bare.oid("main~49"));
    assert!(matches!(reader.merge_base(main, bare.oid("other"), 10), Err(ReadError::TooFar)));
    assert!(matches!(reader.is_ancestor(root, main, 10), Err(ReadError::TooFar)));
    assert!(!reader.ahead_behind(root, main, 10).unwrap().exact);
    assert!(matches!(reader.log(main, usize::MAX, 1), Err(ReadError::TooFar)));
    let beyond = reader.log(main, 50, 10).unwrap();
    assert!(beyond.commits.is_empty() && !beyond.more);
    assert!(matches!(reader.log(bare.oid("main^{tree}"), 0, 1), Err(ReadError::NotACommit)));
    assert!(matches!(reader.log(Oid::ZERO, 0, 1), Err(ReadError::NotFound)));
}
