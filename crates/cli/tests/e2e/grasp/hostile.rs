//! Identifiers are any text, and never a path.

use super::scene::{Scene, encoded, now, npub, state};
use crate::support::{builder, crowded, query};
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
        // A path that browsers would resolve is found under the repository's name instead.
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
    let mut scene = Scene::on(builder(engine).env("ABIDE_GRASP__PER_KEY", "3").start());
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

#[rstest]
fn what_waits_from_one_address_and_altogether_is_bounded_for_events_and_commits(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("ABIDE_GRASP__PER_ADDRESS", "ABIDE_GRASP__ENTRIES")] cap: &str,
) {
    let mut scene = Scene::on(builder(engine).env(cap, "2").start());
    let key = scene.owner.clone();
    scene.served(&key, "demo", &[]);
    // Keys are free, so each stranger has one.
    scene.announce(&Key::new(2), "other", &[]);
    let commit = scene.git.commit_file(&scene.work, "a", "a", "a proposal");
    scene.push(&key, "demo", &[&format!("{commit}:refs/nostr/{:064x}", 1)]);
    let refused = scene.push_fails(&key, "demo", &[&format!("{commit}:refs/nostr/{:064x}", 2)]);
    assert!(refused.contains("too many commits are waiting"), "{refused}");
    let (taken, reason) = scene.relay.publish(&scene.announcement(&Key::new(3), now(), "other", &[]));
    assert!(!taken && reason.starts_with("rate-limited:"), "{reason}");
    assert_eq!(scene.metric("abide_purgatory_entries{kind=\"placeholder\"}"), Some(1.0));
}

#[rstest]
fn strangers_cannot_crowd_out_what_an_owner_has_signed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::new(engine);
    let (key, stranger) = (scene.owner.clone(), Key::new(2));
    let first = scene.first.clone();
    scene.announce(&key, "demo", &[]);
    scene.state_waits(&state(&key, now() - 5, "demo", &[("refs/heads/main", &first)], Some("main")));
    // Of the same identifier, all of them newer, and more than anyone would look through.
    scene.announce(&stranger, "demo", &[]);
    scene.state_waits(&state(&stranger, now(), "demo", &[("refs/heads/main", &first)], Some("main")));
    let id = match engine {
        Engine::Sqlite => "randomblob(32)",
        Engine::Postgres => "decode(md5(n.i::text) || md5(n.i::text), 'hex')",
    };
    let many = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
         INSERT INTO purgatory_states (event_id, pubkey, identifier, event_at, json, address, created_at, expires_at)
         SELECT {id}, s.pubkey, s.identifier, s.event_at + 1, s.json, s.address, s.created_at, s.expires_at
         FROM n CROSS JOIN (SELECT * FROM purgatory_states ORDER BY event_at DESC LIMIT 1) s"
    );
    query(&scene.server, &many);
    scene.push(&key, "demo", &["main"]);
    assert!(scene.refs(&key, "demo").contains(&("refs/heads/main".to_owned(), first)));
}

#[rstest]
fn two_first_pushes_at_once_both_become_repositories(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::on(crowded(engine).start());
    let first = scene.first.clone();
    for round in 0..5 {
        // Neither the account of the key nor the name that both would have is there yet.
        let key = Key::new(50 + round);
        let identifiers = ["my repo", "my-repo"];
        for identifier in identifiers {
            let announcement = scene.announcement(&key, now() - 10, identifier, &[]);
            assert!(scene.relay.publish(&announcement).0);
            let said = state(&key, now() - 5, identifier, &[("refs/heads/main", &first)], Some("main"));
            assert!(scene.say(&said).0);
        }
        std::thread::scope(|scope| {
            for identifier in identifiers {
                let (git, work, url) = (&scene.git, &scene.work, scene.url(&key, identifier));
                scope.spawn(move || git.ok(work, &["push", &url, "main"]));
            }
        });
        let names = query(
            &scene.server,
            &format!(
                "SELECT r.name FROM repos r JOIN users u ON u.id = r.owner_id WHERE u.npub = '{}' ORDER BY r.name",
                npub(&key)
            ),
        );
        assert_eq!(names.lines().collect::<Vec<_>>(), ["my-repo", "my-repo-2"], "round {round}");
    }
    scene.assert_healthy();
}

#[rstest]
fn a_full_disk_takes_no_events(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut scene = Scene::on(builder(engine).env("ABIDE_SERVER__MIN_FREE_PERCENT", "100").start());
    let event = scene.announcement(&scene.owner, now(), "demo", &[]);
    let (taken, reason) = scene.relay.publish(&event);
    assert!(!taken && reason.starts_with("error:") && reason.contains("disk"), "{reason}");
    assert_eq!(query(&scene.server, "SELECT count(*) FROM purgatory_announcements"), "0");
}
