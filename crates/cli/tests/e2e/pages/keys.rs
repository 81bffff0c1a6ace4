//! A nostr key as a way in: its account, its name, and linking it to an account with a password.

use super::browser::{Browser, location};
use super::{logged_in, open_server};
use crate::beside::Beside as _;
use crate::signed::{governed, npub};
use crate::support::{builder, query, server};
use abide_testkit::http::Response;
use abide_testkit::{Engine, Key, Nostr, PASSWORD, Server, http};
use rstest::rstest;

/// A hidden field of the form that goes to `action`.
#[track_caller]
pub fn field(html: &str, action: &str, name: &str) -> String {
    let form = html.split("<form").find(|form| form.contains(&format!("action=\"{action}\"")));
    let form = form.unwrap_or_else(|| panic!("no form for {action} in\n{html}"));
    let value =
        form.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap_or_else(|| panic!("no {name} in {form}"));
    value.split('"').next().unwrap_or_default().to_owned()
}

/// Event that an extension signs for a form.
pub fn proof(server: &Server, key: &Key, path: &str, challenge: &str) -> String {
    let url = format!("{}{path}", server.url());
    let tags: &[&[&str]] = &[&["u", &url], &["method", "POST"], &["challenge", challenge]];
    abide_nostr::event::to_json(&key.event(Key::now(), 27_235, tags, ""))
}

/// Logs in with a key.
#[track_caller]
pub fn enter(server: &Server, browser: &Browser<'_>, key: &Key, next: &str) -> Response {
    let html = browser.page(&format!("/login?next={next}"));
    let event = proof(server, key, "/login/nostr", &field(&html, "/login/nostr", "challenge"));
    browser.submit_in(&html, "/login/nostr", "", &[("event", &event)])
}

#[rstest]
fn a_key_opens_an_account_without_a_name_which_then_picks_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = open_server(engine);
    let (key, browser) = (Key::new(1), Browser::new(&server));
    let own = format!("/{}", npub(&key));
    assert_eq!(browser.get(&own).status, 404, "nobody has the key yet");

    let entered = enter(&server, &browser, &key, "/explore");
    assert_eq!(location(&entered), "/settings/name?next=%2Fexplore");
    assert!(browser.is_in());
    let page = browser.page(&own);
    assert!(page.contains(&format!("{}…", &npub(&key)[..10])) && page.contains(&npub(&key)), "{page}");
    assert_eq!(location(&browser.get("/new")), "/settings/name?next=/new", "repositories need a name");
    let profile = |key: &Key| Nostr::connect(&server.url()).publish(&key.event(Key::now(), 0, &[], "{}"));
    assert_eq!(profile(&key), (true, String::new()), "whoever has an account is known to the relay");
    assert!(!profile(&Key::new(2)).0);

    for bad in ["npub1abc", "settings", "-", ""] {
        let refused = browser.submit("/settings/name", "/settings/name", &[("name", bad)]);
        assert!(refused.status == 400 && refused.text().contains("id=\"name-error\""), "{bad}: {}", refused.text());
    }
    let named = browser.submit("/settings/name", "/settings/name", &[("name", "zoe"), ("next", "/")]);
    assert_eq!(location(&named), "/zoe?done=named");
    assert_eq!(location(&browser.get(&own)), "/zoe");
    assert_eq!(location(&browser.get("/settings/name")), "/settings/account");
    let again = browser.post("/settings/name", &[("_token", &browser.token("/settings/profile")), ("name", "zoey")]);
    assert_eq!(location(&again), "/settings/account", "another name needs more than a first one");
    assert!(browser.page("/zoe").contains("zoe"));

    let other = Browser::new(&server);
    assert_eq!(location(&enter(&server, &other, &key, "/")), "/settings/name?next=%2F");
    assert_eq!(location(&other.get("/settings/name?next=%2Fexplore")), "/explore");
    assert_eq!(query(&server, "SELECT count(*) FROM users"), "1");
    let kinds = query(&server, "SELECT kind FROM domain_events WHERE source_kind = 'user' ORDER BY id");
    assert_eq!(kinds, "user_created\nuser_renamed");
    let audit = query(&server, "SELECT action FROM audit_log ORDER BY id");
    assert_eq!(audit, "user_created\nlogged_in\nuser_renamed\nlogged_in");
}

