//! Who may announce new repositories, and how many; and how much git data strangers leave here.

use super::setup::{Setup, WAITS, now, npub, state};
use crate::beside::Beside as _;
use crate::support::{builder, person, query};
use abide_testkit::{Engine, Key, Nostr, http};
use rstest::rstest;
use serde_json::json;

fn setup(engine: Engine, settings: &[(&str, &str)]) -> Setup {
    let builder = settings.iter().fold(builder(engine), |builder, (name, value)| builder.env(name, value));
    Setup::on(builder.start())
}

/// Gives a key an account with a username.
fn link(setup: &Setup, key: &Key, name: &'static str) {
    setup.server.add_user(name);
    query(&setup.server, &format!("UPDATE users SET npub = '{}' WHERE name = '{name}'", npub(key)));
}

fn information(setup: &Setup) -> serde_json::Value {
    let request = http::Request::new("GET", "/").header("Accept", "application/nostr+json");
    request.send(setup.server.http_addr()).json()
}

#[rstest]
#[case::invite("invite", "ask its operator for an invitation")]
#[case::closed("closed", "ask its operator for an account")]
fn where_people_are_invited_only_linked_keys_announce(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] mode: &str,
    #[case] way_in: &str,
) {
    let mut setup = setup(engine, &[("ABIDE_SIGNUP__MODE", mode), ("ABIDE_GRASP__ANNOUNCE", "")]);
    let (stranger, member) = (Key::new(1), Key::new(2));
    let refused = setup.relay.publish(&setup.announcement(&stranger, now(), "demo", &[]));
    assert!(!refused.0 && refused.1.starts_with("restricted: ") && refused.1.contains(way_in), "{refused:?}");
    link(&setup, &member, "member");
    setup.served(&member, "demo", &[]);
    let criteria = information(&setup)["repo_acceptance_criteria"].as_str().unwrap_or_default().to_owned();
    assert!(criteria.contains("linked to an account"), "{criteria}");
    assert_eq!(information(&setup)["limitation"]["restricted_writes"], true);
}

#[rstest]
fn repositories_that_are_served_go_on_and_a_chosen_name_opens_the_way(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let (helper, listed) = (Key::new(2), Key::new(3));
    let allowed = npub(&listed);
    let hex = helper.public().to_hex();
    let maintainers: &[&str] = &["maintainers", &hex];
    let mut setup = Setup::new(engine);
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[maintainers]);
    setup.server.restart_with(&[("ABIDE_GRASP__ANNOUNCE", "linked"), ("ABIDE_GRASP__ALLOW", &allowed)]);
    setup.relay = Nostr::connect(&setup.server.url());
    let newer = setup.announcement(&owner, now() - 3, "demo", &[maintainers]);
    assert_eq!(setup.relay.publish(&newer), (true, String::new()));
    let next = state(&helper, now(), "demo", &[("refs/heads/main", &setup.first)], Some("main"));
    assert!(setup.say(&next).0, "a maintainer without an account goes on");
    let refused = setup.relay.publish(&setup.announcement(&owner, now(), "another", &[]));
    assert!(!refused.0 && refused.1.contains("choose a user name"), "{refused:?}");
    query(&setup.server, &format!("UPDATE users SET name = 'zoe' WHERE npub = '{}'", npub(&owner)));
    let announced = setup.announcement(&owner, now(), "another", &[]);
    assert_eq!(setup.relay.publish(&announced), (true, WAITS.to_owned()));
    let announced = setup.announcement(&listed, now(), "listed", &[]);
    assert_eq!(setup.relay.publish(&announced), (true, WAITS.to_owned()), "grasp.allow passes before the rule");
}

#[rstest]
fn a_server_that_takes_no_announcements_says_so(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = setup(engine, &[("ABIDE_GRASP__ANNOUNCE", "off"), ("ABIDE_SIGNUP__MODE", "open")]);
    let member = Key::new(2);
    link(&setup, &member, "member");
    let refused = setup.relay.publish(&setup.announcement(&member, now(), "demo", &[]));
    assert!(!refused.0 && refused.1.contains("keys that its operator has allowed"), "{refused:?}");
}

