//! From nothing to the first commit.

use super::setup::{Road, Setup, ls_remote, refs, stderr_of};
use crate::support::{query, server};
use abide_testkit::Engine;
use rstest::rstest;
use std::fs;

#[rstest]
fn the_first_push_is_what_a_clone_gets(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    let commit = git.commit_file(&work, "docs/hello.txt", "hello\n", "Say hello");

    git.ok(&work, &["push", "--quiet", "--set-upstream", "origin", "main"]);

    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit)]));
    let clone = setup.clone(&[]);
    assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), commit);
    assert_eq!(git.ok(&clone, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(fs::read_to_string(clone.join("docs/hello.txt")).unwrap(), "hello\n");
    setup.assert_settled(1);
}

#[rstest]
fn an_empty_repository_can_be_cloned_and_pushed_from_that_clone(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    assert_eq!(ls_remote(git, &setup.url(), &[]), refs([]));

    let work = git.fresh_dir();
    let reported = stderr_of(git, &work, &["clone", &setup.url(), "."]);
    assert!(reported.contains("You appear to have cloned an empty repository"), "{reported}");

    let commit = git.commit_file(&work, "README.md", "hello\n", "Say hello");
    git.ok(&work, &["push", "--quiet"]);
    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit)]));
    setup.assert_settled(1);
}

/// Only version 2 can tell the name of a branch without commits.
#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn a_clone_of_an_empty_repository_starts_on_its_default_branch(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::with_default_branch(server(engine), road, "trunk");
    let git = setup.git();

    let work = setup.clone(&["-c", "protocol.version=2"]);
    assert_eq!(git.ok(&work, &["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    let commit = git.commit_file(&work, "README.md", "hello\n", "Say hello");
    git.ok(&work, &["push", "--quiet"]);

    assert_eq!(setup.refs(), refs([("refs/heads/trunk", &commit)]));
    for version in ["protocol.version=0", "protocol.version=2"] {
        let again = setup.clone(&["-c", version]);
        assert_eq!(git.ok(&again, &["symbolic-ref", "HEAD"]), "refs/heads/trunk", "{version}");
        assert_eq!(git.ok(&again, &["rev-parse", "HEAD"]), commit, "{version}");
    }
    setup.assert_settled(1);
}

/// Most repositories of earlier years have no `main`.
#[rstest]
fn the_first_branch_becomes_the_default_one_if_the_preset_one_was_not_pushed(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    let commit = git.commit_file(&work, "README", "old\n", "Begin");
    git.ok(&work, &["branch", "-m", "master"]);
    git.ok(&work, &["push", "--quiet", "origin", "master"]);

    let clone = setup.clone(&[]);
    assert_eq!(git.ok(&clone, &["symbolic-ref", "HEAD"]), "refs/heads/master");
    assert_eq!(fs::read_to_string(clone.join("README")).unwrap(), "old\n");
    assert_eq!(setup.stored(&["symbolic-ref", "HEAD"]), "refs/heads/master");
    let reported = query(&setup.server, "SELECT count(*) FROM domain_events WHERE kind = 'repo_edited'");
    assert_eq!(reported, "1", "it is told like any other change");

    // Later branches change nothing.
    git.ok(&work, &["push", "--quiet", "origin", "master:main", "master:aaa"]);
    let listed = git.ok(&work, &["ls-remote", &setup.url(), "HEAD"]);
    assert_eq!(listed.trim(), format!("{commit}\tHEAD"));
    assert_eq!(setup.stored(&["symbolic-ref", "HEAD"]), "refs/heads/master");
    setup.assert_settled(2);
}

#[rstest]
#[case::sqlite(Engine::Sqlite)]
#[case::postgres(Engine::Postgres)]
fn tags_choose_no_default_branch_and_the_preset_one_stays_if_it_was_pushed(#[case] engine: Engine) {
    let setup = Setup::new(Road::Http, engine);
    let git = setup.git();
    let work = setup.work_tree();
    git.commit_file(&work, "README", "x\n", "Begin");
    git.ok(&work, &["push", "--quiet", "origin", "main:refs/tags/v1"]);
    assert_eq!(setup.stored(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    git.ok(&work, &["push", "--quiet", "origin", "main:aaa", "main"]);
    assert_eq!(setup.stored(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    let reported = query(&setup.server, "SELECT count(*) FROM domain_events WHERE kind = 'repo_edited'");
    assert_eq!(reported, "0");
    setup.assert_settled(2);
}
