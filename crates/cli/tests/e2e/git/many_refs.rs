//! A repository with fifty thousand refs.

use super::scene::{Road, Scene, ls_remote};
use abide_testkit::{Engine, History};
use rstest::rstest;

const MANY: usize = 50_000;

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn heavy_fifty_thousand_refs_are_pushed_listed_and_added_to(#[case] road: Road, #[case] engine: Engine) {
    let scene = Scene::new(road, engine);
    let git = scene.git();
    let work = scene.work_tree();
    git.fast_import(&work, History { commits: 1, bytes_per_commit: 10, refs: MANY });
    let all = "refs/tags/many/*:refs/tags/many/*";
    let tags = |start: &str| format!("refs/tags/many/{start}*:refs/tags/many/{start}*");

    // The commands of one push have a limit, and whoever meets it is told what to do.
    let complaint = git.fails(&work, &["push", "--quiet", "origin", all]);
    assert!(
        complaint.contains("the commands of a push have at most 4194304 bytes; push in several steps"),
        "{complaint}"
    );
    assert_eq!(scene.refs().len(), 0);

    git.ok(&work, &["push", "--quiet", "origin", "main", &tags("00"), &tags("01"), &tags("02")]);
    git.ok(&work, &["push", "--quiet", "origin", &tags("03"), &tags("04")]);
    assert_eq!(scene.refs().len(), MANY + 1);

    let commit = git.ok(&work, &["rev-parse", "main"]);
    let listed = ls_remote(git, &scene.url(), &[]);
    assert_eq!(listed.len(), MANY + 2, "HEAD, main and the tags");
    assert!(listed.values().all(|oid| *oid == commit));

    let clone = scene.clone(&["--single-branch", "--no-tags"]);
    assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), commit);
    let next = git.commit_file(&clone, "more.txt", "more\n", "More");
    git.ok(&clone, &["push", "--quiet", "origin", "main", "main:side"]);
    assert_eq!(scene.refs().len(), MANY + 2);
    assert_eq!(scene.stored(&["rev-parse", "main", "side"]), format!("{next}\n{next}"));
    scene.assert_settled(3);
}
