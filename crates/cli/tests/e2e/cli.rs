//! The command line, beside a running server and without one: what it prints, and how it ends.
//!
//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused, 5 the doctor found something.

use crate::beside::Beside as _;
use crate::support::{assert_healthy, builder, person, query, server};
use abide_testkit::{Engine, GitClient, Server, TestDatabase, eventually};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Output and exit status of a command.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command speaks UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Said {
    /// Fails unless it ended with this code and complained in these words, on standard error alone.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing: {}", self.stderr);
        }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }
}

pub fn cli(server: &Server, args: &[&str]) -> Said {
    server.cli(args).into()
}

/// `abide ARGS` where no server ever ran.
pub fn alone(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abide"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ABIDE_")) {
        command.env_remove(name);
    }
    let output = command.args(args).current_dir(dir).envs(env.iter().copied()).output();
    output.expect("the binary was just built").into()
}

#[rstest]
fn user_add_says_which_rule_is_broken(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let add = |name: &str, email: &str, password: &str| -> Said {
        server.cli_stdin(&["user", "add", name, "--email", email, "--password-stdin"], format!("{password}\n")).into()
    };
    let good = "long enough to pass";

    let added = add("Alice", "alice@example.org", good);
    assert_eq!(
        (added.code, added.stdout.as_str()),
        (Some(0), "added alice; user names are lowercase\n"),
        "{}",
        added.stderr
    );

    add("a_b", "b@example.org", good).refused(4, &["name:", "only letters a–z, digits and hyphens"]);
    add("-b", "b@example.org", good).refused(2, &[]);
    add("b-", "b@example.org", good).refused(4, &["name:", "hyphen"]);
    add("npub1xyz", "b@example.org", good).refused(4, &["name:", "nostr"]);
    add("api", "b@example.org", good).refused(4, &["name:", "reserved"]);
    add(&"b".repeat(40), "b@example.org", good).refused(4, &["name:", "1 to 39"]);
    add("alice", "b@example.org", good).refused(4, &["this user name is taken"]);
    add("ALICE", "b@example.org", good).refused(4, &["this user name is taken"]);
    add("bob", "alice@example.org", good).refused(4, &["email:", "another account uses this address"]);
    add("bob", "no address", good).refused(4, &["email:", "someone@example.org"]);
    add("bob", "bob@example.org", "short").refused(4, &["password:", "characters"]);
    add("bob", "bob@example.org", "").refused(4, &["password:"]);
    cli(&server, &["user", "add", "bob", "--email", "bob@example.org"]).refused(2, &["--password-stdin"]);

    let listed = cli(&server, &["user", "list", "--json"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "nothing half-done remains: {listed}");
    assert_eq!((&listed[0]["name"], &listed[0]["suspended"]), (&json!("alice"), &json!(false)));
    assert_healthy(&server);
}

#[test]
fn people_are_suspended_and_given_new_passwords() {
    let server = server(Engine::Sqlite);
    server.add_user("alice");
    let state = || cli(&server, &["user", "list", "--json"]).json()[0]["suspended"].clone();
    server.cli_ok(&["user", "suspend", "alice"]);
    assert_eq!(state(), true);
    assert!(cli(&server, &["user", "list"]).stdout.contains("suspended"));
    server.cli_ok(&["user", "unsuspend", "alice"]);
    assert_eq!(state(), false);
    cli(&server, &["user", "suspend", "nobody"]).refused(3, &["user nobody not found", "hint: `abide user list`"]);

    let passwd =
        |password: &str| Said::from(server.cli_stdin(&["user", "passwd", "alice", "--password-stdin"], password));
    assert_eq!(passwd("another long password\n").code, Some(0));
    passwd("short").refused(4, &["a password must have"]);
}

/// The links to the page that makes the first admin, as the server printed them.
fn setup_links(server: &Server) -> Vec<String> {
    let printed = server.log();
    let links = printed.lines().filter_map(|line| line.strip_prefix("Create the first admin at "));
    links.map(str::to_owned).collect()
}

#[rstest]
fn the_server_prints_a_link_for_the_first_admin_until_there_is_one(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut server = builder(engine).env("ABIDE_SERVER__PUBLIC_URL", "https://git.example.org").start();
    let printed = |server: &Server, count: usize| {
        eventually(Duration::from_secs(20), || setup_links(server).len() == count);
        setup_links(server).pop().expect("a link")
    };
    let first = printed(&server, 1);
    let token = first.strip_prefix("https://git.example.org/setup/").expect("a link to the site");
    assert_eq!(token.len(), 43, "256 random bits: {token}");
    let kept = query(&server, "SELECT purpose FROM one_time_links");
    assert_eq!(kept, "setup");

    server.restart();
    let second = printed(&server, 2);
    assert_ne!(first, second);
    assert_eq!(query(&server, "SELECT count(*) FROM one_time_links"), "1", "the older one is dead");

    server.add_user("alice");
    server.restart();
    printed(&server, 3);
    server.add_person("bob", true, "repo");
    server.restart();
    server.terminate();
    assert_eq!(setup_links(&server).len(), 3, "nobody is first any more");
}

#[rstest]
fn user_invite_prints_the_link_alone_and_sends_it(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = builder(engine).env("ABIDE_SERVER__PUBLIC_URL", "https://git.example.org").start();
    let invited = cli(&server, &["user", "invite"]);
    assert_eq!((invited.code, invited.stderr.as_str()), (Some(0), ""));
    let link = invited.stdout.strip_suffix('\n').expect("one line");
    assert!(link.starts_with("https://git.example.org/invite/") && !link.contains(char::is_whitespace), "{link}");

    let sent = cli(&server, &["user", "invite", "--email", "new@example.org"]).stdout;
    let outbox = server.data_dir().join("outbox");
    let mails = || fs::read_dir(&outbox).map(|all| all.filter_map(Result::ok).collect::<Vec<_>>()).unwrap_or_default();
    let whole = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".eml");
    eventually(Duration::from_secs(20), || mails().iter().any(|entry| whole(&entry.file_name())));
    assert_eq!(mails().len(), 1, "without an address nothing is sent");
    let mail = fs::read_to_string(mails()[0].path()).expect("ours");
    // Quoted-printable breaks long lines with "=" and writes "=" as "=3D".
    let text = mail.replace("=\r\n", "").replace("=3D", "=");
    assert!(text.contains("To: new@example.org\r\n") && text.contains(sent.trim()), "{mail}");

    cli(&server, &["user", "invite", "--email", "nonsense"]).refused(4, &["email:", "someone@example.org"]);
    let jobs = cli(&server, &["jobs", "list", "--json"]).stdout;
    assert!(jobs.contains("mail:send") && !jobs.contains("/invite/"), "{jobs}");
    assert_healthy(&server);
}

