//! Common start of every scenario.

use crate::beside::Beside as _;
use abide_core::Clock as _;
use abide_core::time::SystemClock;
use abide_store::migrate;
use abide_testkit::{Engine, GitClient, Server, ServerBuilder, TestDatabase, eventually, http};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub use crate::query::query;

/// The binary under test: the one built with the tests, or the one that `ABIDE_TEST_BINARY` names.
fn binary() -> PathBuf {
    std::env::var_os("ABIDE_TEST_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_abide").into(), PathBuf::from)
}

/// The binary under test, with nothing started yet, on a database that has the schema of today and nothing in it. It has one
/// connection: each costs the cluster a process, and a use case that wanted two at once would wait for itself.
pub fn builder(engine: Engine) -> ServerBuilder {
    crowded(engine).env("ABIDE_DATABASE__CONNECTIONS", "1")
}

/// The same with as many connections as a server has, for tests in which several come at once.
pub fn crowded(engine: Engine) -> ServerBuilder {
    let stamp = stamp();
    let database = TestDatabase::copied(engine, &stamp).unwrap_or_else(|| {
        let first = TestDatabase::new(engine);
        // Any command brings the schema along.
        let mut command = Command::new(binary());
        command.args(["user", "list", "--data"]).arg(first.data_dir());
        command.args(first.url().iter().flat_map(|url| ["--database", url]));
        let made = command.output().expect("the binary starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        first.keep(&stamp);
        TestDatabase::copied(engine, &stamp).expect("it was just kept")
    });
    Server::builder_on(binary(), database)
}

/// Names the schema that the binary under test makes. Another binary than the one of these tests may make another.
fn stamp() -> String {
    let own = migrate::fingerprint();
    let Some(other) = std::env::var_os("ABIDE_TEST_BINARY") else { return own };
    let mut hasher = DefaultHasher::new();
    let changed = std::fs::metadata(&other).and_then(|file| file.modified()).ok();
    (other, changed).hash(&mut hasher);
    format!("{own}_{:016x}", hasher.finish())
}

/// A running server.
pub fn server(engine: Engine) -> Server {
    builder(engine).start()
}

/// Someone with an account, a token for everything, and a git client that uses it.
pub struct Person {
    pub name: &'static str,
    pub token: String,
    pub git: GitClient,
}

/// Adds an account.
pub fn person(server: &Server, name: &'static str) -> Person {
    with_token(name, server.add_person(name, false, "repo,user,keys"))
}

/// Adds an account that administers the site.
pub fn admin(server: &Server, name: &'static str) -> Person {
    with_token(name, server.add_person(name, true, "repo,user,keys"))
}

fn with_token(name: &'static str, token: String) -> Person {
    let git = GitClient::new().with_token(&token);
    Person { name, token, git }
}

impl Person {
    /// Creates a repository over the API and returns what it answered.
    pub fn create(&self, server: &Server, name: &str, private: bool) -> Value {
        let body = json!({ "name": name, "private": private });
        let response = http::post(server.http_addr(), "/api/v3/user/repos", Some(&self.token), &body);
        assert_eq!(response.status, 201, "{}", response.text());
        response.json()
    }

    /// Adds this person's client a key that the server knows.
    pub fn with_ssh(self, server: &Server) -> Self {
        let git = self.git.with_ssh_key();
        server.add_ssh_key(self.name, &git.public_key());
        Self { git, ..self }
    }
}

/// Fails unless the doctor finds everything in order.
#[track_caller]
pub fn assert_healthy(server: &Server) {
    let found: Vec<String> =
        server.examine().iter().map(|found| format!("{}: {}", found.check, found.message)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Waits until the server is done with what happened so far: everything is in the log, everyone was told, and no job is
/// left that could run now.
pub fn settled(server: &Server) {
    let now = SystemClock.now().micros();
    let left = format!(
        "SELECT (SELECT count(*) FROM domain_events e WHERE e.seq IS NULL
            OR EXISTS (SELECT 1 FROM event_consumers c WHERE c.cursor < e.seq))
          + (SELECT count(*) FROM jobs WHERE state = 'running' OR state = 'waiting' AND run_at <= {now})"
    );
    eventually(Duration::from_secs(60), || query(server, &left) == "0");
}

/// How many `push` events the log has for a repository.
pub fn push_events(server: &Server, repo_id: i64) -> i64 {
    let sql = format!("SELECT count(*) FROM domain_events WHERE kind = 'push' AND repo_id = {repo_id}");
    query(server, &sql).parse().expect("a count is a number")
}
