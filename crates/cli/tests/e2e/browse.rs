//! Repository pages and their visibility: odd names, odd content, and no active content.

use crate::support::{self, Person};
use abide_testkit::http::{self, Response};
use abide_testkit::{Engine, Server};
use rstest::rstest;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// A public repository `ann/tool` with a work tree to commit in.
struct Setup {
    server: Server,
    ann: Person,
    dir: PathBuf,
}

impl Setup {
    fn new(engine: Engine) -> Self {
        let server = support::server(engine);
        let ann = support::person(&server, "ann");
        ann.create(&server, "tool", false);
        let dir = ann.git.init_work_tree();
        Self { server, ann, dir }
    }

    fn push(&self, refspecs: &[&str]) {
        let url = self.server.http_url("ann", "tool");
        let args = [&["push", "--quiet", "--force", &url], refspecs].concat();
        self.ann.git.ok(&self.dir, &args);
    }

    fn get(&self, path: &str) -> Response {
        http::get(self.server.http_addr(), path, None)
    }

    #[track_caller]
    fn page(&self, path: &str) -> String {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.text()
    }
}

#[rstest]
fn branch_names_with_slashes_and_paths_are_told_apart(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    setup.ann.git.commit_file(&setup.dir, "a/b/c.txt", "on main\n", "One");
    setup.push(&["main"]);
    setup.ann.git.ok(&setup.dir, &["checkout", "--quiet", "-b", "feature/a"]);
    setup.ann.git.commit_file(&setup.dir, "b/c.txt", "on the branch\n", "Two");
    setup.push(&["feature/a", "HEAD:refs/tags/rel/1"]);
    assert!(setup.page("/ann/tool/blob/feature/a/b/c.txt").contains("on the branch"));
    assert!(setup.page("/ann/tool/blob/main/a/b/c.txt").contains("on main"));
    assert!(setup.page("/ann/tool/tree/rel/1/b").contains("c.txt"));
    assert!(setup.page("/ann/tool/commits/feature/a/b/c.txt").contains("Two"));
    assert_eq!(setup.get("/ann/tool/tree/feature/x").status, 404);
    assert_eq!(setup.get("/ann/tool/blob/main/nothing").status, 404);
    // A link that was written for the other kind leads on.
    assert_eq!(setup.get("/ann/tool/blob/main/a").header("location"), Some("/ann/tool/tree/main/a"));
    assert_eq!(setup.get("/ann/tool/tree/main/a/b/c.txt").header("location"), Some("/ann/tool/blob/main/a/b/c.txt"));
}

/// `git push -u origin HEAD` works in a work tree whose branch is not the preset default branch, and the next plain push
/// does too.
#[rstest]
fn the_page_of_an_empty_repository_suggests_a_push_that_works_for_every_branch(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let cookie = crate::pages::logged_in(&setup.server, "ann");
    let html = cookie.page("/ann/tool");
    let suggested: Vec<_> = html.lines().filter(|line| line.starts_with("git push")).collect();
    assert_eq!(suggested.len(), 2, "{html}");
    assert!(
        suggested.iter().all(|line| line.split("</code>").next() == Some("git push -u origin HEAD")),
        "{suggested:?}"
    );
    let (git, dir) = (&setup.ann.git, &setup.dir);
    git.ok(dir, &["checkout", "--quiet", "-b", "trunk"]);
    git.ok(dir, &["remote", "add", "origin", &setup.server.http_url("ann", "tool")]);
    for round in ["one", "two"] {
        git.commit_file(dir, "file", round, round);
        let push = if round == "one" { &["push", "-u", "origin", "HEAD"][..] } else { &["push"] };
        git.ok(dir, push);
    }
    assert!(setup.page("/ann/tool").contains("two"));
}

