//! The addresses of a repository.

use super::setup::{Road, Setup, clone, refs};
use crate::beside::Beside as _;
use abide_testkit::{Engine, http};
use rstest::rstest;

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn every_way_to_write_an_address_leads_to_the_same_repository(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    let permanent = format!("r/{}.git", setup.id);
    let short = format!("r/{}", setup.id);
    let mut pushes = 0;

    for path in [permanent.as_str(), &short, "alice/demo", "ALICE/Demo.git", "Alice/DEMO"] {
        pushes += 1;
        let commit = git.commit_file(&work, "file.txt", format!("{path}\n"), path);
        git.ok(&work, &["push", "--quiet", &setup.url_of(path), "main"]);

        assert_eq!(setup.refs(), refs([("refs/heads/main", &commit)]), "{path}");
        let clone = clone(git, &setup.url_of(path), &[]);
        assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), commit, "{path}");
    }
    setup.assert_settled(pushes);
}

#[rstest]
fn under_an_old_name_of_its_owner_a_repository_is_served_in_place(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, _) = setup.pushed();
    setup.server.cli_ok(&["user", "rename", "alice", "ada"]);

    for path in ["alice/demo.git", "ada/demo.git"] {
        let commit = git.commit_file(&work, "file.txt", format!("{path}\n"), path);
        git.ok(&work, &["push", "--quiet", &setup.url_of(path), "main"]);
        let clone = clone(git, &setup.url_of(path), &[]);
        assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), commit, "{path}");
    }
    let answer = http::get(setup.server.http_addr(), "/api/v3/repos/ada/demo", None).json();
    assert_eq!(answer["full_name"], "ada/demo");
    // The API points to the address that lasts; what is below is served in place.
    let moved = http::get(setup.server.http_addr(), "/api/v3/repos/alice/demo", None);
    let lasting = format!("{}/api/v3/repositories/{}", setup.server.url(), answer["id"]);
    assert_eq!((moved.status, moved.header("location")), (301, Some(lasting.as_str())));
    assert_eq!(http::get(setup.server.http_addr(), "/api/v3/repos/alice/demo/branches", None).status, 200);
    // Nobody can take the name and with it the links.
    setup.server.add_user("bob");
    let taken = setup.server.cli(&["user", "rename", "bob", "alice"]);
    assert_eq!(taken.status.code(), Some(4), "{}", String::from_utf8_lossy(&taken.stderr));
    setup.assert_settled(3);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn an_address_that_leads_nowhere_is_not_found(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, _) = setup.pushed();

    for path in ["alice/other.git", "nobody/demo.git", "r/999999.git", "r/-1.git", "r/demo.git", "alice/demo.git.git"] {
        for args in [&["ls-remote"][..], &["push", "--quiet"]] {
            let url = setup.url_of(path);
            let refspec = if args[0] == "push" { &["main"][..] } else { &[] };
            let complaint = git.fails(&work, &[args, &[&url], refspec].concat());
            let expected = match road {
                Road::Http => format!("repository '{url}/' not found"),
                Road::Ssh => "fatal: remote error: repository not found".to_owned(),
            };
            assert!(complaint.contains(&expected), "{args:?} {path}: {complaint}");
        }
    }
    setup.assert_settled(1);
}
