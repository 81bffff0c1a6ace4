//! A repository with fifty thousand refs.

use super::raw::{pack, push_of, send};
use super::scene::{Road, Scene, ls_remote};
use abide_testkit::{Engine, History};
use rstest::rstest;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

const MANY: usize = 50_000;

const LIMIT: &str = "the commands of a push have at most 4194304 bytes; push in several steps";

/// Pushes tags, and returns how many were taken, or what the server has against it.
///
/// Over HTTP, git itself takes minutes to sort out so many refs before it sends anything (it compares each with each), so
/// there the bytes that it would send are made here.
fn push_tags(scene: &Scene, work: &Path, numbers: Range<usize>) -> Result<usize, String> {
    let git = scene.git();
    let names: Vec<_> = numbers.map(|number| format!("refs/tags/many/{number:06}")).collect();
    match scene.road {
        Road::Http => {
            let objects = git.ok(work, &["rev-list", "--objects", "--no-object-names", "main"]);
            let pack = pack(git, work, &objects.lines().collect::<Vec<_>>());
            let commit = git.ok(work, &["rev-parse", "main"]);
            let refs: Vec<_> = names.iter().map(|name| (name.as_str(), commit.as_str())).collect();
            let report = send(scene, &push_of(&refs, &pack));
            match report.strip_prefix("unpack ok\n") {
                Some(refs) => Ok(refs.lines().filter(|line| line.starts_with("ok ")).count()),
                None => Err(report),
            }
        }
        Road::Ssh => {
            let thousands: BTreeSet<_> = names.iter().map(|name| &name[..name.len() - 3]).collect();
            let refspecs: Vec<_> = thousands.iter().map(|start| format!("{start}*:{start}*")).collect();
            let args: Vec<_> =
                ["push", "--porcelain", "origin"].into_iter().chain(refspecs.iter().map(|r| &**r)).collect();
            let output = git.run(work, &args);
            match output.status.success() {
                true => {
                    Ok(String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with('*')).count())
                }
                false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            }
        }
    }
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn heavy_fifty_thousand_refs_are_pushed_listed_and_added_to(#[case] road: Road, #[case] engine: Engine) {
    let scene = Scene::new(road, engine);
    let git = scene.git();
    let work = scene.work_tree();
    git.fast_import(&work, History { commits: 1, bytes_per_commit: 10, refs: MANY });
    let commit = git.ok(&work, &["rev-parse", "main"]);

    // The commands of one push have a limit, and whoever meets it is told what to do.
    let complaint = push_tags(&scene, &work, 0..MANY).expect_err("this is too much at once");
    assert!(complaint.contains(LIMIT), "{complaint}");
    assert_eq!(push_tags(&scene, &work, 0..MANY / 2), Ok(MANY / 2));
    assert_eq!(push_tags(&scene, &work, MANY / 2..MANY), Ok(MANY / 2));
    assert_eq!(scene.refs().len(), MANY);

    // A clone of one branch, and one more push on top.
    git.ok(&scene.work_tree(), &["fetch", "--quiet", "--no-tags", "origin", "refs/tags/many/049999"]);
    git.ok(&work, &["push", "--quiet", "origin", "main"]);
    let clone = scene.clone(&["--single-branch", "--no-tags"]);
    assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), commit);
    let next = git.commit_file(&clone, "more.txt", "more\n", "More");
    git.ok(&clone, &["push", "--quiet", "origin", "main", "main:side"]);
    assert_eq!(scene.stored(&["rev-parse", "main", "side"]), format!("{next}\n{next}"));

    let mut listed = ls_remote(git, &scene.url(), &[]);
    for name in ["HEAD", "refs/heads/main", "refs/heads/side"] {
        assert_eq!(listed.remove(name).as_deref(), Some(&*next), "{name}");
    }
    assert_eq!(listed.len(), MANY);
    assert!(listed.values().all(|oid| *oid == commit), "every tag stays where it was");
    scene.assert_settled(4);
}
