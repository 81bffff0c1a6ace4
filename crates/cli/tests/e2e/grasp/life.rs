//! The life of a repository that a key rules, in the forge.

use super::scene::{Scene, now, npub, of, state};
use crate::support::{admin, person};
use abide_testkit::{Engine, http};
use rstest::rstest;

#[rstest]
fn it_is_a_repository_like_any_other(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "My Demo!", &[&["description", "A demo"]]);
    let reader = person(&scene.server, "reader");
    let addr = scene.server.http_addr();
    let by_id = http::get(addr, "/api/v3/repositories/1", Some(&reader.token));
    assert_eq!(by_id.status, 200, "{}", by_id.text());
    assert_eq!(by_id.json()["name"], "my-demo");
    assert_eq!(by_id.json()["description"], "A demo");
    let clone = scene.git.fresh_dir();
    scene.git.ok(&clone, &["clone", "-q", &format!("{}/r/1.git", scene.server.url()), "clone"]);
    let encoded = format!("{}/{}/My%20Demo%21.git", scene.server.url(), npub(&key));
    scene.git.ok(&clone, &["clone", "-q", &encoded, "again"]);
    scene.assert_healthy();
}

#[rstest]
fn an_archived_one_takes_neither_pushes_nor_states(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    scene.server.cli_ok(&["repo", "archive", &format!("{}/demo", npub(&key))]);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    let (taken, reason) = scene.say(&said);
    assert!(!taken && reason.contains("archived"), "{reason}");
    let reported = scene.push_fails(&key, "demo", &["main"]);
    assert!(reported.contains("archived"), "{reported}");
    assert!(!scene.refs(&key, "demo").is_empty(), "it is read as before");
}

#[rstest]
fn ssh_needs_an_account_and_then_what_is_signed_decides(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    let someone = admin(&scene.server, "someone").with_ssh(&scene.server);
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    let url = format!("ssh://git@{}/{}/demo.git", scene.server.ssh_addr(), npub(&key));
    let refused = someone.git.fails(&scene.work, &["push", &url, "main"]);
    assert!(refused.contains("no authorised state"), "an admin is nobody here: {refused}");
    let said = state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main"));
    scene.state_waits(&said);
    someone.git.ok(&scene.work, &["push", &url, "main"]);
    assert!(scene.is_served(&said));
    scene.assert_healthy();
}

#[rstest]
fn a_deletion_by_the_web_hides_it_from_the_relay_and_a_restore_shows_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let (announcement, said) = scene.served(&key, "demo", &[]);
    let slug = format!("{}/demo", npub(&key));
    scene.server.cli_ok(&["repo", "delete", &slug]);
    assert!(!scene.is_served(&announcement) && !scene.is_served(&said));
    assert_eq!(scene.relay.req(&[of(&key, "demo")]), []);
    assert_eq!(scene.relay.count(&[of(&key, "demo")]), 0);
    assert!(scene.push_fails(&key, "demo", &["main"]).contains("not found"));
    scene.server.cli_ok(&["repo", "restore", "1"]);
    assert!(scene.is_served(&announcement) && scene.is_served(&said));
    assert!(!scene.refs(&key, "demo").is_empty());
    scene.assert_healthy();
}

#[rstest]
fn its_forge_name_changes_and_the_key_keeps_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    let (announcement, said) = scene.served(&key, "demo", &[]);
    person(&scene.server, "someone");
    let slug = format!("{}/demo", npub(&key));
    for args in [["repo", "transfer", &slug, "someone"], ["repo", "visibility", &slug, "private"]] {
        let refused = scene.server.cli(&args);
        let reported = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && reported.contains("nostr"), "{args:?}: {reported}");
    }
    scene.server.cli_ok(&["repo", "rename", &slug, "other"]);
    assert!(scene.is_served(&announcement) && scene.is_served(&said));
    assert!(!scene.refs(&key, "demo").is_empty(), "the key's own address leads to it as before");
    let second = scene.git.commit_file(&scene.work, "a", "a", "second");
    scene.state_waits(&state(&key, now(), "demo", &[("refs/heads/main", &second)], Some("main")));
    scene.push(&key, "demo", &["main"]);

    // Deleted, and its name taken by another repository of the same key: it comes back under the next one.
    scene.server.cli_ok(&["repo", "delete", "1"]);
    scene.git.ok(&scene.work, &["reset", "-q", "--hard", &scene.first]);
    scene.served(&key, "Other", &[]);
    assert_eq!(http::get(scene.server.http_addr(), "/api/v3/repositories/2", None).json()["name"], "other");
    scene.server.cli_ok(&["repo", "restore", "1"]);
    let restored = http::get(scene.server.http_addr(), "/api/v3/repositories/1", None).json();
    assert_eq!(restored["name"], "demo", "{restored}");
    scene.assert_healthy();
}
