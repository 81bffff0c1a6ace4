//! What git is asked for: the history of a path, and who wrote a line.

use crate::read_support::{Bare, FILES, Script, Storage, random, steps};
use crate::support::Server;
use abide_git::read::blame::BlameRange;
use abide_git::{Client, ReadError};
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