#[rstest]
fn a_proof_serves_once_in_one_browser_for_one_address(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = open_server(engine);
    let key = Key::new(1);
    let refused = |browser: &Browser<'_>, html: &str, event: &str, why: &str| {
        let answer = browser.submit_in(html, "/login/nostr", "", &[("event", event)]);
        assert!(answer.status == 400 && answer.text().contains(why), "{why}: {} {}", answer.status, answer.text());
    };
    let (browser, thief) = (Browser::new(&server), Browser::new(&server));
    let (html, foreign) = (browser.page("/login"), thief.page("/login"));
    let challenge = field(&html, "/login/nostr", "challenge");
    let event = proof(&server, &key, "/login/nostr", &challenge);

    refused(&browser, &html, "", "Invalid signature event");
    refused(
        &browser,
        &html,
        &proof(&server, &key, "/settings/nostr", &challenge),
        "does not match the URL of this request",
    );
    refused(&browser, &html, &proof(&server, &key, "/login/nostr", "x"), "challenge tag does not match");
    refused(&thief, &foreign, &event, "challenge tag does not match");
    let carried = [("event", event.as_str()), ("challenge", &challenge)];
    let stolen = thief.submit_in(&foreign, "/login/nostr", "", &carried);
    assert!(stolen.status == 400 && stolen.text().contains("another browser"), "{}", stolen.text());

    let entered = browser.submit_in(&html, "/login/nostr", "", &[("event", &event)]);
    assert_eq!(entered.status, 303, "{}", entered.text());
    browser.submit("/settings/profile", "/logout", &[]);
    refused(&browser, &html, &event, "already used");
    let second = proof(&server, &Key::new(2), "/login/nostr", &challenge);
    refused(&browser, &html, &second, "already used");
    assert_eq!(query(&server, "SELECT count(*) FROM users"), "1");
}

#[rstest]
#[case::invite("invite", "needs an invitation")]
#[case::closed("closed", "sign-up is closed")]
fn where_nobody_signs_up_only_keys_with_an_account_come_in(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] mode: &str,
    #[case] why: &str,
) {
    let server = builder(engine).env("ABIDE_SIGNUP__MODE", mode).start();
    let owner = Key::new(1);
    governed(&server, &owner, "tool", |_| {});
    let stranger = Browser::new(&server);
    let refused = enter(&server, &stranger, &Key::new(2), "/");
    assert!(refused.status == 403 && refused.text().contains(why), "{} {}", refused.status, refused.text());
    assert!(!stranger.is_in());

    let holder = Browser::new(&server);
    assert_eq!(enter(&server, &holder, &owner, "/").status, 303, "the account of a repository's key is claimed");
    let named = holder.submit("/settings/name", "/settings/name", &[("name", "zoe")]);
    assert_eq!(location(&named), "/zoe?done=named");
    assert_eq!(location(&holder.get(&format!("/{}/tool", npub(&owner)))), "/zoe/tool");
}

