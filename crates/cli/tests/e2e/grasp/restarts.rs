//! Purgatory is durable: nothing that was acknowledged is lost, whenever the process dies.

use super::setup::{Setup, WAITS, now, state};
use crate::support::{builder, crowded};
use abide_core::failpoint;
use abide_testkit::{Engine, Key, Nostr, eventually};
use rstest::rstest;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

#[rstest]
fn restart_with_full_purgatory(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::new(engine);
    let key = setup.owner.clone();
    setup.served(&key, "other", &[]);
    let announcement = setup.announce(&key, "demo", &[]);
    let said = state(&key, now() - 5, "demo", &[("refs/heads/main", &setup.first)], Some("main"));
    setup.state_waits(&said);
    let commit = setup.git.commit_file(&setup.work, "feature", "1", "a feature");
    let author = Key::new(9);
    let coordinate = key.coordinate("other");
    let waiting = author.event(now(), 1618, &[&["a", &coordinate], &["c", &"1".repeat(40)]], "");
    assert_eq!(setup.relay.publish(&waiting), (true, WAITS.to_owned()));
    let early = author.event(now(), 1618, &[&["a", &coordinate], &["c", &commit]], "");
    setup.push(&key, "other", &[&format!("{commit}:refs/nostr/{}", early.id.to_hex())]);

    setup.server.kill();
    setup.server.restart();
    setup.relay = Nostr::connect(&setup.server.url());

    assert_eq!(setup.relay.publish(&announcement), (true, "duplicate: in purgatory".to_owned()));
    assert_eq!(setup.relay.publish(&waiting), (true, "duplicate: in purgatory".to_owned()));
    assert_eq!(setup.relay.publish(&early), (true, String::new()), "its commit was kept");
    let first = setup.first.clone();
    setup.push(&key, "demo", &[&format!("{first}:refs/heads/main")]);
    assert!(setup.is_served(&announcement) && setup.is_served(&said));
    setup.assert_healthy();
}

/// Killed at each step of the first push, which promotes, and of a later one: everything or nothing, and the same push
/// succeeds afterwards.
#[rstest]
fn crash_in_a_signed_push(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(
        failpoint::PUSH_PACK_RECEIVED,
        failpoint::PUSH_CONNECTED,
        failpoint::DIRECTORY_HALF_MADE,
        failpoint::PROMOTE_BUILT,
        failpoint::PROMOTE_COMMITTED,
        failpoint::PUSH_INTENT_COMMITTED,
        failpoint::PUSH_OBJECTS_MIGRATED,
        failpoint::PUSH_REFS_UPDATED,
        failpoint::PUSH_FINISH_BEFORE_COMMIT,
        failpoint::PUSH_FINISHED
    )]
    point: &str,
) {
    let mut setup = Setup::on(builder(engine).start());
    let key = setup.owner.clone();
    let first_push = point.starts_with("promote:") || point == failpoint::DIRECTORY_HALF_MADE;
    let commit = if first_push {
        // This makes the shared empty repository, so the push that dies makes no other directory than its own.
        setup.served(&key, "other", &[]);
        setup.announce(&key, "demo", &[]);
        setup.first.clone()
    } else {
        setup.served(&key, "demo", &[]);
        setup.git.commit_file(&setup.work, "a", "a", "second")
    };
    let said = state(&key, now() - 2, "demo", &[("refs/heads/main", &commit)], Some("main"));
    setup.state_waits(&said);
    setup.server.terminate();
    setup.server.restart_with_failpoint(point);
    let pushed = setup.git.run(&setup.work, &["push", &setup.url(&key, "demo"), "main"]);
    assert!(!pushed.status.success());
    setup.server.wait_exit();
    setup.server.restart();
    setup.relay = Nostr::connect(&setup.server.url());
    setup.assert_healthy();
    // The next start removes what was half made. A job of this start may use an area for a moment.
    let incoming = setup.server.data_dir().join("incoming");
    eventually(SOON, || std::fs::read_dir(&incoming).is_ok_and(|mut areas| areas.next().is_none()));
    let at_commit = setup.refs(&key, "demo").contains(&("refs/heads/main".into(), commit.clone()));
    assert_eq!(setup.is_served(&said), at_commit, "event and refs together, or neither");
    setup.push(&key, "demo", &["main"]);
    assert!(setup.is_served(&said));
    assert!(setup.refs(&key, "demo").contains(&("refs/heads/main".into(), commit)));
    setup.assert_healthy();
}

/// Entries expire in the moment in which they are pushed to: either the push is refused and nothing is left, or it is
/// taken and everything is served.
#[rstest]
fn expiry_and_push_race(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server =
        crowded(engine).env("ABIDE_GRASP__PURGATORY_EXPIRY", "1s").env("ABIDE_GRASP__AFTER_PUSH", "1ms").start();
    let mut setup = Setup::on(server);
    let key = setup.owner.clone();
    let first = setup.first.clone();
    let (mut promoted, mut refused) = (0, 0);
    for round in 0..8_u64 {
        let identifier = format!("demo{round}");
        let announcement = setup.announce(&key, &identifier, &[]);
        let said = state(&key, now() - 5, &identifier, &[("refs/heads/main", &first)], Some("main"));
        setup.state_waits(&said);
        std::thread::sleep(std::time::Duration::from_millis(700 + 80 * round));
        let pushed = std::thread::scope(|threads| {
            let sweeping = threads.spawn(|| setup.sweep());
            let pushed = setup.git.run(&setup.work, &["push", &setup.url(&key, &identifier), "main"]);
            sweeping.join().expect("the sweep runs");
            pushed.status.success()
        });
        assert_eq!(setup.is_served(&announcement), pushed, "round {round}");
        if pushed { promoted += 1 } else { refused += 1 }
    }
    setup.sweep();
    assert_eq!(setup.directories().len(), promoted, "{promoted} promoted, {refused} refused");
    setup.assert_healthy();
}
