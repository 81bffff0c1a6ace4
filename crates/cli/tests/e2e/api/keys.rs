//! A person's SSH keys.

use super::{Api, assert_error, assert_refused};
use crate::support::{person, server};
use abide_testkit::{Engine, GitClient};
use rstest::rstest;
use serde_json::json;
use std::fs;

/// 1024 bits.
pub const WEAK: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQCq8N7zAmGLVICK8hIYd6gkbzJqNGsd6ptJ9zi92X+mTufvVCuNZp798MLytgbZGyiMEtQZx5XHJCcnk+OUqK9I/cgOzIp0fcScQMQcVJxPY7tdeKNqaqB4WktQTRgXq4EVEo8hvgYYLojSw2ipEPcATonnlxq4c4ik3hUxQ0YjEw== weak";

fn fresh_key() -> String {
    fs::read_to_string(GitClient::new().with_ssh_key().public_key()).expect("the key was just made")
}

#[rstest]
fn a_key_that_cannot_be_used_is_refused_with_its_rule(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let api = Api::of(&server, &alice);
    let key = fresh_key();
    let add = |title: &str, line: &str| api.post("/user/keys", json!({ "title": title, "key": line }));

    let two = format!("{key}{key}");
    let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";
    let cut = &key[..40];
    for bad in ["", "nonsense", "ssh-ed25519", "ssh-ed25519 AAAA", cut, &two, private, "\0", &"x".repeat(100_000)] {
        let rule = assert_refused(&add("title", bad), "key", "invalid");
        assert!(rule.contains(".pub file"), "{rule}");
    }
    let rule = assert_refused(&add("title", WEAK), "key", "invalid");
    assert!(rule.contains("2048 bits") && rule.contains("ssh-keygen -t ed25519"), "{rule}");
    for title in ["x".repeat(201), "nul\0".to_owned(), "two\nlines".to_owned()] {
        let rule = assert_refused(&add(&title, &key), "title", "invalid");
        assert!(rule.contains("200 characters"), "{rule}");
    }
    assert_eq!(api.read("/user/keys"), json!([]));

    assert_eq!(add("title", &key).status, 201);
    let elsewhere = key.replace("test", "another comment");
    for who in [&api, &Api::of(&server, &bob)] {
        let again = who.post("/user/keys", json!({ "title": "again", "key": elsewhere }));
        assert_refused(&again, "key", "already_exists");
    }
}

#[rstest]
fn nobody_reaches_another_persons_key(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    let server = server(engine);
    let (alice, bob) = (person(&server, "alice"), person(&server, "bob"));
    let (owner, other) = (Api::of(&server, &alice), Api::of(&server, &bob));
    let key = owner.post("/user/keys", json!({ "title": "laptop", "key": fresh_key() })).json();
    let at = format!("/user/keys/{}", key["id"]);

    assert_error(&other.get(&at), 404);
    assert_error(&other.delete(&at), 404);
    assert_eq!(other.read("/user/keys"), json!([]));
    assert_eq!(owner.read(&at), key);

    assert_eq!(owner.delete(&at).status, 204);
    assert_error(&owner.delete(&at), 404);
    assert_eq!(owner.read("/user/keys"), json!([]));
}
