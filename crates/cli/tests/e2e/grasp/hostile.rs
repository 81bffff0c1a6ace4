//! Identifiers are any text, and never a path.

use super::setup::{Setup, encoded, now, npub, state};
use crate::support::{builder, crowded, query};
use abide_testkit::{Engine, Key, http};
use rstest::rstest;

#[rstest]
fn hostile_identifiers_are_repositories_or_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let first = setup.first.clone();
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
        let clone = format!("{}/{}/x.git", setup.server.url(), npub(&key));
        let relay = setup.server.url().replacen("http", "ws", 1);
        let announcement =
            key.event(now() - 10, 30_617, &[&["d", identifier], &["clone", &clone], &["relays", &relay]], "");
        assert!(setup.relay.publish(&announcement).0, "{identifier:?}");
        let said = state(&key, now() - 5, identifier, &[("refs/heads/main", &first)], Some("main"));
        assert!(setup.say(&said).0, "{identifier:?}");
        let url = setup.url(&key, identifier);
        setup.git.ok(&setup.work, &["push", &url, "main"]);
        assert!(setup.is_served(&announcement), "{identifier:?}");
        let listed = setup.git.ok(&setup.work, &["ls-remote", &url]);
        assert!(listed.contains(&first), "{identifier:?}: {listed}");
        let page = http::get(setup.server.http_addr(), &format!("/{}/{}", npub(&key), encoded(identifier)), None);
        // A path that browsers would resolve is found under the repository's name instead.
        assert!([200, 301].contains(&page.status), "{identifier:?}: {}", page.text());
    }
    for identifier in ["a\0b".to_owned(), "x".repeat(10 << 10)] {
        let event = setup.announcement(&Key::new(5), now(), &identifier, &[]);
        let (taken, reason) = setup.relay.publish(&event);
        assert!(!taken && reason.starts_with("invalid:"), "{reason}");
        let asked = format!("/{}/{}.git/info/refs?service=git-upload-pack", npub(&setup.owner), encoded(&identifier));
        let status = http::get(setup.server.http_addr(), &asked, None).status;
        assert!([404, 414, 431, 400].contains(&status), "{status}");
    }
    // The longest takes three times its length in an address, and its events are no longer than others.
    let longest = query(&setup.server, "SELECT max(octet_length(payload)) FROM domain_events");
    assert!((3000..4096).contains(&longest.parse::<usize>().unwrap()), "{longest}");
    let strays: Vec<_> = setup.directories();
    let plain = |path: &std::path::PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
            name.strip_suffix(".git").is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    assert!(strays.iter().all(plain), "{strays:?}");
    setup.assert_healthy();
}

#[rstest]
fn refs_that_git_would_not_take_are_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.announce(&key, "demo", &[]);
    let first = setup.first.clone();
    for refs in [
        vec![("refs/heads/a..b", first.as_str())],
        vec![("refs/heads/x.lock", first.as_str())],
        vec![("refs/heads/a", first.as_str()), ("refs/heads/a/b", first.as_str())],
    ] {
        let (taken, reason) = setup.say(&state(&key, now(), "demo", &refs, None));
        assert!(!taken && reason.starts_with("invalid:"), "{refs:?}: {reason}");
    }
    let head =
        key.event(now(), 30_618, &[&["d", "demo"], &["refs/heads/main", &first], &["HEAD", "ref: refs/tags/x"]], "");
    assert!(setup.relay.publish(&head).1.starts_with("invalid:"));
}

#[rstest]
fn what_waits_is_bounded(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__PER_KEY", "3").start());
    let key = setup.owner.clone();
    for n in 0..3 {
        setup.announce(&key, &format!("demo{n}"), &[]);
    }
    let one_more = setup.announcement(&key, now(), "demo3", &[]);
    let (taken, reason) = setup.relay.publish(&one_more);
    assert!(!taken && reason.starts_with("rate-limited:"), "{reason}");
    let other = Key::new(2);
    setup.announce(&other, "demo3", &[]);
}

#[rstest]
fn what_waits_from_one_address_and_altogether_is_bounded_for_events_and_commits(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values("ABIDE_GRASP__PER_ADDRESS", "ABIDE_GRASP__ENTRIES")] cap: &str,
) {
    let mut setup = Setup::on(builder(engine).env(cap, "2").start());
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    // Keys are free, so each stranger has one.
    setup.announce(&Key::new(2), "other", &[]);
    let commit = setup.git.commit_file(&setup.work, "a", "a", "a proposal");
    setup.push(&key, "demo", &[&format!("{commit}:refs/nostr/{:064x}", 1)]);
    let refused = setup.push_fails(&key, "demo", &[&format!("{commit}:refs/nostr/{:064x}", 2)]);
    assert!(refused.contains("too many commits are waiting"), "{refused}");
    let (taken, reason) = setup.relay.publish(&setup.announcement(&Key::new(3), now(), "other", &[]));
    assert!(!taken && reason.starts_with("rate-limited:"), "{reason}");
    assert_eq!(setup.metric("abide_purgatory_entries{kind=\"placeholder\"}"), Some(1.0));
}

#[rstest]
fn strangers_cannot_crowd_out_what_an_owner_has_signed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let (key, stranger) = (setup.owner.clone(), Key::new(2));
    let first = setup.first.clone();
    setup.announce(&key, "demo", &[]);
    setup.state_waits(&state(&key, now() - 5, "demo", &[("refs/heads/main", &first)], Some("main")));
    // Of the same identifier, all of them newer, and more than anyone would look through.
    setup.announce(&stranger, "demo", &[]);
    setup.state_waits(&state(&stranger, now(), "demo", &[("refs/heads/main", &first)], Some("main")));
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
    query(&setup.server, &many);
    setup.push(&key, "demo", &["main"]);
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/main".to_owned(), first)));
}

#[rstest]
fn two_first_pushes_at_once_both_become_repositories(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(crowded(engine).start());
    let first = setup.first.clone();
    for round in 0..5 {
        // Neither the account of the key nor the name that both would have is there yet.
        let key = Key::new(50 + round);
        let identifiers = ["my repo", "my-repo"];
        for identifier in identifiers {
            let announcement = setup.announcement(&key, now() - 10, identifier, &[]);
            assert!(setup.relay.publish(&announcement).0);
            let said = state(&key, now() - 5, identifier, &[("refs/heads/main", &first)], Some("main"));
            assert!(setup.say(&said).0);
        }
        std::thread::scope(|scope| {
            for identifier in identifiers {
                let (git, work, url) = (&setup.git, &setup.work, setup.url(&key, identifier));
                scope.spawn(move || git.ok(work, &["push", &url, "main"]));
            }
        });
        let names = query(
            &setup.server,
            &format!(
                "SELECT r.name FROM repos r JOIN users u ON u.id = r.owner_id WHERE u.npub = '{}' ORDER BY r.name",
                npub(&key)
            ),
        );
        assert_eq!(names.lines().collect::<Vec<_>>(), ["my-repo", "my-repo-2"], "round {round}");
    }
    setup.assert_healthy();
}

#[rstest]
fn a_full_disk_takes_no_events(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_SERVER__MIN_FREE_PERCENT", "100").start());
    let event = setup.announcement(&setup.owner, now(), "demo", &[]);
    let (taken, reason) = setup.relay.publish(&event);
    assert!(!taken && reason.starts_with("error:") && reason.contains("disk"), "{reason}");
    assert_eq!(query(&setup.server, "SELECT count(*) FROM purgatory_announcements"), "0");
}
