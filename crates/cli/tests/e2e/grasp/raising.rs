//! A state and an announcement do not expire while the pack of their push arrives.

use super::scene::{Scene, now, npub, state};
use crate::support::{builder, query};
use abide_testkit::{Engine, Key, eventually};
use rstest::rstest;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

#[rstest]
fn a_state_and_its_announcement_do_not_expire_while_their_push_arrives(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut scene = Scene::on(builder(engine).env("ABIDE_GRASP__AFTER_PUSH", "3s").start());
    let owner = Key::new(5);
    scene.announce(&owner, "slow", &[]);
    let tip = "1234567890123456789012345678901234567890";
    scene.state_waits(&state(&owner, now() - 5, "slow", &[("refs/heads/main", tip)], Some("main")));
    // The commands and the head of a pack; the rest is still to come.
    let command = format!("{} {tip} refs/heads/main\0report-status", "0".repeat(40));
    let mut push = format!("{:04x}{command}0000", command.len() + 4).into_bytes();
    push.extend(b"PACK\0\0\0\x02\0\0\0\x02\xb0\x80\x80\x01\x78\x9c");
    let mut client = TcpStream::connect(scene.server.http_addr()).expect("the server listens");
    let head = format!(
        "POST /{}/slow.git/git-receive-pack HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\
         Content-Type: application/x-git-receive-pack-request\r\n\r\n{:x}\r\n",
        npub(&owner),
        push.len()
    );
    client.write_all(&[head.as_bytes(), &push, b"\r\n"].concat()).expect("the server reads");
    let incoming = scene.server.data_dir().join("incoming");
    eventually(SOON, || std::fs::read_dir(&incoming).is_ok_and(|mut areas| areas.next().is_some()));

    // As if the push had taken so long already that both are about to end.
    let soon = i64::try_from(now() + 1).expect("this century") * 1_000_000;
    for table in ["purgatory_states", "purgatory_announcements"] {
        query(&scene.server, &format!("UPDATE {table} SET expires_at = {soon}"));
    }
    for table in ["purgatory_states", "purgatory_announcements"] {
        let raised = format!("SELECT count(*) FROM {table} WHERE expires_at > {soon}");
        eventually(SOON, || query(&scene.server, &raised) == "1");
    }
    drop(client);
}
