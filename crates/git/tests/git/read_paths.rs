//! Queries that git answers: path history and blame.

use crate::read_support::{Bare, FILES, Script, Storage, random, steps};
use crate::support::Server;
use abide_core::UserId;
use abide_git::read::blame::BlameRange;
use abide_git::{Client, GitError, ReadError};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

#[tokio::test]
async fn the_log_of_a_path_is_that_of_git() {
    let server = Server::new().await;
    let steps = steps(30, 0..50).new_tree(&mut TestRunner::deterministic()).unwrap().current();
    let bare = random(&steps, Storage::PackedWithGraph);
    let (reader, main) = (bare.reader(), bare.oid("main"));
    for path in FILES.iter().copied().chain(["dir", "dir/sub"]) {
        let all = bare.oids(&["rev-list", "main", "--", path]);
        let page = reader.log_path(&server.git, Client::SERVER, main, path.as_bytes(), 0, 100).await.unwrap();
        assert_eq!(page.commits.iter().map(|commit| commit.oid).collect::<Vec<_>>(), all, "{path}");
        let page = reader.log_path(&server.git, Client::SERVER, main, path.as_bytes(), 1, 1).await.unwrap();
        assert_eq!(page.more, all.len() > 2);
        assert_eq!(page.commits.first().map(|commit| commit.oid), all.get(1).copied());
    }
}

#[tokio::test]
async fn paths_are_taken_literally() {
    let server = Server::new().await;
    let mut script = Script::default();
    let one = script.commit("main", 1, &[], &[("100644", b"*", b"1"), ("100644", b"-x\n\xff", b"1\n2\n")]);
    script.commit("main", 2, &[one], &[("100644", b"other", b"1"), ("100644", b"-x\n\xff", b"1\n3\n")]);
    let bare = Bare::import(&script.0, Storage::Packed);
    let (reader, main, git) = (bare.reader(), bare.oid("main"), &server.git);
    assert_eq!(reader.log_path(git, Client::SERVER, main, b"*", 0, 9).await.unwrap().commits.len(), 1);
    assert_eq!(reader.log_path(git, Client::SERVER, main, b"-x\n\xff", 0, 9).await.unwrap().commits.len(), 2);
    assert!(reader.log_path(git, Client::SERVER, main, b":(top)other", 0, 9).await.unwrap().commits.is_empty());
    for odd in [&b"../x"[..], b"a/../b", b"", b"/", b"a\0b", b"a//b"] {
        assert!(
            matches!(reader.log_path(git, Client::SERVER, main, odd, 0, 9).await, Err(ReadError::NotFound)),
            "{odd:?}"
        );
    }
    let range = |rev: &str, start| BlameRange { commit: bare.oid(rev), start, lines: 1 };
    assert_eq!(
        reader.blame(git, Client::SERVER, main, b"-x\n\xff").await.unwrap(),
        [range("main^", 1), range("main", 2)]
    );
    assert!(matches!(reader.blame(git, Client::SERVER, main, b"nothing").await, Err(ReadError::NotFound)));
}

#[tokio::test]
async fn blame_covers_every_line_once() {
    let server = Server::new().await;
    let mut script = Script::default();
    let mut last = script.commit("main", 1, &[], &[("100644", b"f", b"")]);
    for number in 1..20_usize {
        let lines: String =
            (0..20).map(|line| format!("{}\n", if line < number { line * number % 3 } else { line })).collect();
        last = script.commit("main", 1, &[last], &[("100644", b"f", lines.as_bytes())]);
    }
    let bare = Bare::import(&script.0, Storage::Packed);
    let ranges = bare.reader().blame(&server.git, Client::SERVER, bare.oid("main"), b"f").await.unwrap();
    let ours: Vec<_> = ranges.iter().flat_map(|range| vec![range.commit.to_string(); range.lines as usize]).collect();
    let theirs = bare.run(&["blame", "-l", "-s", "--root", "main", "--", "f"]);
    let theirs: Vec<_> = theirs.lines().map(|line| line[..40].to_owned()).collect();
    assert_eq!(ours, theirs);
}

/// The file is small now and was large before: git holds the former version as a whole.
#[tokio::test]
async fn a_blame_over_a_large_past_has_the_memory_of_its_asker() {
    let server = Server::new().await;
    let bare = Bare::new();
    let text = format!("{}\n", "large ".repeat(100_000)).repeat(330);
    assert!(text.len() > 128 << 20);
    let commit = |content: &str, parent: &[&str]| {
        let args = ["-c", "core.looseCompression=1", "hash-object", "-w", "--stdin"];
        let blob = bare.with_input(&args, content.as_bytes());
        let tree = bare.with_input(&["mktree"], format!("100644 blob {blob}\tf\n").as_bytes());
        bare.with_input(&[&["commit-tree", &tree], parent].concat(), b"m")
    };
    let first = commit(&text, &[]);
    let tip = commit("small\n", &["-p", &first]);
    let asked = async |client| bare.reader().blame(&server.git, client, tip.parse().unwrap(), b"f").await;
    let stranger = Client::new(Some([192, 0, 2, 1].into()), None);
    let refused = asked(stranger).await;
    assert!(matches!(refused, Err(ReadError::Git(GitError::UsedUp { of: "memory", .. }))), "{refused:?}");
    let account = Client::new(Some([192, 0, 2, 1].into()), Some(UserId::new(7)));
    assert_eq!(asked(account).await.unwrap().len(), 1);
}

