//! Someone who works with the published `ngit`: a key, a home, and no relay but the server under test.

use crate::clients::installed;
use abide_nostr::Event;
use abide_testkit::{GitClient, Key, Nostr, Server};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Where ngit would find relays and servers of its own choice. Each is set to the server under test.
const CHOICES: [&str; 5] = [
    "NGIT_RELAY_DEFAULT_SET",
    "NGIT_RELAY_ANNOUNCEMENT_INDEXER_SET",
    "NGIT_RELAY_BLASTER_SET",
    "NGIT_RELAY_SIGNER_FALLBACK_SET",
    "NGIT_GRASP_DEFAULT_SET",
];

pub struct Person {
    pub key: Key,
    pub git: GitClient,
    ngit: PathBuf,
}

impl Person {
    /// The person number `n`, who has told ngit their key.
    pub fn new(server: &Server, n: u32) -> Self {
        let binaries = PathBuf::from(installed("ABIDE_TEST_NGIT", "ngit"));
        let path = std::env::var("PATH").unwrap_or_default();
        // git finds `git-remote-nostr` by its path.
        let mut git = GitClient::new()
            .with_env("PATH", &format!("{}:{path}", binaries.display()))
            .with_env("NGIT_SECRET_STORAGE", "file");
        for choice in CHOICES {
            git = git.with_env(choice, &server.url().replacen("http", "ws", 1));
        }
        let person = Self { key: Key::new(n), git, ngit: binaries.join("ngit") };
        let home = person.git.fresh_dir();
        person.ngit(&home, &["account", "login", "--nsec", &person.key.nsec()]);
        person
    }

    /// Runs `ngit ARGS`, which must succeed, and returns what it prints.
    #[track_caller]
    pub fn ngit(&self, dir: &Path, args: &[&str]) -> String {
        ok(&mut self.git.program(&self.ngit, dir, args))
    }

    /// Runs `git ARGS`, which must succeed, and returns all that it says: git and its helpers talk on both outputs.
    #[track_caller]
    pub fn git(&self, dir: &Path, args: &[&str]) -> String {
        ok(&mut self.git.command(dir, args))
    }

    /// Clones from an address.
    #[track_caller]
    pub fn clone(&self, url: &str) -> PathBuf {
        let into = self.git.fresh_dir();
        self.git(&into, &["clone", url, "clone"]);
        into.join("clone")
    }

    /// The commit or tag object that a name stands for.
    pub fn oid(&self, dir: &Path, name: &str) -> String {
        self.git.ok(dir, &["rev-parse", name])
    }
}

#[track_caller]
fn ok(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = said(&output);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    said
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The events of a kind that the relay serves.
pub fn served(server: &Server, kind: u16) -> Vec<Event> {
    asked(server, json!({ "kinds": [kind] }))
}

/// The events that the relay serves for a filter.
pub fn asked(server: &Server, filter: Value) -> Vec<Event> {
    Nostr::connect(&server.url()).req(&[filter])
}
