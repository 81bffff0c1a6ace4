//! An operator's first day: accounts, passwords typed at a terminal, and mistyped paths.

use crate::beside::Beside as _;
use crate::cli::{Said, alone, cli};
use crate::support::{person, query, server};
use abide_testkit::http;
use abide_testkit::{Engine, PASSWORD, Server};
use rstest::rstest;
use serde_json::json;
use std::process::Command;

#[rstest]
fn the_address_of_an_account_that_the_operator_adds_is_verified(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    let add = |name: &str, more: &[&str]| {
        let email = format!("{name}@example.org");
        let args = [&["user", "add", name, "--email", &email, "--password-stdin"], more].concat();
        assert!(server.cli_stdin(&args, PASSWORD).status.success());
    };
    add("alice", &[]);
    add("bob", &["--unverified"]);
    let verified = "SELECT address FROM emails WHERE verified_at IS NOT NULL ORDER BY id";
    assert_eq!(query(&server, verified), "alice@example.org");
}

/// Runs a command at a terminal of its own and types lines, each after something was asked. Prints what the terminal shows.
const AT_A_TERMINAL: &str = r#"
import os, pty, sys
typed = sys.argv[1].split(",")
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
while True:
    try:
        part = os.read(fd, 1024)
    except OSError:
        break
    if not part:
        break
    shown += part
    if typed and shown.endswith(b"assword: "):
        os.write(fd, typed.pop(0).encode() + b"\n")
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(status))
"#;

fn at_a_terminal(server: &Server, typed: &str, args: &[&str]) -> (Option<i32>, String) {
    let command = server.command(args);
    let python = std::env::var("ABIDE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut run = Command::new(python);
    run.args(["-c", AT_A_TERMINAL, typed]).arg(command.get_program()).args(command.get_args());
    run.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = run.output().expect("Python is installed");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_password_is_asked_for_twice_at_a_terminal_and_not_shown() {
    let server = server(Engine::Sqlite);
    let add = ["user", "add", "alice", "--email", "alice@example.org"];
    let (code, shown) = at_a_terminal(&server, "long enough to pass,another one", &add);
    assert_eq!(code, Some(4), "{shown}");
    assert!(shown.contains("the passwords do not match") && !shown.contains("long enough"), "{shown}");
    let (code, shown) = at_a_terminal(&server, "long enough to pass,long enough to pass", &add);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Password:") && shown.contains("Repeat password:"), "{shown}");
    assert!(shown.contains("added alice") && !shown.contains("long enough"), "{shown}");
    let passwd = ["user", "passwd", "alice"];
    let (code, shown) = at_a_terminal(&server, "even longer to pass,even longer to pass", &passwd);
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("even longer"), "{shown}");
}

#[test]
fn help_says_where_everything_is_kept_by_default() {
    let dir = tempfile::tempdir().expect("a directory");
    for args in [&["--help"][..], &["doctor", "--help"], &["user", "add", "--help"]] {
        let help = alone(dir.path(), args, &[]).stdout;
        assert!(help.contains("[default: ./data]"), "{help}");
    }
}

#[test]
fn a_mistyped_data_directory_is_named_and_not_made() {
    let dir = tempfile::tempdir().expect("a directory");
    for args in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["doctor", "--fix"],
        &["user", "list"],
        &["repo", "list"],
        &["jobs", "list"],
        &["token", "list", "alice"],
    ] {
        let args = [args, &["--data", "dta"]].concat();
        alone(dir.path(), &args, &[]).refused(3, &["data directory dta does not exist", "hint: set it with --data"]);
        assert_eq!(dir.path().read_dir().expect("readable").count(), 0, "{args:?} made something");
    }
}

