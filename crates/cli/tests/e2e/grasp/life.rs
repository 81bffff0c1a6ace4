//! The life of a repository that a key rules, in the forge.

use super::setup::{Setup, now, npub, of, state};
use crate::support::{admin, person};
use abide_testkit::{Engine, http};
use rstest::rstest;

#[rstest]
fn it_is_a_repository_like_any_other(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "My Demo!", &[&["description", "A demo"]]);
    let reader = person(&setup.server, "reader");
    let addr = setup.server.http_addr();
    let by_id = http::get(addr, "/api/v3/repositories/1", Some(&reader.token));
    assert_eq!(by_id.status, 200, "{}", by_id.text());
    assert_eq!(by_id.json()["name"], "my-demo");
    assert_eq!(by_id.json()["description"], "A demo");
    let clone = setup.git.fresh_dir();
    setup.git.ok(&clone, &["clone", "-q", &format!("{}/r/1.git", setup.server.url()), "clone"]);
    let encoded = format!("{}/{}/My%20Demo%21.git", setup.server.url(), npub(&key));
    setup.git.ok(&clone, &["clone", "-q", &encoded, "again"]);
    setup.assert_healthy();
}

#[rstest]
fn an_archived_one_takes_neither_pushes_nor_states(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    setup.server.cli_ok(&["repo", "archive", &format!("{}/demo", npub(&key))]);
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    let (taken, reason) = setup.say(&said);
    assert!(!taken && reason.contains("archived"), "{reason}");
    let reported = setup.push_fails(&key, "demo", &["main"]);
    assert!(reported.contains("archived"), "{reported}");
    assert!(!setup.refs(&key, "demo").is_empty(), "it is read as before");
}

#[rstest]
fn ssh_needs_an_account_and_then_what_is_signed_decides(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let someone = admin(&setup.server, "someone").with_ssh(&setup.server);
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    let url = format!("ssh://git@{}/{}/demo.git", setup.server.ssh_addr(), npub(&key));
    let refused = someone.git.fails(&setup.work, &["push", &url, "main"]);
    assert!(refused.contains("no authorised state"), "an admin is nobody here: {refused}");
    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    setup.state_waits(&said);
    someone.git.ok(&setup.work, &["push", &url, "main"]);
    assert!(setup.is_served(&said));
    setup.assert_healthy();
}

#[rstest]
fn a_deletion_by_the_web_hides_it_from_the_relay_and_a_restore_shows_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (announcement, said) = setup.served(&key, "demo", &[]);
    let slug = format!("{}/demo", npub(&key));
    setup.server.cli_ok(&["repo", "delete", &slug]);
    assert!(!setup.is_served(&announcement) && !setup.is_served(&said));
    assert_eq!(setup.relay.req(&[of(&key, "demo")]), []);
    assert_eq!(setup.relay.count(&[of(&key, "demo")]), 0);
    assert!(setup.push_fails(&key, "demo", &["main"]).contains("not found"));
    setup.server.cli_ok(&["repo", "restore", "1"]);
    assert!(setup.is_served(&announcement) && setup.is_served(&said));
    assert!(!setup.refs(&key, "demo").is_empty());
    setup.assert_healthy();
}

#[rstest]
fn its_forge_name_changes_and_the_key_keeps_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (announcement, said) = setup.served(&key, "demo", &[]);
    person(&setup.server, "someone");
    let slug = format!("{}/demo", npub(&key));
    for args in [["repo", "transfer", &slug, "someone"], ["repo", "visibility", &slug, "private"]] {
        let refused = setup.server.cli(&args);
        let reported = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && reported.contains("nostr"), "{args:?}: {reported}");
    }
    setup.server.cli_ok(&["repo", "rename", &slug, "other"]);
    assert!(setup.is_served(&announcement) && setup.is_served(&said));
    assert!(!setup.refs(&key, "demo").is_empty(), "the key's own address leads to it as before");
    let second = setup.git.commit_file(&setup.work, "a", "a", "second");
    setup.state_waits(&state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main")));
    setup.push(&key, "demo", &["main"]);

    // Deleted, and its name taken by another repository of the same key: it comes back under the next one.
    setup.server.cli_ok(&["repo", "delete", "1"]);
    setup.git.ok(&setup.work, &["reset", "-q", "--hard", &setup.first]);
    setup.served(&key, "Other", &[]);
    assert_eq!(http::get(setup.server.http_addr(), "/api/v3/repositories/2", None).json()["name"], "other");
    setup.server.cli_ok(&["repo", "restore", "1"]);
    let restored = http::get(setup.server.http_addr(), "/api/v3/repositories/1", None).json();
    assert_eq!(restored["name"], "demo", "{restored}");
    setup.assert_healthy();
}
