//! `abide repo`: what an operator does to a repository's life, beside a running server.

use crate::cli::{Said, cli};
use crate::support::{Person, assert_healthy, person, query, server};
use abide_testkit::http::{self, Response};
use abide_testkit::{Engine, Server};
use rstest::rstest;
use serde_json::{Value, json};

/// Output of a command that must succeed, in one line.
#[track_caller]
fn said(server: &Server, args: &[&str]) -> String {
    let Said { code, stdout, stderr } = cli(server, args);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{args:?}");
    let line = stdout.strip_suffix('\n').unwrap_or_else(|| panic!("{args:?} said nothing"));
    assert!(!line.contains('\n'), "{line}");
    line.to_owned()
}

/// JSON output of a command that must succeed.
#[track_caller]
fn json_of(server: &Server, args: &[&str]) -> Value {
    let answer = cli(server, args);
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    answer.json()
}

fn get(server: &Server, person: &Person, path: &str) -> Response {
    http::get(server.http_addr(), &format!("/api/v3{path}"), Some(&person.token))
}

fn delete(server: &Server, person: &Person, slug: &str) -> u16 {
    http::delete(server.http_addr(), &format!("/api/v3/repos/{slug}"), Some(&person.token)).status
}

fn traces(server: &Server) -> String {
    query(server, "SELECT (SELECT count(*) FROM audit_log), (SELECT count(*) FROM domain_events)")
}

fn latest(server: &Server) -> String {
    query(server, "SELECT action, actor_user_id FROM audit_log ORDER BY id DESC LIMIT 1")
}

#[rstest]
fn rename(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let id = alice.create(&server, "project", true)["id"].to_string();
    alice.create(&server, "taken", false);

    assert_eq!(
        said(&server, &["repo", "rename", "alice/project", "Better"]),
        "renamed alice/project to alice/better; the old URL redirects; repository names are lowercase"
    );
    assert_eq!(latest(&server), "repo_renamed|", "nobody in particular did it: the operator");
    assert_eq!(get(&server, &alice, "/repos/alice/project").status, 301);
    assert!(
        said(&server, &["repo", "rename", "alice/taken", "project"])
            .ends_with("redirected to another repository until now")
    );

    let before = traces(&server);
    cli(&server, &["repo", "rename", &id, "better"]).refused(4, &["the repository already has this name"]);
    cli(&server, &["repo", "rename", &id, "project"]).refused(4, &["already has a repository with this name"]);
    cli(&server, &["repo", "rename", &id, "a b"]).refused(4, &["name:", "only letters"]);
    cli(&server, &["repo", "rename", &id, "settings"]).refused(4, &["name:", "reserved"]);
    cli(&server, &["repo", "rename", "alice/absent", "x"])
        .refused(3, &["repository alice/absent not found", "`abide repo list`"]);
    cli(&server, &["repo", "rename", &id]).refused(2, &["<NEW_NAME>"]);
    assert_eq!(traces(&server), before, "what was refused leaves no trace");

    // An operator is not held to the limit of renames.
    for name in ["n1", "n2", "n3", "n4", "n5", "n6"] {
        let renamed = json_of(&server, &["repo", "rename", &id, name, "--json"]);
        assert_eq!((&renamed["slug"], &renamed["id"].to_string()), (&json!(format!("alice/{name}")), &id));
        assert!(renamed["message"].as_str().is_some_and(|text| text.starts_with("renamed ")), "{renamed}");
    }
    let shown = json_of(&server, &["repo", "show", &id, "--json"]);
    // The last one is borne by another repository, which hides it and takes nothing away.
    let old = ["alice/n5", "alice/n4", "alice/n3", "alice/n2", "alice/n1", "alice/better", "alice/project"];
    assert_eq!(shown["old_names"], json!(old));
    assert!(cli(&server, &["repo", "show", "alice/better"]).stdout.contains("alice/n5, alice/n4"));
    assert_healthy(&server);
}

