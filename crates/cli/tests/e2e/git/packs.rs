//! How objects travel and how they are kept.

use super::setup::{Road, Setup, noise, refs, traced};
use abide_testkit::{Engine, http};
use rstest::rstest;
use std::fs;

/// How many bytes of packs the server has taken so far.
fn pack_bytes(setup: &Setup) -> u64 {
    let metrics = http::get(setup.server.http_addr(), "/metrics", None).text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("abide_push_bytes_total "));
    line.map_or(0, |value| value.parse().expect("a counter is a number"))
}

#[rstest]
#[case::http_sqlite(Road::Http, Engine::Sqlite)]
#[case::ssh_postgres(Road::Ssh, Engine::Postgres)]
fn a_small_change_to_a_big_file_is_a_small_push(#[case] road: Road, #[case] engine: Engine) {
    const SIZE: usize = 1 << 20;
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let work = setup.work_tree();
    let mut content = noise(SIZE, 1);
    git.commit_file(&work, "big.bin", &content, "Big");
    git.ok(&work, &["push", "--quiet", "origin", "main"]);
    let before = pack_bytes(&setup);
    assert!(before > SIZE as u64, "{before} bytes");

    content[SIZE / 2] ^= 1;
    let commit = git.commit_file(&work, "big.bin", &content, "A little different");
    git.ok(&work, &["push", "--quiet", "origin", "main"]);

    let sent = pack_bytes(&setup) - before;
    assert!((1..10_000).contains(&sent), "the second push had {sent} bytes");
    let clone = setup.clone(&[]);
    assert_eq!(git.ok(&clone, &["rev-parse", "HEAD"]), commit);
    assert!(fs::read(clone.join("big.bin")).unwrap() == content, "the clone has another content");
    setup.assert_settled(2);
}

/// git sends what does not fit its buffer in chunks, after a probe of four bytes that asks whether it may.
#[rstest]
fn a_large_push_comes_in_chunks_after_a_probe(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(Road::Http, engine);
    let git = setup.git();
    let work = setup.work_tree();
    let content = noise(3 << 20, 2);
    let commit = git.commit_file(&work, "big.bin", &content, "Big");

    let (tracing, trace) = traced(git, "GIT_TRACE_CURL");
    let tracing = tracing.with_env("GIT_TRACE_CURL_NO_DATA", "1");
    tracing.ok(&work, &["-c", "http.postBuffer=65536", "push", "--quiet", "origin", "main"]);

    let trace = fs::read_to_string(trace).unwrap().to_lowercase();
    assert!(trace.contains("send header: content-length: 4\n"), "there was no probe: {trace}");
    assert!(trace.contains("send header: transfer-encoding: chunked\n"), "there were no chunks: {trace}");
    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit)]));
    let clone = setup.clone(&[]);
    assert!(fs::read(clone.join("big.bin")).unwrap() == content, "the clone has another content");
    setup.assert_settled(1);
}

/// SSH has windows that must be opened again and again; a pack of several of them shows whether they are.
#[rstest]
fn a_large_push_goes_through_ssh(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(Road::Ssh, engine);
    let git = setup.git();
    let work = setup.work_tree();
    let content = noise(5 << 20, 3);
    let commit = git.commit_file(&work, "big.bin", &content, "Big");

    git.ok(&work, &["push", "--quiet", "origin", "main"]);

    assert_eq!(setup.refs(), refs([("refs/heads/main", &commit)]));
    let clone = setup.clone(&[]);
    assert!(fs::read(clone.join("big.bin")).unwrap() == content, "the clone has another content");
    setup.assert_settled(1);
}

#[rstest]
#[case::http_postgres(Road::Http, Engine::Postgres)]
#[case::ssh_sqlite(Road::Ssh, Engine::Sqlite)]
fn few_objects_are_kept_loose_and_many_as_a_pack(#[case] road: Road, #[case] engine: Engine) {
    let setup = Setup::new(road, engine);
    let git = setup.git();
    let (work, _) = setup.pushed();
    // The first push has the repository tidied, which would move objects under our eyes.
    setup.wait_for_jobs();
    let loose_and_packs = || {
        let counted = setup.stored(&["count-objects", "-v"]);
        let value = |key: &str| -> usize {
            let line = counted.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            line.expect("git counts this").parse().unwrap()
        };
        (value("count"), value("packs"))
    };
    let (loose, packs) = loose_and_packs();

    git.commit_file(&work, "few.txt", "few\n", "Few");
    git.ok(&work, &["push", "--quiet", "origin", "main"]);
    assert_eq!(loose_and_packs(), (loose + 3, packs));

    for number in 0..100 {
        fs::write(work.join(format!("{number}.txt")), format!("{number}\n")).unwrap();
    }
    git.ok(&work, &["add", "--all"]);
    git.ok(&work, &["commit", "--quiet", "--message", "Many"]);
    git.ok(&work, &["push", "--quiet", "origin", "main"]);
    assert_eq!(loose_and_packs(), (loose + 3, packs + 1));
    assert_eq!(setup.stored(&["rev-parse", "main"]), git.ok(&work, &["rev-parse", "main"]));
    setup.assert_settled(3);
}
