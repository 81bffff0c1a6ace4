//! Webhooks in the browser: added, inspected, sent again and removed without a line of script.

use super::{SOON, prepared, setup, setup_of};
use crate::beside::Beside as _;
use crate::pages::browser::{Browser, location};
use crate::support::query;
use abide_testkit::{Engine, PASSWORD, eventually};
use rstest::rstest;

const LIST: &str = "/alice/project/settings/webhooks";

#[rstest]
fn a_hook_is_added_inspected_and_removed_on_its_pages(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let browser = Browser::new(&setup.server);
    browser.log_in("alice", PASSWORD);
    assert!(browser.page("/alice/project/settings").contains(LIST));
    assert!(browser.page(LIST).contains("No webhooks yet"));
    let new = format!("{LIST}/new");
    let fields = |url: &str| -> Vec<(String, String)> {
        [
            ("url", url),
            ("content_type", "json"),
            ("secret", super::SECRET),
            ("which", "some"),
            ("event", "star"),
            ("active", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    };
    let send = |page: &str, action: &str, fields: &[(String, String)]| {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        browser.submit(page, action, &fields)
    };
    let wrong = send(&new, LIST, &fields("http://192.168.0.1/"));
    let html = wrong.text();
    assert!(
        wrong.status == 400 && html.contains("id=\"url-error\"") && html.contains("value=\"http://192.168.0.1/\""),
        "{html}"
    );
    assert!(!html.contains(super::SECRET));
    let made = location(&send(&new, LIST, &fields(&setup.receiver.url()))).to_owned();
    let hook = made.split('?').next().expect("a path").to_owned();
    assert!(made.starts_with(&format!("{LIST}/")) && made.ends_with("?done=hook-added"), "{made}");
    eventually(SOON, || browser.page(&hook).contains("Delivered"));
    assert!(!browser.page(&hook).contains(super::SECRET));

    setup.stars(1);
    eventually(SOON, || browser.page(&hook).contains("star · created"));
    let id = query(&setup.server, "SELECT id FROM webhook_deliveries WHERE kind = 'star'");
    let delivery = format!("{hook}/deliveries/{id}");
    eventually(SOON, || browser.page(&delivery).contains("Status <strong>200</strong>"));
    let html = browser.page(&delivery);
    assert!(
        html.contains("X-Hub-Signature-256") && html.contains("stargazers_count") && html.contains("said"),
        "{html}"
    );
    assert!(browser.page(&format!("{hook}/deliveries")).contains(&format!("/deliveries/{id}\"")));
    let again = browser.submit(&delivery, &format!("{delivery}/redeliver"), &[]);
    assert!(location(&again).ends_with("?done=sending"), "{}", location(&again));
    eventually(SOON, || setup.receiver.of("star").len() == 2);
    let guids: Vec<_> = setup.receiver.of("star").into_iter().map(|got| got.guid).collect();
    assert_eq!(guids[0], guids[1]);
    assert!(location(&browser.submit(&hook, &format!("{hook}/ping"), &[])).ends_with("?done=sending"));
    assert!(location(&browser.submit(&hook, &format!("{hook}/test"), &[])).ends_with("?done=nothing-to-send"));

    let off = [("url", setup.receiver.url()), ("content_type", "form".into()), ("which", "all".into())];
    let off: Vec<_> = off.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert!(location(&send(&hook, &hook, &off)).ends_with("?done=saved"));
    assert!(browser.page(LIST).contains(">Off</span>") && browser.page(LIST).contains("All events"));
    assert_ne!(query(&setup.server, "SELECT length(secret) FROM webhooks"), "", "a blank field keeps the secret");
    let delete = format!("{hook}/delete");
    assert!(browser.page(&delete).contains("This cannot be undone"));
    assert_eq!(location(&browser.submit(&delete, &delete, &[])), format!("{LIST}?done=removed"));
    assert_eq!(query(&setup.server, "SELECT count(*) FROM webhook_deliveries"), "0");
    assert_eq!(browser.get(&hook).status, 404);

    // Nobody else finds any of it.
    setup.server.add_user("bob");
    let bob = Browser::new(&setup.server);
    bob.log_in("bob", PASSWORD);
    assert_eq!((bob.get(LIST).status, bob.get(&new).status), (403, 403));
}

#[rstest]
fn a_suspended_hook_says_so_and_when_it_is_tried_next(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup_of(prepared(engine).env("ABIDE_WEBHOOKS__FAILURES", "2").start());
    let id = setup.hook(&["star"]);
    eventually(SOON, || setup.receiver.got().len() == 1);
    setup.receiver.answer(410);
    setup.stars(4);
    eventually(SOON, || query(&setup.server, "SELECT count(*) FROM webhooks WHERE open_since IS NOT NULL") == "1");
    eventually(SOON, || query(&setup.server, "SELECT count(*) FROM webhook_deliveries WHERE state = 'queued'") == "2");
    let browser = Browser::new(&setup.server);
    browser.log_in("alice", PASSWORD);
    assert!(browser.page(LIST).contains("Suspended"));
    let html = browser.page(&format!("{LIST}/{id}"));
    for words in [
        "This webhook is suspended",
        "2 deliveries in a row failed.",
        "2 deliveries waiting",
        "retried as a probe",
        "in 15 minutes",
    ] {
        assert!(html.contains(words), "{words} in {html}");
    }
    assert_eq!(setup.receiver.of("star").len(), 2, "nothing is tried meanwhile");
    let reported = "SELECT count(*) FROM domain_events WHERE kind = 'webhook_suspended' AND NOT public";
    assert_eq!(query(&setup.server, reported), "1");
    assert!(browser.page("/alice/project/settings/audit").contains("suspended: too many deliveries failed in a row"));
}