#[rstest]
fn transfer(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let id = alice.create(&server, "project", true)["id"].to_string();

    let offered = json_of(&server, &["repo", "transfer", "alice/project", "Bob", "--offer", "--json"]);
    let offer = &offered["offer"];
    assert_eq!((&offered["slug"], &offer["to"]), (&json!("alice/project"), &json!("bob")));
    assert_eq!(offer["expires_at"], get(&server, &bob, "/user/repository_transfers").json()[0]["expires_at"]);
    let shown = json_of(&server, &["repo", "show", &id, "--json"]);
    assert_eq!(&shown["offer"], offer);
    cli(&server, &["repo", "transfer", &id, "bob", "--offer"]).refused(4, &["cancel that offer first"]);

    // At once, whatever was offered.
    assert_eq!(
        said(&server, &["repo", "transfer", &id, "bob"]),
        "alice/project is now bob/project; the old URL redirects"
    );
    assert_eq!(get(&server, &bob, "/repos/alice/project").status, 301);
    assert_eq!(get(&server, &alice, "/repos/bob/project").status, 404, "whose it was has no part in it");
    let statuses = query(&server, "SELECT status FROM repo_transfers ORDER BY id");
    assert_eq!(statuses, "canceled\naccepted");

    cli(&server, &["repo", "transfer", &id, "bob"]).refused(4, &["already owns the repository"]);
    cli(&server, &["repo", "transfer", &id, "nobody"]).refused(3, &["user nobody not found", "`abide user list`"]);
    cli(&server, &["repo", "transfer", "987654", "bob"]).refused(3, &["repository 987654 not found"]);
    alice.create(&server, "project", false);
    cli(&server, &["repo", "transfer", &id, "alice"]).refused(4, &["already has a repository with this name"]);
    server.cli_ok(&["user", "suspend", "alice"]);
    for how in [&["repo", "transfer", &id, "alice"][..], &["repo", "transfer", &id, "alice", "--offer"]] {
        cli(&server, how).refused(4, &["no such account, or it cannot own repositories"]);
    }
    query(&server, "UPDATE repos SET governance = 'nostr'");
    server.cli_ok(&["user", "unsuspend", "alice"]);
    cli(&server, &["repo", "transfer", &id, "alice"]).refused(4, &["this repository belongs to a nostr key"]);
    assert_eq!(query(&server, "SELECT count(*) FROM repo_transfers"), "2");
    assert_healthy(&server);
}

#[rstest]
fn archive_and_unarchive(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    alice.create(&server, "project", false);
    let archived = || get(&server, &alice, "/repos/alice/project").json()["archived"].clone();

    cli(&server, &["repo", "unarchive", "alice/project"]).refused(4, &["is not archived"]);
    let line = said(&server, &["repo", "archive", "alice/project"]);
    assert!(line.starts_with("archived alice/project: it is read-only"), "{line}");
    assert_eq!((archived(), latest(&server)), (json!(true), "repo_archived|".to_owned()));
    cli(&server, &["repo", "archive", "alice/project"]).refused(4, &["is already archived"]);
    let back = json_of(&server, &["repo", "unarchive", "alice/project", "--json"]);
    assert_eq!((&back["state"], archived()), (&json!("active"), json!(false)));
    for command in ["archive", "unarchive"] {
        cli(&server, &["repo", command, "alice/absent"]).refused(3, &["repository alice/absent not found"]);
    }
}

#[rstest]
fn visibility(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    alice.create(&server, "project", false);
    let set = |to: &str| said(&server, &["repo", "visibility", "alice/project", to]);

    assert!(set("private").contains("is now private") && set("private").contains("is already private"));
    assert_eq!(get(&server, &bob, "/repos/alice/project").status, 404);
    let before = traces(&server);
    assert_eq!(set("private"), "alice/project is already private");
    assert_eq!(traces(&server), before);
    assert_eq!(set("public"), "alice/project is now public: everyone can read it");
    assert_eq!(get(&server, &bob, "/repos/alice/project").status, 200);
    let said = json_of(&server, &["repo", "visibility", "alice/project", "private", "--json"]);
    assert!(said["message"].as_str().is_some_and(|text| text.contains("existing clones are not affected")), "{said}");

    cli(&server, &["repo", "visibility", "alice/project", "internal"]).refused(2, &["public, private"]);
    cli(&server, &["repo", "visibility", "alice/absent", "public"]).refused(3, &["repository alice/absent not found"]);
    set("public");
    query(&server, "UPDATE repos SET governance = 'nostr'");
    cli(&server, &["repo", "visibility", "alice/project", "private"]).refused(4, &["belongs to a nostr key"]);
}

