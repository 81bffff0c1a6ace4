//! GitHub's own clients, and a tool that tries everything: programs of others that take our API at its word.
//!
//! Their steps are in `tests/pygithub/scenario.py` and `tests/octokit/scenario.mjs`; schemathesis reads our document.

use crate::api::setup::{Setup, setup};
use crate::beside::Beside as _;
use crate::support::{Person, builder, person};
use crate::webhooks::receiver::Receiver;
use abide_testkit::{Engine, GitClient, http};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Tools that `./test` installs for these tests and names in a variable.
pub fn installed(variable: &str, what: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("this test needs {what}: run it through `./test clients`, which installs it and sets {variable}")
    })
}

#[rstest]
fn pygithub_works_unchanged(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let python = installed("ABIDE_TEST_PYTHON", "PyGithub");
    let server = builder(engine).env("ABIDE_OUTBOUND__ALLOW", "127.0.0.1").start();
    let receiver = Receiver::start();
    let alice = person(&server, "alice");
    let bob = person(&server, "bob");
    alice.create(&server, "pushed", false);
    push_two_branches(&alice, &server.http_url("alice", "pushed"));
    let with_key = GitClient::new().with_ssh_key();

    let setting = json!({
        "api": format!("{}/api/v3", server.url()),
        "owner": alice.name,
        "token": alice.token,
        "read_token": server.add_token("alice", "repo:read,user:read"),
        "hooks_token": server.add_token("alice", "repo,hooks"),
        "receiver": receiver.url(),
        "friend": "bob",
        "friend_token": bob.token,
        "inbox_token": server.add_token("alice", "repo,user,notifications"),
        "pushed": "pushed",
        "key": fs::read_to_string(with_key.public_key()).expect("the key was just made").trim(),
    });
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pygithub/scenario.py");
    let mut command = Command::new(python);
    run(command.args(["-B", "-W", "error::DeprecationWarning:__main__", scenario]), &setting.to_string());

    // Git sees PyGithub's choice.
    let head =
        alice.git.ok(&alice.git.fresh_dir(), &["ls-remote", "--symref", &server.http_url("alice", "pushed"), "HEAD"]);
    assert!(head.starts_with("ref: refs/heads/trunk\tHEAD"), "{head}");
}

fn push_two_branches(person: &Person, url: &str) {
    let dir = person.git.init_work_tree();
    person.git.commit_file(&dir, "file.txt", "content\n", "Begin");
    person.git.ok(&dir, &["push", "--quiet", url, "main", "main:trunk"]);
}

#[rstest]
fn octokit_works_unchanged(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let octokit = installed("ABIDE_TEST_OCTOKIT", "Octokit");
    let setup = setup(engine);
    let bob = person(&setup.server, "bob");
    let setting = json!({
        "api": format!("{}/api/v3", setup.server.url()),
        "owner": setup.alice.name,
        "token": setup.alice.token,
        "friend": bob.name,
        "friend_token": bob.token,
        "pushed": "project",
        "tip": setup.git(&["rev-parse", "feature/x"]),
    });
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/octokit/scenario.mjs");
    run(Command::new("node").args(["--test-reporter=spec", scenario, &octokit]), &setting.to_string());
}

/// Random and boundary requests of all kinds, with a token that may do everything: nothing makes the server fail, and
/// what it answers is what its document says.
#[test]
fn schemathesis_finds_no_failure_and_no_answer_that_is_not_described() {
    let python = installed("ABIDE_TEST_PYTHON", "schemathesis");
    let setup = setup(Engine::Sqlite);
    let dir = setup.alice.git.fresh_dir();
    fs::write(dir.join("schemathesis.toml"), existing(&setup, &lived(&setup))).expect("writable");
    let mut command = Command::new(python);
    command
        .current_dir(&dir)
        // It goes through the whole environment for each request.
        .env_clear()
        .args(["-m", "schemathesis.cli", "run", &format!("{}/api/v3/openapi.json", setup.server.url())])
        .args(["--seed", "1", "--generation-database", "none", "--phases", "coverage,fuzzing", "--max-examples", "4"])
        .args(["--workers", "1", "--suppress-health-check", "all", "--warnings", "off", "--no-color"])
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance"])
        .args(["--checks", "response_schema_conformance"])
        // The one request after which there is nothing left to try.
        .args(["--exclude-operation-id", "delete-repos-owner-repo"])
        // The one answer that has no end.
        .args(["--exclude-operation-id", "get-events-stream"])
        .args(["-H", &format!("Authorization: Bearer {}", setup.alice.token)]);
    run(&mut command, "");
    assert!(!setup.server.log().contains("panicked"), "{}", setup.server.log());
}

