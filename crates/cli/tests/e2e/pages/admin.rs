//! The site's administration, and that it exists for nobody else.

use super::browser::{Browser, location, without_tokens};
use super::{SOON, add_admin, logged_in};
use crate::beside::Beside as _;
use crate::support::{person, query, server};
use abide_testkit::{Engine, Server, eventually, http};
use rstest::rstest;

fn id_of(server: &Server, name: &str) -> String {
    query(server, &format!("SELECT id FROM users WHERE name = '{name}'"))
}

#[rstest]
fn to_others_the_pages_of_the_administration_are_as_absent_as_any(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    add_admin(&server, "carol");
    server.add_user("bob");
    let (bob, stranger) = (logged_in(&server, "bob"), Browser::new(&server));
    for browser in [&bob, &stranger] {
        let visible = |path: &str| {
            let answer = browser.get(path);
            let next = path.replace('/', "%2F");
            (answer.status, without_tokens(&answer.text()).replace(&next, "NEXT"))
        };
        let absent = visible("/nobody/at-all");
        assert_eq!(absent.0, 404);
        for path in abide_web_pages::page_paths().into_iter().filter(|path| path.starts_with("/admin")) {
            let path = path.replace("{id}", "1");
            let (status, text) = visible(&path);
            if status != 405 {
                assert_eq!((status, text), absent, "{path}");
            }
        }
    }
    let token = bob.token("/settings/profile");
    for path in ["/admin/users/1/suspend", "/admin/users/2/give-admin", "/admin/invites", "/admin/jobs/retry"] {
        assert_eq!(bob.post(path, &[("_token", &token), ("id", "1")]).status, 404, "{path}");
    }
    assert_eq!(query(&server, "SELECT count(*) FROM users WHERE site_admin"), "1");
}

#[rstest]
fn an_admin_suspends_and_appoints_but_never_locks_everyone_out(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    add_admin(&server, "carol");
    let bob = person(&server, "bob");
    let (root, browser) = (logged_in(&server, "carol"), logged_in(&server, "bob"));
    assert_eq!(location(&root.get("/admin")), "/admin/users");
    let html = root.page("/admin/users?q=BOB%40example");
    assert!(html.contains("bob@example.org") && !html.contains("carol@example.org"), "{html}");
    assert!(root.page("/admin/users?q=%25").contains("No accounts found"), "a text, not a pattern");

    let page = format!("/admin/users/{}", id_of(&server, "bob"));
    let suspended = root.confirm(&page, &format!("{page}/suspend"), &[]);
    assert_eq!(location(&suspended), format!("{page}?done=suspended"));
    assert!(!browser.is_in(), "the session is dead");
    assert_eq!(http::get(server.http_addr(), "/api/v3/user", Some(&bob.token)).status, 401, "so is the token");
    root.submit(&page, &format!("{page}/unsuspend"), &[]);
    assert_eq!(http::get(server.http_addr(), "/api/v3/user", Some(&bob.token)).status, 200);

    let own = format!("/admin/users/{}", id_of(&server, "carol"));
    let refused = root.confirm(&own, &format!("{own}/take-admin"), &[]);
    assert!(refused.status == 400 && refused.text().contains("role=\"alert\""), "the last one: {}", refused.text());
    assert_eq!(root.confirm(&own, &format!("{own}/suspend"), &[]).status, 400, "nobody suspends themselves");
    root.confirm(&page, &format!("{page}/give-admin"), &[]);
    assert_eq!(location(&root.confirm(&own, &format!("{own}/take-admin"), &[])), "/?done=saved");
    assert_eq!(root.get("/admin/users").status, 404);
    browser.log_in("bob", abide_testkit::PASSWORD);
    assert_eq!(browser.get("/admin/users").status, 200);
    assert_eq!(browser.get("/admin/users/999999").status, 404);
    assert_eq!(browser.get("/admin/users/x").status, 404);
}