#[test]
fn nobody_is_invited_where_nobody_can_sign_up() {
    let server = builder(Engine::Sqlite).env("ABIDE_SIGNUP__MODE", "closed").start();
    cli(&server, &["user", "invite"]).refused(4, &["signup.mode"]);
}

#[rstest]
fn token_add_prints_the_token_alone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    server.add_user("alice");
    let added = cli(&server, &["token", "add", "alice", "--scopes", "repo, user", "--label", "laptop"]);
    assert_eq!((added.code, added.stderr.as_str()), (Some(0), ""));
    let token = added.stdout.strip_suffix('\n').expect("one line");
    assert!(token.starts_with("abide_pat_") && token.len() > 40 && !token.contains(char::is_whitespace), "{token}");

    let listed = cli(&server, &["token", "list", "alice", "--json"]);
    assert!(!listed.stdout.contains(token), "the secret is shown once");
    let one = &listed.json()[0];
    assert_eq!((&one["label"], &one["scopes"], &one["live"]), (&json!("laptop"), &json!("repo,user"), &json!(true)));
    assert_eq!(one["hint"], token[token.len() - 4..]);
    let stored = query(&server, "SELECT count(*) FROM tokens WHERE label = 'laptop'");
    assert_eq!(stored, "1");

    let add = |scopes: &str| cli(&server, &["token", "add", "alice", "--scopes", scopes]);
    add("repo,everything").refused(2, &["\"everything\"", "hint: valid scopes: repo:read, repo, user:read"]);
    add("").refused(2, &["at least one scope"]);
    cli(&server, &["token", "add", "nobody", "--scopes", "repo"]).refused(3, &["user nobody not found"]);
    cli(&server, &["token", "add", "alice"]).refused(2, &["--scopes"]);
    cli(&server, &["token", "add", "alice", "--scopes", "repo", "--label", ""]).refused(4, &["label:"]);
    cli(&server, &["token", "add", "alice", "--scopes", "repo", "--expires", "0"]).refused(4, &["expires:"]);
    cli(&server, &["token", "revoke", "alice", "987654"]).refused(3, &["no active token"]);
}

