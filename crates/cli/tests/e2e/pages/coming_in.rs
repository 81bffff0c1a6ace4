//! Signing up, confirming an address, logging in and out, forgetting a password.

use super::browser::{Browser, location, without_tokens};
use super::{SOON, add_admin, logged_in, mailed_link, open_server};
use crate::beside::Beside as _;
use crate::support::{builder, query, server};
use abide_testkit::{Engine, PASSWORD, Server, eventually};
use rstest::rstest;

fn unverified(server: &Server) -> String {
    query(server, "SELECT count(*) FROM emails WHERE verified_at IS NULL")
}

#[rstest]
fn someone_signs_up_confirms_their_address_logs_out_and_in_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = open_server(engine);
    let browser = Browser::new(&server);
    let fields = [("name", "Ada"), ("email", "ada@example.org"), ("password", PASSWORD)];
    let made = browser.submit("/signup", "/signup", &fields);
    assert_eq!(location(&made), "/?done=welcome");
    let home = browser.page("/?done=welcome");
    assert!(
        home.contains("Open the link in the mail we just sent to verify your address.")
            && home.contains(r#"href="/ada""#),
        "{home}"
    );

    let link = mailed_link(&server, "verify");
    for _ in 0..2 {
        assert!(browser.page(&link).contains("Verify address"));
        assert_eq!(unverified(&server), "1", "looking changes nothing");
    }
    assert!(browser.page("/settings/account").contains("Not verified"));
    let confirmed = browser.submit(&link, &link, &[]);
    assert_eq!(location(&confirmed), "/settings/account?done=verified");
    assert_eq!(unverified(&server), "0");
    assert!(!browser.page("/settings/account").contains("Not verified"));
    assert_eq!(browser.get(&link).status, 410, "a link works once");

    let out = browser.submit("/", "/logout", &[]);
    assert_eq!(location(&out), "/?done=logged-out");
    assert_eq!(browser.cookie("abide"), None);
    assert!(!browser.is_in());

    // By name in any case, or by address; and back to where one wanted to go.
    let fields = [("login", "ADA"), ("password", PASSWORD)];
    let back = browser.get("/settings/keys");
    assert_eq!(location(&back), "/login?next=%2Fsettings%2Fkeys");
    let answer = browser.submit(location(&back), "/login", &fields);
    assert_eq!(location(&answer), "/settings/keys");
    assert!(browser.is_in());
    assert_eq!(location(&browser.get("/login?next=/new")), "/new", "who is logged in is sent on");
    let other = Browser::new(&server);
    other.log_in("ada@example.org", PASSWORD);
    assert!(other.is_in());
}

#[rstest]
fn an_invited_person_is_no_stranger_to_a_disk_that_is_nearly_full(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut server = server(engine);
    assert!(Browser::new(&server).page("/").contains("This site is not set up yet."));
    assert!(Browser::new(&server).page("/signup").contains("This site is not set up yet."));
    add_admin(&server, "carol");
    assert!(!Browser::new(&server).page("/").contains("not set up"));
    server.restart_with(&[("ABIDE_SERVER__STRANGER_FREE_PERCENT", "100")]);
    let admin = logged_in(&server, "carol");
    let made = admin.submit("/admin/invites", "/admin/invites", &[("email", "eve@example.org")]).text();
    assert!(made.contains("No mail server is configured: pass it on to eve@example.org yourself."), "{made}");
    let link = mailed_link(&server, "invite");
    let token = link.rsplit('/').next().expect("a path");
    let fields = [("name", "eve"), ("email", "eve@example.org"), ("password", PASSWORD), ("invite", token)];
    assert_eq!(location(&Browser::new(&server).submit(&link, "/signup", &fields)), "/?done=joined");
    let doctor = server.cli_ok(&["doctor"]);
    assert!(doctor.contains("writes of clients without an account are refused"), "{doctor}");

    server.restart_with(&[("ABIDE_SIGNUP__MODE", "open")]);
    let fields = [("name", "mallory"), ("email", "mallory@example.org"), ("password", PASSWORD)];
    let refused = Browser::new(&server).submit("/signup", "/signup", &fields);
    assert_eq!(refused.status, 507);
    assert!(refused.text().contains("server.stranger_free_percent reserves 100%"), "{}", refused.text());
}

