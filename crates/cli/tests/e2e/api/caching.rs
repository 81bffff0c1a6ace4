//! Answers that a client has already, limits, and the description of it all.

use super::setup::{Setup, setup};
use super::{Api, assert_error};
use crate::support::{builder, person, server};
use abide_testkit::http::{Request, Response};
use abide_testkit::{Engine, eventually};
use rstest::rstest;
use serde_json::json;
use std::time::Duration;

fn number(response: &Response, name: &str) -> i64 {
    let value = response.header(name).unwrap_or_else(|| panic!("{name} is missing: {response:?}"));
    value.parse().unwrap_or_else(|_| panic!("{name}: {value}"))
}

#[rstest]
fn what_a_client_has_is_not_sent_again_until_it_changes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let Setup { server, alice, .. } = setup(engine);
    let api = Api::of(&server, &alice);
    // Tidying after a push measures the repository, which is told too.
    eventually(Duration::from_secs(20), || api.read("/repos/alice/project")["size"] != 0);
    let ask = |path: &str, tag: &str| api.request("GET", path).header("If-None-Match", tag).send(server.http_addr());
    for path in [
        "/repos/alice/project",
        "/user/repos",
        "/repos/alice/project/contents/src",
        "/repos/alice/project/commits/main",
    ] {
        let first = api.get(path);
        let tag = first.header("etag").expect("a tag").to_owned();
        assert!(tag.starts_with("W/\""), "{tag}");
        assert_eq!(first.header("vary"), Some("Authorization, Accept"), "{path}");
        for known in [tag.as_str(), &format!("\"x\", {tag}"), "*", tag.trim_start_matches("W/")] {
            let again = ask(path, known);
            assert_eq!((again.status, again.body.len()), (304, 0), "{path} {known}");
            assert_eq!(again.header("etag"), Some(tag.as_str()), "{path}");
            assert!(again.header("x-ratelimit-remaining").is_some(), "{path}");
        }
        assert_eq!(ask(path, "\"x\"").status, 200, "{path}");
    }
    let tag = api.get("/repos/alice/project").header("etag").expect("a tag").to_owned();
    assert_eq!(api.patch("/repos/alice/project", json!({ "description": "Changed" })).status, 200);
    assert_eq!(ask("/repos/alice/project", &tag).status, 200);
    let anonymous = Request::new("GET", "/api/v3/repos/alice/project").header("If-None-Match", &tag);
    assert_eq!(anonymous.send(server.http_addr()).status, 200, "permissions differ, so the answer does");
}

#[test]
fn a_raw_file_has_the_tag_of_its_content() {
    let Setup { server, alice, .. } = setup(Engine::Sqlite);
    let raw = Api::of(&server, &alice)
        .request("GET", "/repos/alice/project/contents/binary")
        .header("Accept", "application/vnd.github.raw");
    let tag = raw.send(server.http_addr()).header("etag").expect("a tag").to_owned();
    assert_eq!(raw.clone().header("If-None-Match", &tag).send(server.http_addr()).status, 304);
}

#[rstest]
fn an_hour_has_so_many_requests(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine)
        .env("ABIDE_API__RATE_LIMIT_PER_HOUR", "5")
        .env("ABIDE_API__ANONYMOUS_RATE_LIMIT_PER_HOUR", "3")
        .start();
    let alice = person(&server, "alice");
    let (api, nobody) = (Api::of(&server, &alice), Api::nobody(&server));

    for used in 1..=3 {
        let answer = nobody.get("/meta");
        assert_eq!((answer.status, number(&answer, "x-ratelimit-limit")), (200, 3));
        assert_eq!((number(&answer, "x-ratelimit-used"), number(&answer, "x-ratelimit-remaining")), (used, 3 - used));
        assert_eq!(number(&answer, "x-ratelimit-reset") % 3600, 0);
        assert_eq!(answer.header("x-ratelimit-resource"), Some("core"));
    }
    for refused in [nobody.get("/meta"), nobody.get("/users/alice"), Api::with(&server, "abide_pat_guess").get("/user")]
    {
        let message = assert_error(&refused, 429);
        assert!(message.contains("API rate limit exceeded"), "{message}");
        let wait = number(&refused, "retry-after");
        assert!((1..=3600).contains(&wait), "{wait}");
        assert_eq!(number(&refused, "x-ratelimit-remaining"), 0);
    }
    let rate = api.read("/rate_limit");
    assert_eq!((&rate["rate"]["limit"], &rate["rate"]["remaining"]), (&json!(5), &json!(5)), "an account has its own");
    assert_eq!(rate["resources"]["core"], rate["rate"]);
    assert_eq!(nobody.get("/rate_limit").status, 200, "looking is free");
    assert_eq!(api.get("/user").status, 200);
    assert_eq!(api.read("/rate_limit")["rate"]["remaining"], 4);
    // Git is not the API.
    assert_eq!(Request::new("GET", "/healthz").send(server.http_addr()).status, 200);
}

#[test]
fn the_api_describes_itself_to_programs_and_to_people() {
    let server = server(Engine::Sqlite);
    let document = Api::nobody(&server).read("/openapi.json");
    assert_eq!(&document, abide_web_api::openapi_document());
    assert_eq!(document["openapi"], "3.1.0");
    let page = Request::new("GET", "/api/docs").send(server.http_addr());
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.text().contains("/api/v3/repos/{owner}/{repo}/contents/{path}"), "{}", page.text());
    assert!(page.text().contains("<code>repo:read</code>"), "{}", page.text());
}
