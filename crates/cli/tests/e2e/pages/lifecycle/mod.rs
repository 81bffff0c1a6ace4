//! A repository's life, as someone with a browser leads it.

mod danger;
mod deleting;
mod offers;
mod old_names;
mod restoring;
mod trail;

use super::browser::{Browser, without_tokens};
use super::logged_in;
use crate::support::{self, Person, query};
use abide_testkit::http::Response;
use abide_testkit::{Engine, Server};

/// `ann/tool`, which is public and has content; ann and bob have accounts.
struct Setup {
    server: Server,
    ann: Person,
    bob: Person,
}

impl Setup {
    fn new(engine: Engine) -> Self {
        let server = support::server(engine);
        let (ann, bob) = (support::person(&server, "ann"), support::person(&server, "bob"));
        let setup = Self { server, ann, bob };
        setup.fill("tool", false);
        setup
    }

    /// Another repository of ann's, with content.
    fn fill(&self, name: &str, private: bool) {
        self.ann.create(&self.server, name, private);
        let tree = self.ann.git.init_work_tree();
        self.ann.git.commit_file(&tree, "README.md", format!("# {name}\n"), "Say hello");
        self.ann.git.ok(&tree, &["push", "-q", &self.server.http_url("ann", name), "main"]);
    }

    fn browser(&self, name: &str) -> Browser<'_> {
        logged_in(&self.server, name)
    }

    fn id(&self, name: &str) -> String {
        query(&self.server, &format!("SELECT max(id) FROM repos WHERE name = '{name}'"))
    }

    /// How often something was noted in the audit log.
    fn noted(&self, action: &str) -> String {
        query(&self.server, &format!("SELECT count(*) FROM audit_log WHERE action = '{action}'"))
    }

    /// Gives someone a role in `ann/tool`.
    fn share(&self, name: &str, role: &str) {
        let path = "/ann/tool/settings/collaborators";
        let shared = self.browser("ann").submit(path, path, &[("user", name), ("role", role)]);
        assert_eq!(shared.status, 303, "{}", shared.text());
    }
}

/// Does something through its page in a repository's settings.
#[track_caller]
fn settle(browser: &Browser<'_>, slug: &str, verb: &str, fields: &[(&str, &str)]) -> Response {
    let path = format!("/{slug}/settings/{verb}");
    browser.submit(&path, &path, fields)
}

/// Sends a form that no page offers to this visitor.
#[track_caller]
fn force(browser: &Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Response {
    let token = browser.token(if browser.is_in() { "/settings/profile" } else { "/login" });
    browser.post(path, &[&[("_token", token.as_str())], fields].concat())
}

/// Everything of an answer that someone could compare, with the name that was asked for left out.
#[track_caller]
fn comparable(browser: &Browser<'_>, path: &str, name: &str) -> (u16, Vec<(String, String)>, String) {
    let response = browser.get(path);
    let reported = |(header, _): &(String, String)| !["date", "x-request-id"].contains(&header.to_lowercase().as_str());
    let headers = response.headers.iter().filter(|header| reported(header)).cloned().collect();
    (response.status, headers, without_tokens(&response.text()).replace(name, "NAME"))
}

/// Fails unless two names of the same length cannot be told apart by someone.
#[track_caller]
fn assert_as_absent(browser: &Browser<'_>, name: &str, absent: &str) {
    assert_eq!(name.len(), absent.len(), "or else the length tells them apart");
    for tail in ["", "/commits/main?page=2", "/settings", "/settings/delete", "/blob/main/README.md"] {
        let seen = comparable(browser, &format!("/ann/{name}{tail}"), name);
        assert_eq!(seen.0, 404, "{tail}");
        assert_eq!(seen, comparable(browser, &format!("/ann/{absent}{tail}"), absent), "{tail}");
    }
}
