//! Offers to hand a repository over: who sees them, who answers, and what an answer comes to.

use super::hidden::comparable;
use super::{Api, assert_conflict, assert_error, assert_refused, assert_taken};
use crate::beside::Beside as _;
use crate::support::{Person, assert_healthy, person, query, server};
use abide_core::Timestamp;
use abide_testkit::http::Response;
use abide_testkit::{Engine, Server};
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;

struct Setup {
    server: Server,
    alice: Person,
    bob: Person,
    /// `alice/project`, which is private.
    project: Value,
}

fn setup(engine: Engine) -> Setup {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let project = alice.create(&server, "project", true);
    Setup { server, alice, bob, project }
}

impl Setup {
    fn giver(&self) -> Api<'_> {
        Api::of(&self.server, &self.alice)
    }

    fn taker(&self) -> Api<'_> {
        Api::of(&self.server, &self.bob)
    }

    #[track_caller]
    fn offer(&self) -> Value {
        let offered = self.giver().post("/repos/alice/project/transfer", json!({ "new_owner": "bob" }));
        assert_eq!(offered.status, 202, "{}", offered.text());
        offered.json()
    }

    fn traces(&self) -> String {
        query(&self.server, "SELECT (SELECT count(*) FROM audit_log), (SELECT count(*) FROM domain_events)")
    }
}

/// An answer to an offer.
#[track_caller]
fn answer(api: &Api<'_>, offer: &Value, answer: &str) -> Response {
    api.request("POST", &format!("/repository_transfers/{}/{answer}", offer["id"])).send(api.server.http_addr())
}

#[rstest]
fn an_offer_tells_both_sides_what_they_need_and_the_recipient_takes_it(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let setup = setup(engine);
    let (giver, taker) = (setup.giver(), setup.taker());
    assert_eq!(giver.patch("/repos/alice/project", json!({ "description": "What it is" })).status, 200);
    let offer = setup.offer();
    let path = format!("/repository_transfers/{}", offer["id"]);
    let id = setup.project["id"].as_i64().expect("an id");

    for (field, value) in [("status", "pending"), ("new_full_name", "bob/project")] {
        assert_eq!(offer[field], value, "{field}");
    }
    assert_eq!((&offer["from"]["login"], &offer["to"]["login"]), (&json!("alice"), &json!("bob")));
    assert_eq!(offer["url"], format!("{}/api/v3{path}", setup.server.url()));
    assert_eq!(offer["decided_at"], Value::Null);
    let made: i64 = query(&setup.server, "SELECT created_at FROM repo_transfers").parse().expect("microseconds");
    let made = Timestamp::from_micros(made);
    assert_eq!(offer["created_at"], made.to_string());
    assert_eq!(offer["expires_at"], made.plus(Duration::from_secs(7 * 86_400)).to_string());
    let repository = json!({
        "id": id, "full_name": "alice/project", "private": true, "archived": false, "description": "What it is",
        "size": 0, "pushed_at": null, "url": format!("{}/api/v3/repositories/{id}", setup.server.url()),
    });
    assert_eq!(offer["repository"], repository);
    assert_eq!(offer["permissions"], json!({ "accept": false, "decline": false, "cancel": true }));

    // The recipient may not read the repository, and sees what is offered all the same.
    assert_error(&taker.get("/repos/alice/project"), 404);
    let seen = taker.read(&path);
    assert_eq!(seen["repository"], repository);
    assert_eq!(seen["permissions"], json!({ "accept": true, "decline": true, "cancel": false }));
    assert_eq!(taker.read("/user/repository_transfers"), json!([seen]));
    assert_eq!(giver.read("/user/repository_transfers"), json!([offer]));

    let taken = answer(&taker, &offer, "accept");
    assert_eq!(taken.status, 200, "{}", taken.text());
    let taken = taken.json();
    assert_eq!((&taken["status"], &taken["repository"]["full_name"]), (&json!("accepted"), &json!("bob/project")));
    assert!(taken["decided_at"].is_string() && taken["new_full_name"].is_null(), "{taken}");
    assert_eq!(taken["permissions"], json!({ "accept": false, "decline": false, "cancel": false }));
    assert_eq!(taker.read("/repos/bob/project")["id"], id);
    assert_eq!(taker.read("/repos/bob/project/audit")[0]["action"], "repo_transfer_accepted");
    for api in [&giver, &taker] {
        assert_eq!(api.read("/user/repository_transfers"), json!([]));
    }

    // The former owner does not read it any more, and keeps the offer as it was made.
    assert_error(&giver.get("/repos/bob/project"), 404);
    assert_eq!(taker.patch("/repos/bob/project", json!({ "name": "secret", "description": "More" })).status, 200);
    let kept = giver.read(&path);
    assert_eq!((&kept["status"], &kept["repository"]["full_name"]), (&json!("accepted"), &json!("alice/project")));
    for field in ["private", "archived", "description", "size", "pushed_at"] {
        assert_eq!(kept["repository"][field], Value::Null, "{field}");
    }

    let before = setup.traces();
    assert_conflict(&answer(&taker, &offer, "accept"), "already accepted");
    assert_conflict(&answer(&taker, &offer, "decline"), "already accepted");
    assert_conflict(&answer(&giver, &offer, "cancel"), "already accepted");
    assert_eq!(setup.traces(), before, "what came too late leaves no trace");
    assert_healthy(&setup.server);
}

