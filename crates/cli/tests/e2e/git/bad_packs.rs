//! Pushes whose objects cannot be taken: refused with the reason, and nothing of them stays.

use super::raw::{pack, push_of, request, send, send_and_stay};
use super::setup::{Road, Setup, noise, refs};
use crate::support::builder;
use abide_testkit::{Engine, GitClient};
use rstest::rstest;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const INCOMPLETE: &str = "the pushed objects are incomplete; run `git fsck` in your clone and push again";

/// A commit with one file, not pushed.
struct Unpushed {
    dir: PathBuf,
    commit: String,
    tree: String,
    blob: String,
}

fn unpushed(git: &GitClient) -> Unpushed {
    let dir = git.init_work_tree();
    let commit = git.commit_file(&dir, "file.txt", "a file that is nowhere else\n", "Somewhere");
    let named = |what: &str| git.ok(&dir, &["rev-parse", what]);
    Unpushed { commit, tree: named("HEAD^{tree}"), blob: named("HEAD:file.txt"), dir: dir.clone() }
}

/// A setup with one commit on `main`, how many objects it has, and the commit.
fn setup_with_main(road: Road, engine: Engine) -> (Setup, usize, String) {
    let setup = Setup::new(road, engine);
    let (_, commit) = setup.pushed();
    // The first push has the repository tidied, which would move what a test puts there by hand.
    setup.wait_for_jobs();
    let objects = setup.objects();
    (setup, objects, commit)
}

#[track_caller]
fn assert_untouched(setup: &Setup, objects: usize, main: &str) {
    assert_eq!(setup.refs(), refs([("refs/heads/main", main)]));
    assert_eq!(setup.objects(), objects, "objects of a refused push were kept");
    setup.assert_settled(1);
}

/// The other tests here rely on it: a crafted push that lacks nothing is a push like any other.
#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_complete_crafted_push_is_taken(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let Unpushed { dir, commit, tree, blob } = unpushed(setup.git());
    let whole = pack(setup.git(), &dir, &[&commit, &tree, &blob]);

    let report = send(&setup, &push_of(&[("refs/heads/side", &commit)], &whole));

    assert!(report.contains("unpack ok\n") && report.contains("ok refs/heads/side\n"), "{report}");
    assert_eq!(setup.refs(), refs([("refs/heads/side", &commit)]));
    setup.assert_settled(1);
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_push_that_lacks_an_object_is_refused(#[case] road: Road, #[case] engine: Engine) {
    let (setup, objects, main) = setup_with_main(road, engine);
    let Unpushed { dir, commit, tree, .. } = unpushed(setup.git());
    let without_blob = pack(setup.git(), &dir, &[&commit, &tree]);

    let report = send(&setup, &push_of(&[("refs/heads/side", &commit)], &without_blob));

    let reason = "a referenced object is missing or has the wrong type; run `git fsck` in your clone and push again";
    assert!(report.contains(&format!("ng refs/heads/side the pack was refused: {reason}\n")), "{report}");
    assert_untouched(&setup, objects, &main);
}

/// A crash while objects are moved into the repository leaves some of them there and others not. That an object is there
/// says nothing about those that it refers to.
#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn what_a_crash_left_behind_is_not_taken_for_complete(#[case] road: Road, #[case] engine: Engine) {
    let (setup, objects, main) = setup_with_main(road, engine);
    let git = setup.git();
    let Unpushed { dir, commit, blob, .. } = unpushed(git);
    let (folder, file) = commit.split_at(2);
    let left_behind = setup.bare().join("objects").join(folder).join(file);
    fs::create_dir_all(left_behind.parent().unwrap()).unwrap();
    fs::copy(dir.join(".git/objects").join(folder).join(file), &left_behind).unwrap();

    // Each of the refs by itself, beside one that is refused for another reason, and beside one that is fine.
    let lacking = ("refs/heads/lacking", commit.as_str());
    let blob_as_branch = ("refs/heads/blob", blob.as_str());
    let fine = ("refs/heads/fine", main.as_str());
    let pack = pack(git, &dir, &[&blob]);
    let ng = format!("ng refs/heads/lacking {INCOMPLETE}\n");
    for refs in [&[lacking][..], &[blob_as_branch, lacking], &[lacking, fine]] {
        let report = send(&setup, &push_of(refs, &pack));
        assert!(report.contains(&ng), "{report}");
        assert_eq!(report.contains("ok refs/heads/fine\n"), refs.contains(&fine), "{report}");
    }

    assert_eq!(setup.refs(), refs([("refs/heads/fine", &main), ("refs/heads/main", &main)]));
    fs::remove_file(left_behind).unwrap();
    assert_eq!(setup.objects(), objects + 1, "the blob came with the push that was taken");
    setup.assert_settled(2);
}