/// A file that moves twice, once together with a change. Other files change, move and are deleted.
fn moving() -> Bare {
    let text = |lines: std::ops::Range<usize>| lines.map(|line| format!("line {line}\n")).collect::<String>();
    let bare = Bare::new();
    let work = tempfile::TempDir::new().unwrap();
    let dir = work.path();
    let git = |args: &[&str]| {
        let named = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
        crate::support::feed(crate::support::plain_git(dir).args(named).args(args), b"");
    };
    let step = |changes: &[(&str, Option<String>)]| {
        for (path, content) in changes {
            let path = dir.join(path);
            match content {
                Some(content) => {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, content).unwrap();
                }
                None => std::fs::remove_file(path).unwrap(),
            }
        }
        git(&["add", "--all"]);
        git(&["commit", "-q", "-m", "step"]);
    };
    git(&["init", "-q", "-b", "main", "."]);
    step(&[("one.txt", Some(text(0..20))), ("other.txt", Some("other\n".into()))]);
    step(&[("one.txt", Some(text(0..25)))]);
    step(&[("one.txt", None), ("dir/two.txt", Some(text(0..25))), ("other.txt", Some("changed\n".into()))]);
    step(&[("dir/two.txt", Some(text(0..30)))]);
    step(&[("dir/two.txt", None), ("three.txt", Some(text(2..30))), ("gone.txt", Some(text(40..60)))]);
    step(&[("three.txt", Some(text(2..33))), ("gone.txt", None)]);
    git(&["push", "-q", bare.path().to_str().unwrap(), "main"]);
    bare
}

#[tokio::test]
async fn the_log_of_a_file_follows_its_renames_as_git_does() {
    let server = Server::new().await;
    let bare = moving();
    let (reader, main, git) = (bare.reader(), bare.oid("main"), &server.git);
    for path in ["three.txt", "other.txt"] {
        let theirs = bare.oids(&["log", "--follow", "--format=%H", "main", "--", path]);
        let all = reader.log_file(git, Client::SERVER, main, path.as_bytes(), 0, 100).await.unwrap();
        let ours: Vec<_> = all.steps.iter().map(|step| step.commit.oid).collect();
        assert_eq!((ours, all.more), (theirs.clone(), false), "{path}");
        // Pages of any size are slices of the same list.
        for size in 1..=theirs.len() {
            for skip in 0..=theirs.len() + 1 {
                let page = reader.log_file(git, Client::SERVER, main, path.as_bytes(), skip, size).await.unwrap();
                let end = (skip + size).min(all.steps.len());
                let wanted = all.steps.get(skip..end).unwrap_or_default();
                assert_eq!((page.steps.as_slice(), page.more), (wanted, skip + size < theirs.len()), "{skip} {size}");
            }
        }
    }
    let log = reader.log_file(git, Client::SERVER, main, b"three.txt", 0, 100).await.unwrap();
    let reported: Vec<_> = log
        .steps
        .iter()
        .map(|step| (step.path.to_string(), step.renamed_from.as_ref().map(ToString::to_string)))
        .collect();
    let path = |path: &str, from: Option<&str>| (path.to_owned(), from.map(str::to_owned));
    assert_eq!(
        reported,
        [
            path("three.txt", None),
            path("three.txt", Some("dir/two.txt")),
            path("dir/two.txt", None),
            path("dir/two.txt", Some("one.txt")),
            path("one.txt", None),
            path("one.txt", None),
        ]
    );
    // A deleted file has a history too, and a directory has one without renames.
    let gone = reader.log_file(git, Client::SERVER, main, b"gone.txt", 0, 9).await.unwrap();
    assert_eq!(gone.steps.iter().map(|step| step.kind.is_some()).collect::<Vec<_>>(), [false, true]);
    assert_eq!(reader.log_file(git, Client::SERVER, main, b"dir", 0, 9).await.unwrap().steps.len(), 3);
    assert!(reader.log_file(git, Client::SERVER, main, b"never", 0, 9).await.unwrap().steps.is_empty());
    assert!(matches!(reader.log_file(git, Client::SERVER, main, b"../x", 0, 9).await, Err(ReadError::NotFound)));
}

#[test]
fn refs_have_the_time_of_the_tagger_or_the_commit() {
    let mut script = Script::default();
    let one = script.commit("main", 1_000, &[], &[("100644", b"f", b"1")]);
    script.commit("late", 5_000, &[one], &[("100644", b"f", b"2")]);
    for storage in [Storage::Loose, Storage::PackedWithGraph] {
        let bare = Bare::import(&script.0, storage);
        let dated = |time: &str, args: &[&str]| {
            let named = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
            let mut command = crate::support::plain_git(bare.path());
            crate::support::feed(command.env("GIT_COMMITTER_DATE", time).args(named).args(args), b"");
        };
        dated("@9000 +0000", &["tag", "-m", "annotated", "v2", "main"]);
        dated("@9000 +0000", &["tag", "v1", "main"]);
        let blob = bare.run(&["rev-parse", "main:f"]);
        dated("@9000 +0000", &["tag", "blob", &blob]);
        let refs = abide_git::Snapshot::read(bare.path()).unwrap();
        let far = std::time::Instant::now() + std::time::Duration::from_secs(600);
        let times = bare.reader().ref_times(refs.refs.iter(), far);
        let time = |name: &str| times.get(&refs.get(name.as_bytes()).unwrap().oid).copied();
        assert_eq!((time("refs/heads/main"), time("refs/heads/late")), (Some(1_000), Some(5_000)), "{storage:?}");
        assert_eq!((time("refs/tags/v2"), time("refs/tags/v1")), (Some(9_000), Some(1_000)));
        assert_eq!(time("refs/tags/blob"), Some(0));
        assert!(bare.reader().ref_times(refs.refs.iter(), std::time::Instant::now()).is_empty(), "no time is left");
    }
}