#[rstest]
fn ssh_keys_are_added_listed_and_removed(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    server.add_user("alice");
    server.add_user("bob");
    let git = GitClient::new().with_ssh_key();
    let file = git.public_key();
    let file = file.to_str().expect("temporary paths are UTF-8");

    let added = cli(&server, &["ssh-key", "add", "alice", file]);
    assert!(added.code == Some(0) && added.stdout.starts_with("added SHA256:"), "{}{}", added.stdout, added.stderr);
    cli(&server, &["ssh-key", "add", "alice", file]).refused(4, &["already in use"]);
    cli(&server, &["ssh-key", "add", "bob", file]).refused(4, &["already in use"]);
    cli(&server, &["ssh-key", "add", "nobody", file]).refused(3, &["user nobody not found"]);
    cli(&server, &["ssh-key", "add", "alice", "/nonexistent.pub"]).refused(2, &["cannot read /nonexistent.pub"]);
    let bad = git.fresh_dir().join("bad.pub");
    let bad_file = bad.to_str().expect("temporary paths are UTF-8");
    fs::write(&bad, "ssh-ed25519 nonsense\n").expect("our own directory is writable");
    cli(&server, &["ssh-key", "add", "alice", bad_file]).refused(4, &["key:", ".pub file"]);
    fs::write(&bad, crate::api::WEAK_KEY).expect("our own directory is writable");
    cli(&server, &["ssh-key", "add", "alice", bad_file]).refused(4, &["key:", "2048 bits"]);
    fs::write(&bad, b"\xff\xfe").expect("our own directory is writable");
    cli(&server, &["ssh-key", "add", "alice", bad_file]).refused(2, &["cannot read"]);

    let listed = cli(&server, &["ssh-key", "list", "alice", "--json"]).json();
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["title"]), (Some(1), &json!("test")));
    let id = listed[0]["id"].to_string();
    cli(&server, &["ssh-key", "remove", "bob", &id]).refused(3, &["bob has no key"]);
    server.cli_ok(&["ssh-key", "remove", "alice", &id]);
    assert_eq!(cli(&server, &["ssh-key", "list", "alice", "--json"]).json(), json!([]));
}