#[rstest]
fn a_stranger_cannot_tell_an_offer_from_none(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let carol = person(&setup.server, "carol");
    let public = setup.alice.create(&setup.server, "public", false);
    assert_eq!(public["private"], false);
    setup.offer();
    let of_public = setup.giver().post("/repos/alice/public/transfer", json!({ "new_owner": "bob" }));
    assert_eq!(of_public.status, 202);
    let ids = query(&setup.server, "SELECT id FROM repo_transfers ORDER BY id");
    assert_eq!(ids.lines().count(), 2);

    for who in [Api::of(&setup.server, &carol), Api::nobody(&setup.server)] {
        let expected = if who.token.is_some() { 404 } else { 401 };
        for (method, tail) in
            [("GET", ""), ("HEAD", ""), ("POST", "/accept"), ("POST", "/decline"), ("POST", "/cancel")]
        {
            let ask = |id: &str| {
                let path = format!("/repository_transfers/{id}{tail}");
                comparable(who.request(method, &path).send(setup.server.http_addr()))
            };
            let absent = ask("987654321");
            assert_eq!(absent.status, expected, "{method} {tail}");
            for id in ids.lines().chain(["0", "-1", "1e1", "x"]) {
                assert_eq!(ask(id), absent, "{method} {id}{tail}");
            }
        }
    }
    assert_eq!(Api::of(&setup.server, &carol).read("/user/repository_transfers"), json!([]));
    assert_error(&Api::nobody(&setup.server).get("/user/repository_transfers"), 401);
}

#[rstest]
fn each_side_gives_its_own_answer(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let (giver, taker) = (setup.giver(), setup.taker());
    let carol = person(&setup.server, "carol");
    let helper = Api::of(&setup.server, &carol);

    let offer = setup.offer();
    assert_error(&answer(&giver, &offer, "accept"), 403);
    assert_error(&answer(&giver, &offer, "decline"), 403);
    assert_error(&answer(&taker, &offer, "cancel"), 403);
    let declined = answer(&taker, &offer, "decline");
    assert_eq!((declined.status, &declined.json()["status"]), (200, &json!("declined")));
    assert_eq!(declined.json()["repository"]["private"], Value::Null, "what was not taken is private again");
    assert_conflict(&answer(&taker, &offer, "accept"), "already declined");
    assert_conflict(&answer(&giver, &offer, "cancel"), "already declined");

    let offer = setup.offer();
    let canceled = answer(&giver, &offer, "cancel");
    assert_eq!((canceled.status, &canceled.json()["status"]), (200, &json!("canceled")));
    assert_conflict(&answer(&taker, &offer, "accept"), "already canceled");

    // An administrator of the repository may cancel an offer; others get 404.
    let offer = setup.offer();
    let set = |role: &str| giver.put("/repos/alice/project/collaborators/carol", json!({ "permission": role })).status;
    assert_eq!(set("maintain"), 204);
    assert_error(&answer(&helper, &offer, "cancel"), 404);
    assert_eq!(set("admin"), 204);
    assert_error(&answer(&helper, &offer, "accept"), 403);
    assert_eq!(answer(&helper, &offer, "cancel").status, 200);
    let done: Vec<Value> = giver.read("/repos/alice/project/audit").as_array().cloned().unwrap_or_default();
    assert_eq!((&done[0]["action"], &done[0]["actor"]["login"]), (&json!("repo_transfer_canceled"), &json!("carol")));
    assert_eq!(giver.read("/repos/alice/project")["owner"]["login"], "alice");
    assert_healthy(&setup.server);
}

#[rstest]
fn an_offer_that_cannot_be_made_says_why(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let giver = setup.giver();
    setup.server.add_user("gone");
    setup.server.cli_ok(&["user", "suspend", "gone"]);
    let before = setup.traces();
    let offer = |body: Value| giver.post("/repos/alice/project/transfer", body);
    for nobody in ["nobody", "", "a b", "../bob", "gone", "api"] {
        let rule = assert_refused(&offer(json!({ "new_owner": nobody })), "new_owner", "invalid");
        assert!(rule.starts_with("no such account"), "{nobody:?}: {rule}");
    }
    let rule = assert_refused(&offer(json!({ "new_owner": "Alice" })), "new_owner", "invalid");
    assert!(rule.contains("already owns the repository"), "{rule}");
    assert_refused(&offer(json!({})), "new_owner", "missing_field");
    assert_refused(&offer(json!({ "new_owner": 7 })), "new_owner", "invalid");
    let rule = assert_refused(&offer(json!({ "new_owner": "bob", "new_name": "other" })), "new_name", "unprocessable");
    assert!(rule.contains("cannot rename the repository"), "{rule}");
    assert_eq!(setup.traces(), before);

    assert_eq!(offer(json!({ "new_owner": "BOB", "new_name": "project" })).status, 202);
    assert_conflict(&offer(json!({ "new_owner": "bob" })), "cancel that offer first");
}

