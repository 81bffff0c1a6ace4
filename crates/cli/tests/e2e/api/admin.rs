//! Accounts, jobs and the audit log, for whoever looks after the site.

use super::Api;
use crate::beside::Beside as _;
use crate::support::{Person, person, query, server};
use abide_testkit::http::Response;
use abide_testkit::{Engine, Server};
use rstest::rstest;
use serde_json::{Value, json};

/// A server with a person and an admin's token.
fn setup(engine: Engine) -> (Server, Person, String) {
    let server = server(engine);
    let bob = person(&server, "bob");
    server.add_admin("boss");
    let token = server.add_token("boss", "admin,repo,user");
    (server, bob, token)
}

/// A request without a body.
fn ask(api: &Api, method: &str, path: &str) -> Response {
    api.request(method, path).send(api.server.http_addr())
}

fn logins(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|user| user["login"].as_str()).collect()
}

#[rstest]
fn an_admin_lists_accounts_and_suspends_one(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, bob, token) = setup(engine);
    let boss = Api::with(&server, &token);
    bob.create(&server, "secret", true);
    assert_eq!(logins(&boss.read("/admin/users")), ["bob", "boss"]);
    let found = boss.read("/admin/users?q=bo&per_page=1");
    assert_eq!((logins(&found), found[0]["owned_repos"].as_i64()), (vec!["bob"], Some(1)), "{found}");
    assert_eq!((found[0]["email"].as_str(), &found[0]["suspended_at"]), (Some("bob@example.org"), &Value::Null));
    let paged = boss.get("/admin/users?q=bo&per_page=1");
    assert!(paged.header("link").is_some_and(|link| link.contains("q=bo&per_page=1&page=2")), "{:?}", paged.headers);

    assert_eq!(ask(&boss, "PUT", "/users/bob/suspended").status, 204);
    assert_eq!(Api::of(&server, &bob).get("/user").status, 401, "a token of a suspended account opens nothing");
    assert!(boss.read("/admin/users?q=bob")[0]["suspended_at"].is_string());
    assert_eq!(ask(&boss, "DELETE", "/users/bob/suspended").status, 204);
    assert_eq!(Api::of(&server, &bob).get("/user").status, 200);
    let oneself = ask(&boss, "PUT", "/users/boss/suspended");
    assert_eq!(oneself.status, 403);
    assert!(oneself.text().contains("your own account"), "{}", oneself.text());
    assert_eq!(ask(&boss, "PUT", "/users/nobody/suspended").status, 404);
    let trail = boss.read("/admin/audit?actor=boss");
    let actions: Vec<_> = trail.as_array().expect("a list").iter().filter_map(|row| row["action"].as_str()).collect();
    assert_eq!(actions, ["user_unsuspended", "user_suspended"], "{trail}");
}

#[rstest]
fn an_admin_resets_a_lost_second_factor(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, _, token) = setup(engine);
    let boss = Api::with(&server, &token);
    let off = ask(&boss, "DELETE", "/admin/users/bob/two-factor");
    assert!(off.status == 409 && off.text().contains("is already off for this account"), "{}", off.text());
    let bytes = match engine {
        Engine::Sqlite => "BLOB",
        Engine::Postgres => "BYTEA",
    };
    query(
        &server,
        &format!("INSERT INTO totp (user_id, secret, confirmed_at) SELECT id, CAST('x' AS {bytes}), 1 FROM users"),
    );
    assert_eq!(ask(&boss, "DELETE", "/admin/users/bob/two-factor").status, 204);
    let own = ask(&boss, "DELETE", "/admin/users/boss/two-factor");
    assert!(own.status == 403 && own.text().contains("in your settings"), "{}", own.text());
    assert_eq!(query(&server, "SELECT count(*) FROM totp"), "1", "only that of boss is left");
    assert_eq!(ask(&boss, "DELETE", "/admin/users/nobody/two-factor").status, 404);
    assert_eq!(boss.read("/admin/audit?action=totp_reset").as_array().map(Vec::len), Some(1));
}