/// Some clients close their side only when they have read the report.
#[rstest]
fn a_refusal_does_not_wait_until_the_client_hangs_up(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (setup, objects, main) = setup_with_main(Road::Ssh, engine);
    let Unpushed { dir, commit, tree, blob } = unpushed(setup.git());
    let whole = pack(setup.git(), &dir, &[&commit, &tree, &blob]);
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x55;

    for (name, pack) in [("refs/pull/1/head", &whole), ("refs/heads/side", &damaged)] {
        let report = send_and_stay(&setup, &push_of(&[(name, &commit)], pack));
        assert!(report.contains(&format!("ng {name} ")), "{report}");
    }
    assert_untouched(&setup, objects, &main);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn a_damaged_pack_is_refused(#[case] road: Road, #[case] engine: Engine) {
    let (setup, objects, main) = setup_with_main(road, engine);
    let Unpushed { dir, commit, tree, blob } = unpushed(setup.git());
    let whole = pack(setup.git(), &dir, &[&commit, &tree, &blob]);
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    let half = &whole[..middle];

    for bad in [&damaged, half, &b"PACK"[..], b"not a pack at all, but long enough", b""] {
        let report = send(&setup, &push_of(&[("refs/heads/side", &commit)], bad));

        let (verdict, after) = report.split_once('\n').expect("several lines");
        assert!(verdict.contains("unpack ") && !verdict.contains("unpack ok"), "{report}");
        assert!(after.contains("ng refs/heads/side "), "{report}");
    }
    assert_untouched(&setup, objects, &main);
}

#[rstest]
fn the_body_of_a_push_may_be_compressed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(Road::Http, engine);
    let Unpushed { dir, commit, tree, blob } = unpushed(setup.git());
    let whole = pack(setup.git(), &dir, &[&commit, &tree, &blob]);
    let compressed = gzip(&push_of(&[("refs/heads/side", &commit)], &whole));

    let response = request(&setup).header("Content-Encoding", "gzip").body(compressed).send(setup.server.http_addr());

    assert_eq!(response.status, 200, "{}", response.text());
    assert!(response.text().contains("ok refs/heads/side\n"), "{}", response.text());
    assert_eq!(setup.refs(), refs([("refs/heads/side", &commit)]));
    setup.assert_settled(1);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .arg("--stdout")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip is part of every Debian");
    child.stdin.take().expect("it was asked for").write_all(bytes).expect("gzip listens");
    child.wait_with_output().expect("our own child can be waited for").stdout
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_push_that_is_too_large_is_refused_with_the_limit(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::on(builder(engine).env("ABIDE_GIT__MAX_PUSH", "100KiB").start(), road);
    let git = setup.git();
    let (work, main) = setup.pushed();
    let objects = setup.objects();
    git.commit_file(&work, "big.bin", noise(2 << 20, 4), "Big");

    let complaint = git.fails(&work, &["push", "origin", "main"]);

    let reason = "the pack is larger than 102400 bytes, the limit; push in several steps";
    assert!(complaint.contains(reason), "{complaint}");
    assert_untouched(&setup, objects, &main);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn a_branch_takes_commits_only(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, commit) = setup.pushed();
    git.ok(&work, &["tag", "--annotate", "--message", "One", "v1"]);
    let reason = "(refs/heads/* takes commits only; push other objects as tags)";

    for object in ["main:README.md", "main^{tree}", "v1"] {
        let oid = git.ok(&work, &["rev-parse", object]);
        let complaint = git.fails(&work, &["push", "origin", &format!("{oid}:refs/heads/odd")]);
        assert!(complaint.contains(reason), "{object}: {complaint}");
    }
    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit)]));

    let blob = git.ok(&work, &["rev-parse", "main:README.md"]);
    git.ok(&work, &["push", "--quiet", "origin", &format!("{blob}:refs/tags/odd")]);
    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit), ("refs/tags/odd", &blob)]));
    setup.assert_settled(2);
}

/// A tree with a file `.git/…` would write into the repository of everyone who checks it out.
#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_tree_that_attacks_its_readers_is_refused(#[case] road: Road, #[case] engine: Engine) {
    let (setup, objects, main) = setup_with_main(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    let tree = hostile_tree(git, &work);
    let commit = git.ok(&work, &["commit-tree", "-m", "Trap", &tree]);

    let complaint = git.fails(&work, &["push", "origin", &format!("{commit}:refs/heads/trap")]);

    assert!(complaint.contains("! [remote rejected]") && complaint.contains("hasDotgit"), "{complaint}");
    assert_untouched(&setup, objects, &main);
}

fn hostile_tree(git: &GitClient, work: &Path) -> String {
    let blob = git.feed(work, &["hash-object", "-w", "--stdin"], |input| input.write_all(b"evil\n"));
    let inner = git.feed(work, &["mktree"], move |input| writeln!(input, "100644 blob {}\tconfig", blob.trim()));
    let outer = git.feed(work, &["mktree"], move |input| writeln!(input, "040000 tree {}\t.git", inner.trim()));
    outer.trim().to_owned()
}
