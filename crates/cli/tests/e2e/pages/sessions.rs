//! Cookies: how they are made, what they open, and when they stop opening it.

use super::browser::{Browser, location};
use super::{SOON, logged_in};
use crate::beside::Beside as _;
use crate::support::{builder, person, query, server};
use abide_testkit::http::{Request, Response};
use abide_testkit::{Engine, PASSWORD, eventually};
use rstest::rstest;

#[test]
fn cookies_are_out_of_reach_of_scripts_and_other_sites_and_bound_to_https_where_there_is_https() {
    let cookies_at = |url: &str| {
        let server = builder(Engine::Sqlite).env("ABIDE_SERVER__PUBLIC_URL", url).start();
        server.add_user("alice");
        let browser = Browser::new(&server);
        let form = browser.get("/login");
        let fields = [("login", "alice"), ("password", PASSWORD)];
        let entered = browser.submit_in(&form.text(), "/login", "", &fields);
        assert_eq!(entered.status, 303, "{}", entered.text());
        let set = |response: &Response| {
            let all = response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
            all.map(|(_, cookie)| cookie.clone()).collect::<Vec<_>>()
        };
        (set(&form), set(&entered))
    };
    for (url, session, form, secure) in [
        ("http://forge.example", "abide=", "abide-form=", false),
        ("https://forge.example", "__Host-abide=", "__Host-abide-form=", true),
    ] {
        let (before, after) = cookies_at(url);
        for (cookies, name) in [(before, form), (after, session)] {
            assert_eq!(cookies.len(), 1, "{cookies:?}");
            let cookie = &cookies[0];
            assert!(cookie.starts_with(name), "{cookie}");
            let attributes: Vec<_> = cookie.split("; ").skip(1).collect();
            for needed in ["HttpOnly", "SameSite=Lax", "Path=/"] {
                assert!(attributes.contains(&needed), "{needed} in {cookie}");
            }
            assert_eq!(attributes.contains(&"Secure"), secure, "{cookie}");
            assert!(!cookie.contains("Domain"), "{cookie}");
        }
    }
}

#[rstest]
fn a_login_that_is_used_lasts_longer_and_so_does_its_cookie(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_user("alice");
    let browser = logged_in(&server, "alice");
    let cookie = browser.cookie("abide").expect("logged in");
    assert_eq!(browser.get("/explore").header("set-cookie"), None, "it was just seen");
    // A day ago, as far as the server remembers.
    let day = 86_400_000_000_i64;
    let ends = query(
        &server,
        &format!(
            "UPDATE sessions SET last_seen_at = last_seen_at - {day}, \
        expires_at = expires_at - {day} RETURNING expires_at"
        ),
    );
    let again = browser.get("/explore");
    let renewed = again.header("set-cookie").expect("a cookie");
    assert!(renewed.starts_with(&format!("abide={cookie}; ")) && renewed.contains("Max-Age=2592000"), "{renewed}");
    eventually(SOON, || query(&server, "SELECT expires_at FROM sessions") > ends);
}

#[test]
fn a_page_without_forms_for_strangers_sets_no_cookie() {
    let server = server(Engine::Sqlite);
    for path in ["/", "/explore", "/nobody"] {
        assert_eq!(Browser::new(&server).get(path).header("set-cookie"), None, "{path}");
    }
}

#[rstest]
fn every_login_has_a_fresh_cookie_and_ends_the_one_before_in_that_browser(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_user("alice");
    let browser = Browser::new(&server);
    // One that someone put there before does not become a login.
    browser.set_cookie("abide", "planted");
    let form = browser.page("/login");
    browser.submit_in(&form, "/login", "", &[("login", "alice"), ("password", PASSWORD)]);
    let first = browser.cookie("abide").expect("logged in");
    assert_ne!(first, "planted");

    let token = browser.token("/settings/profile");
    let fields = [("_token", token.as_str()), ("login", "alice"), ("password", PASSWORD)];
    assert_eq!(browser.post("/login", &fields).status, 303);
    let second = browser.cookie("abide").expect("logged in");
    assert_ne!(first, second);
    assert!(browser.is_in());
    let thief = Browser::new(&server);
    thief.set_cookie("abide", &first);
    assert!(!thief.is_in(), "the first one is dead");
    assert_eq!(query(&server, "SELECT count(*) FROM sessions"), "1");

    browser.submit("/", "/logout", &[]);
    thief.set_cookie("abide", &second);
    assert!(!thief.is_in(), "logging out kills the cookie itself, not the browser's copy of it");
}