#[rstest]
fn a_key_is_linked_with_the_password_and_unlinked_while_a_password_remains(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = open_server(engine);
    for name in ["ann", "bob"] {
        server.add_user(name);
    }
    let key = Key::new(1);
    let (ann, bob) = (logged_in(&server, "ann"), logged_in(&server, "bob"));
    let link = |browser: &Browser<'_>, password: &str| {
        let html = browser.page("/settings/nostr");
        let event = proof(&server, &key, "/settings/nostr", &field(&html, "/settings/nostr", "challenge"));
        browser.submit_in(&html, "/settings/nostr", "", &[("event", &event), ("current_password", password)])
    };
    let wrong = link(&ann, "wrong");
    assert!(wrong.status == 400 && wrong.text().contains("current_password-error"), "{}", wrong.text());
    assert_eq!(location(&link(&ann, PASSWORD)), "/settings/nostr?done=key-linked");
    assert!(ann.page("/settings/nostr").contains(&npub(&key)));
    assert_eq!(location(&ann.get(&format!("/{}", npub(&key)))), "/ann");
    let taken = link(&bob, PASSWORD);
    assert!(taken.status == 409 && taken.text().contains("sign in with that key instead"), "{}", taken.text());

    let browser = Browser::new(&server);
    enter(&server, &browser, &key, "/");
    assert!(browser.page("/").contains("href=\"/ann\""));

    let known = http::get(server.http_addr(), "/.well-known/nostr.json?name=ann", None);
    assert_eq!(known.header("access-control-allow-origin"), Some("*"));
    assert_eq!(known.json()["names"]["ann"], key.public().to_hex());
    let relay = server.url().replacen("http", "ws", 1);
    assert_eq!(known.json()["relays"][key.public().to_hex()][0], relay);
    for name in ["", "_", "bob", "nobody", "ANN", "a%20b"] {
        let none = http::get(server.http_addr(), &format!("/.well-known/nostr.json?name={name}"), None);
        assert_eq!((none.status, none.text()), (200, "{\"names\":{}}".into()), "{name}");
    }

    let wrong = ann.confirm("/settings/nostr", "/settings/nostr/unlink", &[("current_password", "wrong")]);
    assert!(wrong.status == 400 && wrong.text().contains("id=\"consequences\""), "asked again: {}", wrong.text());
    let unlinked = ann.confirm("/settings/nostr", "/settings/nostr/unlink", &[("current_password", PASSWORD)]);
    assert_eq!(location(&unlinked), "/settings/nostr?done=key-unlinked");
    let audit = query(&server, "SELECT action FROM audit_log WHERE action LIKE 'key_%' ORDER BY id");
    assert_eq!(audit, "key_linked\nkey_unlinked");

    let fresh = Browser::new(&server);
    enter(&server, &fresh, &key, "/");
    let alone = fresh.post("/settings/nostr/unlink", &[("_token", &fresh.token("/settings/nostr"))]);
    assert!(alone.status == 409 && alone.text().contains("set a password first"), "{}", alone.text());
    let set = fresh.submit("/settings/security", "/settings/security/password", &[("password", PASSWORD)]);
    assert_eq!(location(&set), "/settings/security?done=password");
    let now = fresh.confirm("/settings/nostr", "/settings/nostr/unlink", &[("current_password", PASSWORD)]);
    assert_eq!(location(&now), "/settings/nostr?done=key-unlinked");
}