#[rstest]
fn a_repository_with_only_tags_shows_them_and_what_they_say(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::new(engine);
    let git = &setup.ann.git;
    git.commit_file(&setup.dir, "file", "text\n", "One");
    git.ok(&setup.dir, &["tag", "-a", "-m", "First <b>release</b>\n\nIt works.", "v1"]);
    let signed = "Second\n-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----";
    git.ok(&setup.dir, &["tag", "-a", "-m", signed, "v2"]);
    git.ok(&setup.dir, &["tag", "light"]);
    setup.push(&["v1", "v2", "light"]);
    let home = setup.page("/ann/tool");
    assert!(home.contains("This repository has no branches") && !home.contains("is empty"), "{home}");
    assert!(home.matches("href=\"/ann/tool/tags\"").count() == 2, "in the tabs and the text: {home}");
    let tags = setup.page("/ann/tool/tags");
    assert!(tags.contains("First &#60;b&#62;release&#60;/b&#62;\n\nIt works.</p>"), "{tags}");
    assert!(tags.contains(">Second</p>") && !tags.contains("SIGNATURE"), "{tags}");
    assert_eq!(tags.matches("class=\"message\"").count(), 2, "{tags}");
    assert!(setup.page("/ann/tool/tree/v1").contains("file"));
}

#[rstest]
fn names_that_are_not_utf_8_can_be_opened(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let name = OsStr::from_bytes(b"caf\xe9 \xff.txt");
    fs::write(setup.dir.join(name), "inside\n").unwrap();
    setup.ann.git.ok(&setup.dir, &["add", "--all"]);
    setup.ann.git.ok(&setup.dir, &["commit", "--quiet", "-m", "Odd"]);
    setup.push(&["main"]);
    let home = setup.page("/ann/tool");
    assert!(home.contains("href=\"/ann/tool/blob/main/caf%E9%20%FF.txt\""), "{home}");
    assert!(setup.page("/ann/tool/blob/main/caf%E9%20%FF.txt").contains("inside"));
    assert_eq!(setup.get("/ann/tool/raw/main/caf%E9%20%FF.txt").text(), "inside\n");
    assert!(setup.page("/ann/tool/commits/main/caf%E9%20%FF.txt").contains("Odd"));
}

const MARKUP: &str = "\"><script>alert(1)</script><img src=x onerror=alert(1)>";

#[rstest]
fn nothing_that_someone_wrote_becomes_markup(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let git = &setup.ann.git;
    let file = "<img src=x onerror=alert(1)>'\".md";
    let content = format!("# {MARKUP}\n\n{MARKUP}\n\n[x](javascript:alert(1))\n");
    git.commit_file(&setup.dir, file, &content, MARKUP);
    git.commit_file(&setup.dir, "README.md", &content, MARKUP);
    git.commit_file(&setup.dir, "code.rs", format!("// {MARKUP}\nlet x = \"{MARKUP}\";\n"), "Code");
    git.ok(&setup.dir, &["-c", &format!("user.name={MARKUP}"), "commit", "--quiet", "--allow-empty", "-m", MARKUP]);
    let branch = "<script>alert(1)</script>";
    setup.push(&["main", &format!("main:refs/heads/{branch}"), &format!("main:refs/tags/{branch}")]);
    let about = serde_json::json!({ "description": MARKUP });
    http::patch(setup.server.http_addr(), "/api/v3/repos/ann/tool", Some(&setup.ann.token), &about);

    let encoded_file = "%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%27%22.md";
    let encoded_branch = "%3Cscript%3Ealert%281%29%3C/script%3E";
    for path in [
        "/".to_owned(),
        "/explore".into(),
        format!("/search?q={encoded_branch}"),
        format!("/search?topic={encoded_branch}"),
        "/ann".into(),
        "/ann/tool".into(),
        format!("/ann/tool/tree/{encoded_branch}"),
        format!("/ann/tool/blob/main/{encoded_file}"),
        format!("/ann/tool/blob/main/{encoded_file}?plain=1"),
        format!("/ann/tool/blame/main/{encoded_file}"),
        "/ann/tool/blob/main/code.rs".into(),
        "/ann/tool/commits".into(),
        format!("/ann/tool/commits/main/{encoded_file}"),
        format!("/ann/tool/commit/{}", git.ok(&setup.dir, &["rev-parse", "main~1"]).trim()),
        format!("/ann/tool/compare?base={encoded_branch}&head=main"),
        format!("/ann/tool/compare?base={encoded_branch}&head=%22%3E%3Cscript%3E"),
        "/ann/tool/branches".into(),
        format!("/ann/tool/branches?q={encoded_branch}"),
        "/ann/tool/tags".into(),
    ] {
        let page = setup.page(&path);
        for tag in tags(&page) {
            let tag = tag.to_lowercase();
            let ours = tag.starts_with("<script src=\"/assets/");
            assert!(ours || !tag.starts_with("<script"), "{path} has {tag}");
            for bad in ["onerror", "src=x", "javascript:", "alert(1)"] {
                assert!(!without_values(&tag).contains(bad), "{path} has {tag}");
            }
        }
    }
}