#[rstest]
fn a_name_that_was_folded_is_said_to_be(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let post =
        |name: &str| http::post(server.http_addr(), "/api/v3/user/repos", Some(&alice.token), &json!({ "name": name }));
    let made = post("mdBook");
    assert_eq!((made.status, &made.json()["name"]), (201, &json!("mdbook")));
    assert_eq!(made.header("x-abide-notice"), Some("repository names are lowercase; this one is named mdbook"));
    assert_eq!(post("plain").header("x-abide-notice"), None);
    let path = "/api/v3/repos/alice/MDBOOK";
    let renamed = http::patch(server.http_addr(), path, Some(&alice.token), &json!({ "name": "TheBook" }));
    assert_eq!(renamed.header("x-abide-notice"), Some("repository names are lowercase; this one is named thebook"));
    let said = cli(&server, &["repo", "rename", "alice/thebook", "MdBook"]);
    assert!(said.stdout.contains("alice/mdbook") && said.stdout.contains("names are lowercase"), "{}", said.stdout);
    let browser = crate::pages::logged_in(&server, "alice");
    let made = browser.submit("/new", "/new", &[("name", "RustBook"), ("visibility", "public")]);
    let page = browser.page(crate::pages::browser::location(&made));
    assert!(page.contains("Repository names are lowercase"), "{page}");

    // Restoring under another name, by every road.
    let delete = |name: &str| {
        let path = format!("/api/v3/repos/alice/{name}");
        let id = http::get(server.http_addr(), &path, Some(&alice.token)).json()["id"].to_string();
        assert_eq!(http::delete(server.http_addr(), &path, Some(&alice.token)).status, 204);
        id
    };
    let id = delete("mdbook");
    let path = format!("/api/v3/repositories/{id}/restore");
    let restored = http::post(server.http_addr(), &path, Some(&alice.token), &json!({ "name": "MdBook2" }));
    assert_eq!((restored.status, &restored.json()["name"]), (200, &json!("mdbook2")));
    assert_eq!(restored.header("x-abide-notice"), Some("repository names are lowercase; this one is named mdbook2"));
    let id = delete("mdbook2");
    let restored = http::post(server.http_addr(), &path, Some(&alice.token), &json!({}));
    assert_eq!((restored.status, restored.header("x-abide-notice")), (200, None));
    delete("mdbook2");
    let said = cli(&server, &["repo", "restore", &id, "--name", "MDBOOK3"]);
    assert!(said.stdout.contains("alice/mdbook3; repository names are lowercase"), "{}", said.stdout);
    delete("mdbook3");
    let (from, to) = ("/settings/repositories", format!("/settings/repositories/restore/{id}"));
    let restored = browser.submit(from, &to, &[("name", "MdBook4")]);
    let page = browser.page(crate::pages::browser::location(&restored));
    assert!(
        page.contains("Repository restored with all its data") && page.contains("Repository names are lowercase"),
        "{page}"
    );
    let said = cli(&server, &["user", "rename", "alice", "ALICIA"]);
    assert!(said.stdout.contains("to alicia; user names are lowercase"), "{}", said.stdout);
}

#[rstest]
fn an_account_is_deleted_by_its_owner_an_admin_and_the_operator(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let server = server(engine);
    server.add_admin("boss");
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    server.add_user("carol");
    alice.create(&server, "tool", false);
    let browser = crate::pages::logged_in(&server, "alice");
    assert!(browser.page("/settings/account").contains("/settings/account/delete"));
    let form = [("name", "alice"), ("current_password", PASSWORD), ("content", "removed")];
    let deleted = browser.submit("/settings/account/delete", "/settings/account/delete", &form);
    let page = browser.page(crate::pages::browser::location(&deleted));
    assert!(page.contains("Account deleted."), "{page}");
    assert_eq!(http::get(server.http_addr(), "/api/v3/user", Some(&alice.token)).status, 401);
    for gone in ["/alice", "/alice/tool", "/api/v3/users/alice", "/api/v3/repos/alice/tool"] {
        assert_eq!(http::get(server.http_addr(), gone, None).status, 404, "{gone}");
    }

    let admin = server.add_token("boss", "admin");
    let delete =
        |path: &str, token: &str| http::Request::new("DELETE", path).token(Some(token)).send(server.http_addr());
    assert_eq!(delete("/api/v3/admin/users/bob?content=nonsense", &admin).status, 422);
    assert_eq!(delete("/api/v3/admin/users/boss", &admin).status, 403);
    assert_eq!(delete("/api/v3/admin/users/bob", &admin).status, 204);
    assert_eq!(http::get(server.http_addr(), "/api/v3/user", Some(&bob.token)).status, 401);

    cli(&server, &["user", "remove", "carol"]).refused(2, &["cannot be undone", "--yes"]);
    let removed: Said = cli(&server, &["user", "remove", "carol", "--yes"]);
    assert!(removed.stdout.contains("deleted carol"), "{}", removed.stderr);
    cli(&server, &["user", "remove", "carol", "--yes"]).refused(3, &["user carol not found"]);
    cli(&server, &["user", "remove", "boss", "--yes"]).refused(4, &["only administrator"]);
    let add = ["user", "add", "carol", "--email", "new@example.org", "--password-stdin"];
    Said::from(server.cli_stdin(&add, PASSWORD)).refused(4, &["this user name is taken"]);
    server.cli_ok(&["user", "release", "carol"]);
    cli(&server, &["user", "release", "carol"]).refused(3, &["not an old user name"]);
    assert_eq!(Said::from(server.cli_stdin(&add, PASSWORD)).code, Some(0), "a released name is free");
    assert_eq!(query(&server, "SELECT count(*) FROM users WHERE deleted_at IS NOT NULL"), "3");
}

#[test]
fn a_reader_that_went_away_ends_a_command_quietly() {
    let server = server(Engine::Sqlite);
    for args in [&["config"][..], &["user", "list"], &["doctor"]] {
        let (reader, writer) = std::io::pipe().expect("pipes are to be had");
        drop(reader);
        let said = server.command(args).stdout(writer).output().expect("the command runs");
        assert_eq!(said.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&said.stderr), "", "{args:?}");
    }
}
