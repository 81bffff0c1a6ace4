//! Answers: compression, and large changes that are sent only on request.

use crate::pages::logged_in;
use crate::support::{builder, person, server};
use abide_testkit::http::{Request, Response};
use abide_testkit::{Engine, Server};

fn ask(server: &Server, path: &str) -> Response {
    Request::new("GET", path).header("Accept-Encoding", "br, gzip").send(server.http_addr())
}

#[test]
fn pages_assets_and_json_are_compressed_and_nothing_else_is() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    alice.create(&server, "tool", false);
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "large.txt", "a line\n".repeat(2_000), "first");
    alice.git.ok(&tree, &["push", &server.http_url("alice", "tool"), "HEAD:refs/heads/main"]);
    let login = ask(&server, "/login");
    let css = login_asset(&Request::new("GET", "/login").send(server.http_addr()).text());
    for path in ["/login", "/alice/tool", css.as_str(), "/api/v3/openapi.json", "/api/v3/repos/alice/tool"] {
        let (packed, plain) = (ask(&server, path), Request::new("GET", path).send(server.http_addr()));
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        assert!(packed.body.len() * 2 < plain.body.len(), "{path}: {} of {}", packed.body.len(), plain.body.len());
        let varies = |answer: &Response| {
            let all = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("vary"));
            all.map(|(_, value)| value.clone()).collect::<Vec<_>>().join(", ")
        };
        assert!(varies(&packed).contains("Accept-Encoding") && varies(&plain).contains("Accept-Encoding"), "{path}");
        assert!(packed.header("etag").is_none_or(|tag| tag.starts_with("W/")), "{path}");
    }
    assert_eq!(login.status, 200);
    let git = "/alice/tool.git/info/refs?service=git-upload-pack";
    for path in ["/alice/tool/raw/main/large.txt", git, "/healthz"] {
        assert_eq!(ask(&server, path).header("content-encoding"), None, "{path}");
    }
    let browser = logged_in(&server, "alice");
    let token = browser.token("/settings/tokens");
    let fields = format!("_token={token}&label=ci&expires=7&scope=repo");
    let request = browser.request("POST", "/settings/tokens").header("Accept-Encoding", "gzip");
    let request = request.header("Content-Type", "application/x-www-form-urlencoded").body(fields);
    let secret = browser.send(&request);
    assert_eq!((secret.status, secret.header("content-encoding")), (200, None), "a secret is not compressed");
    assert_ne!(browser.token("/settings/tokens"), browser.token("/settings/tokens"), "tokens of forms are masked");
}

fn login_asset(html: &str) -> String {
    let start = html.find("/assets/abide-").expect("a stylesheet");
    html[start..].split('"').next().unwrap_or_default().to_owned()
}

#[test]
fn a_large_change_is_shown_when_it_is_asked_for() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    alice.create(&server, "tool", false);
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "0\n", "base");
    alice.git.ok(&tree, &["push", &server.http_url("alice", "tool"), "HEAD:refs/heads/base"]);
    std::fs::write(tree.join("long.txt"), "many lines\n".repeat(2_000)).expect("there is room");
    std::fs::write(tree.join("wide.txt"), "x".repeat(200_000)).expect("there is room");
    std::fs::write(tree.join("small.txt"), "a small change\n").expect("there is room");
    alice.git.ok(&tree, &["add", "."]);
    alice.git.ok(&tree, &["commit", "-m", "large"]);
    let oid = alice.git.ok(&tree, &["rev-parse", "HEAD"]).trim().to_owned();
    alice.git.ok(&tree, &["push", &server.http_url("alice", "tool"), "HEAD:refs/heads/main"]);
    let browser = crate::pages::browser::Browser::new(&server);
    for page in [format!("/alice/tool/commit/{oid}"), "/alice/tool/compare/base...main".to_owned()] {
        let html = browser.page(&page);
        assert!(html.contains("a small change"), "{page}");
        assert!(!html.contains("many lines") && !html.contains("xxxxxxxx"), "{page}");
        assert_eq!(html.matches("Load diff").count(), 2, "{page}");
        assert!(html.len() < 50_000, "{page} has {} bytes", html.len());
        let link = html.split("<a href=\"").filter(|rest| rest.contains("Load diff")).find_map(|rest| {
            let (link, text) = rest.split_once('"')?;
            text.starts_with(">Load diff").then(|| link.replace("&#38;", "&").replace("&amp;", "&"))
        });
        let link = link.expect("a link to the first of them");
        let shown = browser.page(link.split('#').next().unwrap_or_default());
        assert!(shown.contains("many lines") && !shown.contains("xxxxxxxx"), "{link} shows the one that was asked for");
    }
}

#[test]
fn browsers_are_told_to_come_by_https_where_the_site_has_it() {
    let server = builder(Engine::Sqlite).env("ABIDE_SERVER__PUBLIC_URL", "https://git.example.org").start();
    for path in ["/login", "/healthz", "/api/v3/meta", "/nowhere/at/all"] {
        let answer = Request::new("GET", path).send(server.http_addr());
        assert_eq!(answer.header("strict-transport-security"), Some("max-age=31536000"), "{path}");
    }
    let plain = crate::support::server(Engine::Sqlite);
    assert_eq!(Request::new("GET", "/login").send(plain.http_addr()).header("strict-transport-security"), None);
}

#[test]
fn a_link_that_was_mailed_is_in_no_line_of_the_log() {
    let server = server(Engine::Sqlite);
    let secret = "dGhpcyBpcyBhIHNlY3JldCBvZiAyNTYgYml0cyE0Mzc";
    for shape in
        ["/reset/T", "/reset/T/", "//reset/T", "/Reset/T", "/%72eset/T", "/verify/T?x=T", "/setup//T", "/invite/T/"]
    {
        Request::new("GET", &shape.replace('T', secret)).send(server.http_addr());
    }
    Request::new("GET", "/the-last-one").send(server.http_addr());
    abide_testkit::eventually(std::time::Duration::from_secs(30), || server.log().contains("the-last-one"));
    assert!(!server.log().contains(secret), "{}", server.log());
}
