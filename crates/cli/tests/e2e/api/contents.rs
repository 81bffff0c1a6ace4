//! Files and directories by path.

use super::setup::{Setup, setup};
use super::{Api, assert_error};
use crate::git::bombs::noise;
use crate::support::{person, server};
use abide_testkit::Engine;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::{Value, json};

fn names(listing: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = listing.as_array().unwrap_or_else(|| panic!("no list: {listing}"));
    entries.iter().map(|entry| (text(&entry["type"]), text(&entry["name"]))).collect()
}

#[rstest]
fn a_file_comes_with_its_bytes_and_addresses(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let api = Api::nobody(&setup.server);
    let file = api.read("/repos/alice/project/contents/src/lib.rs");
    assert_eq!((&file["type"], &file["name"], &file["path"]), (&json!("file"), &json!("lib.rs"), &json!("src/lib.rs")));
    assert_eq!((&file["encoding"], &file["size"]), (&json!("base64"), &json!(26)));
    assert_eq!(file["content"], "Ly8hIFR3by4KCnB1YiBmbiBvbmUoKSB7fQo=");
    assert_eq!(file["sha"], setup.git(&["rev-parse", "main:src/lib.rs"]));

    // Its own addresses lead back to it.
    let path = |url: &Value| url.as_str().and_then(|url| url.split("/api/v3").nth(1)).expect("ours").to_owned();
    assert_eq!(api.read(&path(&file["url"])), file);
    assert_eq!(api.read(&path(&file["git_url"]))["content"], file["content"]);

    let before = api.read("/repos/alice/project/contents/src/lib.rs?ref=v1.0");
    assert_eq!(before["sha"], setup.git(&["rev-parse", "v1.0:src/lib.rs"]));
    for name in ["main", "refs/heads/main", "feature/x", &setup.git(&["rev-parse", "main"])] {
        assert_eq!(api.read(&format!("/repos/alice/project/contents/src/lib.rs?ref={name}"))["sha"], file["sha"]);
    }
}

#[rstest]
fn a_directory_lists_every_kind_of_entry(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let Setup { server, .. } = setup(engine);
    let api = Api::nobody(&server);
    let mut root = names(&api.read("/repos/alice/project/contents"));
    assert_eq!(names(&api.read("/repos/alice/project/contents/")), root);
    root.sort();
    let expected = [("dir", "src"), ("file", "README.md"), ("file", "binary"), ("file", "caf\u{fffd}")];
    let expected = expected.into_iter().chain([("submodule", "vendor"), ("symlink", "link")]);
    assert_eq!(root, expected.map(|(kind, name)| (kind.to_owned(), name.to_owned())).collect::<Vec<_>>());
    assert_eq!(names(&api.read("/repos/alice/project/contents/src/")).len(), 2);

    let link = api.read("/repos/alice/project/contents/link");
    assert_eq!((&link["type"], &link["target"]), (&json!("symlink"), &json!("src/lib.rs")));
    let vendor = api.read("/repos/alice/project/contents/vendor");
    assert_eq!((&vendor["type"], &vendor["download_url"]), (&json!("submodule"), &Value::Null));
    let object =
        api.request("GET", "/repos/alice/project/contents/src").header("Accept", "application/vnd.github.object");
    let object = object.send(server.http_addr()).json();
    assert_eq!((&object["type"], object["entries"].as_array().map(Vec::len)), (&json!("dir"), Some(2)));
}

#[test]
fn names_that_are_no_text_are_reached_by_their_bytes() {
    let Setup { server, .. } = setup(Engine::Sqlite);
    let api = Api::nobody(&server);
    let file = api.read("/repos/alice/project/contents/caf%E9");
    assert_eq!((&file["name"], &file["size"]), (&json!("caf\u{fffd}"), &json!(6)));
    assert!(file["url"].as_str().is_some_and(|url| url.contains("/contents/caf%E9?ref=main")), "{file}");
    assert_eq!(file["content"], "bGF0aW4K");
}

