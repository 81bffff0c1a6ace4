//! Nobody else on the machine can look into the data directory.

use crate::support::{assert_healthy, person, server};
use abide_testkit::Engine;
use rstest::rstest;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o7777
}

/// Every path below a directory that others may do anything with.
fn open_to_others(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if mode(&path) & 0o077 != 0 {
            found.push(format!("{} {:o}", path.display(), mode(&path)));
        }
        if path.is_dir() {
            found.extend(open_to_others(&path));
        }
    }
    found
}

#[rstest]
fn everything_that_a_server_makes_is_for_its_user_alone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice").with_ssh(&server);
    alice.create(&server, "tool", false);
    let tree = alice.git.init_work_tree();
    alice.git.commit_file(&tree, "a", "1", "first");
    for url in [server.http_url("alice", "tool"), server.ssh_url("alice", "tool")] {
        alice.git.ok(&tree, &["push", &url, "HEAD:refs/heads/main"]);
    }
    assert_eq!(open_to_others(server.data_dir()), Vec::<String>::new());
    assert_healthy(&server);

    fs::set_permissions(server.data_dir(), Permissions::from_mode(0o755)).expect("it is ours");
    let repos = server.data_dir().join("repos");
    fs::set_permissions(&repos, Permissions::from_mode(0o750)).expect("it is ours");
    let sick = server.cli(&["doctor"]);
    assert_eq!(sick.status.code(), Some(5));
    let said = String::from_utf8_lossy(&sick.stdout).into_owned();
    assert!(said.contains("has mode 0755") && said.contains("repos has mode 0750"), "{said}");
    server.cli_ok(&["doctor", "--fix"]);
    assert_eq!((mode(server.data_dir()), mode(&repos)), (0o700, 0o700));
}

#[test]
fn a_fresh_data_directory_is_closed_whatever_the_mask_was() {
    let parent = tempfile::tempdir().expect("a directory");
    let data = parent.path().join("data");
    let script = format!("umask 000; exec '{}' user invite --data '{}'", env!("CARGO_BIN_EXE_abide"), data.display());
    assert!(Command::new("sh").args(["-c", &script]).output().expect("a shell").status.success());
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("abide.db")), 0o600);
}