#[rstest]
fn repositories_are_listed_shown_and_found_on_disk(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let id = alice.create(&server, "project", true)["id"].to_string();

    let listed = cli(&server, &["repo", "list", "--json"]).json();
    let shown = cli(&server, &["repo", "show", "alice/project", "--json"]).json();
    for (field, value) in listed[0].as_object().expect("an entry") {
        assert_eq!(shown[field], *value, "{field}");
    }
    assert_eq!(
        (listed.as_array().map(Vec::len), &shown["old_names"], &shown["offer"]),
        (Some(1), &json!([]), &json!(null))
    );
    assert_eq!(shown, cli(&server, &["repo", "show", &id, "--json"]).json());
    for (field, value) in
        [("slug", "alice/project"), ("visibility", "private"), ("state", "active"), ("default_branch", "main")]
    {
        assert_eq!(shown[field], value, "{field}");
    }
    let path = server.cli_ok(&["repo", "path", "Alice/Project"]);
    let path = Path::new(path.strip_suffix('\n').expect("one line"));
    assert_eq!(shown["path"].as_str(), path.to_str());
    assert!(path.join("HEAD").is_file() && path.ends_with(format!("{id}.git")), "{}", path.display());

    let table = cli(&server, &["repo", "list"]).stdout;
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("ID ") && lines[1].contains("alice/project"), "{table}");
    assert!(cli(&server, &["repo", "show", &id]).stdout.contains("default_branch"));
    for absent in ["alice/absent", "nobody/project", "987654", "nonsense", "../x", ""] {
        for command in ["show", "path"] {
            cli(&server, &["repo", command, absent]).refused(3, &["not found", "`abide repo list`"]);
        }
    }
}

#[rstest]
fn jobs_are_run_listed_and_run_again(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let ran = cli(&server, &["jobs", "run", "push:reconcile"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "push:reconcile done\n"), "{}", ran.stderr);
    cli(&server, &["jobs", "run", "nonsense"])
        .refused(2, &["unknown kind of job nonsense", "repo:maintain, push:reconcile"]);
    cli(&server, &["jobs", "run", "repo:maintain"]).refused(1, &["repo:maintain failed", "lacks repo_id"]);
    cli(&server, &["jobs", "run", "repo:maintain", "--payload", "{"]).refused(2, &["--payload is not valid JSON"]);
    let missing = cli(&server, &["jobs", "run", "repo:maintain", "--payload", "{\"repo_id\": 987654}"]);
    assert_eq!(missing.code, Some(0), "what is gone needs no tidying: {}", missing.stderr);

    let failed = cli(&server, &["jobs", "list", "--state", "failed", "--json"]).json();
    assert_eq!(failed.as_array().map(Vec::len), Some(1), "{failed}");
    assert!(failed[0]["last_error"].as_str().is_some_and(|error| error.contains("repo_id")), "{failed}");
    assert!(cli(&server, &["jobs", "list"]).stdout.contains("push:reconcile"));
    cli(&server, &["jobs", "list", "--state", "odd"]).refused(2, &["possible values: waiting, running, done, failed"]);

    cli(&server, &["jobs", "retry", "987654"]).refused(3, &["no ended job has the id 987654"]);
    let id = failed[0]["id"].to_string();
    assert_eq!(server.cli_ok(&["jobs", "retry", &id]), format!("queued job {id} again\n"));
    // The server takes it up, and it fails as before.
    eventually(Duration::from_secs(20), || {
        let all = cli(&server, &["jobs", "list", "--state", "failed", "--json"]).json();
        all.as_array().into_iter().flatten().any(|job| job["id"] == failed[0]["id"])
    });
}

/// Runs the doctor, which must find exactly this, and complain in these words.
#[track_caller]
fn assert_finding(server: &Server, check: &str, words: &[&str]) {
    let said = cli(server, &["doctor", "--json"]);
    assert_eq!(said.code, Some(5), "{}{}", said.stdout, said.stderr);
    let report = said.json();
    assert_eq!(report["healthy"], false);
    let findings = report["findings"].as_array().expect("a list of findings");
    assert_eq!(findings.len(), 1, "{report}");
    assert_eq!(findings[0]["check"], check, "{report}");
    let message = findings[0]["message"].as_str().expect("a message");
    for word in words {
        assert!(message.contains(word), "{word:?} is missing: {message}");
    }
    let lines = cli(server, &["doctor"]);
    assert_eq!(lines.code, Some(5));
    assert!(
        lines.stdout.contains(&format!("WRONG  {check}: ")) && lines.stdout.contains("1 problem found."),
        "{}",
        lines.stdout
    );
}

