//! Webhooks over the API: GitHub's shapes, and nothing that is secret.

use super::{SECRET, SOON, setup};
use crate::beside::Beside as _;
use crate::support::{person, query};
use abide_testkit::{Engine, eventually, http};
use rstest::rstest;
use serde_json::{Value, json};

const HOOKS: &str = "/repos/alice/project/hooks";

#[rstest]
fn a_hook_is_added_changed_and_removed_and_its_secret_never_comes_back(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine);
    let id = setup.hook(&["push", "star"]);
    let at = format!("{HOOKS}/{id}");
    let hook = setup.must("GET", &at, json!({}));
    assert_eq!((&hook["type"], &hook["name"], &hook["active"]), (&json!("Repository"), &json!("web"), &json!(true)));
    assert_eq!(hook["events"], json!(["push", "star"]));
    let config =
        json!({ "url": setup.receiver.url(), "content_type": "json", "insecure_ssl": "0", "secret": "********" });
    assert_eq!(hook["config"], config);
    assert!(hook["ping_url"].as_str().is_some_and(|url| url.ends_with(&format!("{at}/pings"))), "{hook}");

    let edited =
        setup.must("PATCH", &at, json!({ "add_events": ["issues"], "remove_events": ["push"], "active": false }));
    assert_eq!((&edited["events"], &edited["active"]), (&json!(["star", "issues"]), &json!(false)));
    let form = setup.must("PATCH", &format!("{at}/config"), json!({ "content_type": "form" }));
    assert_eq!(
        (&form["content_type"], &form["secret"]),
        (&json!("form"), &json!("********")),
        "what is not mentioned stays"
    );
    let whole = setup.must("PATCH", &at, json!({ "config": { "url": setup.receiver.url() }, "active": true }));
    assert_eq!(whole["config"].get("secret"), None, "a config as a whole says all there is");
    assert_eq!(setup.must("GET", HOOKS, json!({})).as_array().map(Vec::len), Some(1));
    assert_eq!(setup.api("DELETE", &at, json!({})).status, 204);
    assert_eq!(setup.api("GET", &at, json!({})).status, 404);
    let trail = query(&setup.server, "SELECT action FROM audit_log WHERE action LIKE 'webhook_%' ORDER BY id");
    assert_eq!(
        trail.lines().collect::<Vec<_>>(),
        ["webhook_created", "webhook_edited", "webhook_edited", "webhook_edited", "webhook_deleted"]
    );
    let kept = ["SELECT meta FROM audit_log", "SELECT payload FROM domain_events"]
        .map(|sql| query(&setup.server, sql))
        .concat();
    assert!(!kept.contains(SECRET) && !kept.contains("/hook\""), "{kept}");
    assert!(!setup.server.log().contains(SECRET));
}

#[rstest]
fn what_was_sent_can_be_looked_at_and_sent_again(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let id = setup.hook(&["star"]);
    let at = format!("{HOOKS}/{id}");
    eventually(SOON, || query(&setup.server, "SELECT count(*) FROM webhook_deliveries WHERE state = 'ok'") == "1");
    setup.receiver.answer(500);
    setup.stars(1);
    eventually(SOON, || !setup.receiver.of("star").is_empty());
    let list = || setup.must("GET", &format!("{at}/deliveries"), json!({}));
    eventually(SOON, || list()[0]["state"] == "queued" && list()[0]["status_code"] == 500);
    let listed = list();
    assert_eq!(
        (&listed[0]["event"], &listed[0]["action"], &listed[0]["attempts"]),
        (&json!("star"), &json!("created"), &json!(1))
    );
    assert_eq!(
        (&listed[1]["event"], &listed[1]["status"], &listed[1]["redelivery"]),
        (&json!("ping"), &json!("OK"), &json!(false))
    );
    let detail = setup.must("GET", &format!("{at}/deliveries/{}", listed[0]["id"]), json!({}));
    assert_eq!(detail["request"]["payload"]["sender"]["login"], "alice");
    assert_eq!(detail["request"]["headers"]["X-GitHub-Delivery"], listed[0]["guid"]);
    assert_eq!(detail["response"]["payload"], "said");

    setup.receiver.answer(200);
    let page = setup.api("GET", &format!("{at}/deliveries?per_page=1"), json!({}));
    assert!(page.header("link").is_some_and(|link| link.contains("rel=\"next\"")), "{:?}", page.headers);
    let again = setup.api("POST", &format!("{at}/deliveries/{}/attempts", listed[1]["id"]), json!({}));
    assert_eq!(
        (again.status, &again.json()["guid"], &again.json()["redelivery"]),
        (202, &listed[1]["guid"], &json!(true))
    );
    let hook = setup.must("GET", &at, json!({}));
    assert_eq!(
        (&hook["last_response"]["code"], &hook["waiting"]),
        (&json!(500), &json!(2)),
        "it waits behind what is tried again"
    );
    assert_eq!(setup.api("POST", &format!("{at}/pings"), json!({})).status, 204);
    assert_eq!(
        setup.api("POST", &format!("{at}/tests"), json!({})).status,
        204,
        "there is nothing to send, and that is fine"
    );
}

