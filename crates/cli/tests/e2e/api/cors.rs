//! Pages on any site may read every answer, and none is ever given with someone's cookies.

use crate::support::{person, server};
use abide_testkit::Engine;
use abide_testkit::http::{Request, Response};

#[track_caller]
fn assert_readable_from_anywhere(response: &Response) {
    assert_eq!(response.header("access-control-allow-origin"), Some("*"), "{response:?}");
    assert_eq!(response.header("access-control-allow-credentials"), None, "{response:?}");
    let exposed = response.header("access-control-expose-headers").unwrap_or_default();
    assert!(exposed.contains("Link"), "{response:?}");
}

#[test]
fn every_answer_may_be_read_from_anywhere() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    for (method, path, token, status) in [
        ("GET", "/api/v3/repos/alice/project", None, 200),
        ("GET", "/api/v3/user", None, 401),
        ("GET", "/api/v3/user", Some("wrong"), 401),
        ("GET", "/api/v3/repos/alice/absent", None, 404),
        ("GET", "/api/v3/nothing", None, 404),
        ("DELETE", "/api/v3/user", None, 405),
        ("POST", "/api/v3/user/repos", Some(alice.token.as_str()), 422),
        ("GET", "/nothing", None, 404),
        ("GET", "/healthz", None, 200),
        ("GET", "/alice/project.git/info/refs?service=git-upload-pack", None, 200),
        ("GET", "/alice/absent.git/info/refs?service=git-upload-pack", None, 401),
    ] {
        let request = Request::new(method, path).token(token).header("Origin", "https://elsewhere.example");
        let response = request.send(server.http_addr());
        assert_eq!(response.status, status, "{method} {path}: {}", response.text());
        assert_readable_from_anywhere(&response);
    }
}

#[test]
fn a_browser_that_asks_first_is_told_yes() {
    let server = server(Engine::Sqlite);
    for path in ["/api/v3/user/repos", "/api/v3/nothing", "/nothing", "/a/b.git/git-upload-pack"] {
        let response = Request::new("OPTIONS", path)
            .header("Origin", "https://elsewhere.example")
            .header("Access-Control-Request-Method", "PATCH")
            .header("Access-Control-Request-Headers", "authorization,content-type")
            .send(server.http_addr());
        assert_eq!((response.status, response.body.len()), (204, 0), "{path}");
        assert_readable_from_anywhere(&response);
        let methods = response.header("access-control-allow-methods").unwrap_or_default();
        assert!(["GET", "POST", "PUT", "PATCH", "DELETE"].iter().all(|method| methods.contains(method)), "{methods}");
        let headers = response.header("access-control-allow-headers").unwrap_or_default();
        assert!(headers.contains("Authorization") && headers.contains("Content-Type"), "{headers}");
    }
}

#[test]
fn head_is_get_without_the_body() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    for name in ["a", "b"] {
        alice.create(&server, name, false);
    }
    for path in ["/api/v3/meta", "/api/v3/users/alice/repos?per_page=1", "/api/v3/repos/alice/absent", "/healthz"] {
        let [get, head] = ["GET", "HEAD"].map(|method| Request::new(method, path).send(server.http_addr()));
        assert_eq!(head.status, get.status, "{path}");
        assert!(head.body.is_empty() && !get.body.is_empty(), "{path}");
        for header in ["content-type", "content-length", "link", "access-control-allow-origin"] {
            assert_eq!(head.header(header), get.header(header), "{path}: {header}");
        }
    }
}
