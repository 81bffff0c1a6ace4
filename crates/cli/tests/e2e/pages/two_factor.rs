//! The second factor, with codes that are worked out here as the standard says (RFC 6238).

use super::browser::{Browser, location, text_of};
use super::{SOON, add_admin, logged_in};
use crate::beside::Beside as _;
use crate::support::{builder, query, server};
use abide_testkit::http::Response;
use abide_testkit::{Engine, PASSWORD, Server, eventually};
use rstest::rstest;
use std::process::Command;

const PATH: &str = "/settings/security/two-factor";

/// The code of a secret for so many steps of thirty seconds from now.
fn code(secret: &str, later: i64) -> String {
    const SCRIPT: &str = "import base64, hashlib, hmac, struct, sys, time\n\
        key = base64.b32decode(sys.argv[1] + '=' * (-len(sys.argv[1]) % 8))\n\
        mac = hmac.new(key, struct.pack('>Q', int(time.time()) // 30 + int(sys.argv[2])), hashlib.sha1).digest()\n\
        at = mac[-1] & 15\n\
        print('%06d' % ((struct.unpack('>I', mac[at:at + 4])[0] & 0x7fffffff) % 1000000))";
    let python = std::env::var("ABIDE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(python).args(["-c", SCRIPT, secret, &later.to_string()]).output();
    let output = output.expect("python3 is installed by ./test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A code that cannot be right at this moment.
fn wrong_code(secret: &str) -> String {
    let near: Vec<_> = (-2..=2).map(|later| code(secret, later)).collect();
    (0..10).map(|digit| digit.to_string().repeat(6)).find(|code| !near.contains(code)).expect("ten are not all right")
}

/// Turns it on for the account of this browser; the secret and the recovery codes.
#[track_caller]
fn enrol(browser: &Browser<'_>) -> (String, Vec<String>) {
    assert_eq!(location(&browser.submit(PATH, PATH, &[])), PATH);
    let html = browser.page(PATH);
    assert!(html.contains("<svg") && html.contains("otpauth://totp/"), "{html}");
    let secret = text_of(&html, "secret");
    let confirm = format!("{PATH}/confirm");
    let wrong = browser.submit_in(&html, &confirm, "", &[("code", &wrong_code(&secret))]);
    assert!(wrong.status == 400 && wrong.text().contains("id=\"code-error\""), "{}", wrong.text());
    assert_eq!(text_of(&wrong.text(), "secret"), secret, "the same secret is still there to scan");
    let on = browser.submit_in(&html, &confirm, "", &[("code", &code(&secret, 0))]);
    assert_eq!((on.status, on.header("cache-control")), (200, Some("no-store")), "{}", on.text());
    let codes = recovery_codes(&on);
    assert!(!browser.page(PATH).contains(&codes[0]), "they are shown once");
    (secret, codes)
}

fn recovery_codes(page: &Response) -> Vec<String> {
    let html = page.text();
    let list = html.split("codes\">").nth(1).and_then(|rest| rest.split("</ul>").next()).expect("a list of codes");
    let codes: Vec<_> = list.split("<li>").skip(1).map(|item| item.replace("</li>", "")).collect();
    assert_eq!(codes.len(), 10, "{list}");
    codes
}

/// Types the password and then a code.
#[track_caller]
fn with_code(server: &Server, code: &str) -> (u16, bool) {
    let browser = Browser::new(server);
    let asked = browser.submit("/login?next=/new", "/login", &[("login", "alice"), ("password", PASSWORD)]);
    assert_eq!(asked.status, 200, "{}", asked.text());
    assert!(!browser.is_in(), "the password alone is not enough");
    let answer = browser.submit_in(&asked.text(), "/login/code", "", &[("code", code)]);
    if answer.status == 303 {
        assert_eq!(location(&answer), "/new", "where one wanted to go is not forgotten");
    }
    (answer.status, browser.is_in())
}

#[rstest]
fn logging_in_needs_a_code_and_each_code_works_once(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    server.add_user("alice");
    let owner = logged_in(&server, "alice");
    let (secret, recovery) = enrol(&owner);

    assert_eq!(with_code(&server, &wrong_code(&secret)), (400, false));
    assert_eq!(with_code(&server, ""), (400, false));
    let next = code(&secret, 1);
    assert_eq!(with_code(&server, &next), (303, true));
    assert_eq!(with_code(&server, &next), (400, false), "a code works once");
    assert_eq!(with_code(&server, &recovery[3].to_uppercase()), (303, true));
    assert_eq!(with_code(&server, &recovery[3]), (400, false), "so does a recovery code");
    assert!(owner.page(PATH).contains("9 of 10"));

    let codes = format!("{PATH}/codes");
    let refused = owner.submit(&codes, &codes, &[("current_password", "not the password")]);
    assert!(refused.status == 400 && refused.text().contains("id=\"current_password-error\""));
    let fresh = recovery_codes(&owner.submit(&codes, &codes, &[("current_password", PASSWORD)]));
    assert_eq!(with_code(&server, &recovery[4]), (400, false), "new codes replace the old ones");
    assert_eq!(with_code(&server, &fresh[4]), (303, true));

    let off = format!("{PATH}/off");
    assert_eq!(owner.submit(&off, &off, &[("current_password", "not the password")]).status, 400);
    let ended = owner.submit(&off, &off, &[("current_password", PASSWORD)]);
    assert_eq!(location(&ended), "/settings/security?done=two-factor-off");
    Browser::new(&server).log_in("alice", PASSWORD);
}

#[rstest]
fn a_lost_second_factor_is_reset_by_an_admin_after_a_question(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    add_admin(&server, "carol");
    server.add_user("alice");
    let (root, alice) = (logged_in(&server, "carol"), logged_in(&server, "alice"));
    let page = format!("/admin/users/{}", query(&server, "SELECT id FROM users WHERE name = 'alice'"));
    let reset = format!("{page}/reset-two-factor");
    assert!(!root.page(&page).contains(&reset), "there is nothing to reset");
    let token = root.token(&page);
    assert_eq!(root.post(&reset, &[("_token", &token)]).status, 400);
    enrol(&alice);
    assert_eq!(alice.get(&reset).status, 404, "only admins are asked");

    let question = root.question(&page, &reset, "");
    assert!(question.contains("signed out everywhere") && question.contains("password alone"), "{question}");
    assert!(alice.is_in(), "asking changes nothing");
    let done = root.submit_in(&question, &reset, "", &[]);
    assert_eq!(location(&done), format!("{page}?done=two-factor-reset"));
    assert!(!alice.is_in(), "every login ended");
    let left = "SELECT (SELECT count(*) FROM totp) + (SELECT count(*) FROM recovery_codes)";
    assert_eq!(query(&server, left), "0");
    Browser::new(&server).log_in("alice", PASSWORD);
    let noted = "SELECT count(*) FROM audit_log WHERE action = 'totp_reset' AND actor_user_id IS NOT NULL";
    assert_eq!(query(&server, noted), "1");
    let outbox = server.data_dir().join("outbox");
    eventually(SOON, || {
        let files = std::fs::read_dir(&outbox).into_iter().flatten().flatten();
        let mut mails = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        mails.any(|mail| mail.contains("Two-factor authentication was reset") && mail.contains("alice@example.org"))
    });

    // Nobody takes the second factor off their own account without the password.
    enrol(&root);
    let own = format!("/admin/users/{}", query(&server, "SELECT id FROM users WHERE name = 'carol'"));
    let token = root.token(&own);
    let refused = root.post(&format!("{own}/reset-two-factor"), &[("_token", &token)]);
    assert!(refused.status == 400 && refused.text().contains("in your settings"), "{}", refused.text());
    assert!(!root.page(&own).contains("reset-two-factor"));
}

#[rstest]
fn a_lost_second_factor_is_reset_at_the_command_line(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    server.add_user("alice");
    let off = server.cli(&["user", "reset-2fa", "alice"]);
    assert!(!off.status.success() && String::from_utf8_lossy(&off.stderr).contains("is already off for this account"));
    let alice = logged_in(&server, "alice");
    enrol(&alice);
    server.cli_ok(&["user", "reset-2fa", "alice"]);
    assert!(!alice.is_in());
    Browser::new(&server).log_in("alice", PASSWORD);
    let noted = "SELECT count(*) FROM audit_log WHERE action = 'totp_reset' AND actor_user_id IS NULL";
    assert_eq!(query(&server, noted), "1");
    assert!(!server.cli(&["user", "reset-2fa", "nobody"]).status.success());
}

#[rstest]
fn guessing_codes_is_stopped(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine).env("ABIDE_LOGIN__SECOND_FACTOR", "3").start();
    server.add_user("alice");
    let (secret, recovery) = enrol(&logged_in(&server, "alice"));
    let wrong = wrong_code(&secret);
    for _ in 0..3 {
        assert_eq!(with_code(&server, &wrong), (400, false));
    }
    assert_eq!(with_code(&server, &recovery[0]), (429, false), "even the right one");
}

#[test]
fn a_ticket_that_was_not_given_out_opens_nothing() {
    let server = server(Engine::Sqlite);
    server.add_user("alice");
    let (secret, _) = enrol(&logged_in(&server, "alice"));
    let browser = Browser::new(&server);
    let token = browser.token("/login");
    for ticket in ["", "x", &"A".repeat(64), "%00"] {
        let fields = [("_token", token.as_str()), ("ticket", ticket), ("code", &code(&secret, 1))];
        assert_eq!(browser.post("/login/code", &fields).status, 400, "{ticket}");
    }
    assert!(!browser.is_in());
    assert_eq!(location(&browser.get("/login/code")), "/login");
}