/// Everything in a page that a browser takes for a tag.
fn tags(page: &str) -> impl Iterator<Item = &str> {
    page.match_indices('<').filter_map(|(at, _)| {
        let end = page[at..].find('>')?;
        Some(&page[at..=at + end])
    })
}

/// A tag without what is quoted in it, which is only text.
fn without_values(tag: &str) -> String {
    tag.split('"').step_by(2).collect()
}

#[rstest]
fn raw_files_never_run_in_our_origin(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let git = &setup.ann.git;
    for (name, content) in [
        ("page.html", "<script>alert(1)</script>".as_bytes()),
        ("picture.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"),
        ("data.bin", &[0, 1, 2, 255]),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0"),
        ("script.js", b"alert(1)"),
        ("page.xhtml", b"<html xmlns='http://www.w3.org/1999/xhtml'/>"),
    ] {
        git.commit_file(&setup.dir, name, content, "Add");
    }
    setup.push(&["main"]);
    for (name, media_type, disposition) in [
        ("page.html", "text/plain; charset=utf-8", "inline"),
        ("picture.svg", "image/svg+xml", "inline"),
        ("data.bin", "application/octet-stream", "attachment"),
        ("picture.png", "image/png", "inline"),
        ("script.js", "text/plain; charset=utf-8", "inline"),
        ("page.xhtml", "text/plain; charset=utf-8", "inline"),
    ] {
        let response = setup.get(&format!("/ann/tool/raw/main/{name}"));
        assert_eq!(response.status, 200, "{name}");
        assert_eq!(response.header("content-type"), Some(media_type), "{name}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{name}");
        let policy = response.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("sandbox") && !policy.contains("allow-scripts"), "{name}: {policy}");
        assert!(response.header("content-disposition").unwrap_or_default().starts_with(disposition), "{name}");
        let tag = response.header("etag").expect("raw files have an ETag").to_owned();
        let again = http::Request::new("GET", &format!("/ann/tool/raw/main/{name}"))
            .header("If-None-Match", &tag)
            .send(setup.server.http_addr());
        assert_eq!(again.status, 304, "{name}");
        assert!(again.header("content-security-policy").unwrap_or_default().contains("sandbox"), "{name}");
    }
}

#[rstest]
fn every_page_forbids_what_it_does_not_need(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    setup.ann.git.commit_file(&setup.dir, "README.md", "# Hello\n", "One");
    setup.push(&["main"]);
    for path in ["/", "/ann", "/ann/tool", "/ann/tool/commits", "/nowhere", "/ann/tool/settings"] {
        let response = setup.get(path);
        let policy = response.header("content-security-policy").unwrap_or_default();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(response.header("access-control-allow-credentials"), None, "{path}");
        assert!(!response.text().contains(" style=\"") && !response.text().contains(" onclick="), "{path}");
    }
}