/// Numbers of what a life leaves behind.
struct Lived {
    /// An offer to the owner.
    offer: Value,
    /// A repository that the owner deleted.
    deleted: Value,
}

/// Lets the project have an old name, the owner an offer, and something to restore.
fn lived(setup: &Setup) -> Lived {
    let Setup { server, alice, .. } = setup;
    let addr = server.http_addr();
    let path = |tail: &str| format!("/api/v3{tail}");
    for name in ["elsewhere", "project"] {
        let renamed = http::patch(addr, &path("/repos/alice/project"), Some(&alice.token), &json!({ "name": name }));
        assert_eq!(renamed.status, 200, "{}", renamed.text());
    }
    let bob = person(server, "bob");
    bob.create(server, "offered", true);
    let transfer = path("/repos/bob/offered/transfer");
    let offer = http::post(addr, &transfer, Some(&bob.token), &json!({ "new_owner": "alice" }));
    assert_eq!(offer.status, 202, "{}", offer.text());
    let deleted = alice.create(server, "gone", false)["id"].clone();
    assert_eq!(http::delete(addr, &path("/repos/alice/gone"), Some(&alice.token)).status, 204);
    Lived { offer: offer.json()["id"].clone(), deleted }
}

/// Names of what is there, for some of the requests: random ones find nothing to describe.
fn existing(setup: &Setup, lived: &Lived) -> String {
    let mut config =
        "[parameters]\n\"path.owner\" = \"alice\"\n\"path.repo\" = \"project\"\n\"path.user\" = \"alice\"\n".to_owned();
    let object = |name: &str| json!(setup.git(&["rev-parse", name]));
    let in_repo = [
        ("branches-branch", "branch", json!("feature/x")),
        ("commits-ref", "ref", json!("main")),
        ("compare-basehead", "basehead", json!("main...feature/x")),
        ("contents-path", "path", json!("src")),
        ("readme-dir", "dir", json!("src/deep")),
        ("git-ref-ref", "ref", json!("heads/main")),
        ("git-trees-sha", "sha", json!("main")),
        ("git-blobs-sha", "sha", object("main:src/lib.rs")),
        ("git-commits-sha", "sha", object("main")),
        ("git-tags-sha", "sha", object("v1.0")),
    ]
    .map(|(tail, name, value)| (format!("get-repos-owner-repo-{tail}"), name, value));
    let by_number = [
        ("get-repository_transfers-id", lived.offer.clone()),
        ("post-repository_transfers-id-accept", lived.offer.clone()),
        ("post-repositories-id-restore", lived.deleted.clone()),
    ]
    .map(|(operation, number)| (operation.to_owned(), "id", number));
    for (operation, name, value) in in_repo.into_iter().chain(by_number) {
        config +=
            &format!("[[operations]]\ninclude-operation-id = \"{operation}\"\nparameters = {{ {name} = {value} }}\n");
    }
    config
}

/// The secrets go through standard input: arguments and environment of a process are seen by others.
pub fn run(command: &mut Command, setting: &str) {
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.unwrap_or_else(|error| panic!("{command:?} did not start: {error}"));
    let mut stdin = child.stdin.take().expect("standard input was asked for");
    stdin.write_all(setting.as_bytes()).expect("the scenario reads its setting first");
    drop(stdin);
    let output = child.wait_with_output().expect("our own child can be waited for");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "the scenario failed\n{said}");
}
