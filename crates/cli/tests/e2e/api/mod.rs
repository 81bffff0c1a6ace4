//! REST below `/api/v3`, as its clients meet it: GitHub's shapes, who may do what, and what is said about mistakes.

mod admin;
mod attention;
mod bodies;
mod caching;
mod collaborators;
mod contents;
mod cors;
mod discovery;
mod events;
mod golden;
mod hidden;
mod history;
mod issue_search;
mod issues;
mod keys;
mod lifecycle;
mod login;
mod names;
mod notifications;
mod old_names;
mod pages;
mod people;
mod repos;
mod scopes;
pub mod setup;
mod shapes;
pub mod signed;
mod transfers;

pub use keys::WEAK as WEAK_KEY;

use crate::support::Person;
use abide_testkit::Server;
use abide_testkit::http::{Request, Response};
use serde_json::Value;

/// The API, as someone with a token, or nobody in particular, uses it.
pub struct Api<'a> {
    server: &'a Server,
    token: Option<String>,
}

impl<'a> Api<'a> {
    fn of(server: &'a Server, person: &Person) -> Self {
        Self::with(server, &person.token)
    }

    fn with(server: &'a Server, token: &str) -> Self {
        Self { server, token: Some(token.to_owned()) }
    }

    fn nobody(server: &'a Server) -> Self {
        Self { server, token: None }
    }

    /// A request to a path below `/api/v3`, not sent yet.
    fn request(&self, method: &str, path: &str) -> Request {
        Request::new(method, &format!("/api/v3{path}")).token(self.token.as_deref())
    }

    #[track_caller]
    fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        self.request(method, path).json(body).send(self.server.http_addr())
    }

    #[track_caller]
    fn get(&self, path: &str) -> Response {
        self.request("GET", path).send(self.server.http_addr())
    }

    #[track_caller]
    fn delete(&self, path: &str) -> Response {
        self.request("DELETE", path).send(self.server.http_addr())
    }

    #[track_caller]
    fn post(&self, path: &str, body: Value) -> Response {
        self.send("POST", path, &body)
    }

    #[track_caller]
    fn patch(&self, path: &str, body: Value) -> Response {
        self.send("PATCH", path, &body)
    }

    #[track_caller]
    fn put(&self, path: &str, body: Value) -> Response {
        self.send("PUT", path, &body)
    }

    /// Body of a GET that must succeed.
    #[track_caller]
    fn read(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.json()
    }
}

/// The path of a route to walk. A stream of events has no end, unless what it is asked for is refused.
fn with_an_end(path: String) -> String {
    if path.ends_with("/stream") { format!("{path}?after=nothing") } else { path }
}

/// Fails unless this is an error with that status, in GitHub's body. Returns its message.
#[track_caller]
fn assert_error(response: &Response, status: u16) -> String {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("application/json"), "{}", response.text());
    let body = response.json();
    assert!(body["documentation_url"].is_string(), "{body}");
    assert_eq!(body["status"], status.to_string(), "{body}");
    for error in body["errors"].as_array().into_iter().flatten() {
        for part in ["resource", "field", "code", "message"] {
            assert!(error[part].as_str().is_some_and(|text| !text.is_empty()), "{part} is missing: {body}");
        }
    }
    let message = body["message"].as_str().unwrap_or_default().to_owned();
    assert!(!message.is_empty(), "{body}");
    message
}

/// Fails unless the request was refused because of this field alone. Returns the rule.
#[track_caller]
fn assert_refused(response: &Response, field: &str, code: &str) -> String {
    let message = assert_error(response, 422);
    assert_eq!(message, "Validation Failed");
    let body = response.json();
    let errors = body["errors"].as_array().expect("a refusal names its fields");
    assert_eq!(errors.len(), 1, "{body}");
    assert_eq!((errors[0]["field"].as_str(), errors[0]["code"].as_str()), (Some(field), Some(code)), "{body}");
    errors[0]["message"].as_str().unwrap_or_default().to_owned()
}

/// Fails unless the request does not fit what is so now, and is told so in these words.
#[track_caller]
fn assert_conflict(response: &Response, words: &str) {
    let message = assert_error(response, 409);
    assert!(message.contains(words), "{message}");
}

/// Fails unless the name is one that the account has already, in the words that GitHub's clients look for.
#[track_caller]
fn assert_taken(response: &Response) {
    assert_error(response, 409);
    let error = &response.json()["errors"][0];
    assert_eq!((error["field"].as_str(), error["code"].as_str()), (Some("name"), Some("custom")), "{error}");
    assert_eq!(error["message"], "name already exists on this account");
}