#[rstest]
fn an_admin_reads_the_audit_log_page_by_page(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, bob, token) = setup(engine);
    let boss = Api::with(&server, &token);
    for name in ["one", "two", "three"] {
        bob.create(&server, name, false);
    }
    let (mut path, mut seen) = ("/admin/audit?action=repo_created&per_page=2".to_owned(), Vec::new());
    loop {
        let answer = boss.get(&path);
        let rows = answer.json();
        let repos = rows.as_array().expect("a list").iter().map(|row| row["repository"].as_str().map(str::to_owned));
        seen.extend(repos.map(|repo| repo.expect("a repository")));
        let Some(link) = answer.header("link") else { break };
        let next = link.split_once("/api/v3").and_then(|(_, rest)| rest.split_once('>')).expect("a link").0;
        assert!(next.contains("action=repo_created"), "the filter holds: {next}");
        path = next.to_owned();
    }
    assert_eq!(seen, ["bob/three", "bob/two", "bob/one"]);
    let one = boss.read("/admin/audit?repo=bob/two&action=repo_created");
    assert_eq!((one.as_array().map(Vec::len), one[0]["actor"]["login"].as_str()), (Some(1), Some("bob")), "{one}");
    assert_eq!(boss.read("/admin/audit?actor=nobody"), json!([]));
}

#[rstest]
fn an_admin_sees_jobs_and_tries_a_failed_one_again(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, _, token) = setup(engine);
    let boss = Api::with(&server, &token);
    let row = |state: &str| {
        format!(
            "('mail:send', '{{\"link\":\"hidden\"}}', 1, '{state}', 4000000000000000, 3, 3, 'no answer', 1, 4000000000000000, 2)"
        )
    };
    query(
        &server,
        &format!(
            "INSERT INTO jobs (kind, payload, priority, state, run_at, attempts, max_attempts, last_error, created_at,
                expires_at, finished_at) VALUES {}, {}",
            row("failed"),
            row("running")
        ),
    );
    let failed = boss.read("/admin/jobs?state=failed");
    assert_eq!(failed.as_array().map(Vec::len), Some(1), "{failed}");
    assert_eq!(failed[0]["last_error"], "no answer");
    // Others may run beside ours.
    let id = |list: &Value| {
        let mut ours = list.as_array().expect("a list").iter().filter(|job| job["last_error"] == "no answer");
        ours.next().and_then(|job| job["id"].as_i64()).expect("a number")
    };
    let (failed_id, busy_id) = (id(&failed), id(&boss.read("/admin/jobs?state=running")));
    assert!(!failed.to_string().contains("hidden"), "what it is about may open an account: {failed}");
    assert_eq!(id(&boss.read(&format!("/admin/jobs?before={busy_id}&per_page=1"))), failed_id);
    let odd = boss.get("/admin/jobs?state=lost");
    assert_eq!(odd.status, 422);
    assert!(odd.text().contains("one of waiting, running, done, failed"), "{}", odd.text());

    let busy = ask(&boss, "POST", &format!("/admin/jobs/{busy_id}/retry"));
    assert_eq!(busy.status, 409);
    assert!(busy.text().contains("The job is running"), "{}", busy.text());
    assert_eq!(ask(&boss, "POST", &format!("/admin/jobs/{failed_id}/retry")).status, 202);
    assert_eq!(ask(&boss, "POST", "/admin/jobs/987654321/retry").status, 404);
    let trail = boss.read("/admin/audit?action=job_retried");
    assert_eq!(trail[0]["meta"]["job_id"].as_i64(), Some(failed_id), "{trail}");
}

#[rstest]
fn nobody_else_sees_any_of_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let (server, bob, _) = setup(engine);
    let narrow = server.add_token("boss", "repo,user");
    let theirs = server.add_token("bob", "admin");
    for (method, path) in [
        ("GET", "/admin/users"),
        ("GET", "/admin/jobs"),
        ("GET", "/admin/audit"),
        ("POST", "/admin/jobs/1/retry"),
        ("PUT", "/users/boss/suspended"),
        ("DELETE", "/admin/users/boss/two-factor"),
        ("DELETE", "/users/boss/suspended"),
    ] {
        assert_eq!(ask(&Api::nobody(&server), method, path).status, 401, "{method} {path}");
        assert_eq!(ask(&Api::of(&server, &bob), method, path).status, 403, "{method} {path}: no scope");
        assert_eq!(ask(&Api::with(&server, &narrow), method, path).status, 403, "{method} {path}: no scope");
        assert_eq!(ask(&Api::with(&server, &theirs), method, path).status, 404, "{method} {path}: no admin");
    }
    assert_eq!(Api::with(&server, &narrow).get("/user").status, 200, "nobody was suspended");
}
