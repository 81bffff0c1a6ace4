//! What every scenario starts from.

use abide_testkit::{Engine, GitClient, Server, ServerBuilder, http};
use serde_json::{Value, json};

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
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}
