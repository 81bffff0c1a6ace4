//! A server that dies during a delivery repeats it under the same id; two servers send each delivery once.

use super::{SOON, may_send, setup, setup_of};
use crate::nodes::Second;
use crate::support::{assert_healthy, crowded, query};
use abide_core::failpoint;
use abide_testkit::{Engine, eventually};
use rstest::rstest;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

#[rstest]
fn crash_in_a_delivery_loses_nothing_and_gives_it_no_second_id(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(failpoint::WEBHOOK_BEGUN, failpoint::WEBHOOK_FIXED, failpoint::WEBHOOK_ANSWERED)] point: &str,
) {
    let mut setup = setup(engine);
    setup.hook(&["star"]);
    eventually(SOON, || query(&setup.server, "SELECT count(*) FROM webhook_deliveries WHERE state = 'ok'") == "1");
    setup.server.restart_with_failpoint(point);
    // The answer to the request may be lost with the server; the star is not.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| setup.stars(1)));
    setup.server.wait_exit();
    let before = setup.receiver.of("star");
    assert_eq!(before.len(), usize::from(point == failpoint::WEBHOOK_ANSWERED));
    assert_eq!(query(&setup.server, "SELECT state, attempts FROM webhook_deliveries WHERE kind = 'star'"), "sending|1");

    setup.server.restart();
    let done = "SELECT count(*) FROM webhook_deliveries WHERE kind = 'star' AND state = 'ok' AND attempts = 2";
    eventually(SOON, || query(&setup.server, done) == "1");
    let after = setup.receiver.of("star");
    assert_eq!(after.len(), before.len() + 1);
    let guids: BTreeSet<_> = after.iter().map(|got| got.guid.clone()).collect();
    assert_eq!(guids.len(), 1, "{guids:?}");
    assert_eq!(query(&setup.server, "SELECT count(*) FROM webhook_deliveries WHERE kind = 'star'"), "1");
    assert_healthy(&setup.server);
}

#[rstest]
fn what_is_killed_in_the_middle_of_many_deliveries_is_told_in_full(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = setup_of(may_send(crowded(engine)).start());
    setup.hook(&["star"]);
    setup.stars(40);
    eventually(SOON, || setup.receiver.of("star").len() >= 10);
    setup.server.kill();
    setup.server.restart();
    let waiting = "SELECT count(*) FROM webhook_deliveries WHERE state <> 'ok'";
    let events = "SELECT count(*) FROM webhook_deliveries WHERE kind = 'star'";
    eventually(SOON, || query(&setup.server, events) == "40" && query(&setup.server, waiting) == "0");
    let mut order: Vec<String> = Vec::new();
    for got in setup.receiver.of("star") {
        if order.last() != Some(&got.guid) {
            order.push(got.guid);
        }
    }
    let queued = query(&setup.server, "SELECT guid FROM webhook_deliveries WHERE kind = 'star' ORDER BY id");
    assert_eq!(
        order,
        queued.lines().collect::<Vec<_>>(),
        "each under its one id, in order, the last one before the end perhaps twice"
    );
}

#[test]
fn two_servers_on_one_database_send_each_delivery_once() {
    let setup = setup_of(may_send(crowded(Engine::Postgres)).start());
    let _second = Second::start(&setup.server);
    let others: Vec<_> = (0..3).map(|_| super::Receiver::start()).collect();
    setup.hook(&["star"]);
    for other in &others {
        setup.hook_to(&other.url(), &["star"]);
    }
    setup.stars(40);
    let waiting = "SELECT count(*) FROM webhook_deliveries WHERE kind = 'star' AND state = 'ok'";
    eventually(SOON, || query(&setup.server, waiting) == "160");
    for receiver in others.iter().chain([&setup.receiver]) {
        let got = receiver.of("star");
        let guids: BTreeSet<_> = got.iter().map(|got| got.guid.clone()).collect();
        assert_eq!((got.len(), guids.len()), (40, 40));
        let actions: Vec<_> = got.iter().map(|got| got.body["action"].clone()).collect();
        let expected: Vec<_> = (0..40).map(|turn| if turn % 2 == 0 { "created" } else { "deleted" }).collect();
        assert_eq!(actions, expected);
    }
}

#[rstest]
fn commits_that_are_gone_when_a_push_is_sent_are_told_in_the_words_of_its_event(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine);
    let git = &setup.alice.git;
    let tree = git.init_work_tree();
    let url = setup.server.http_url("alice", "project");
    git.commit_file(&tree, "a", "0", "first");
    git.ok(&tree, &["push", &url, "main"]);
    setup.hook(&["push", "star"]);
    eventually(SOON, || setup.receiver.of("ping").len() == 1);
    // A delivery that cannot be built yet keeps the rest waiting.
    setup.receiver.answer(503);
    setup.stars(1);
    eventually(SOON, || query(&setup.server, "SELECT status FROM webhook_deliveries WHERE kind = 'star'") == "503");
    let second = git.commit_file(&tree, "a", "1", "second");
    git.ok(&tree, &["push", &url, "main"]);
    eventually(SOON, || query(&setup.server, "SELECT state FROM webhook_deliveries WHERE kind = 'push'") == "queued");
    let dir = setup.server.cli_ok(&["repo", "path", "alice/project"]);
    let objects = Path::new(dir.trim()).join("objects");
    std::fs::rename(&objects, objects.with_file_name("lost")).expect("the objects are there");

    setup.receiver.answer(200);
    query(&setup.server, "UPDATE webhooks SET next_at = 0");
    eventually(SOON, || setup.receiver.of("push").len() == 1);
    let reported = &setup.receiver.of("push")[0].body;
    assert_eq!(
        (&reported["head_commit"]["id"], reported["commits"].as_array().map(Vec::len)),
        (&json!(second), Some(1))
    );
    let commit = &reported["commits"][0];
    assert_eq!((&commit["message"], &commit["added"]), (&json!("second"), &json!([])), "{commit}");
    assert!(commit["author"]["email"].is_string() && commit["committer"]["name"].is_string(), "{commit}");
}