#[rstest]
fn empty_binary_huge_and_linked_files_are_explained(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let git = &setup.ann.git;
    assert!(setup.page("/ann/tool").contains("This repository is empty"));
    assert_eq!(setup.get("/ann/tool/commits").status, 404);
    git.commit_file(&setup.dir, "empty.txt", "", "Empty");
    git.commit_file(&setup.dir, "data.bin", [0_u8; 100], "Binary");
    git.commit_file(&setup.dir, "huge.txt", "line\n".repeat(500_000), "Huge");
    git.commit_file(&setup.dir, "long.js", format!("var x = \"{}\";\n", "y".repeat(100_000)), "One long line");
    std::os::unix::fs::symlink("docs/../empty.txt", setup.dir.join("link")).unwrap();
    git.ok(&setup.dir, &["add", "--all"]);
    git.ok(&setup.dir, &["commit", "--quiet", "-m", "Link"]);
    setup.push(&["main"]);
    assert!(setup.page("/ann/tool/blob/main/empty.txt").contains("This file is empty."));
    for view in ["blob", "tree", "raw", "blame"] {
        let absent = setup.get(&format!("/ann/tool/{view}/main/nope.rs"));
        assert_eq!(absent.status, 404, "{view}");
        assert!(absent.text().contains("&#34;nope.rs&#34; does not exist on main."), "{view}: {}", absent.text());
        assert!(absent.text().contains("<a class=\"btn\" href=\"/ann/tool\">Back to the repository</a>"), "{view}");
    }
    assert!(setup.page("/ann/tool/blob/main/data.bin").contains("Binary file not shown."));
    assert!(setup.page("/ann/tool/blob/main/huge.txt").contains("too large to show"));
    assert_eq!(setup.get("/ann/tool/raw/main/huge.txt").body.len(), 2_500_000);
    assert!(setup.page("/ann/tool/blob/main/long.js").contains("yyyy"));
    let link = setup.page("/ann/tool/blob/main/link");
    assert!(link.contains("docs/../empty.txt") && link.contains("/ann/tool/tree/main/empty.txt"), "{link}");
    assert_eq!(setup.get("/ann/tool/blame/main/data.bin").status, 422);
    // While the default branch was never pushed, one that was is shown.
    setup.ann.create(&setup.server, "other", false);
    git.ok(&setup.dir, &["push", "--quiet", &setup.server.http_url("ann", "other"), "main:trunk"]);
    assert!(setup.page("/ann/other").contains("/ann/other/tree/trunk"));
}

#[rstest]
fn a_private_repository_is_absent_on_every_page(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    setup.ann.create(&setup.server, "secret", true);
    setup.ann.git.commit_file(&setup.dir, "README.md", "# Secret plan\n", "One");
    let url = setup.server.http_url("ann", "secret");
    setup.ann.git.ok(&setup.dir, &["push", "--quiet", &url, "main"]);
    let id = setup.ann_repo_id("secret");
    for tail in [
        "",
        "/tree/main",
        "/blob/main/README.md",
        "/raw/main/README.md",
        "/blame/main/README.md",
        "/commits",
        "/commits/main",
        "/commit/main",
        "/compare?base=main&head=main",
        "/branches",
        "/tags",
        "/fork",
        "/settings",
        "/settings/collaborators",
        "/settings/delete",
        "/settings/visibility",
        "/settings/rename",
        "/settings/transfer",
        "/settings/archive",
        "/settings/unarchive",
        "/settings/old-names",
        "/settings/audit",
    ] {
        let hidden = setup.get(&format!("/ann/secret{tail}"));
        let absent = setup.get(&format!("/ann/absent{tail}"));
        assert_eq!(hidden.status, 404, "{tail}");
        let same = |response: &Response, name: &str| response.text().replace(name, "NAME");
        assert_eq!(same(&hidden, "secret"), same(&absent, "absent"), "{tail}");
    }
    assert_eq!(setup.get(&format!("/r/{id}")).status, 404);
    for path in ["/", "/explore", "/search?q=secret", "/ann"] {
        assert!(!setup.page(path).contains("ann/secret"), "{path}");
    }
}

impl Setup {
    fn ann_repo_id(&self, name: &str) -> i64 {
        let path = format!("/api/v3/repos/ann/{name}");
        http::get(self.server.http_addr(), &path, Some(&self.ann.token)).json()["id"]
            .as_i64()
            .expect("a repository has an id")
    }
}

#[rstest]
fn the_permalink_leads_to_the_present_name(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    let id = setup.ann_repo_id("tool");
    let response = setup.get(&format!("/r/{id}"));
    assert_eq!((response.status, response.header("location")), (301, Some("/ann/tool")));
    assert_eq!(response.header("cache-control"), Some("no-cache"));
    assert_eq!(setup.get("/ann/tool.git").header("location"), Some("/ann/tool"));
    for odd in ["/r/0", "/r/-1", "/r/x", "/r/99999999999999999999", "/r/%00"] {
        assert_eq!(setup.get(odd).status, 404, "{odd}");
    }
}

