//! Several servers on one database and one set of directories.

use crate::support::{assert_healthy, builder, crowded, person, push_events, query};
use abide_testkit::{Engine, GitClient, Server, eventually};
use rstest::rstest;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

/// A second server beside the first. Killed when dropped.
pub struct Second {
    child: Child,
    pub url: String,
}

impl Second {
    pub fn start(first: &Server) -> Self {
        let mut command = first.command(&["serve", "--listen", "127.0.0.1:0", "--ssh-listen", "127.0.0.1:0"]);
        let mut child = command
            .env("ABIDE_SERVER__NODE", "second")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says when it is ready");
        let address = line.strip_prefix("Abide is ready at ").and_then(|rest| rest.split(' ').next());
        let url = address.expect("it says where it is").to_owned();
        Self { child, url }
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn head(git: &GitClient, dir: &std::path::Path) -> String {
    git.ok(dir, &["rev-parse", "HEAD"]).trim().to_owned()
}

#[test]
fn what_is_pushed_to_one_node_is_served_by_the_other_at_once() {
    let server = crowded(Engine::Postgres).start();
    let second = Second::start(&server);
    let alice = person(&server, "alice");
    let repo = alice.create(&server, "project", false)["id"].as_i64().expect("an id");
    let (here, there) = (server.http_url("alice", "project"), format!("{}/alice/project.git", second.url));
    let tree = alice.git.init_work_tree();
    for round in 0..6 {
        alice.git.commit_file(&tree, "n", round.to_string(), "more");
        let (push_to, read_from) = if round % 2 == 0 { (&here, &there) } else { (&there, &here) };
        alice.git.ok(&tree, &["push", push_to, "main"]);
        let seen = alice.git.ok(&tree, &["ls-remote", read_from, "refs/heads/main"]);
        assert_eq!(seen.split_whitespace().next(), Some(head(&alice.git, &tree).as_str()), "round {round}");
    }
    assert_eq!(push_events(&server, repo), 6);
    assert_healthy(&server);
}

#[test]
fn pushes_through_two_nodes_to_one_repository_take_turns() {
    let server = crowded(Engine::Postgres).start();
    let second = Second::start(&server);
    let alice = person(&server, "alice");
    let repo = alice.create(&server, "project", false)["id"].as_i64().expect("an id");
    let urls = [server.http_url("alice", "project"), format!("{}/alice/project.git", second.url)];
    std::thread::scope(|scope| {
        for (number, url) in urls.iter().cycle().take(4).enumerate() {
            let token = alice.token.clone();
            scope.spawn(move || {
                let git = GitClient::new().with_token(&token);
                let tree = git.init_work_tree();
                for round in 0..4 {
                    git.commit_file(&tree, "n", format!("{number}/{round}"), "more");
                    git.ok(&tree, &["push", url, &format!("HEAD:refs/heads/branch-{number}")]);
                }
            });
        }
    });
    assert_eq!(push_events(&server, repo), 16);
    assert_eq!(alice.git.ok(server.data_dir(), &["ls-remote", "--heads", &urls[0]]).lines().count(), 4);
    assert_healthy(&server);
}

#[test]
fn a_node_that_died_in_a_push_is_cleaned_up_after_by_the_other() {
    let lease = "2s";
    let mut server = crowded(Engine::Postgres).env("ABIDE_GIT__LEASE_TTL", lease).start();
    let alice = person(&server, "alice");
    let repo = alice.create(&server, "project", false)["id"].as_i64().expect("an id");
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "one", "one");
    server.restart_with_failpoint(abide_core::failpoint::PUSH_REFS_UPDATED);
    let second = Second::start(&server);
    assert!(!alice.git.run(&tree, &["push", &server.http_url("alice", "project"), "main"]).status.success());
    server.wait_exit();

    // The first node stays dead. Whoever pushes next waits for its lease to end and finishes its push.
    let there = format!("{}/alice/project.git", second.url);
    alice.git.commit_file(&tree, "a", "two", "two");
    alice.git.ok(&tree, &["push", &there, "main"]);
    assert_eq!(push_events(&server, repo), 2, "the dead node's push has its event too");
    eventually(Duration::from_secs(20), || {
        query(&server, "SELECT count(*) FROM pushes WHERE state = 'running'") == "0"
    });
    assert_healthy(&server);
}

#[rstest]
fn a_push_to_a_repository_that_another_node_holds_is_told_that_it_is_busy(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = builder(engine).env("ABIDE_GIT__LEASE_WAIT", "300ms").start();
    let alice = person(&server, "alice");
    let repo = alice.create(&server, "project", false)["id"].as_i64().expect("an id");
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "one", "one");
    let url = server.http_url("alice", "project");
    let far = i64::MAX;
    query(
        &server,
        &format!("INSERT INTO leases (name, holder, token, expires_at) VALUES ('repo:{repo}', 'other', 5, {far})"),
    );

    let said = alice.git.fails(&tree, &["push", &url, "main"]);
    assert!(said.contains("busy with another push"), "{said}");

    query(&server, "UPDATE leases SET expires_at = 0");
    alice.git.ok(&tree, &["push", &url, "main"]);
    assert_healthy(&server);
}
