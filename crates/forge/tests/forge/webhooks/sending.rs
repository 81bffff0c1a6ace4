//! Deliveries arrive once each, in order, under one id, whatever the receiver does.

use super::receiver::{Receiver, Reply};
use super::{Setup, change, settings, setup, setup_with};
use crate::rig::node_with;
use abide_core::webhooks::DeliveryState;
use abide_forge::attention::star;
use abide_forge::webhooks::{ask, create, send, show};
use abide_testkit::Engine;
use rstest::rstest;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Stars and unstars, so many times.
pub(super) async fn happen(setup: &Setup, times: usize) {
    for turn in 0..times {
        let forge = &setup.rig.forge;
        let changed = match turn % 2 {
            0 => star::star(forge, &setup.alice, &setup.repo).await,
            _ => star::unstar(forge, &setup.alice, &setup.repo).await,
        };
        assert!(changed.expect("allowed"));
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_the_receiver_cannot_take_now_is_tried_again_under_the_same_id(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["star"]).await;
    setup.receiver.next([Reply::Status(500), Reply::Status(429), Reply::Status(408)]);
    happen(&setup, 2).await;
    setup.deliver().await;
    assert_eq!(setup.receiver.got().len(), 1, "the second waits behind the first");
    setup.pass(23);
    setup.deliver().await;
    assert_eq!(setup.receiver.got().len(), 1, "not before four fifths of half a minute");
    for (wait, tries) in [(14, 2), (73, 3), (145, 5)] {
        setup.pass(wait);
        setup.deliver().await;
        assert_eq!(setup.receiver.got().len(), tries, "after {wait} seconds more");
    }
    let guids: Vec<_> = setup.receiver.got().iter().map(|got| got.guid()).collect();
    assert!(guids[..4].iter().all(|guid| *guid == guids[0]) && guids[4] != guids[0], "{guids:?}");
    let attempts: Vec<_> = setup.receiver.got().iter().map(|got| got.header("x-abide-attempt").to_owned()).collect();
    assert_eq!(attempts, ["1", "2", "3", "4", "1"]);
    let actions: Vec<_> = setup.receiver.got().iter().map(|got| got.json()["action"].clone()).collect();
    assert_eq!(actions, ["created", "created", "created", "created", "deleted"]);
    let rows = setup.deliveries(&hook).await;
    let ended: Vec<_> = rows.iter().map(|row| (row.kind.as_str(), row.state, row.attempts)).collect();
    assert_eq!(ended, [("ping", DeliveryState::Ok, 1), ("star", DeliveryState::Ok, 4), ("star", DeliveryState::Ok, 1)]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn after_the_eighth_failure_a_delivery_is_given_up_and_the_next_one_goes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["star"]).await;
    setup.receiver.next([Reply::Status(503); 8]);
    happen(&setup, 2).await;
    for _ in 0..8 {
        setup.deliver().await;
        setup.pass(3600);
    }
    setup.deliver().await;
    let rows = setup.deliveries(&hook).await;
    let ended: Vec<_> = rows[1..].iter().map(|row| (row.state, row.attempts, row.status)).collect();
    assert_eq!(ended, [(DeliveryState::Failed, 8, Some(503)), (DeliveryState::Ok, 1, Some(200))]);
    assert_eq!(rows[1].error.as_deref(), Some("the receiver responded with 503 Service Unavailable"));
    assert_eq!(setup.seen(hook.id).await.breaker.failures, 0, "an arrival begins anew");
}

#[rstest]
#[case::not_found(Reply::Status(404), "the receiver responded with 404 Not Found")]
#[case::gone(Reply::Status(410), "the receiver responded with 410 Gone")]
#[case::redirect(Reply::Redirect, "redirects are not followed")]
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_final_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[case] reply: Reply,
    #[case] reported: &str,
) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["star"]).await;
    setup.receiver.next([reply]);
    happen(&setup, 2).await;
    setup.deliver().await;
    assert_eq!(setup.receiver.got().len(), 2, "the next one goes at once");
    assert!(setup.receiver.got().iter().all(|got| got.path == "/hook"));
    let row = &setup.deliveries(&hook).await[1];
    assert_eq!((row.state, row.attempts), (DeliveryState::Failed, 1));
    assert!(row.error.as_ref().is_some_and(|error| error.contains(reported)), "{:?}", row.error);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_beginning_of_a_huge_answer_is_kept_and_silence_is_a_try_that_failed(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup_with(engine, |it| it.outbound.limits.total = Duration::from_millis(700)).await;
    let hook = setup.hook(&["star"]).await;
    setup.receiver.next([Reply::Huge(1 << 20), Reply::Hang]);
    happen(&setup, 2).await;
    setup.deliver().await;
    let rows = setup.deliveries(&hook).await;
    let huge = show::delivery(&setup.rig.forge, &hook, &rows[1].id.to_string()).await.expect("it is there");
    let kept = huge.response_body.expect("an answer");
    assert!(
        kept.len() < (16 << 10) + 100 && kept.starts_with("xxx") && kept.ends_with("(truncated)"),
        "{}",
        kept.len()
    );
    assert_eq!(huge.state, DeliveryState::Ok);
    assert_eq!((rows[2].state, rows[2].attempts, rows[2].status), (DeliveryState::Queued, 1, None));
    assert!(rows[2].error.as_ref().is_some_and(|error| error.contains("no response within")), "{:?}", rows[2].error);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn one_slow_receiver_does_not_slow_another(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup_with(engine, |it| it.outbound.limits.total = Duration::from_secs(600)).await;
    setup.hook(&["star"]).await;
    let quick = Receiver::start().await;
    let added = create::create(&setup.rig.forge, &setup.alice, &setup.repo, &change(&quick.url(), &["star"])).await;
    added.expect("the hook is added");
    setup.receiver.always(Reply::Hang);
    let stop = CancellationToken::new();
    let sender = tokio::spawn(send::run(setup.rig.forge.clone(), stop.clone()));
    happen(&setup, 20).await;
    setup.take_in().await;
    // A ping and twenty stars, all while the first receiver has not answered a single one.
    let got = quick.wait_for(21).await;
    assert_eq!(got.iter().filter(|got| got.event() == "star").count(), 20);
    assert_eq!(setup.receiver.wait_for(1).await.len(), 1);
    setup.receiver.always(Reply::Status(200));
    setup.receiver.let_go();
    assert_eq!(setup.receiver.wait_for(20).await.len(), 20);
    stop.cancel();
    sender.await.expect("it stops");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_arrive_in_the_order_of_the_log_and_once_each_from_two_nodes(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    setup.hook(&["star"]).await;
    let others = [Receiver::start().await, Receiver::start().await, Receiver::start().await];
    for other in &others {
        let chosen = change(&other.url(), &["star"]);
        create::create(&setup.rig.forge, &setup.alice, &setup.repo, &chosen).await.expect("the hook is added");
    }
    setup.deliver().await;
    others.iter().for_each(Receiver::clear);
    happen(&setup, 30).await;
    setup.take_in().await;
    let (second, _) = node_with(&setup.rig.database, &setup.rig.clock, "second", settings).await;
    let (one, two) = tokio::join!(send::catch_up(&setup.rig.forge), send::catch_up(&second));
    one.and(two).expect("they send");
    for receiver in others.iter().chain([&setup.receiver]) {
        let got = receiver.got();
        let guids: BTreeSet<_> = got.iter().map(|got| got.guid()).collect();
        assert_eq!((got.len(), guids.len()), (30, 30), "nothing is lost or sent twice");
        let actions: Vec<_> = got.iter().map(|got| got.json()["action"].clone()).collect();
        let expected: Vec<_> = (0..30).map(|turn| if turn % 2 == 0 { "created" } else { "deleted" }).collect();
        assert_eq!(actions, expected);
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn sending_again_keeps_the_id_and_the_payload(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine).await;
    let hook = setup.hook(&["star"]).await;
    setup.receiver.next([Reply::Status(400)]);
    happen(&setup, 1).await;
    setup.deliver().await;
    let first = setup.deliveries(&hook).await.pop().expect("it was sent");
    assert_eq!(first.state, DeliveryState::Failed);
    let again = ask::redeliver(&setup.rig.forge, &setup.alice, &setup.repo, &hook, first.id).await.expect("allowed");
    setup.deliver().await;
    let got = setup.receiver.got();
    assert_eq!((got.len(), got[0].guid(), &got[0].body), (2, got[1].guid(), &got[1].body));
    let rows = setup.deliveries(&hook).await;
    let last = rows.last().expect("it was sent");
    assert_eq!((last.id, last.redelivery_of, last.state), (again, Some(first.id), DeliveryState::Ok));
    assert_eq!(rows.len(), 3);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_leads_inside_is_never_sent_to_and_looks_like_one_that_is_not_there(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine).await;
    // The operator changes their mind after the hooks were added.
    let (strict, _) = node_with(&setup.rig.database, &setup.rig.clock, "second", |it| {
        settings(it);
        it.outbound.allow = abide_forge::AllowList::default();
    })
    .await;
    let mut hooks = Vec::new();
    for url in [setup.receiver.url(), "http://nowhere.invalid/hook".to_owned()] {
        let added = create::create(&setup.rig.forge, &setup.alice, &setup.repo, &change(&url, &["star"])).await;
        hooks.push(added.expect("the hook is added"));
    }
    let mut seen = Vec::new();
    for _ in 0..2 {
        send::catch_up(&strict).await.expect("it tries");
        for hook in &hooks {
            let row = setup.deliveries(hook).await.pop().expect("the ping was tried");
            let hook = setup.seen(hook.id).await;
            seen.push((row.state, row.attempts, row.status, row.error, row.duration, hook.breaker));
        }
        setup.pass(60);
    }
    assert!(setup.receiver.got().is_empty());
    assert_eq!(seen[0], seen[1], "after one try");
    assert_eq!(seen[2], seen[3], "after two");
    assert_eq!((seen[2].0, seen[2].1), (DeliveryState::Queued, 2));
    let reported = seen[0].3.as_deref().expect("a reason");
    assert!(reported.contains("no public IP address"), "{reported}");
    assert!(
        !reported.contains("127.0.0.1") && !reported.contains("loopback"),
        "it tells nothing about the inside: {reported}"
    );
}