#[rstest]
fn a_stranger_has_so_many_repositories_and_an_account_so_many_of_both_kinds(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = setup(engine, &[("ABIDE_QUOTA__KEY_REPOS", "2"), ("ABIDE_REPOS__PER_USER", "2")]);
    let (owner, member) = (setup.owner.clone(), Key::new(2));
    setup.served(&owner, "one", &[]);
    setup.announce(&owner, "two", &[]);
    let refused = setup.relay.publish(&setup.announcement(&owner, now(), "three", &[]));
    assert!(!refused.0 && refused.1.contains("2 of 2 repositories"), "{refused:?}");
    setup.served(&Key::new(5), "one", &[]);

    let person = person(&setup.server, "member");
    query(&setup.server, &format!("UPDATE users SET npub = '{}' WHERE name = 'member'", npub(&member)));
    person.create(&setup.server, "plain", false);
    setup.served(&member, "signed", &[]);
    let refused = setup.relay.publish(&setup.announcement(&member, now(), "third", &[]));
    assert!(!refused.0 && refused.1.contains("an account can own at most 2 repositories"), "{refused:?}");
    let body = json!({ "name": "third" });
    let refused = http::post(setup.server.http_addr(), "/api/v3/user/repos", Some(&person.token), &body);
    assert_eq!(refused.status, 403, "{}", refused.text());
}

/// Keys are free, so repositories are counted by where they come from, and all together.
#[rstest]
fn repositories_of_strangers_are_counted_by_address_and_in_all(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = setup(engine, &[("ABIDE_QUOTA__ADDRESS_REPOS_PER_DAY", "2")]);
    let (owner, member) = (setup.owner.clone(), Key::new(2));
    link(&setup, &member, "member");
    setup.served(&owner, "one", &[]);
    setup.announce(&Key::new(3), "one", &[]);
    let third = setup.announcement(&Key::new(4), now(), "one", &[]);
    let refused = setup.relay.publish(&third);
    let rule = "rate-limited: quota: 2 of 2 repositories were announced from this IP address today";
    assert!(!refused.0 && refused.1.starts_with(rule), "{refused:?}");
    let newer = setup.announcement(&owner, now(), "one", &[]);
    assert!(setup.relay.publish(&newer).0, "what is here already goes on");
    setup.announce(&member, "accounts", &[]);
    let mut elsewhere = Nostr::try_connect_from([127, 0, 0, 2].into(), &setup.server.url()).expect("another address");
    assert_eq!(elsewhere.publish(&third), (true, WAITS.to_owned()));

    let settings = [("ABIDE_QUOTA__ADDRESS_REPOS_PER_DAY", "100"), ("ABIDE_QUOTA__STRANGERS_REPOS", "1")];
    setup.server.restart_with(&settings);
    setup.relay = Nostr::connect(&setup.server.url());
    let refused = setup.relay.publish(&setup.announcement(&Key::new(5), now(), "one", &[]));
    let rule = "rate-limited: quota: keys without an account have 1 of 1 repositories here";
    assert!(!refused.0 && refused.1.starts_with(rule), "{refused:?}");
    setup.announce(&member, "more", &[]);
}

#[rstest]
fn a_stranger_pushes_so_much_git_data(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    // 64 KiB for the repository itself, and 40 kB of data.
    let mut setup = setup(engine, &[("ABIDE_QUOTA__KEY_REPO_BYTES", "106kB")]);
    let (owner, victim) = (setup.owner.clone(), Key::new(2));
    setup.served(&owner, "demo", &[]);
    setup.served(&victim, "mine", &[]);
    let noise = |seed: u32, len: usize| -> String {
        let mut value = seed;
        let mut next = || {
            value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + u8::try_from((value >> 24) % 26).unwrap_or(0))
        };
        (0..len).map(|_| next()).collect()
    };
    let large = setup.git.commit_file(&setup.work, "large", noise(1, 200_000), "large");
    setup.state_waits(&state(&owner, now(), "demo", &[("refs/heads/main", &large)], Some("main")));
    let reported = setup.push_fails(&owner, "demo", &["main"]);
    assert!(reported.contains("quota") || reported.contains("larger than"), "{reported}");
    assert_eq!(setup.refs(&owner, "demo")[0].1, setup.first);
    // As a pull request to somebody else it is theirs all the same.
    let proposed = owner.event(now(), 1618, &[&["a", &victim.coordinate("mine")], &["c", &large]], "");
    setup.state_waits(&proposed);
    let reported = setup.push_fails(&victim, "mine", &[&format!("main:refs/nostr/{}", proposed.id)]);
    assert!(reported.contains("quota") || reported.contains("larger than"), "{reported}");

    setup.git.ok(&setup.work, &["reset", "-q", "--hard", &setup.first]);
    let small = setup.git.commit_file(&setup.work, "small", "small", "small");
    setup.state_waits(&state(&victim, now(), "mine", &[("refs/heads/main", &small)], Some("main")));
    setup.push(&victim, "mine", &["main"]);
    let charged = "SELECT count(*) FROM nostr_keys WHERE repos = 1 AND repo_bytes > 65536 AND repo_bytes < 106000";
    assert_eq!(query(&setup.server, charged), "2");
    setup.assert_healthy();
}
