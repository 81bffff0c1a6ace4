//! Names of refs: what may be pushed, and what is never shown.

use super::setup::{Road, Setup, ls_remote, refs};
use abide_testkit::Engine;
use rstest::rstest;

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn names_may_be_deep_long_and_in_any_script(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, commit) = setup.pushed();
    let long = "x".repeat(200);
    let deep = "a/b/c/d/e/f/g/h";
    let mut expected = refs([("refs/heads/main", &commit)]);

    for name in ["ü/ñ", "分支", "-dash", "UPPER", "upper", "with'quote\"s", "$(id)", deep, &long] {
        let name = format!("refs/heads/{name}");
        git.ok(&work, &["push", "--quiet", "origin", &format!("main:{name}")]);
        expected.insert(name, commit.clone());
    }

    assert_eq!(setup.refs(), expected);
    let pushes = expected.len() as i64;
    expected.insert("HEAD".to_owned(), commit.clone());
    assert_eq!(ls_remote(git, &setup.url(), &[]), expected);
    let clone = setup.clone(&["--branch=ü/ñ"]);
    assert_eq!(git.ok(&clone, &["symbolic-ref", "HEAD"]), "refs/heads/ü/ñ");
    assert_eq!(git.ok(&clone, &["rev-parse", &format!("origin/{long}")]), commit);
    setup.assert_settled(pushes);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn a_name_that_no_file_can_have_is_refused(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, commit) = setup.pushed();

    let too_long = format!("main:refs/heads/{}", "x".repeat(251));
    let complaint = git.fails(&work, &["push", "origin", &too_long]);

    assert!(complaint.contains("a ref name must have at most 1000 bytes, and 250 between two slashes"), "{complaint}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit)]));
    setup.assert_settled(1);
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn the_servers_own_refs_are_never_shown(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, first) = setup.pushed();
    setup.wait_for_jobs();
    setup.stored(&["update-ref", "refs/abide/keep/1", &first]);
    let second = git.commit_file(&work, "more.txt", "more\n", "More");
    git.ok(&work, &["push", "--quiet", "origin", "main"]);
    assert_eq!(setup.refs(), refs([("refs/abide/keep/1", &first), ("refs/heads/main", &second)]));

    for version in ["protocol.version=0", "protocol.version=2"] {
        let shown = ls_remote(git, &setup.url(), &["-c", version]);
        assert_eq!(shown, refs([("HEAD", &second), ("refs/heads/main", &second)]), "{version}");
    }
    let mirror = setup.clone(&["--mirror"]);
    assert_eq!(git.ok(&mirror, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    // Nor can they be pushed away: a mirror deletes what it does not know, but it never hears of them.
    git.ok(&mirror, &["push", "--quiet", "--mirror", "origin"]);
    assert_eq!(setup.refs().len(), 2);
    setup.assert_settled(2);
}
