//! Several people at once.

use super::setup::{Road, Setup, before_each_push, refs};
use crate::support::crowded;
use abide_testkit::{Engine, GitClient};
use rstest::rstest;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;

/// Lets pushes go on only when so many have heard the server's refs: all of them want to move what they all saw.
fn start_together(git: &GitClient, work_trees: &[PathBuf]) {
    let gate = git.fresh_dir();
    let (gate, all) = (gate.display(), work_trees.len());
    for work in work_trees {
        let script = format!(
            "mktemp '{gate}/here.XXXXXX' >/dev/null\n\
             until test \"$(ls '{gate}' | wc -l)\" -ge {all}; do sleep 0.01; done"
        );
        before_each_push(work, &script);
    }
}

/// Runs one push in each work tree, all at once.
fn push_all(git: &GitClient, work_trees: &[PathBuf], refspec: impl Fn(usize) -> String) -> Vec<Output> {
    start_together(git, work_trees);
    let refspecs: Vec<_> = (0..work_trees.len()).map(refspec).collect();
    let push = |work: &Path, refspec: &str| git.run(work, &["push", "origin", refspec]);
    thread::scope(|scope| {
        let running: Vec<_> =
            work_trees.iter().zip(&refspecs).map(|(work, refspec)| scope.spawn(move || push(work, refspec))).collect();
        running.into_iter().map(|one| one.join().expect("a push ends")).collect()
    })
}

#[rstest]
fn of_all_who_push_to_one_branch_at_once_one_wins_and_the_others_are_told(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const CLIENTS: usize = 4;
    const ROUNDS: usize = 3;
    let setup = Setup::on(crowded(engine).start(), road);
    let git = setup.git();
    let (_, first) = setup.pushed();
    let clones: Vec<_> = (0..CLIENTS).map(|_| setup.clone(&[])).collect();
    let mut history = vec![first];

    for round in 0..ROUNDS {
        let heads: Vec<_> = clones
            .iter()
            .enumerate()
            .map(|(number, clone)| {
                git.ok(clone, &["fetch", "--quiet"]);
                git.ok(clone, &["reset", "--quiet", "--hard", "origin/main"]);
                git.commit_file(clone, &format!("{number}.txt"), format!("{round}\n"), &format!("{round}/{number}"))
            })
            .collect();

        let pushes = push_all(git, &clones, |_| "main".to_owned());

        let won: Vec<_> = (0..CLIENTS).filter(|&number| pushes[number].status.success()).collect();
        assert_eq!(won.len(), 1, "{pushes:?}");
        for lost in (0..CLIENTS).filter(|number| !won.contains(number)) {
            let reported = String::from_utf8_lossy(&pushes[lost].stderr);
            let reason = "! [remote rejected] main -> main (the ref was updated by someone else; fetch and try again)";
            assert!(reported.contains(reason), "{reported}");
        }
        history.push(heads[won[0]].clone());
        assert_eq!(setup.refs(), refs([("refs/heads/main", &heads[won[0]])]));
    }

    let kept = setup.stored(&["rev-list", "--reverse", "main"]);
    assert_eq!(kept.lines().collect::<Vec<_>>(), history);
    assert_eq!(git.ok(&setup.clone(&[]), &["rev-parse", "HEAD"]), history[ROUNDS]);
    setup.assert_settled(1 + ROUNDS as i64);
}

#[rstest]
fn pushes_to_different_branches_at_once_all_succeed(
    #[values(Road::Http, Road::Ssh)] road: Road,
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const CLIENTS: usize = 6;
    let setup = Setup::on(crowded(engine).start(), road);
    let git = setup.git();
    let (_, first) = setup.pushed();
    let clones: Vec<_> = (0..CLIENTS).map(|_| setup.clone(&[])).collect();
    let mut expected = refs([("refs/heads/main", &first)]);
    for (number, clone) in clones.iter().enumerate() {
        let head = git.commit_file(clone, &format!("{number}.txt"), "own\n", "Own");
        expected.insert(format!("refs/heads/own/{number}"), head);
    }

    let pushes = push_all(git, &clones, |number| format!("main:refs/heads/own/{number}"));

    assert!(pushes.iter().all(|push| push.status.success()), "{pushes:?}");
    assert_eq!(setup.refs(), expected);
    setup.assert_settled(1 + CLIENTS as i64);
}