#[rstest]
fn what_a_payload_says_of_a_repository_is_what_the_api_says(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine);
    setup.must("PUT", "/repos/alice/project/topics", json!({ "names": ["rust", "forge"] }));
    setup.must("PATCH", "/repos/alice/project", json!({ "description": "A project" }));
    setup.must("POST", "/repos/alice/project/labels", json!({ "name": "a bug/odd", "color": "d73a4a" }));
    setup.must("POST", "/repos/alice/project/milestones", json!({ "title": "v1" }));
    setup.hook(&["*"]);
    let new = json!({ "title": "It crashes", "body": "Badly", "labels": ["a bug/odd"], "assignees": ["alice"], "milestone": 1 });
    setup.must("POST", "/repos/alice/project/issues", new);
    setup.must("POST", "/repos/alice/project/issues/1/comments", json!({ "body": "Really?" }));
    eventually(SOON, || setup.receiver.of("issue_comment").len() == 1);
    let reported = setup.receiver.of("issue_comment").remove(0).body;
    let mut repository = setup.must("GET", "/repos/alice/project", json!({}));
    // Fields that depend on the reader are left out.
    repository.as_object_mut().expect("an object").remove("permissions");
    assert_eq!(reported["repository"], repository);
    assert_eq!(reported["issue"], setup.must("GET", "/repos/alice/project/issues/1", json!({})));
    let comments = setup.must("GET", "/repos/alice/project/issues/1/comments", json!({}));
    assert_eq!(reported["comment"], comments[0]);
    let mut sender = setup.must("GET", "/users/alice", json!({}));
    let simple = |user: &Value| ["login", "id", "url", "html_url", "type", "site_admin"].map(|name| user[name].clone());
    assert_eq!(
        simple(&reported["sender"]),
        simple(sender.take().as_object().map(|map| json!(map)).as_ref().expect("an object"))
    );
    let labeled = setup.receiver.got().into_iter().find(|got| got.body["action"] == "labeled").expect("it was told");
    assert_eq!(labeled.body["label"], reported["issue"]["labels"][0]);
}

#[rstest]
fn hooks_are_for_administrators_and_belong_to_one_repository(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine);
    let id = setup.hook(&["star"]);
    eventually(SOON, || !setup.receiver.got().is_empty());
    let delivery = query(&setup.server, "SELECT id FROM webhook_deliveries");
    setup.alice.create(&setup.server, "other", false);
    let other = setup.must("POST", "/repos/alice/other/hooks", json!({ "config": { "url": setup.receiver.url() } }));
    for path in [
        format!("/repos/alice/other/hooks/{id}"),
        format!("/repos/alice/other/hooks/{id}/deliveries"),
        format!("/repos/alice/other/hooks/{}/deliveries/{delivery}", other["id"]),
    ] {
        assert_eq!(setup.api("GET", &path, json!({})).status, 404, "{path}");
    }
    let again = format!("/repos/alice/other/hooks/{}/deliveries/{delivery}/attempts", other["id"]);
    assert_eq!(setup.api("POST", &again, json!({})).status, 404);
    person(&setup.server, "bob");
    let token = setup.server.add_token("bob", "hooks,repo");
    let asked = http::get(setup.server.http_addr(), &format!("/api/v3{HOOKS}"), Some(&token));
    assert_eq!(asked.status, 403, "{}", asked.text());
    let bare = http::get(setup.server.http_addr(), &format!("/api/v3{HOOKS}"), Some(&setup.alice.token));
    assert!(bare.status == 403 && bare.text().contains("the hooks scope"), "{}", bare.text());
}

#[rstest]
#[case::private("http://10.0.0.1/", "a private address")]
#[case::metadata("http://169.254.169.254/latest/", "a link-local address")]
#[case::mapped("http://[::ffff:192.168.0.1]/", "a private address")]
#[case::decimal("http://3232235521/", "a private address")]
#[case::scheme("gopher://example.org/", "must start with http")]
#[case::user("https://a:b@example.org/", "user name or password")]
fn an_address_that_must_not_be_sent_to_is_refused_with_its_reason(#[case] url: &str, #[case] reported: &str) {
    let setup = setup(Engine::Sqlite);
    let refused = setup.api("POST", HOOKS, json!({ "config": { "url": url } }));
    assert_eq!(refused.status, 422);
    let error = &refused.json()["errors"][0];
    assert_eq!((&error["resource"], &error["field"]), (&json!("Hook"), &json!("url")));
    assert!(error["message"].as_str().is_some_and(|message| message.contains(reported)), "{error}");
    let insecure = json!({ "config": { "url": setup.receiver.url(), "insecure_ssl": 1 } });
    assert_eq!(setup.api("POST", HOOKS, insecure).json()["errors"][0]["field"], "insecure_ssl");
    assert_eq!(query(&setup.server, "SELECT count(*) FROM webhooks"), "0");
}