#[rstest]
fn a_name_that_the_recipient_has_keeps_the_offer_open(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let taker = setup.taker();
    setup.bob.create(&setup.server, "project", false);
    let offer = setup.offer();
    let before = setup.traces();
    let refused = answer(&taker, &offer, "accept");
    assert_taken(&refused);
    assert_eq!(setup.traces(), before);
    assert_eq!(taker.read("/user/repository_transfers")[0]["status"], "pending");

    assert_eq!(taker.patch("/repos/bob/project", json!({ "name": "mine" })).status, 200);
    assert_eq!(answer(&taker, &offer, "accept").status, 200);
    assert_eq!(taker.read("/repos/bob/project")["id"], setup.project["id"]);
    assert_healthy(&setup.server);
}

#[rstest]
fn an_offer_ends_by_itself(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let (giver, taker) = (setup.giver(), setup.taker());
    let offer = setup.offer();
    query(&setup.server, "UPDATE repo_transfers SET expires_at = 1");
    let before = setup.traces();
    assert_conflict(&answer(&taker, &offer, "accept"), "expired");
    assert_conflict(&answer(&taker, &offer, "decline"), "expired");
    assert_conflict(&answer(&giver, &offer, "cancel"), "expired");
    assert_eq!(setup.traces(), before);
    let seen = taker.read(&format!("/repository_transfers/{}", offer["id"]));
    assert_eq!((&seen["status"], &seen["repository"]["private"]), (&json!("expired"), &Value::Null));
    assert_eq!(seen["permissions"]["accept"], false);

    let second = setup.offer();
    assert_ne!(second["id"], offer["id"], "it does not stand in the way of another one");
    assert_conflict(&answer(&taker, &offer, "accept"), "already expired");
    assert_eq!(answer(&taker, &second, "accept").status, 200);
}

#[rstest]
fn a_suspended_recipient_cannot_accept(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let offer = setup.offer();
    setup.server.cli_ok(&["user", "suspend", "bob"]);
    let before = setup.traces();
    assert_error(&answer(&setup.taker(), &offer, "accept"), 401);
    assert_eq!(setup.traces(), before);
    assert_eq!(setup.giver().read("/user/repository_transfers")[0]["status"], "pending");
    setup.server.cli_ok(&["user", "unsuspend", "bob"]);
    assert_eq!(answer(&setup.taker(), &offer, "accept").status, 200);
}

#[rstest]
fn an_offer_does_not_outlive_what_it_is_about(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let setup = setup(engine);
    let (giver, taker) = (setup.giver(), setup.taker());
    person(&setup.server, "carol");

    // It goes another way: an old offer takes nothing, now or when it has come back.
    let offer = setup.offer();
    setup.server.cli_ok(&["repo", "transfer", "alice/project", "carol"]);
    assert_conflict(&answer(&taker, &offer, "accept"), "already canceled");
    setup.server.cli_ok(&["repo", "transfer", "carol/project", "alice"]);
    assert_conflict(&answer(&taker, &offer, "accept"), "already canceled");

    let offer = setup.offer();
    assert_eq!(giver.delete("/repos/alice/project").status, 204);
    assert_conflict(&answer(&taker, &offer, "accept"), "already canceled");
    let seen = taker.read(&format!("/repository_transfers/{}", offer["id"]));
    assert_eq!((&seen["status"], &seen["repository"]["size"]), (&json!("canceled"), &Value::Null));
    assert_eq!(taker.read("/user/repository_transfers"), json!([]));
    let restore = format!("/repositories/{}/restore", setup.project["id"]);
    assert_eq!(giver.post(&restore, json!({})).status, 200);
    assert_conflict(&answer(&taker, &offer, "accept"), "already canceled");
    assert_healthy(&setup.server);
}

#[test]
fn offers_come_in_pages() {
    let setup = setup(Engine::Sqlite);
    let taker = setup.taker();
    for name in ["a", "b", "c"] {
        setup.alice.create(&setup.server, name, false);
        let path = format!("/repos/alice/{name}/transfer");
        assert_eq!(setup.giver().post(&path, json!({ "new_owner": "bob" })).status, 202);
    }
    let names = |list: Value| {
        let all = list.as_array().expect("a list").iter();
        all.map(|one| one["repository"]["full_name"].clone()).collect::<Vec<_>>()
    };
    let first = taker.get("/user/repository_transfers?per_page=2");
    assert_eq!(names(first.json()), ["alice/c", "alice/b"], "the latest first");
    assert!(first.header("link").is_some_and(|link| link.contains("page=2>; rel=\"next\"")), "{first:?}");
    assert_eq!(names(taker.read("/user/repository_transfers?per_page=2&page=2")), ["alice/a"]);
}