#[test]
fn raw_bytes_are_sent_as_they_are_and_never_run() {
    let setup = setup(Engine::Sqlite);
    let api = setup.api();
    for accept in ["application/vnd.github.raw+json", "application/vnd.github.v3.raw"] {
        for path in ["contents/binary", &format!("git/blobs/{}", setup.git(&["rev-parse", "main:binary"]))] {
            let request = api.request("GET", &format!("/repos/alice/project/{path}")).header("Accept", accept);
            let raw = request.send(setup.server.http_addr());
            assert_eq!((raw.status, raw.body.as_slice()), (200, &b"\0\x01\x02\xff"[..]), "{path}");
            assert_eq!(raw.header("content-type"), Some("application/octet-stream"));
            assert_eq!(raw.header("x-content-type-options"), Some("nosniff"));
            assert!(raw.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
        }
    }
}

#[test]
fn a_large_file_is_sent_raw_only() {
    let setup = setup(Engine::Sqlite);
    let large = "0123456789abcdef".repeat((3 << 20) / 16);
    setup.alice.git.commit_file(&setup.tree, "large", &large, "Large");
    setup.git(&["push", "-q", &setup.server.http_url("alice", "project"), "HEAD:refs/heads/large"]);
    let path = "/repos/alice/project/contents/large?ref=large";
    let file = setup.api().read(path);
    assert_eq!((&file["size"], &file["encoding"], &file["content"]), (&json!(3 << 20), &json!("none"), &json!("")));
    let raw = setup.api().request("GET", path).header("Accept", "application/vnd.github.raw");
    assert_eq!(raw.send(setup.server.http_addr()).body.len(), 3 << 20);
}

#[test]
fn a_large_blob_is_the_same_json_as_a_small_one() {
    let setup = setup(Engine::Sqlite);
    for size in [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 2] {
        let bytes = noise(size);
        setup.alice.git.commit_file(&setup.tree, "large", &bytes, "Large");
        setup.git(&["push", "-q", &setup.server.http_url("alice", "project"), "HEAD:refs/heads/large"]);
        let oid = setup.git(&["rev-parse", "HEAD:large"]);
        let path = format!("/repos/alice/project/git/blobs/{oid}");
        let answer = setup.api().get(&path);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
        let blob = answer.json();
        assert_eq!((&blob["sha"], &blob["size"], &blob["encoding"]), (&json!(oid), &json!(size), &json!("base64")));
        let content = blob["content"].as_str().unwrap();
        assert!(STANDARD.decode(content).unwrap() == bytes, "{size}");
        let tag = answer.header("etag").unwrap();
        assert!(tag.starts_with("W/"), "{tag}");
        let again = setup.api().request("GET", &path).header("If-None-Match", tag).send(setup.server.http_addr());
        assert_eq!((again.status, again.body.len()), (304, 0));
    }
}

#[rstest]
fn a_readme_is_found_in_every_directory(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let Setup { server, .. } = setup(engine);
    let api = Api::nobody(&server);
    assert_eq!(api.read("/repos/alice/project/readme")["path"], "README.md");
    assert_eq!(api.read("/repos/alice/project/readme/src/deep")["path"], "src/deep/README");
    assert_error(&api.get("/repos/alice/project/readme/src"), 404);
    assert_error(&api.get("/repos/alice/project/readme?ref=feature/x"), 404);
}

#[rstest]
fn what_is_not_there_is_a_404_and_an_empty_repository_says_so(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let Setup { server, alice, .. } = setup(engine);
    alice.create(&server, "empty", false);
    let api = Api::of(&server, &alice);
    for path in
        ["contents/absent", "contents/README.md/x", "contents/..", "contents/src/lib.rs?ref=absent", "contents/%00"]
    {
        assert_error(&api.get(&format!("/repos/alice/project/{path}")), 404);
    }
    for path in ["contents", "contents/README.md", "readme", "commits", "commits/main", "git/refs", "compare/a...b"] {
        let message = assert_error(&api.get(&format!("/repos/alice/empty/{path}")), 409);
        assert_eq!(message, "Git Repository is empty.", "{path}");
    }
    for path in ["branches", "tags"] {
        assert_eq!(api.read(&format!("/repos/alice/empty/{path}")), json!([]), "{path}");
    }
}

#[test]
fn a_new_repository_can_begin_with_files() {
    let server = server(Engine::Sqlite);
    let alice = person(&server, "alice");
    let api = Api::of(&server, &alice);
    let body =
        json!({ "name": "begun", "auto_init": true, "license_template": "apache-2.0", "gitignore_template": "Rust" });
    let created = api.post("/user/repos", body);
    assert_eq!(created.status, 201, "{}", created.text());
    assert!(created.json()["pushed_at"].is_string());
    let files: Vec<_> = names(&api.read("/repos/alice/begun/contents")).into_iter().map(|(_, name)| name).collect();
    assert_eq!(files, [".gitignore", "LICENSE", "README.md"]);
    let commit = &api.read("/repos/alice/begun/commits")[0]["commit"];
    assert_eq!(commit["message"], "Initial commit");
    assert!(!commit.to_string().contains("alice@example.org"), "nobody's address is given away: {commit}");
    super::assert_refused(
        &api.post("/user/repos", json!({ "name": "x", "license_template": "?" })),
        "license_template",
        "invalid",
    );
}
