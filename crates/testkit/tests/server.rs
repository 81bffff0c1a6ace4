//! `Server` and the process that it starts, tested with a stand-in for the binary.

use std::os::unix::process::ExitStatusExt;
use std::panic;
use std::path::Path;

use abide_testkit::{Engine, Server, ServerBuilder};

fn fake() -> ServerBuilder {
    Server::builder(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-abide"), Engine::Sqlite)
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_server_is_ready_when_it_says_so_and_ends_with_its_owner() {
    let server = fake().arg("--public-url").arg("http://forge.example").start();
    assert_eq!(server.url(), "http://127.0.0.1:4711");
    assert_eq!(server.ssh_addr().port(), 4722);
    assert!(server.log().contains("--public-url http://forge.example"), "{}", server.log());
    assert!(server.rss_bytes() > 0);

    let pid = server.pid();
    let data = server.data_dir().to_owned();
    drop(server);
    assert!(!runs(pid));
    assert!(!data.exists());
}

#[test]
fn a_server_that_does_not_start_shows_its_log() {
    let message = panic::catch_unwind(|| fake().env("FAKE", "broken").start()).expect_err("it cannot start");
    let message = message.downcast_ref::<String>().expect("a formatted message");
    assert!(message.contains("exit status: 3"), "{message}");
    assert!(message.contains("the disk is made of cheese"), "{message}");
}

#[test]
fn a_restart_keeps_everything_but_the_failpoint() {
    let mut server = fake().failpoint("now").start();
    let (http, data) = (server.http_addr(), server.data_dir().to_owned());
    assert_eq!(server.wait_exit().signal(), Some(6));

    server.restart();
    assert_eq!(server.http_addr(), http);
    assert_eq!(server.data_dir(), data);
    let log = server.log();
    assert!(log.contains("failpoint: now") && log.contains("failpoint: none"), "{log}");
    assert!(log.contains("--listen 127.0.0.1:4711 --ssh-listen 127.0.0.1:4722"), "{log}");
}

#[test]
fn terminating_lets_a_server_finish_and_killing_does_not() {
    let mut server = fake().start();
    assert!(server.terminate().success());
    assert!(server.log().contains("drained\n"), "{}", server.log());

    server.restart();
    let pid = server.pid();
    server.kill();
    assert!(!runs(pid));
}

#[test]
fn the_command_line_works_on_the_same_data() {
    let server = fake().start();
    let data = format!("--data {}", server.data_dir().display());

    let output = server.cli_stdin(&["user", "add", "ada"], "secret\n");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, format!("called: user add ada {data}\nsecret\n"));
    assert!(server.cli_ok(&["doctor", "--json"]).ends_with(&format!("{data}\n")));
    assert_eq!(server.cli(&["refuse"]).status.code(), Some(1));
}

#[test]
fn on_postgres_every_command_is_told_the_database() {
    let binary = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake-abide");
    let server = Server::builder(binary, Engine::Postgres).start();
    let url = server.database().url().expect("PostgreSQL has a URL");
    assert!(server.log().contains(&format!("--database {url}")), "{}", server.log());
    assert!(server.cli_ok(&["doctor"]).contains(&format!("--database {url}")));
}