#[rstest]
fn what_is_wrong_with_a_sign_up_stands_at_its_field_and_nothing_typed_is_lost_but_the_password(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = open_server(engine);
    server.add_user("taken");
    let browser = Browser::new(&server);
    for (name, email, password, field) in [
        ("taken", "new@example.org", PASSWORD, "name"),
        ("admin", "new@example.org", PASSWORD, "name"),
        ("newcomer", "taken@example.org", PASSWORD, "email"),
        ("newcomer", "nowhere", PASSWORD, "email"),
        ("newcomer", "new@example.org", "too short", "password"),
    ] {
        let fields = [("name", name), ("email", email), ("password", password)];
        let answer = browser.submit("/signup", "/signup", &fields);
        assert_eq!(answer.status, 400, "{name} {email}");
        let html = answer.text();
        assert!(html.contains(&format!("id=\"{field}-error\"")), "{field}: {html}");
        assert!(html.contains(&format!("value=\"{name}\"")) && html.contains(&format!("value=\"{email}\"")), "{html}");
        assert!(!html.contains(password), "a password never comes back");
    }
    assert_eq!(query(&server, "SELECT count(*) FROM users"), "1");
}

#[test]
fn the_way_to_an_account_is_what_the_operator_chose() {
    let closed = builder(Engine::Sqlite).env("ABIDE_SIGNUP__MODE", "closed").start();
    add_admin(&closed, "carol");
    let browser = Browser::new(&closed);
    let html = browser.page("/signup");
    assert!(
        html.contains("Ask the site administrator for an account") && !html.contains("name=\"password\""),
        "{html}"
    );
    assert!(!browser.page("/").contains("/signup"));
    let token = browser.token("/login");
    let fields = [("_token", token.as_str()), ("name", "eve"), ("email", "e@example.org"), ("password", PASSWORD)];
    assert_eq!(browser.post("/signup", &fields).status, 403);
    assert_eq!(query(&closed, "SELECT count(*) FROM users"), "1");

    let invited = server(Engine::Sqlite);
    add_admin(&invited, "carol");
    let stranger = Browser::new(&invited);
    assert!(stranger.page("/signup").contains("You need an invitation"));
    assert!(stranger.page("/invite/nonsense").contains("cancelled or has expired"));
    let admin = logged_in(&invited, "carol");
    let answer = admin.submit("/admin/invites", "/admin/invites", &[("email", "eve@example.org")]);
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    let link = mailed_link(&invited, "invite");
    assert!(answer.text().contains(&link), "the admin sees the same link, once");
    assert!(!admin.page("/admin/invites").contains(&link));
    let fields = [("name", "eve"), ("email", "eve@example.org"), ("password", PASSWORD)];
    assert_eq!(location(&stranger.submit(&link, "/signup", &fields)), "/?done=joined");
    assert!(stranger.is_in());
    assert_eq!(query(&invited, "SELECT count(*) FROM emails WHERE verified_at IS NULL AND address LIKE 'eve%'"), "0");
    assert!(Browser::new(&invited).page(&link).contains("cancelled or has expired"), "it works once");
}

#[rstest]
fn a_wrong_password_and_an_unknown_account_are_answered_alike(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_user("known");
    let browser = Browser::new(&server);
    let said = |login: &str| {
        let answer = browser.submit("/login", "/login", &[("login", login), ("password", "not the password")]);
        let names: Vec<_> = answer.headers.iter().map(|(name, _)| name.clone()).collect();
        // The input is shown again, and the challenge for a key is another one each time; nothing else may differ.
        let html = without_tokens(&answer.text()).replace(&format!("value=\"{login}\""), "value=TYPED");
        let challenge = html.split("name=\"challenge\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let html = html.replace(challenge.expect("a challenge"), "CHALLENGE");
        (answer.status, names, html)
    };
    let expected = said("known");
    assert_eq!(expected.0, 400);
    assert!(expected.2.contains("value=TYPED") && expected.2.contains("Wrong user name or password"), "{}", expected.2);
    for login in ["nobody", "known@example.org", "nobody@example.org", "..", "a b"] {
        assert_eq!(said(login), expected, "{login}");
    }
}

#[rstest]
fn too_many_tries_are_told_when_to_come_back(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine).env("ABIDE_LOGIN__PER_ACCOUNT", "3").start();
    server.add_user("alice");
    server.add_user("bob");
    let browser = Browser::new(&server);
    let try_with =
        |login: &str, password: &str| browser.submit("/login", "/login", &[("login", login), ("password", password)]);
    for login in ["alice", "nobody"] {
        for _ in 0..3 {
            assert_eq!(try_with(login, "wrong password").status, 400);
        }
        let refused = try_with(login, PASSWORD);
        assert_eq!(refused.status, 429, "even the right one, for {login}");
        let wait: u64 = refused.header("retry-after").expect("it says when").parse().expect("in seconds");
        assert!((1..=900).contains(&wait), "{wait}");
        assert!(refused.text().contains("Try again in"), "{}", refused.text());
    }
    assert!(!browser.is_in());
    assert_eq!(try_with("bob", PASSWORD).status, 303, "others are not kept out");
}

