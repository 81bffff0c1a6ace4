//! A server that dies while it notifies hundreds of people: each gets one notification and one mail.

use super::SOON;
use crate::support::{Person, assert_healthy, builder, crowded, person, query, settled};
use abide_core::failpoint;
use abide_testkit::{Engine, Server, eventually, http};
use rstest::rstest;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;

/// More than one statement notifies.
const MANY: usize = 600;
/// Of whom so many get mail, with something between them and the others.
const MAILED: usize = 60;

/// Alice with a repository that many watch, and no earlier event left to deliver.
fn crowd(server: &Server) -> Person {
    let alice = person(server, "alice");
    alice.create(server, "tool", false);
    let numbers = format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY}) ");
    for sql in [
        format!("{numbers} INSERT INTO users (name, created_at, updated_at) SELECT 'watcher' || i, 0, 0 FROM n"),
        "INSERT INTO emails (user_id, address, folded, is_primary, verified_at, created_at) \
         SELECT id, name || '@example.org', name || '@example.org', TRUE, CASE WHEN id % 10 = 0 THEN 1 END, 0 \
         FROM users WHERE name LIKE 'watcher%'"
            .into(),
        "INSERT INTO watches (user_id, repo_id, level, updated_at) \
         SELECT u.id, r.id, 'all', 0 FROM users u, repos r WHERE u.name LIKE 'watcher%'"
            .into(),
    ] {
        query(server, &sql);
    }
    // So that it is the issue that the failpoint is met with, and nothing from before.
    settled(server);
    alice
}

/// Waits until everyone who gets mail has one about each of so many threads, and no more.
fn assert_mailed(server: &Server, threads: usize) {
    let outbox = server.data_dir().join("outbox");
    let mails = || -> Vec<String> {
        let files = fs::read_dir(&outbox).into_iter().flatten().flatten().map(|file| file.path());
        let mails = files.filter(|path| path.extension().is_some_and(|ending| ending == "eml"));
        mails.filter_map(|path| fs::read_to_string(path).ok()).collect()
    };
    eventually(SOON, || mails().len() >= MAILED * threads);
    let waiting = "SELECT count(*) FROM jobs WHERE state IN ('waiting', 'running') AND kind LIKE '%mail%'";
    eventually(SOON, || query(server, waiting) == "0");
    let mails = mails();
    let line = |mail: &str, name: &str| mail.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    let different: BTreeSet<_> = mails.iter().map(|mail| (line(mail, "To: "), line(mail, "Subject: "))).collect();
    assert_eq!((mails.len(), different.len()), (MAILED * threads, MAILED * threads), "one mail each");
}

#[rstest]
fn crash_while_people_are_told_leaves_nobody_out_and_tells_nobody_twice(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(
        failpoint::NOTIFY_HALFWAY,
        failpoint::CONSUMER_BEFORE_COMMIT,
        failpoint::CONSUMER_COMMITTED,
        failpoint::NOTIFY_MAIL_BEFORE_COMMIT,
        failpoint::NOTIFY_MAIL_COMMITTED
    )]
    point: &str,
) {
    let mut server = builder(engine).start();
    let alice = crowd(&server);
    server.restart_with_failpoint(point);

    let (address, token) = (server.http_addr(), alice.token.clone());
    let body = json!({ "title": "For all", "body": "" });
    let opening =
        std::thread::spawn(move || http::post(address, "/api/v3/repos/alice/tool/issues", Some(&token), &body));
    // The server may be gone before it has answered: then there is no answer, but the issue was opened.
    if let Ok(opened) = opening.join() {
        assert_eq!(opened.status, 201, "{}", opened.text());
    }
    server.wait_exit();
    let reported = "SELECT count(*) FROM notifications WHERE state = 'unread'";
    if [failpoint::NOTIFY_HALFWAY, failpoint::CONSUMER_BEFORE_COMMIT].contains(&point) {
        assert_eq!(query(&server, reported), "0", "half of them is none of them");
    }
    server.restart();

    eventually(SOON, || query(&server, reported) == MANY.to_string());
    assert_mailed(&server, 1);
    assert_eq!(query(&server, "SELECT count(*) FROM notifications WHERE mail_due_at IS NOT NULL"), "0");
    assert_eq!(query(&server, "SELECT count(*) FROM event_failures"), "0");
    assert_healthy(&server);
}

#[rstest]
fn crash_by_sigkill_in_the_middle_of_telling_leaves_nobody_out(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    const ISSUES: usize = 6;
    let mut server = crowded(engine).start();
    let alice = crowd(&server);
    for number in 0..ISSUES {
        let body = json!({ "title": format!("For all {number}"), "body": "" });
        let opened = http::post(server.http_addr(), "/api/v3/repos/alice/tool/issues", Some(&alice.token), &body);
        assert_eq!(opened.status, 201, "{}", opened.text());
    }
    server.kill();
    let reported = "SELECT count(*) FROM notifications WHERE state = 'unread'";
    let before: usize = query(&server, reported).parse().expect("a number");
    assert_eq!(before % MANY, 0, "an issue is told to all or to none");
    server.restart();
    eventually(SOON, || query(&server, reported) == (ISSUES * MANY).to_string());
    assert_mailed(&server, ISSUES);
    assert_eq!(query(&server, "SELECT count(*) FROM event_failures"), "0");
    assert_healthy(&server);
}