#[rstest]
fn delete_and_restore(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let id = alice.create(&server, "project", false)["id"].to_string();
    cli(&server, &["repo", "restore", "alice/project"]).refused(4, &["is not deleted", "`abide repo delete`"]);

    let line = said(&server, &["repo", "delete", "alice/project"]);
    let shown = json_of(&server, &["repo", "show", "alice/project", "--json"]);
    let until = shown["restore_until"].as_str().expect("a time");
    assert_eq!(line, format!("deleted alice/project; `abide repo restore {id}` restores it until {until}"));
    assert_eq!((&shown["state"], &shown["id"].to_string()), (&json!("deleted"), &id));
    assert!(shown["deleted_at"].is_string());
    assert_eq!(get(&server, &alice, "/repos/alice/project").status, 404);
    let before = traces(&server);
    for refused in [
        &["repo", "delete", &id][..],
        &["repo", "delete", "alice/project"],
        &["repo", "rename", &id, "x"],
        &["repo", "archive", &id],
        &["repo", "visibility", &id, "private"],
        &["repo", "transfer", &id, "alice"],
    ] {
        cli(&server, refused).refused(4, &["is already deleted", "`abide repo restore`"]);
    }
    assert_eq!(
        json_of(&server, &["repo", "show", &id, "--json"]),
        shown,
        "a second deletion does not start the clock anew"
    );
    assert_eq!(traces(&server), before);
    assert_eq!(said(&server, &["repo", "restore", "alice/project"]), "restored alice/project");
    assert_eq!(get(&server, &alice, "/repos/alice/project").json()["id"].to_string(), id);

    // Its name is taken meanwhile, by one that is deleted too in the end.
    let deleted = json_of(&server, &["repo", "delete", &id, "--json"]);
    assert_eq!(deleted["state"], "deleted");
    let second = alice.create(&server, "project", false)["id"].to_string();
    assert_eq!(json_of(&server, &["repo", "show", "alice/project", "--json"])["id"].to_string(), second);
    cli(&server, &["repo", "restore", "alice/project"]).refused(4, &["already has a repository with this name"]);
    assert_eq!(
        said(&server, &["repo", "restore", "alice/project", "--name", "Other"]),
        "restored alice/project as alice/other; repository names are lowercase"
    );
    for slug in ["alice/other", "alice/project"] {
        assert_eq!(delete(&server, &alice, slug), 204);
    }
    assert_eq!(json_of(&server, &["repo", "restore", &second, "--json"])["state"], "active");
    assert_eq!(delete(&server, &alice, "alice/project"), 204);
    let third = alice.create(&server, "project", false)["id"].to_string();
    assert_eq!(delete(&server, &alice, "alice/project"), 204);
    for command in [&["repo", "restore", "alice/project"][..], &["repo", "show", "alice/project"]] {
        let ids = format!("{third}, {second}");
        cli(&server, command).refused(4, &["several deleted repositories", &ids, "use the id instead of the name"]);
    }

    query(&server, "UPDATE repos SET deleted_at = deleted_at - 604800000000 WHERE deleted_at IS NOT NULL");
    cli(&server, &["repo", "restore", &third]).refused(4, &["restore period of this repository has ended"]);
    cli(&server, &["repo", "restore", "987654"]).refused(3, &["repository 987654 not found"]);
    cli(&server, &["repo", "restore", "alice/absent"]).refused(3, &["repository alice/absent not found"]);
}

#[rstest]
fn purge(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let alice = person(&server, "alice");
    let id = alice.create(&server, "project", false)["id"].to_string();
    let path = server.cli_ok(&["repo", "path", &id]);
    let directory = std::path::Path::new(path.trim());
    let purge = |repo: &str, confirm: &str| cli(&server, &["repo", "purge", repo, "--confirm", confirm]);

    purge("alice/project", "alice/project").refused(4, &["is not deleted"]);
    assert_eq!(delete(&server, &alice, "alice/project"), 204);
    let other = alice.create(&server, "project", false)["id"].to_string();
    let before = traces(&server);
    cli(&server, &["repo", "purge", &id]).refused(2, &["--confirm"]);
    purge(&id, "alice/other").refused(4, &["the repository is alice/project", "nothing was deleted"]);
    purge(&id, &id).refused(4, &["the repository is alice/project"]);
    purge("987654", "alice/project").refused(3, &["repository 987654 not found"]);
    purge(&other, "alice/project").refused(4, &["is not deleted"]);
    assert_eq!(traces(&server), before);
    assert!(directory.is_dir());

    let line = said(&server, &["repo", "purge", "alice/project", "--confirm", "Alice/Project"]);
    assert_eq!(line, format!("permanently deleted alice/project (id {id}) with all its data"));
    assert!(!directory.exists());
    assert_eq!(latest(&server), "repo_hard_deleted|");
    purge(&id, "alice/project").refused(3, &[]);
    cli(&server, &["repo", "restore", &id]).refused(3, &[]);
    assert_eq!(get(&server, &alice, "/repos/alice/project").json()["id"].to_string(), other, "the other one lives");
    assert_eq!(delete(&server, &alice, "alice/project"), 204);
    let removed = json_of(&server, &["repo", "purge", &other, "--confirm", "alice/project", "--json"]);
    assert_eq!((&removed["state"], &removed["id"].to_string()), (&json!("removed"), &other));
    assert_healthy(&server);
}
