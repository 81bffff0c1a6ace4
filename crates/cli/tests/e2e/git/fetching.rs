//! All of it, the latest, a part, or one commit.

use super::setup::{Road, Setup, clone, ls_remote, traced};
use crate::support::crowded;
use abide_testkit::{Engine, GitClient, History};
use rstest::rstest;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn commits(git: &GitClient, dir: &Path, of: &str) -> usize {
    git.ok(dir, &["rev-list", "--count", of]).parse().expect("a count is a number")
}

#[rstest]
fn a_fetch_brings_what_was_pushed_since(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, first) = setup.pushed();
    let clone = setup.clone(&[]);

    let second = git.commit_file(&work, "more.txt", "more\n", "More");
    git.ok(&work, &["push", "--quiet", "origin", "main", "main:refs/heads/side"]);
    assert_eq!(git.ok(&clone, &["rev-parse", "origin/main"]), first);
    git.ok(&clone, &["fetch", "--quiet"]);

    assert_eq!(git.ok(&clone, &["rev-parse", "origin/main", "origin/side"]), format!("{second}\n{second}"));
    assert_eq!(git.ok(&clone, &["show", "origin/main:more.txt"]), "more");
    setup.assert_settled(2);
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_shallow_clone_can_be_deepened_and_completed(
    #[case] road: Road,
    #[case] engine: Engine,
    #[values("protocol.version=0", "protocol.version=2")] version: &str,
) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    git.fast_import(&work, History { commits: 6, bytes_per_commit: 100, refs: 0 });
    git.ok(&work, &["push", "--quiet", "origin", "main"]);

    let shallow = setup.clone(&["-c", version, "--depth=2"]);
    assert_eq!(commits(git, &shallow, "HEAD"), 2);
    git.ok(&shallow, &["fetch", "--quiet", "--deepen=1"]);
    assert_eq!(commits(git, &shallow, "origin/main"), 3);
    git.ok(&shallow, &["fetch", "--quiet", "--unshallow"]);

    assert_eq!(commits(git, &shallow, "origin/main"), 6);
    assert_eq!(git.ok(&shallow, &["rev-parse", "--is-shallow-repository"]), "false");
    assert_eq!(git.ok(&shallow, &["rev-parse", "HEAD"]), git.ok(&work, &["rev-parse", "main"]));
    git.ok(&shallow, &["fsck", "--no-progress"]);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn a_shallow_clone_can_push(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    git.fast_import(&work, History { commits: 4, bytes_per_commit: 100, refs: 0 });
    git.ok(&work, &["push", "--quiet", "origin", "main"]);
    let shallow = setup.clone(&["--depth=1"]);
    assert_eq!(git.ok(&shallow, &["rev-parse", "--is-shallow-repository"]), "true");

    let commit = git.commit_file(&shallow, "more.txt", "more\n", "More");
    git.ok(&shallow, &["push", "--quiet", "origin", "main"]);

    assert_eq!(setup.stored(&["rev-parse", "main"]), commit);
    assert_eq!(setup.stored(&["rev-list", "--count", "main"]), "5");
    assert!(!setup.bare().join("shallow").exists(), "the server's own history has no gap");
    setup.assert_settled(2);
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_partial_clone_fetches_files_when_they_are_needed(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    git.commit_file(&work, "old.txt", "old\n", "Old");
    fs::remove_file(work.join("old.txt")).unwrap();
    git.ok(&work, &["add", "--all"]);
    git.commit_file(&work, "new.txt", "new\n", "New");
    git.ok(&work, &["push", "--quiet", "origin", "main"]);
    let missing = |dir: &Path| {
        let listed = git.ok(dir, &["rev-list", "--objects", "--all", "--missing=print"]);
        listed.lines().filter(|line| line.starts_with('?')).count()
    };

    let partial = setup.clone(&["--filter=blob:none", "--no-checkout"]);
    assert_eq!(commits(git, &partial, "HEAD"), 2);
    assert_eq!(missing(&partial), 2);
    git.ok(&partial, &["checkout", "--quiet", "main"]);
    assert_eq!(fs::read_to_string(partial.join("new.txt")).unwrap(), "new\n");
    assert_eq!(missing(&partial), 1);

    assert_eq!(git.ok(&partial, &["show", "HEAD~1:old.txt"]), "old");
    assert_eq!(missing(&partial), 0);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn one_branch_can_be_cloned_without_the_others(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, first) = setup.pushed();
    git.ok(&work, &["switch", "--quiet", "--create", "side"]);
    let side = git.commit_file(&work, "side.txt", "side\n", "Side");
    git.ok(&work, &["switch", "--quiet", "main"]);
    let main = git.commit_file(&work, "main.txt", "main\n", "Main");
    git.ok(&work, &["push", "--quiet", "origin", "main", "side"]);

    let single = setup.clone(&["--single-branch", "--branch=side"]);

    assert_eq!(git.ok(&single, &["rev-list", "HEAD"]), format!("{side}\n{first}"));
    let known = git.ok(&single, &["for-each-ref", "--format=%(refname)", "refs/remotes"]);
    assert_eq!(known, "refs/remotes/origin/side");
    git.fails(&single, &["cat-file", "-e", &main]);
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_commit_that_no_ref_names_can_be_fetched_by_its_id(
    #[case] road: Road,
    #[case] engine: Engine,
    #[values("protocol.version=0", "protocol.version=2")] version: &str,
) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, first) = setup.pushed();
    let second = git.commit_file(&work, "more.txt", "more\n", "More");
    git.ok(&work, &["push", "--quiet", "origin", "main"]);

    let other = setup.work_tree();
    git.ok(&other, &["-c", version, "fetch", "--quiet", "origin", &first]);

    assert_eq!(git.ok(&other, &["rev-parse", "FETCH_HEAD"]), first);
    git.fails(&other, &["cat-file", "-e", &second]);
    let absent = "1".repeat(40);
    let complaint = git.fails(&other, &["-c", version, "fetch", "origin", &absent]);
    assert!(complaint.contains(&format!("not our ref {absent}")), "{complaint}");
}