#[rstest]
fn the_doctor_names_every_kind_of_damage(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    let pushed = alice.git.init_work_tree();
    alice.git.commit_file(&pushed, "file.txt", "content\n", "Begin");
    alice.git.ok(&pushed, &["push", "--quiet", &server.http_url("alice", "project"), "main"]);
    // The first push is followed by tidying, which takes locks of its own.
    let maintained =
        || query(&server, "SELECT count(*) FROM jobs WHERE kind = 'repo:maintain' AND state = 'done'") == "1";
    eventually(Duration::from_secs(30), maintained);
    let repo = PathBuf::from(server.cli_ok(&["repo", "path", "alice/project"]).trim());
    let repos = server.data_dir().canonicalize().expect("the server made it").join("repos");

    let healthy = cli(&server, &["doctor", "--json"]);
    assert_eq!(healthy.code, Some(0), "{}{}", healthy.stdout, healthy.stderr);
    let report = healthy.json();
    assert_eq!(
        (&report["healthy"], &report["findings"], &report["repositories"]),
        (&json!(true), &json!([]), &json!(1))
    );
    assert!(report["audit"]["sealed"].as_i64().is_some_and(|sealed| sealed > 0), "{report}");
    assert!(cli(&server, &["doctor"]).stdout.contains("Everything is in order."));

    // A git that is none.
    let other = server.command(&["doctor"]).env("ABIDE_GIT__BINARY", "/bin/echo").output().expect("it starts");
    let said = String::from_utf8_lossy(&other.stdout);
    assert!(other.status.code() == Some(5) && said.contains("WRONG  git: "), "{said}");

    // A lock that nobody holds.
    let lock = repo.join("refs/heads/main.lock");
    fs::write(&lock, "").expect("the repository is ours");
    assert_finding(&server, "lock", &["main.lock", "left behind by a process that has ended"]);
    fs::remove_file(&lock).expect("the repository is ours");

    // A directory without a row.
    let orphan = repos.join("e7/999.git");
    fs::create_dir_all(&orphan).expect("the data directory is ours");
    assert_finding(&server, "orphan", &["999.git", "belongs to no repository"]);
    fs::remove_dir_all(repos.join("e7")).expect("the data directory is ours");

    // A file where only repositories are.
    let stray = repos.join("notes.txt");
    fs::write(&stray, "").expect("the data directory is ours");
    assert_finding(&server, "stray", &["notes.txt"]);
    fs::remove_file(&stray).expect("the data directory is ours");

    // A row without its directory.
    let elsewhere = server.data_dir().join("elsewhere");
    fs::rename(&repo, &elsewhere).expect("the repository is ours");
    assert_finding(&server, "directory", &["alice/project", "has no git repository at"]);
    fs::rename(&elsewhere, &repo).expect("the repository is ours");
    assert_healthy(&server);

    // A row of the audit log that says something else than it did.
    query(&server, "UPDATE audit_log SET action = 'nothing_happened' WHERE action = 'repo_created' RETURNING id");
    assert_finding(&server, "audit chain", &["changed or removed"]);
}

#[rstest]
fn the_doctor_sees_that_a_row_of_the_audit_log_is_gone(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    for name in ["alice", "bob", "carol"] {
        server.add_user(name);
    }
    assert_healthy(&server);
    query(&server, "DELETE FROM audit_log WHERE seq = 2 RETURNING id");
    assert_finding(&server, "audit chain", &["changed or removed"]);
}

