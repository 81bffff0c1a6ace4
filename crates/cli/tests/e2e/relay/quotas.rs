//! Strangers store so much and no more, and what one of them sends costs nobody else. The attacker is on 127.0.0.2, the
//! victim on 127.0.0.3.

use super::Setup;
use crate::beside::Beside as _;
use crate::support::query;
use abide_nostr::{Event, nip19};
use abide_testkit::{ATTACKER, Engine, Key, Nostr};
use rstest::rstest;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};

const VICTIM: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));

impl Setup {
    fn client_at(&self, address: IpAddr) -> Nostr {
        Nostr::try_connect_from(address, &self.server.url()).expect("the relay takes connections")
    }

    /// Gives a key an account with a username.
    fn with_account(&self, key: &Key, name: &'static str) {
        self.server.add_user(name);
        let npub = nip19::npub(&key.public());
        query(&self.server, &format!("UPDATE users SET npub = '{npub}' WHERE name = '{name}'"));
    }
}

#[track_caller]
fn assert_taken(answer: &(bool, String)) {
    assert_eq!(answer, &(true, String::new()));
}

#[track_caller]
fn assert_over((accepted, text): &(bool, String), figure: &str) {
    assert!(!accepted && text.starts_with("rate-limited: quota") && text.contains(figure), "{accepted} {text}");
}

#[rstest]
fn a_key_stores_so_many_events_and_deletions_give_them_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = Setup::with(engine, &[("ABIDE_QUOTA__KEY_EVENTS", "5")]);
    let (mut attacker, mut victim) = (setup.client_at(ATTACKER), setup.client_at(VICTIM));
    let events: Vec<Event> = (0..10).map(|number| setup.issue(2, &number.to_string())).collect();
    for event in &events {
        attacker.say(&json!(["EVENT", event]));
    }
    let answers: Vec<_> = events.iter().map(|event| attacker.ok(event)).collect();
    answers[..5].iter().for_each(assert_taken);
    answers[5..].iter().for_each(|answer| assert_over(answer, "5 of 5 events"));
    assert_taken(&victim.publish(&setup.issue(3, "mine")));
    let key = Key::new(2);
    // A patch without a commit, and a deletion of nothing, go other ways and count too.
    let patch = key.event(setup.now, 1617, &[&["a", &setup.repo]], "patch");
    assert_over(&attacker.publish(&patch), "5 of 5 events");
    let useless = key.event(setup.now, 5, &[&["e", &"ab".repeat(32)], &["a", &setup.repo]], "");
    assert_over(&attacker.publish(&useless), "5 of 5 events");
    let greedy = key.event(setup.now, 5, &[&["e", &events[0].id.to_hex()]], &"x".repeat(2_000));
    assert_over(&attacker.publish(&greedy), "5 of 5 events");

    let ids: Vec<String> = events[..3].iter().map(|event| event.id.to_hex()).collect();
    let tags: Vec<[&str; 2]> = ids.iter().map(|id| ["e", id.as_str()]).collect();
    let tags: Vec<&[&str]> = tags.iter().map(|tag| &tag[..]).collect();
    assert_taken(&attacker.publish(&key.event(setup.now, 5, &tags, "")));
    assert_taken(&attacker.publish(&events[6]));
    assert_taken(&attacker.publish(&events[7]));
    assert_over(&attacker.publish(&events[8]), "5 of 5 events");
    let counted = query(
        &setup.server,
        "SELECT count(*) FROM nostr_keys k WHERE k.events = (SELECT count(*) FROM nostr_events e WHERE e.pubkey = k.pubkey)
            AND k.bytes = (SELECT sum(octet_length(json) + 64 * (length(json) - length(replace(json, '[\"', ''))))
                FROM nostr_events e WHERE e.pubkey = k.pubkey)",
    );
    assert_eq!(counted, "3", "the owner of the repository, attacker and victim");
}

#[rstest]
fn a_key_stores_so_many_bytes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::with(engine, &[("ABIDE_QUOTA__KEY_BYTES", "20kB")]);
    let (mut attacker, mut victim) = (setup.client_at(ATTACKER), setup.client_at(VICTIM));
    let text = "x".repeat(8_000);
    let answers: Vec<_> = (0..4).map(|number| attacker.publish(&setup.issue(2, &format!("{number}{text}")))).collect();
    answers[..2].iter().for_each(assert_taken);
    answers[2..].iter().for_each(|answer| assert_over(answer, "of 20000 bytes"));
    assert_taken(&victim.publish(&setup.issue(3, &text)));
}

#[rstest]
fn an_address_sends_so_much_in_a_day_whatever_the_keys_and_through_a_restart(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::with(engine, &[("ABIDE_QUOTA__ADDRESS_BYTES_PER_DAY", "20kB")]);
    let text = "x".repeat(8_000);
    let flood = |setup: &Setup, first: u32| -> Vec<_> {
        let mut attacker = setup.client_at(ATTACKER);
        (first..first + 4).map(|author| attacker.publish(&setup.issue(author, &text))).collect()
    };
    let answers = flood(&setup, 10);
    answers[..2].iter().for_each(assert_taken);
    answers[2..].iter().for_each(|answer| assert_over(answer, "of 20000 bytes today"));
    assert_taken(&setup.client_at(VICTIM).publish(&setup.issue(3, &text)));
    setup.server.restart();
    flood(&setup, 20).iter().for_each(|answer| assert_over(answer, "this IP address sent"));
    assert_taken(&setup.client_at(VICTIM).publish(&setup.issue(4, &text)));
    // An account is bound by no quota of strangers, wherever it writes from.
    let member = Key::new(30);
    setup.with_account(&member, "member");
    assert_taken(&setup.client_at(ATTACKER).publish(&setup.issue(30, &text)));
}

#[rstest]
#[case::share("ABIDE_QUOTA__STRANGERS_BYTES", "10kB", "of 10000 bytes; link the key")]
#[case::reserve("ABIDE_SERVER__STRANGER_FREE_PERCENT", "100", "% of the disk is free; below 100%")]
fn strangers_leave_room_for_accounts(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] setting: &str,
    #[case] value: &str,
    #[case] figure: &str,
) {
    let setup = Setup::with(engine, &[(setting, value)]);
    let member = Key::new(30);
    setup.with_account(&member, "member");
    let mut attacker = setup.client_at(ATTACKER);
    let text = "x".repeat(4_000);
    let answers: Vec<_> = (10..14).map(|author| attacker.publish(&setup.issue(author, &text))).collect();
    assert_over(answers.last().expect("four were sent"), figure);
    for number in 0..4 {
        assert_taken(&setup.client_at(VICTIM).publish(&setup.issue(30, &format!("{number}{text}"))));
    }
}

#[rstest]
fn purgatory_is_bounded_in_bytes(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = Setup::with(engine, &[("ABIDE_GRASP__WAITING_BYTES", "500")]);
    let mut client = setup.client_at(ATTACKER);
    let answers: Vec<_> = (10..14)
        .map(|author| client.publish(&Key::new(author).announcement(setup.now, "x", &setup.server.url())))
        .collect();
    assert!(answers[0].0, "{answers:?}");
    assert!(!answers[3].0 && answers[3].1.contains("waiting for git data"), "{answers:?}");
}