/// Linking a key takes over what it did before it had an account with a username.
#[rstest]
fn linking_a_key_without_a_name_brings_its_repositories_stars_and_threads(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = builder(engine).env("ABIDE_SIGNUP__MODE", "closed").start();
    let key = Key::new(1);
    let repo = governed(&server, &key, "tool", |_| {});
    let token = server.add_token("maker", "repo,user");
    let post = |path: &str, body| http::post(server.http_addr(), path, Some(&token), &body);
    let made = post("/api/v3/user/repos", serde_json::json!({ "name": "open" }));
    let open = made.json()["id"].as_i64().expect("a repository has a number");
    let ann = crate::support::person(&server, "ann");
    // A repository of the same name, and a star that both have.
    ann.create(&server, "tool", false);
    let holder = query(&server, "SELECT id FROM users WHERE name IS NULL");
    let member = query(&server, "SELECT id FROM users WHERE name = 'ann'");
    for (user, starred) in [(&holder, open), (&holder, repo), (&member, open)] {
        query(&server, &format!("INSERT INTO stars (user_id, repo_id, starred_at) VALUES ({user}, {starred}, 1)"));
    }
    let issue = post("/api/v3/repos/maker/open/issues", serde_json::json!({ "title": "mine" }));
    assert_eq!(issue.status, 201, "{}", issue.text());
    query(&server, &format!("UPDATE issues SET author_id = {holder}"));

    let browser = logged_in(&server, "ann");
    let html = browser.page("/settings/nostr");
    let event = proof(&server, &key, "/settings/nostr", &field(&html, "/settings/nostr", "challenge"));
    let form = [("event", event.as_str()), ("current_password", PASSWORD)];
    let linked = browser.submit_in(&html, "/settings/nostr", "", &form);
    assert_eq!(location(&linked), "/settings/nostr?done=key-linked");

    assert_eq!(query(&server, "SELECT count(*) FROM users WHERE name IS NULL"), "0");
    assert_eq!(query(&server, &format!("SELECT owner_id FROM repos WHERE id = {repo}")), member);
    assert_eq!(query(&server, &format!("SELECT name FROM repos WHERE id = {repo}")), "tool-2", "tool is taken");
    assert_eq!(query(&server, "SELECT author_id FROM issues"), member);
    assert_eq!(query(&server, &format!("SELECT star_count FROM repos WHERE id = {open}")), "1");
    assert_eq!(query(&server, &format!("SELECT star_count FROM repos WHERE id = {repo}")), "1");
    assert_eq!(query(&server, "SELECT count(*) FROM stars"), "2");
    assert_ne!(browser.get(&format!("/{}/tool", npub(&key))).status, 404, "its own address leads to it");
    assert_eq!(browser.get("/ann/tool-2").status, 200);
    let level = format!("SELECT level FROM watches WHERE user_id = {member} AND repo_id = {repo}");
    assert_eq!(query(&server, &level), "all", "whoever owns a repository watches it");
    // The name `tool` of ann was never borne by it: who bore it before keeps its redirect.
    assert_eq!(query(&server, &format!("SELECT count(*) FROM repo_redirects WHERE repo_id = {repo}")), "0");
    crate::support::assert_healthy(&server);
}

/// A key has nobody who reads what they are told until it picks a name.
#[rstest]
fn the_repositories_of_a_key_are_watched_once_it_has_a_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(None, Some("ignore"))] chosen: Option<&str>,
) {
    let server = server(engine);
    let key = Key::new(1);
    let repo = governed(&server, &key, "tool", |_| {});
    let holder = query(&server, "SELECT id FROM users WHERE name IS NULL");
    if let Some(level) = chosen {
        let values = format!("({holder}, {repo}, '{level}', 1)");
        query(&server, &format!("INSERT INTO watches (user_id, repo_id, level, updated_at) VALUES {values}"));
    }
    let browser = Browser::new(&server);
    enter(&server, &browser, &key, "/");
    let named = browser.submit("/settings/name", "/settings/name", &[("name", "zoe")]);
    assert_eq!(location(&named), "/zoe?done=named");
    let level = query(&server, &format!("SELECT level FROM watches WHERE user_id = {holder} AND repo_id = {repo}"));
    assert_eq!(level, chosen.unwrap_or("all"), "a choice stays");
    crate::support::assert_healthy(&server);
}

/// A key that is suspended is not washed by linking it.
#[rstest]
fn the_key_of_a_suspended_account_is_not_linked_to_another(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let key = Key::new(1);
    governed(&server, &key, "tool", |_| {});
    query(&server, "UPDATE users SET suspended_at = 1 WHERE npub IS NOT NULL");
    server.add_user("ann");
    let browser = logged_in(&server, "ann");
    let html = browser.page("/settings/nostr");
    let event = proof(&server, &key, "/settings/nostr", &field(&html, "/settings/nostr", "challenge"));
    let form = [("event", event.as_str()), ("current_password", PASSWORD)];
    let refused = browser.submit_in(&html, "/settings/nostr", "", &form);
    assert!(refused.status == 400 && refused.text().contains("suspended"), "{} {}", refused.status, refused.text());
    assert_eq!(query(&server, "SELECT count(*) FROM users WHERE name IS NULL"), "1");
}

#[rstest]
fn a_suspended_account_is_not_opened_by_its_key(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let key = Key::new(1);
    governed(&server, &key, "tool", |_| {});
    query(&server, "UPDATE users SET suspended_at = 1 WHERE npub IS NOT NULL");
    let refused = enter(&server, &Browser::new(&server), &key, "/");
    assert!(refused.status == 403 && refused.text().contains("suspended"), "{}", refused.text());
}
