//! GitHub's own clients work unchanged: PyGithub, as people install it from PyPI.
//!
//! The scenario itself is `tests/pygithub/scenario.py`.

use crate::support::{Person, person, server};
use abide_testkit::{Engine, GitClient};
use rstest::rstest;
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// A Python that has PyGithub.
fn python() -> String {
    std::env::var("ABIDE_TEST_PYTHON").unwrap_or_else(|_| {
        panic!(
            "this test needs PyGithub: run it through `./test pygithub`, which installs it, or set ABIDE_TEST_PYTHON to \
             the python of an environment with crates/cli/tests/pygithub/requirements.txt"
        )
    })
}

#[rstest]
fn pygithub_works_unchanged(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let python = python();
    let server = server(engine);
    let alice = person(&server, "alice");
    server.add_user("bob");
    alice.create(&server, "pushed", false);
    push_two_branches(&alice, &server.http_url("alice", "pushed"));
    let with_key = GitClient::new().with_ssh_key();

    let setting = json!({
        "api": format!("{}/api/v3", server.url()),
        "owner": alice.name,
        "token": alice.token,
        "read_token": server.add_token("alice", "repo:read,user:read"),
        "friend": "bob",
        "pushed": "pushed",
        "key": fs::read_to_string(with_key.public_key()).expect("the key was just made").trim(),
    });
    run(&python, &setting.to_string());

    // What PyGithub chose is what git sees.
    let head =
        alice.git.ok(&alice.git.fresh_dir(), &["ls-remote", "--symref", &server.http_url("alice", "pushed"), "HEAD"]);
    assert!(head.starts_with("ref: refs/heads/trunk\tHEAD"), "{head}");
}

fn push_two_branches(person: &Person, url: &str) {
    let dir = person.git.init_work_tree();
    person.git.commit_file(&dir, "file.txt", "content\n", "Begin");
    person.git.ok(&dir, &["push", "--quiet", url, "main", "main:trunk"]);
}

/// The secrets go through standard input: arguments and environment of a process are seen by others.
fn run(python: &str, setting: &str) {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pygithub/scenario.py");
    let mut child = Command::new(python)
        .args(["-B", "-W", "error::DeprecationWarning:__main__", scenario])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{python} did not start: {error}"));
    let mut stdin = child.stdin.take().expect("standard input was asked for");
    stdin.write_all(setting.as_bytes()).expect("the scenario reads its setting first");
    drop(stdin);
    let output = child.wait_with_output().expect("our own child can be waited for");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the scenario failed\n{said}");
}