#[test]
fn config_shows_every_value_and_where_it_came_from() {
    let database = TestDatabase::new(Engine::Sqlite);
    let dir = database.data_dir();
    let file = dir.join("abide.toml");
    fs::write(&file, "[git]\nmax_push = \"1GiB\"\nlease_ttl = \"9s\"\n[log]\nformat = \"json\"\n").expect("ours");
    let data = dir.to_str().expect("temporary paths are UTF-8");
    let env = [
        ("ABIDE_GIT__LEASE_TTL", "8s"),
        ("ABIDE_SERVER__DATABASE", "postgres://me:secret@h/db"),
        ("ABIDE_MAIL__SMTP_URL", "smtps://me:secret@mail.example.org"),
    ];
    let said = alone(dir, &["config", "--json", "--data", data], &env);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let all = said.json();
    let find = |name: &str| {
        let found = all.as_array().into_iter().flatten().find(|entry| entry["name"] == name);
        let found = found.unwrap_or_else(|| panic!("{name} is not shown"));
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (text("value"), text("source"))
    };
    let pair = |value: &str, source: &str| (value.to_owned(), source.to_owned());
    assert_eq!(find("server.data"), pair(data, "flag"));
    assert_eq!(find("git.lease_ttl"), pair("8s", "environment ABIDE_GIT__LEASE_TTL"), "it wins over the file");
    assert_eq!(find("git.max_push"), pair("1GiB", &format!("file {}", file.display())));
    assert_eq!(find("git.lease_wait"), pair("30s", "default"));
    assert_eq!(find("server.database").0, "postgres://me:***@h/db", "a password is never shown");
    assert_eq!(find("mail.smtp_url").0, "smtps://me:***@mail.example.org", "a password is never shown");
    assert!(!alone(dir, &["config", "--data", data], &env).stdout.contains("secret"));
    assert_eq!(fs::read_dir(dir).expect("ours").count(), 1, "looking makes nothing");

    // The same file under another name, and nothing in the environment.
    let named = alone(dir, &["config", "--config", file.to_str().expect("UTF-8")], &[]);
    assert!(
        named.stdout.lines().any(|line| line.starts_with("log.format") && line.contains("json")),
        "{}",
        named.stdout
    );
}

