//! Identifiers are any text, and never a path.

use super::scene::{Scene, encoded, now, npub, state};
use crate::support::query;
use abide_testkit::{Engine, Key, http};
use rstest::rstest;

#[rstest]
fn hostile_identifiers_are_repositories_or_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let first = scene.first.clone();
    let long = "é".repeat(512);
    let texts = [
        "..",
        "../../etc",
        "a/b",
        "%2F",
        "🦀",
        ".git",
        "-x",
        "a b",
        "con",
        "a.git",
        "\u{202e}x",
        "'; DROP",
        "~",
        &long,
    ];
    for (n, identifier) in texts.iter().enumerate() {
        let key = Key::new(20 + n as u32);
        let clone = format!("{}/{}/x.git", scene.server.url(), npub(&key));
        let relay = scene.server.url().replacen("http", "ws", 1);
        let announcement =
            key.event(now() - 10, 30_617, &[&["d", identifier], &["clone", &clone], &["relays", &relay]], "");
        assert!(scene.relay.publish(&announcement).0, "{identifier:?}");
        let said = state(&key, now() - 5, identifier, &[("refs/heads/main", &first)], Some("main"));
        assert!(scene.say(&said).0, "{identifier:?}");
        let url = scene.url(&key, identifier);
        scene.git.ok(&scene.work, &["push", &url, "main"]);
        assert!(scene.is_served(&announcement), "{identifier:?}");
        let listed = scene.git.ok(&scene.work, &["ls-remote", &url]);
        assert!(listed.contains(&first), "{identifier:?}: {listed}");
        let page = http::get(scene.server.http_addr(), &format!("/{}/{}", npub(&key), encoded(identifier)), None);
        // What browsers would resolve is found under the repository's name instead.
        assert!([200, 301].contains(&page.status), "{identifier:?}: {}", page.text());
    }
    for identifier in ["a\0b".to_owned(), "x".repeat(10 << 10)] {
        let event = scene.announcement(&Key::new(5), now(), &identifier, &[]);
        let (taken, reason) = scene.relay.publish(&event);
        assert!(!taken && reason.starts_with("invalid:"), "{reason}");
        let asked = format!("/{}/{}.git/info/refs?service=git-upload-pack", npub(&scene.owner), encoded(&identifier));
        let status = http::get(scene.server.http_addr(), &asked, None).status;
        assert!([404, 414, 431, 400].contains(&status), "{status}");
    }
    // The longest takes three times its length in an address, and its events are no longer than others.
    let longest = query(&scene.server, "SELECT max(octet_length(payload)) FROM domain_events");
    assert!((3000..4096).contains(&longest.parse::<usize>().unwrap()), "{longest}");
    let strays: Vec<_> = scene.directories();
    let plain = |path: &std::path::PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
            name.strip_suffix(".git").is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    assert!(strays.iter().all(plain), "{strays:?}");
    scene.assert_healthy();
}

#[rstest]
fn refs_that_git_would_not_take_are_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let key = scene.owner.clone();
    scene.announce(&key, "demo", &[]);
    let first = scene.first.clone();
    for refs in [
        vec![("refs/heads/a..b", first.as_str())],
        vec![("refs/heads/x.lock", first.as_str())],
        vec![("refs/heads/main", "123")],
        vec![("refs/heads/a", first.as_str()), ("refs/heads/a/b", first.as_str())],
    ] {
        let (taken, reason) = scene.say(&state(&key, now(), "demo", &refs, None));
        assert!(!taken && reason.starts_with("invalid:"), "{refs:?}: {reason}");
    }
    let head =
        key.event(now(), 30_618, &[&["d", "demo"], &["refs/heads/main", &first], &["HEAD", "ref: refs/tags/x"]], "");
    assert!(scene.relay.publish(&head).1.starts_with("invalid:"));
}

#[rstest]
fn what_waits_is_bounded(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::on(crate::support::builder(engine).env("ABIDE_GRASP__PER_KEY", "3").start());
    let key = scene.owner.clone();
    for n in 0..3 {
        scene.announce(&key, &format!("demo{n}"), &[]);
    }
    let one_more = scene.announcement(&key, now(), "demo3", &[]);
    let (taken, reason) = scene.relay.publish(&one_more);
    assert!(!taken && reason.starts_with("rate-limited:"), "{reason}");
    let other = Key::new(2);
    scene.announce(&other, "demo3", &[]);
}