#[rstest]
fn logging_in_leads_to_our_own_pages_only(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    server.add_user("alice");
    for (next, expected) in [
        ("//evil.example", "/"),
        ("/%5Cevil.example", "/"),
        ("https://evil.example/", "/"),
        ("%09//evil.example", "/"),
        ("/new", "/new"),
        ("/alice?page=2%26q=x", "/alice?page=2&q=x"),
    ] {
        let browser = Browser::new(&server);
        let fields = [("login", "alice"), ("password", PASSWORD)];
        let answer = browser.submit(&format!("/login?next={next}"), "/login", &fields);
        assert_eq!(location(&answer), expected, "{next}");
        assert_eq!(location(&browser.get(&format!("/login?next={next}"))), expected, "{next}, logged in already");
        let other = Browser::new(&server);
        let fields = [("login", "alice"), ("password", PASSWORD), ("next", "//evil.example")];
        assert_eq!(location(&other.submit("/login", "/login", &fields)), "/", "the form is not trusted either");
    }
}

#[rstest]
fn a_forgotten_password_is_set_anew_by_mail_and_asking_tells_nothing(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_user("alice");
    let before = logged_in(&server, "alice");
    let browser = Browser::new(&server);
    for address in ["nobody@example.org", "alice@example.org"] {
        let asked = browser.submit("/forgot", "/forgot", &[("email", address)]);
        assert_eq!(location(&asked), "/forgot?done=reset-asked", "{address}");
    }
    let link = mailed_link(&server, "reset");
    assert_eq!(browser.submit(&link, &link, &[("password", "short")]).status, 400);
    let set = browser.submit(&link, &link, &[("password", "a different password")]);
    assert_eq!(location(&set), "/login?done=new-password");
    assert_eq!(browser.get(&link).status, 410, "a link works once");
    assert!(!before.is_in(), "every login has ended");
    let old = browser.submit("/login", "/login", &[("login", "alice"), ("password", PASSWORD)]);
    assert_eq!(old.status, 400);
    browser.log_in("alice", "a different password");
    assert!(browser.is_in());
    let secret = link.rsplit_once('/').expect("a token").1;
    let log = server.log();
    assert!(log.contains("/reset/{token}") && !log.contains(secret), "{log}");
}

#[rstest]
fn the_first_admin_comes_by_the_link_that_the_server_prints(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut server = server(engine);
    let printed = |server: &Server| {
        let log = server.log();
        let line = log.lines().filter_map(|line| line.strip_prefix("Create the first admin at ")).next_back();
        let link = line.expect("it prints a link").to_owned();
        format!("/setup/{}", link.rsplit_once("/setup/").expect("to the page").1)
    };
    // Printed right after the line that says that it is ready.
    eventually(SOON, || server.log().contains("Create the first admin at "));
    let first = printed(&server);
    assert_eq!(Browser::new(&server).get(&first).status, 200);
    server.restart();
    eventually(SOON, || printed(&server) != first);
    let link = printed(&server);

    let browser = Browser::new(&server);
    assert_eq!(browser.get(&first).status, 410, "only the newest works");
    assert_eq!(browser.get("/setup/nonsense").status, 410);
    let fields = [("name", "carol"), ("email", "carol@example.org"), ("password", "short")];
    let again = browser.submit(&link, &link, &fields);
    assert!(again.status == 400 && again.text().contains("value=\"carol\""));
    let fields = [("name", "carol"), ("email", "carol@example.org"), ("password", PASSWORD)];
    assert_eq!(location(&browser.submit(&link, &link, &fields)), "/?done=ready");
    assert!(browser.page("/admin/users").contains("carol@example.org"));
    assert_eq!(browser.get(&link).status, 410, "there is an admin");
    server.restart();
    assert_eq!(server.log().matches("Create the first admin at ").count(), 2, "no third link");
}