#[rstest]
fn an_admin_releases_an_old_name_of_the_account_on_the_page_and_no_other(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    add_admin(&server, "carol");
    for name in ["alice", "bob"] {
        server.add_user(name);
        server.cli_ok(&["user", "rename", name, &format!("{name}2")]);
    }
    let root = logged_in(&server, "carol");
    let page = format!("/admin/users/{}", id_of(&server, "alice2"));
    let release = format!("{page}/release");
    assert_eq!(root.confirm(&page, &release, &[("name", "bob")]).status, 404);
    assert_eq!(root.get(&format!("{release}?name=bob")).status, 404);
    assert_eq!(http::get(server.http_addr(), "/bob", None).status, 301);
    assert_eq!(location(&root.confirm(&page, &release, &[])), format!("{page}?done=released"));
    assert_eq!(http::get(server.http_addr(), "/alice", None).status, 404);
}

#[rstest]
fn invitations_are_listed_and_taken_back(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    add_admin(&server, "carol");
    let root = logged_in(&server, "carol");
    let path = "/admin/invites";
    assert!(root.page(path).contains("No open invitations"));
    let wrong = root.submit(path, path, &[("email", "nowhere")]);
    assert!(wrong.status == 400 && wrong.text().contains("id=\"email-error\""), "{}", wrong.text());
    let made = root.submit(path, path, &[("email", "")]).text();
    let link = super::browser::text_of(&made, "secret");
    let link = link.rsplit_once("/invite/").map(|(_, token)| format!("/invite/{token}")).expect("a link");
    assert!(Browser::new(&server).page(&link).contains("name=\"password\""));
    assert_eq!(location(&root.confirm(path, "/admin/invites/revoke", &[])), "/admin/invites?done=removed");
    assert!(!Browser::new(&server).page(&link).contains("name=\"password\""));
}

#[rstest]
fn failed_jobs_are_shown_with_what_went_wrong_and_run_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    add_admin(&server, "carol");
    let root = logged_in(&server, "carol");
    // A job that some later version would know.
    query(
        &server,
        "INSERT INTO jobs (kind, payload, state, priority, run_at, attempts, max_attempts, token, last_error, created_at, \
         finished_at) VALUES ('other:kind', '{}', 'failed', 100, 1, 3, 3, 0, 'the <moon> was full', 1, 1) RETURNING id",
    );
    let html = root.page("/admin/jobs?state=failed");
    assert!(html.contains("other:kind") && html.contains("the &#60;moon&#62; was full"), "{html}");
    assert!(!root.page("/admin/jobs?state=done").contains("other:kind"));
    let again = root.submit_in(&html, "/admin/jobs/retry", "", &[]);
    assert_eq!(location(&again), "/admin/jobs?done=queued");
    assert_eq!(query(&server, "SELECT count(*) FROM audit_log WHERE action = 'job_retried'"), "1");
    eventually(SOON, || !root.page("/admin/jobs").contains("the &#60;moon&#62; was full"));
}

#[rstest]
fn the_audit_log_is_read_newest_first_by_action_person_and_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    add_admin(&server, "carol");
    let alice = person(&server, "alice");
    alice.create(&server, "demo", false);
    let root = logged_in(&server, "carol");
    let token = root.token("/settings/profile");
    for number in 0..105 {
        let bio = number.to_string();
        assert_eq!(root.post("/settings/profile", &[("_token", &token), ("bio", &bio)]).status, 303);
    }
    let root = logged_in(&server, "carol");
    let html = root.page("/admin/audit");
    let rows = |html: &str| html.matches("<tr>").count() - 1;
    assert_eq!(rows(&html), 100);
    let first = html.split("<tbody>").nth(1).expect("a table");
    assert!(first.find("logged_in").expect("just now") < first.find("profile_edited").expect("before"), "{html}");
    let older = html.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a next page");
    let rest = root.page(&older.replace("&#38;", "&"));
    assert!(rows(&rest) > 10 && rest.contains("user_created") && !rest.contains("rel=\"next\""), "{rest}");

    assert_eq!(rows(&root.page("/admin/audit?action=user_created")), 2);
    let repo = root.page("/admin/audit?repo=alice/demo");
    assert!(repo.contains("repo_created") && !repo.contains("user_created"), "{repo}");
    let by = root.page("/admin/audit?actor=carol");
    assert!(by.contains("logged_in") && !by.contains("repo_created"), "{by}");
    assert!(root.page("/admin/audit?actor=nobody").contains("No entries"));
}
