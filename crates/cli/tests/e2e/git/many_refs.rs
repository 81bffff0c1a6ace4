//! Repositories with fifty thousand refs.

use super::setup::{Road, Setup, ls_remote};
use abide_testkit::Engine;
use rstest::rstest;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::Path;

const MANY: usize = 50_000;

/// Gives a repository tags without the minutes that a disk takes for so many files.
fn write_tags(git_dir: &Path, numbers: Range<usize>, commit: &str) {
    let mut packed = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
    for number in numbers {
        writeln!(packed, "{commit} refs/tags/many/{number:06}").expect("writing to a string does not fail");
    }
    fs::write(git_dir.join("packed-refs"), packed).expect("the repository is ours");
}

/// A client's work with a repository of so many refs and one branch: it clones it, adds to it, counts.
fn assert_usable(setup: &Setup, commit: &str) {
    let git = setup.git();
    let clone = setup.clone(&["--single-branch", "--no-tags"]);
    assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), commit);
    let next = git.commit_file(&clone, "more.txt", "more\n", "More");
    git.ok(&clone, &["push", "--quiet", "origin", "main", "main:side"]);
    assert_eq!(setup.stored(&["rev-parse", "main", "side"]), format!("{next}\n{next}"));

    for version in ["protocol.version=0", "protocol.version=2"] {
        let mut listed = ls_remote(git, &setup.url(), &["-c", version]);
        for name in ["HEAD", "refs/heads/main", "refs/heads/side"] {
            assert_eq!(listed.remove(name), Some(next.clone()), "{name} in {version}");
        }
        assert_eq!(listed.len(), MANY, "{version}");
        assert!(listed.values().all(|oid| *oid == commit), "every tag stays where it was");
    }
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn fifty_thousand_refs_are_listed_and_added_to(#[case] road: Road, #[case] engine: Engine) {
    // More would take git itself long: over HTTP it compares each ref that it pushes with each that there is.
    const PUSHED: usize = 40;
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, commit) = setup.pushed();
    // The first push has the repository's refs packed, which must not meet with what is written by hand.
    setup.wait_for_jobs();
    write_tags(&setup.bare(), 0..MANY - PUSHED, &commit);
    fs::write(setup.bare().join("refs/heads/main"), format!("{commit}\n")).unwrap();
    write_tags(&work.join(".git"), MANY - PUSHED..MANY, &commit);

    git.ok(&work, &["push", "--quiet", "--tags", "origin"]);

    assert_eq!(setup.refs().len(), MANY + 1);
    assert_usable(&setup, &commit);
    setup.assert_settled(3);
}

/// Over SSH only: over HTTP git itself compares each ref with each and takes minutes before it sends anything.
#[test]
fn heavy_fifty_thousand_refs_are_pushed_in_two_steps() {
    let setup = Setup::new(Road::Ssh, Engine::Postgres);
    let git = setup.git();
    let work = setup.work_tree();
    let commit = git.commit_file(&work, "README.md", "hello\n", "Say hello");
    write_tags(&work.join(".git"), 0..MANY, &commit);

    // The commands of one push have a limit, and whoever meets it is told what to do.
    let complaint = git.fails(&work, &["push", "--quiet", "--tags", "origin"]);
    let limit = "the commands of a push may have at most 4194304 bytes; push in several steps";
    assert!(complaint.contains(limit), "{complaint}");
    assert_eq!(setup.refs().len(), 0);

    write_tags(&work.join(".git"), 0..MANY / 2, &commit);
    git.ok(&work, &["push", "--quiet", "--tags", "origin", "main"]);
    write_tags(&work.join(".git"), MANY / 2..MANY, &commit);
    git.ok(&work, &["push", "--quiet", "--tags", "origin"]);

    assert_eq!(setup.refs().len(), MANY + 1);
    assert_usable(&setup, &commit);
    setup.assert_settled(3);
}
