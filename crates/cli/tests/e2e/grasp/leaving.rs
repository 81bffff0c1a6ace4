//! Waiting events are visible to nobody, and events that leave purgatory are counted by reason.

use super::setup::{Setup, WAITS, now, of, state};
use crate::relay::reconcile::compare;
use crate::support::{builder, query};
use abide_nostr::Event;
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use std::collections::BTreeSet;
use std::time::Duration;

/// Reached only by a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many left, by what they were and why.
fn exits(setup: &Setup, kind: &str, reason: &str) -> f64 {
    setup.metric(&format!("abide_purgatory_exits_total{{kind=\"{kind}\",reason=\"{reason}\"}}")).unwrap_or(0.0)
}

#[rstest]
fn a_reconciliation_does_not_tell_what_waits(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let (announcement, said) = setup.served(&key, "served", &[]);
    setup.announce(&key, "waits", &[]);
    setup.state_waits(&state(&key, now() - 5, "waits", &[("refs/heads/main", &setup.first)], Some("main")));
    let served = BTreeSet::from([announcement.id.to_bytes(), said.id.to_bytes()]);
    let mut reported = |filter| compare(&mut setup.relay, &filter, &[]);
    assert_eq!(reported(serde_json::json!({ "kinds": [30_617, 30_618] })), (BTreeSet::new(), served));
    assert_eq!(reported(of(&key, "waits")), (BTreeSet::new(), BTreeSet::new()));
}

#[rstest]
fn who_leaves_is_counted_by_why(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    let oid = "ab".repeat(20);
    let said = |at: u64, identifier: &str, oid: &str| state(&key, at, identifier, &[("refs/heads/main", oid)], None);

    setup.announce(&key, "demo", &[]);
    let newer = setup.announcement(&key, now() - 9, "demo", &[]);
    assert_eq!(setup.relay.publish(&newer), (true, WAITS.to_owned()));
    assert_eq!(exits(&setup, "announcement", "replacement"), 1.0);
    setup.state_waits(&said(now() - 8, "demo", &oid));
    setup.state_waits(&said(now() - 7, "demo", &setup.first.clone()));
    setup.push(&key, "demo", &["main"]);
    assert_eq!(exits(&setup, "state", "replacement"), 1.0, "the older one is overtaken");
    assert_eq!((exits(&setup, "state", "promotion"), exits(&setup, "announcement", "promotion")), (1.0, 1.0));

    let elsewhere: &[&[&str]] =
        &[&["d", "moved"], &["clone", "https://elsewhere.example/x.git"], &["relays", "wss://elsewhere.example"]];
    setup.announce(&key, "moved", &[]);
    assert!(!setup.relay.publish(&key.event(now() - 5, 30_617, elsewhere, "")).0);
    assert_eq!(exits(&setup, "announcement", "service change"), 1.0);

    let announced = setup.announce(&key, "deleted", &[]);
    let waiting = said(now() - 5, "deleted", &oid);
    setup.state_waits(&waiting);
    let pull = Key::new(9).event(now() - 5, 1618, &[&["a", &key.coordinate("demo")], &["c", &oid]], "");
    assert_eq!(setup.relay.publish(&pull), (true, WAITS.to_owned()));
    let delete = |key: &Key, event: &Event| key.event(now(), 5, &[&["e", &event.id.to_hex()]], "");
    for request in [delete(&key, &waiting), delete(&key, &announced), delete(&Key::new(9), &pull)] {
        assert_eq!(setup.relay.publish(&request), (true, String::new()));
    }
    for kind in ["announcement", "state", "proposal"] {
        assert_eq!(exits(&setup, kind, "deletion"), 1.0, "{kind}");
        assert_eq!(exits(&setup, kind, "expiry"), 0.0, "{kind}");
    }
    setup.assert_healthy();
}

#[rstest]
fn what_expired_is_counted_and_remembered_and_may_come_again(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__EXPIRED_MEMORY", "1h").start());
    let key = setup.owner.clone();
    setup.served(&key, "demo", &[]);
    let oid = "ab".repeat(20);
    let announced = setup.announce(&key, "late", &[]);
    let said = state(&key, now() - 5, "late", &[("refs/heads/main", &oid)], None);
    setup.state_waits(&said);
    let pull = Key::new(9).event(now() - 5, 1618, &[&["a", &key.coordinate("demo")], &["c", &oid]], "");
    assert_eq!(setup.relay.publish(&pull), (true, WAITS.to_owned()));
    // Their time is over, and the server is to look now.
    for table in ["announcements", "states", "proposals"] {
        query(&setup.server, &format!("UPDATE purgatory_{table} SET expires_at = 1"));
    }
    query(&setup.server, "UPDATE schedules SET next_run_at = 1 WHERE name = 'grasp:sweep'");
    for kind in ["announcement", "state", "proposal"] {
        eventually(PATIENCE, || exits(&setup, kind, "expiry") == 1.0);
        assert_eq!(exits(&setup, kind, "deletion"), 0.0, "{kind}");
    }
    let remembered = |setup: &Setup, and: &str| {
        let count = query(&setup.server, &format!("SELECT count(*) FROM purgatory_expired WHERE {and}"));
        count.parse::<u32>().expect("a count is a number")
    };
    let (soon, later) = ((now() + 3000) * 1_000_000, (now() + 3700) * 1_000_000);
    assert_eq!(remembered(&setup, &format!("until BETWEEN {soon} AND {later}")), 3);
    // The event may be published again; it waits like any other.
    for event in [&announced, &said, &pull] {
        assert_eq!(setup.relay.publish(event), (true, WAITS.to_owned()));
    }
    assert_eq!(setup.relay.publish(&said), (true, "duplicate: in purgatory".to_owned()));
    query(&setup.server, "UPDATE purgatory_expired SET until = 1");
    setup.sweep();
    assert_eq!(remembered(&setup, "until > 0"), 0, "not for ever");
    setup.assert_healthy();
}
