//! Several refs in one push: all of them, or as many as can be.

use super::setup::{Road, Setup, before_each_push, refs, traced};
use abide_testkit::Engine;
use rstest::rstest;
use std::fs;

const RESERVED: &str = "(this ref namespace is reserved for the server; push to refs/heads/ or refs/tags/)";
const IN_THE_WAY: &str = "(the name conflicts with another ref (a and a/b cannot both exist); delete or rename that \
                          ref)";
const MOVED: &str = "(the ref was updated by someone else; fetch and try again)";
const NOT_ALONE: &str = "(atomic push: another ref was refused)";

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn an_atomic_push_moves_all_its_refs_in_one_event(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    let commit = git.commit_file(&work, "README.md", "hello\n", "Say hello");

    git.ok(&work, &["push", "--quiet", "--atomic", "origin", "main", "main:side", "main:refs/tags/v1"]);

    let expected = [("refs/heads/main", &*commit), ("refs/heads/side", &commit), ("refs/tags/v1", &commit)];
    assert_eq!(setup.refs(), refs(expected));
    setup.assert_settled(1);
}

#[rstest]
fn an_atomic_push_with_a_refused_ref_changes_nothing_and_says_so_for_each(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, first) = setup.pushed();
    git.commit_file(&work, "more.txt", "more\n", "More");
    let objects = setup.objects();

    let complaint = git.fails(&work, &["push", "--atomic", "origin", "main", "main:side", "main:refs/pull/1/head"]);

    assert!(complaint.contains(&format!("! [remote rejected] main -> main {NOT_ALONE}")), "{complaint}");
    assert!(complaint.contains(&format!("! [remote rejected] main -> side {NOT_ALONE}")), "{complaint}");
    assert!(complaint.contains(&format!("! [remote rejected] main -> refs/pull/1/head {RESERVED}")), "{complaint}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &first)]));
    assert_eq!(setup.objects(), objects);
    setup.assert_settled(1);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn an_atomic_push_with_a_ref_that_moved_meanwhile_changes_nothing(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, first) = setup.pushed();
    let laptop = setup.clone(&[]);
    let quicker = git.commit_file(&laptop, "quick.txt", "quick\n", "Quicker");
    git.commit_file(&work, "slow.txt", "slow\n", "Slower");
    before_each_push(&work, &format!("cd '{}' && git push --quiet origin main", laptop.display()));

    let complaint = git.fails(&work, &["push", "--atomic", "origin", "main", "main:side"]);

    assert!(complaint.contains(&format!("! [remote rejected] main -> main {MOVED}")), "{complaint}");
    assert!(complaint.contains(&format!("! [remote rejected] main -> side {NOT_ALONE}")), "{complaint}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &quicker)]));
    assert_eq!(setup.stored(&["rev-parse", "main~1"]), first);
    setup.assert_settled(2);
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_push_moves_what_it_can_and_says_what_it_cannot(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, first) = setup.pushed();
    let second = git.commit_file(&work, "more.txt", "more\n", "More");

    let destinations = ["main", "main:side", "main:refs/pull/1/head", "main:main/below", "main:refs/abide/x"];
    let complaint = git.fails(&work, &[&["push", "origin"], &destinations[..]].concat());

    assert!(complaint.contains(&format!("{}..{}  main -> main", &first[..7], &second[..7])), "{complaint}");
    assert!(complaint.contains("* [new branch]      main -> side"), "{complaint}");
    assert!(complaint.contains(&format!("! [remote rejected] main -> refs/pull/1/head {RESERVED}")), "{complaint}");
    assert!(complaint.contains(&format!("! [remote rejected] main -> refs/abide/x {RESERVED}")), "{complaint}");
    assert!(complaint.contains(&format!("! [remote rejected] main -> main/below {IN_THE_WAY}")), "{complaint}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &second), ("refs/heads/side", &second)]));
    setup.assert_settled(2);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn push_options_are_taken(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    let commit = git.commit_file(&work, "README.md", "hello\n", "Say hello");

    let (tracing, trace) = traced(git, "GIT_TRACE_PACKET");
    tracing.ok(&work, &["push", "--quiet", "-o", "topic=ü", "-o", "draft", "origin", "main"]);

    let trace = fs::read_to_string(trace).unwrap();
    assert!(trace.lines().any(|line| line.ends_with("> draft")), "the options were not sent: {trace}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit)]));
    setup.assert_settled(1);
}