#[rstest]
fn sessions_are_listed_and_end_one_by_one_all_others_or_everywhere(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_user("alice");
    server.add_user("bob");
    let bob = logged_in(&server, "bob");
    let (here, phone, library) = (
        logged_in(&server, "alice"),
        Browser::called(&server, "Mozilla/5.0 (iPhone) Safari/604.1"),
        logged_in(&server, "alice"),
    );
    phone.log_in("alice", PASSWORD);
    let html = here.page("/settings/security");
    assert_eq!(html.matches("Current session").count(), 1);
    assert!(html.contains("Safari on iPhone") && html.contains("Firefox on Linux") && html.contains("127.0.0.1"));

    let end = "/settings/security/sessions/end";
    let ended = here.submit_in(&here.question("/settings/security", end, "Safari on iPhone"), end, "", &[]);
    assert_eq!(location(&ended), "/settings/security?done=session-ended");
    assert!(!phone.is_in() && library.is_in() && here.is_in());

    // Nobody ends another's, even if they know how it is called.
    let alices = html.split("sessions/end?id=").skip(1).map(|rest| rest.split('"').next().unwrap_or_default());
    let token = bob.token("/settings/security");
    for id in alices {
        assert_eq!(bob.get(&format!("{end}?id={id}")).status, 404);
        bob.post(end, &[("_token", &token), ("id", id)]);
    }
    assert!(library.is_in() && here.is_in());

    let ended = here.confirm("/settings/security", "/settings/security/sessions/end-others", &[]);
    assert_eq!(location(&ended), "/settings/security?done=sessions-ended");
    assert!(!library.is_in() && here.is_in());

    library.log_in("alice", PASSWORD);
    let ended = here.confirm("/settings/security", "/settings/security/sessions/end-all", &[]);
    assert_eq!(location(&ended), "/login?done=everywhere");
    assert!(!library.is_in() && !here.is_in());
    assert!(bob.is_in(), "others are untouched");
}

#[rstest]
fn changing_the_password_needs_the_present_one_and_ends_the_other_sessions(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_user("alice");
    let (here, there) = (logged_in(&server, "alice"), logged_in(&server, "alice"));
    let change = |current: &str, new: &str| {
        let fields = [("current_password", current), ("password", new)];
        here.submit("/settings/security", "/settings/security/password", &fields)
    };
    let wrong = change("not it at all", "a different password");
    assert!(wrong.status == 400 && wrong.text().contains("id=\"current_password-error\""), "{}", wrong.text());
    let short = change(PASSWORD, "short");
    assert!(short.status == 400 && short.text().contains("id=\"password-error\""), "{}", short.text());
    assert!(there.is_in());
    assert_eq!(location(&change(PASSWORD, "a different password")), "/settings/security?done=password");
    assert!(here.is_in() && !there.is_in());
}

#[rstest]
fn a_suspended_account_is_logged_out_and_told_why_only_with_its_password(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_user("alice");
    let browser = logged_in(&server, "alice");
    server.cli_ok(&["user", "suspend", "alice"]);
    assert!(!browser.is_in());
    let with = |password: &str| browser.submit("/login", "/login", &[("login", "alice"), ("password", password)]);
    assert!(with("wrong password").text().contains("Wrong user name or password"));
    let refused = with(PASSWORD);
    assert!(refused.status == 400 && refused.text().contains("suspended"), "{}", refused.text());
    server.cli_ok(&["user", "unsuspend", "alice"]);
    assert!(!browser.is_in(), "what has ended stays ended");
    browser.log_in("alice", PASSWORD);
}

#[rstest]
fn a_cookie_opens_neither_the_api_nor_git(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "secret", true);
    let browser = logged_in(&server, "alice");
    assert_eq!(browser.get("/alice/secret").status, 200);
    for path in [
        "/api/v3/user",
        "/alice/secret.git/info/refs?service=git-upload-pack",
        "/alice/secret.git/info/refs?service=git-receive-pack",
    ] {
        assert_eq!(browser.get(path).status, 401, "{path}");
    }
    assert_eq!(browser.get("/api/v3/repos/alice/secret").status, 404);
    let push = browser.request("POST", "/alice/secret.git/git-receive-pack");
    let push = push.header("Content-Type", "application/x-git-receive-pack-request").body("0000");
    assert_eq!(push.send(server.http_addr()).status, 401);
    // And a token opens no page.
    let page = Request::new("GET", "/settings/profile").token(Some(&alice.token)).send(server.http_addr());
    assert_eq!(page.status, 303);
}

#[test]
fn pages_for_members_ask_for_a_login_and_come_back() {
    let server = server(Engine::Sqlite);
    let stranger = Browser::new(&server);
    for path in abide_web_pages::page_paths().into_iter().filter(|path| path.starts_with("/settings")) {
        let answer = stranger.get(path);
        if answer.status != 405 {
            assert!(location(&answer).starts_with("/login?next=%2Fsettings"), "{path}");
        }
    }
}