#[rstest]
fn odd_addresses_are_answered_and_never_fail(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::new(engine);
    setup.ann.git.commit_file(&setup.dir, "a.txt", "a\n", "One");
    setup.push(&["main"]);
    for name in ["..", "%2e%2e", "%2F", "%5C", "%00", ".git", "tool.", "tool%20", "t%C3%B6ol", &"x".repeat(300)] {
        for path in [
            format!("/{name}"),
            format!("/ann/{name}"),
            format!("/{name}/tool"),
            format!("/ann/tool/tree/{name}"),
            format!("/ann/tool/blob/main/{name}"),
            format!("/ann/tool/raw/main/{name}/a.txt"),
            format!("/ann/tool/commits/main/{name}"),
            format!("/ann/tool/commit/{name}"),
            format!("/ann/tool/compare/{name}...main"),
            format!("/ann/tool/blame/main/{name}"),
            format!("/search?q={name}&page={name}"),
            format!("/ann/tool/commits?page={name}"),
        ] {
            let status = setup.get(&path).status;
            assert!(status < 500, "{path} answers {status}");
        }
    }
    for path in ["/ann/tool/commits?page=999999999999", "/ann/tool/commits?page=1000000", "/explore?page=500000"] {
        assert!(setup.get(path).status < 500, "{path}");
    }
}

/// Commits a directory of so many files of one blob to a branch of `ann/tool`.
fn push_wide(setup: &Setup, branch: &str, entries: u32) {
    let git = &setup.ann.git;
    let blob = git.feed(&setup.dir, &["hash-object", "-w", "--stdin"], |input| input.write_all(b"wide\n"));
    let oid: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&blob[2 * at..2 * at + 2], 16).expect("digits")).collect();
    let tree = git.feed(&setup.dir, &["hash-object", "-w", "-t", "tree", "--stdin"], move |input| {
        (0..entries).try_for_each(|number| {
            input.write_all(format!("100644 {number:08}\0").as_bytes()).and_then(|()| input.write_all(&oid))
        })
    });
    let commit = git.ok(&setup.dir, &["commit-tree", "-m", "wide", tree.trim()]);
    setup.push(&[&format!("{}:refs/heads/{branch}", commit.trim())]);
}

#[test]
fn directories_that_are_too_large_say_so_and_wide_ones_are_shown_to_a_limit() {
    let setup = Setup::new(Engine::Sqlite);
    push_wide(&setup, "main", 900_000);
    push_wide(&setup, "wide", 120_000);

    for path in ["/ann/tool", "/ann/tool/tree/main"] {
        assert!(setup.page(path).contains("This directory is too large to be listed here"), "{path}");
    }
    let pages = ["/ann/tool/blob/main/00000001", "/ann/tool/raw/main/00000001"];
    let api = ["contents", "contents/00000001", "git/trees/main", "readme"];
    for path in pages.map(str::to_owned).into_iter().chain(api.map(|path| format!("/api/v3/repos/ann/tool/{path}"))) {
        let answer = setup.get(&path);
        assert_eq!(answer.status, 422, "{path}: {}", answer.text());
        assert!(answer.text().contains("too large to be shown here"), "{path}: {}", answer.text());
    }

    let page = setup.page("/ann/tool/tree/wide");
    assert!(page.contains("too many entries to show all of them") && page.contains(">00000001<"));
    assert!(setup.page("/ann/tool/blob/wide/00119999").contains("wide"));
    assert_eq!(setup.page("/ann/tool/raw/wide/00119999"), "wide\n");
    let listed = setup.get("/api/v3/repos/ann/tool/contents?ref=wide");
    assert_eq!(listed.json().as_array().map(Vec::len), Some(20_000));
    assert_eq!(setup.get("/api/v3/repos/ann/tool/readme?ref=wide").status, 404);
}