#[test]
fn config_shows_the_common_settings_and_all_of_them_on_request() {
    let database = TestDatabase::new(Engine::Sqlite);
    let dir = database.data_dir();
    fs::write(dir.join("abide.toml"), "[relay]\noutgoing = 10\n").expect("ours");
    let data = dir.to_str().expect("temporary paths are UTF-8");
    let said = |args: &[&str]| alone(dir, &[&["config", "--data", data], args].concat(), &[]);
    let named = |args: &[&str]| {
        let lines = said(args).stdout;
        let names = lines.lines().skip(1).take_while(|line| !line.is_empty()).filter_map(|line| line.split(' ').next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let all: Vec<_> =
        said(&["--json"]).json().as_array().expect("a list").iter().map(|one| one["name"].clone()).collect();
    assert_eq!(named(&["--all"]), all);
    let common = named(&[]);
    assert!(common.len() < all.len() / 2, "{common:?}");
    for (name, shown) in [("server.public_url", true), ("relay.outgoing", true), ("relay.counted", false)] {
        assert_eq!(common.iter().any(|one| one == name), shown, "{name}");
    }
    assert!(said(&[]).stdout.contains("abide config --all"));
}

#[test]
fn a_former_setting_gets_a_warning() {
    let database = TestDatabase::new(Engine::Sqlite);
    let dir = database.data_dir();
    fs::write(dir.join("abide.toml"), "[git]\nheavy = 8\n").expect("ours");
    let data = dir.to_str().expect("temporary paths are UTF-8");
    let said = alone(dir, &["config", "--data", data], &[("ABIDE_JOBS__POLL", "2s")]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    for words in [["warning: git.heavy", "abide.toml"], ["warning: jobs.poll", "ABIDE_JOBS__POLL"]] {
        let line = said.stderr.lines().find(|line| line.starts_with(words[0])).unwrap_or_default();
        assert!(line.contains(words[1]) && line.contains("its value is ignored"), "{}", said.stderr);
    }
}

#[rstest]
#[case::unknown_key("[git]\nmax_pusch = \"1GiB\"\n", &[], &["git.max_pusch", "abide.toml", "git.max_push"])]
#[case::bad_value("[git]\nlease_ttl = \"soon\"\n", &[], &["git.lease_ttl", "\"soon\"", "abide.toml", "a number with a unit"])]
#[case::bad_environment("", &[("ABIDE_LOG__FORMAT", "xml")], &["log.format", "\"xml\"", "ABIDE_LOG__FORMAT", "text or json"])]
#[case::misspelt_variable("", &[("ABIDE_GIT__MAX_PUSCH", "1")], &["git.max_pusch", "ABIDE_GIT__MAX_PUSCH"])]
#[case::not_toml("[git\n", &[], &["abide.toml", "not valid TOML"])]
fn a_bad_configuration_is_refused_by_key_and_rule(
    #[case] file: &str,
    #[case] env: &[(&str, &str)],
    #[case] words: &[&str],
) {
    let database = TestDatabase::new(Engine::Sqlite);
    let dir = database.data_dir();
    fs::write(dir.join("abide.toml"), file).expect("ours");
    let data = dir.to_str().expect("temporary paths are UTF-8");
    for command in [&["config"][..], &["serve"], &["user", "list"]] {
        alone(dir, &[command, &["--data", data]].concat(), env).refused(2, words);
    }
    assert!(!dir.join("abide.db").exists(), "nothing is made before the configuration is right");
}

#[test]
fn the_command_line_works_where_no_server_ever_ran() {
    let database = TestDatabase::new(Engine::Sqlite);
    let dir = database.data_dir().join("fresh");
    let data = dir.to_str().expect("temporary paths are UTF-8");
    let list = ["user", "list", "--json", "--data", data];
    alone(database.data_dir(), &list, &[]).refused(3, &["does not exist", "--data DIR"]);
    assert!(!dir.exists());
    let said = alone(database.data_dir(), &["user", "invite", "--data", data], &[]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("created data directory"), "{}", said.stderr);
    assert_eq!(alone(database.data_dir(), &list, &[]).json(), json!([]));
    let healthy = alone(database.data_dir(), &["doctor", "--data", data], &[]);
    assert_eq!((healthy.code, healthy.stderr.as_str()), (Some(0), ""), "{}", healthy.stdout);

    let usage = alone(database.data_dir(), &["nonsense"], &[]);
    usage.refused(2, &["unrecognized subcommand"]);
    for args in [&["--help"][..], &["--version"], &["repo", "--help"]] {
        assert_eq!(alone(database.data_dir(), args, &[]).code, Some(0), "{args:?}");
    }
}

#[rstest]
fn a_second_server_on_the_same_directory_is_refused(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--ssh-listen", "127.0.0.1:0"];
    let second = cli(&server, &serve);
    second.refused(4, &["another Abide server already uses", "its own --data directory"]);
    let (http, ssh) = (server.http_addr().to_string(), "127.0.0.1:0");
    let same_port = cli(&server, &["serve", "--listen", &http, "--ssh-listen", ssh]);
    same_port.refused(1, &[&http, "hint: "]);
    server.add_user("alice");
    assert_healthy(&server);
}

#[test]
fn a_server_needs_a_database_that_is_there() {
    let database = TestDatabase::new(Engine::Sqlite);
    let dir = database.data_dir();
    let data = dir.to_str().expect("temporary paths are UTF-8");
    let url = "postgres://nobody:hunter2@127.0.0.1:1/absent";
    let said =
        alone(dir, &["user", "list", "--data", data, "--database", url], &[("ABIDE_DATABASE__BUSY_TIMEOUT", "1s")]);
    said.refused(1, &[]);
    assert!(!said.stderr.contains("hunter2"), "no password is shown: {}", said.stderr);
}

#[test]
fn help_documents_the_exit_codes() {
    let database = TestDatabase::new(Engine::Sqlite);
    let help = alone(database.data_dir(), &["--help"], &[]).stdout;
    for code in ["0", "1", "2", "3", "4", "5"] {
        let documented =
            help.lines().skip_while(|line| !line.starts_with("Exit codes")).any(|line| line.trim().starts_with(code));
        assert!(documented, "{code}: {help}");
    }
}
