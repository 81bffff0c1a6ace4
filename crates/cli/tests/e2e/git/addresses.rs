//! The addresses of a repository.

use super::scene::{Road, Scene, clone, refs};
use crate::beside::Beside as _;
use abide_testkit::{Engine, http};
use rstest::rstest;

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn every_way_to_write_an_address_leads_to_the_same_repository(#[case] road: Road, #[case] engine: Engine) {
    let scene = Scene::new(road, engine);
    let git = scene.git();
    let work = scene.work_tree();
    let permanent = format!("r/{}.git", scene.id);
    let short = format!("r/{}", scene.id);
    let mut pushes = 0;

    for path in [permanent.as_str(), &short, "alice/demo", "ALICE/Demo.git", "Alice/DEMO"] {
        pushes += 1;
        let commit = git.commit_file(&work, "file.txt", format!("{path}\n"), path);
        git.ok(&work, &["push", "--quiet", &scene.url_of(path), "main"]);

        assert_eq!(scene.refs(), refs([("refs/heads/main", &commit)]), "{path}");
        let clone = clone(git, &scene.url_of(path), &[]);
        assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), commit, "{path}");
    }
    scene.assert_settled(pushes);
}

#[rstest]
fn under_an_old_name_of_its_owner_a_repository_is_served_in_place(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let scene = Scene::new(road, engine);
    let git = scene.git();
    let (work, _) = scene.pushed();
    scene.server.cli_ok(&["user", "rename", "alice", "ada"]);

    for path in ["alice/demo.git", "ada/demo.git"] {
        let commit = git.commit_file(&work, "file.txt", format!("{path}\n"), path);
        git.ok(&work, &["push", "--quiet", &scene.url_of(path), "main"]);
        let clone = clone(git, &scene.url_of(path), &[]);
        assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), commit, "{path}");
    }
    let answer = http::get(scene.server.http_addr(), "/api/v3/repos/ada/demo", None).json();
    assert_eq!(answer["full_name"], "ada/demo");
    // The API points to the address that lasts; what is below is served in place.
    let moved = http::get(scene.server.http_addr(), "/api/v3/repos/alice/demo", None);
    let lasting = format!("{}/api/v3/repositories/{}", scene.server.url(), answer["id"]);
    assert_eq!((moved.status, moved.header("location")), (301, Some(lasting.as_str())));
    assert_eq!(http::get(scene.server.http_addr(), "/api/v3/repos/alice/demo/branches", None).status, 200);
    // Nobody can take the name and with it the links.
    scene.server.add_user("bob");
    let taken = scene.server.cli(&["user", "rename", "bob", "alice"]);
    assert_eq!(taken.status.code(), Some(4), "{}", String::from_utf8_lossy(&taken.stderr));
    scene.assert_settled(3);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn an_address_that_leads_nowhere_is_not_found(#[case] road: Road, #[case] engine: Engine) {
    let scene = Scene::new(road, engine);
    let git = scene.git();
    let (work, _) = scene.pushed();

    for path in ["alice/other.git", "nobody/demo.git", "r/999999.git", "r/-1.git", "r/demo.git", "alice/demo.git.git"] {
        for args in [&["ls-remote"][..], &["push", "--quiet"]] {
            let url = scene.url_of(path);
            let refspec = if args[0] == "push" { &["main"][..] } else { &[] };
            let complaint = git.fails(&work, &[args, &[&url], refspec].concat());
            let expected = match road {
                Road::Http => format!("repository '{url}/' not found"),
                Road::Ssh => "fatal: remote error: repository not found".to_owned(),
            };
            assert!(complaint.contains(&expected), "{args:?} {path}: {complaint}");
        }
    }
    scene.assert_settled(1);
}
