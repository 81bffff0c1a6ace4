//! What every scenario starts from.

use abide_testkit::{Engine, GitClient, Server, ServerBuilder, http};
use serde_json::{Value, json};
use std::process::Command;

/// The binary under test, with nothing started yet.
pub fn builder(engine: Engine) -> ServerBuilder {
    Server::builder(env!("CARGO_BIN_EXE_abide"), engine)
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
    server.add_user(name);
    with_token(server, name)
}

/// Adds an account that administers the site.
pub fn admin(server: &Server, name: &'static str) -> Person {
    server.add_admin(name);
    with_token(server, name)
}

fn with_token(server: &Server, name: &'static str) -> Person {
    let token = server.add_token(name, "repo,user");
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

/// Fails unless `abide doctor` finds everything in order.
pub fn assert_healthy(server: &Server) {
    let output = server.cli(&["doctor", "--json"]);
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// What a query answers, one row a line, columns separated by `|`. Asks the database directly, as an operator could.
pub fn query(server: &Server, sql: &str) -> String {
    let mut command = match server.database().url() {
        Some(url) => {
            let mut psql = Command::new("psql");
            psql.args(["-X", "-A", "-t", "-d", url, "-c", sql]);
            psql
        }
        None => {
            const SCRIPT: &str = "import sqlite3, sys\n\
                db = sqlite3.connect(sys.argv[1], timeout=30)\n\
                for row in db.execute(sys.argv[2]): print('|'.join('' if v is None else str(v) for v in row))\n\
                db.commit()";
            let mut python = Command::new("python3");
            python.args(["-c", SCRIPT]).arg(server.data_dir().join("abide.db")).arg(sql);
            python
        }
    };
    let output = command.output().expect("python3 and psql are installed by ./test");
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// How many `push` events the log has for a repository.
pub fn push_events(server: &Server, repo_id: i64) -> i64 {
    let sql = format!("SELECT count(*) FROM domain_events WHERE kind = 'push' AND repo_id = {repo_id}");
    query(server, &sql).parse().expect("a count is a number")
}