/// git compresses a request of more than a kilobyte, as a client that wants many things sends.
#[rstest]
fn a_request_may_come_compressed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    const BRANCHES: usize = 40;
    let setup = Setup::new(Road::Http, engine);
    let git = setup.git();
    let work = setup.work_tree();
    git.fast_import(&work, History { commits: BRANCHES, bytes_per_commit: 10, refs: 0 });
    let branches: Vec<_> = (0..BRANCHES).map(|back| format!("main~{back}:refs/heads/back/{back}")).collect();
    let refspecs: Vec<_> = branches.iter().map(String::as_str).collect();
    git.ok(&work, &[&["push", "--quiet", "origin"], &refspecs[..]].concat());

    let (tracing, trace) = traced(git, "GIT_TRACE_CURL");
    let other = setup.work_tree();
    tracing.ok(&other, &["fetch", "--quiet", "origin"]);

    let trace = fs::read_to_string(trace).unwrap().to_lowercase();
    assert!(trace.contains("send header: content-encoding: gzip\n"), "the request was not compressed: {trace}");
    assert_eq!(git.ok(&other, &["rev-parse", "origin/back/0"]), git.ok(&work, &["rev-parse", "main"]));
    assert_eq!(git.ok(&other, &["for-each-ref", "--format=x", "refs/remotes"]).lines().count(), BRANCHES);
}

#[rstest]
fn a_fetch_beside_pushes_sees_one_of_them_and_all_of_it(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const PUSHES: usize = 8;
    let setup = Setup::on(crowded(engine).start(), road);
    let git = setup.git();
    let (work, first) = setup.pushed();
    let done = AtomicBool::new(false);

    let (seen, pushed) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut pushed = vec![first.clone()];
            for number in 0..PUSHES {
                let commit = git.commit_file(&work, "file.txt", format!("{number}\n"), "Next");
                git.ok(&work, &["push", "--quiet", "origin", "main"]);
                pushed.push(commit);
            }
            done.store(true, Ordering::Release);
            pushed
        });
        let mut seen = Vec::new();
        while !done.load(Ordering::Acquire) && !writer.is_finished() {
            seen.push(ls_remote(git, &setup.url(), &[])["refs/heads/main"].clone());
            let clone = clone(git, &setup.url(), &[]);
            git.ok(&clone, &["fsck", "--no-progress", "--connectivity-only"]);
            seen.push(git.ok(&clone, &["rev-parse", "origin/main"]));
        }
        seen.push(ls_remote(git, &setup.url(), &[])["refs/heads/main"].clone());
        (seen, writer.join().expect("every push went well"))
    });

    let places = seen.iter().map(|oid| pushed.iter().position(|pushed| pushed == oid).expect("this was pushed"));
    assert!(places.is_sorted(), "refs never go back: {seen:?} of {pushed:?}");
    assert_eq!(seen.last(), pushed.last());
    setup.assert_settled(1 + PUSHES as i64);
}

#[rstest]
#[case(Road::Http, Engine::Sqlite)]
#[case(Road::Ssh, Engine::Postgres)]
fn filters_that_walk_paths_are_refused(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let (_, commit) = setup.pushed();
    for filter in ["blob:none", "blob:limit=1k", "tree:0"] {
        let option = format!("--filter={filter}");
        assert_eq!(
            setup.git().ok(&setup.clone(&[&option, "--no-checkout"]), &["rev-parse", "HEAD"]),
            commit,
            "{filter}"
        );
    }
    for filter in ["tree:2", "sparse:oid=HEAD:README.md", "combine:tree:1+blob:none"] {
        let (option, work) = (format!("--filter={filter}"), setup.work_tree());
        let said = setup.git().fails(&work, &["fetch", &option, &setup.url(), "main"]);
        let refused = said.contains("not supported") || said.contains("max depth");
        assert!(refused, "{filter}: {said}");
    }
}
