//! An announcement, a state and a pull request do not expire while the pack of their push arrives.

use super::setup::{Setup, WAITS, now, npub, state};
use crate::support::{builder, query};
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
const TIP: &str = "1234567890123456789012345678901234567890";

/// Sends the command and the head of the pack of a push that creates one ref, and waits until the pack arrives. The rest
/// is never sent.
fn begin_push(setup: &Setup, owner: &Key, identifier: &str, name: &str) -> TcpStream {
    let command = format!("{} {TIP} {name}\0report-status", "0".repeat(40));
    let mut push = format!("{:04x}{command}0000", command.len() + 4).into_bytes();
    push.extend(b"PACK\0\0\0\x02\0\0\0\x02\xb0\x80\x80\x01\x78\x9c");
    let mut client = TcpStream::connect(setup.server.http_addr()).expect("the server listens");
    let head = format!(
        "POST /{}/{identifier}.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\
         Content-Type: application/x-git-receive-pack-request\r\n\r\n{:x}\r\n",
        npub(owner),
        push.len()
    );
    client.write_all(&[head.as_bytes(), &push, b"\r\n"].concat()).expect("the server reads");
    let incoming = setup.server.data_dir().join("incoming");
    eventually(SOON, || std::fs::read_dir(&incoming).is_ok_and(|mut areas| areas.next().is_some()));
    client
}

/// Lets the only entry of each table expire in a second, as if the push had taken long, and waits until its expiry is
/// raised.
fn assert_raised(setup: &Setup, tables: &[&str]) {
    let soon = i64::try_from(now() + 1).expect("this century") * 1_000_000;
    for table in tables {
        query(&setup.server, &format!("UPDATE {table} SET expires_at = {soon}"));
    }
    for table in tables {
        let raised = format!("SELECT count(*) FROM {table} WHERE expires_at > {soon}");
        eventually(SOON, || query(&setup.server, &raised) == "1");
    }
}

#[rstest]
fn a_state_and_its_announcement_do_not_expire_while_their_push_arrives(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__AFTER_PUSH", "3s").start());
    let owner = Key::new(5);
    setup.announce(&owner, "slow", &[]);
    setup.state_waits(&state(&owner, now() - 5, "slow", &[("refs/heads/main", TIP)], Some("main")));
    let client = begin_push(&setup, &owner, "slow", "refs/heads/main");
    assert_raised(&setup, &["purgatory_states", "purgatory_announcements"]);
    drop(client);
}

#[rstest]
fn a_pull_request_does_not_expire_while_its_commit_arrives(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let mut setup = Setup::on(builder(engine).env("ABIDE_GRASP__AFTER_PUSH", "3s").start());
    let owner = setup.owner.clone();
    setup.served(&owner, "demo", &[]);
    let coordinate = owner.coordinate("demo");
    let event = Key::new(9).event(now(), 1618, &[&["a", &coordinate], &["c", TIP]], "please");
    assert_eq!(setup.relay.publish(&event), (true, WAITS.to_owned()));
    let client = begin_push(&setup, &owner, "demo", &format!("refs/nostr/{}", event.id.to_hex()));
    assert_raised(&setup, &["purgatory_proposals"]);
    drop(client);
}
