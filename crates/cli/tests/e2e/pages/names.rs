//! Taking another name: everything that led to the old one leads to the new one.

use super::browser::location;
use super::logged_in;
use crate::support::{person, server};
use abide_testkit::{Engine, PASSWORD, http};
use rstest::rstest;

#[rstest]
fn the_old_name_leads_to_pages_and_git_under_the_new_one(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "demo", false);
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "README.md", "hello\n", "Say hello");
    let old_url = server.http_url("alice", "demo");
    alice.git.ok(&tree, &["push", "-q", &old_url, "main"]);

    let browser = logged_in(&server, "alice");
    let (page, action) = ("/settings/account", "/settings/account/name");
    let wrong = browser.submit(page, action, &[("name", "ada"), ("current_password", "not the password")]);
    let html = wrong.text();
    assert!(wrong.status == 400 && html.contains("id=\"current_password-error\""), "{html}");
    assert!(html.contains("value=\"ada\"") && !html.contains("not the password"), "{html}");
    let same = browser.submit(page, action, &[("name", "alice"), ("current_password", PASSWORD)]);
    assert!(same.status == 400 && same.text().contains("id=\"name-error\""), "{}", same.text());
    let renamed = browser.submit(page, action, &[("name", "ada"), ("current_password", PASSWORD)]);
    assert_eq!(location(&renamed), "/settings/account?done=renamed");
    let html = browser.page(page);
    assert!(html.contains("Your user name is <strong>ada</strong>") && html.contains("Old names"), "{html}");

    for (old, new) in [
        ("/alice", "/ada"),
        ("/alice?page=2", "/ada?page=2"),
        ("/alice/demo", "/ada/demo"),
        ("/alice/demo/commits/main?page=1", "/ada/demo/commits/main?page=1"),
    ] {
        let moved = http::get(server.http_addr(), old, None);
        assert_eq!((moved.status, location(&moved)), (301, new));
        assert_eq!(moved.header("cache-control"), Some("no-cache"), "{old}: the old name may be given away one day");
    }
    assert_eq!(http::get(server.http_addr(), "/ada/demo", None).status, 200);
    alice.git.commit_file(&tree, "README.md", "hello again\n", "Say it again");
    alice.git.ok(&tree, &["push", "-q", &old_url, "main"]);
    let clone = alice.git.fresh_dir();
    alice.git.ok(&clone, &["clone", "-q", &old_url, "."]);
    browser.submit("/", "/logout", &[]);
    let refused = browser.submit("/login", "/login", &[("login", "alice"), ("password", PASSWORD)]);
    assert_eq!(refused.status, 400, "one logs in under the present name");
    browser.log_in("ada", PASSWORD);
}
