//! Webhooks, from the request that adds one to the receiver of its deliveries.

mod library;
mod pages;
pub mod receiver;
mod reliable;
mod rest;

use crate::beside::Beside as _;
use crate::support::{Person, builder, person};
use abide_testkit::{Engine, Server, ServerBuilder, http};
use receiver::Receiver;
use serde_json::{Value, json};
use std::time::Duration;

/// More than anything here takes, even on a busy machine.
const SOON: Duration = Duration::from_secs(30);
const SECRET: &str = "It's a Secret to Everybody";

/// A server that may send to this machine.
fn prepared(engine: Engine) -> ServerBuilder {
    may_send(builder(engine))
}

fn may_send(server: ServerBuilder) -> ServerBuilder {
    server.env("ABIDE_OUTBOUND__ALLOW", "127.0.0.1")
}

/// alice with a repository, and a receiver of its deliveries.
struct Setup {
    server: Server,
    alice: Person,
    token: String,
    receiver: Receiver,
}

fn setup(engine: Engine) -> Setup {
    setup_of(prepared(engine).start())
}

fn setup_of(server: Server) -> Setup {
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    let token = server.add_token("alice", "repo,user,hooks");
    Setup { server, alice, token, receiver: Receiver::start() }
}

impl Setup {
    #[track_caller]
    fn api(&self, method: &str, path: &str, body: Value) -> http::Response {
        let path = format!("/api/v3{path}");
        http::Request::new(method, &path).token(Some(&self.token)).json(&body).send(self.server.http_addr())
    }

    /// The same where it must work.
    #[track_caller]
    fn must(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = self.api(method, path, body);
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.text());
        if answer.text().is_empty() { Value::Null } else { answer.json() }
    }

    #[track_caller]
    fn hook(&self, events: &[&str]) -> i64 {
        self.hook_to(&self.receiver.url(), events)
    }

    #[track_caller]
    fn hook_to(&self, url: &str, events: &[&str]) -> i64 {
        let config = json!({ "url": url, "content_type": "json", "secret": SECRET });
        let body = json!({ "name": "web", "active": true, "events": events, "config": config });
        self.must("POST", "/repos/alice/project/hooks", body)["id"].as_i64().expect("an id")
    }

    /// Stars and unstars, so many times.
    fn stars(&self, times: usize) {
        for turn in 0..times {
            let method = if turn % 2 == 0 { "PUT" } else { "DELETE" };
            self.must(method, "/user/starred/alice/project", json!({}));
        }
    }
}
