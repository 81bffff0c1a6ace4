//! A server, Alice, and her public repository `alice/demo`, reached by one road.

use crate::support::{self, Person, assert_healthy, person, push_events, query};
use abide_testkit::{Engine, GitClient, Server, eventually, http};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// More than anything here takes, even on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// How git reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Road {
    Http,
    Ssh,
}

/// Names of refs and what they point to.
pub type Refs = BTreeMap<String, String>;

/// Common start of every scenario.
pub struct Setup {
    pub server: Server,
    pub road: Road,
    pub alice: Person,
    /// The id of her repository.
    pub id: i64,
}

impl Setup {
    pub fn new(road: Road, engine: Engine) -> Self {
        Self::on(support::server(engine), road)
    }

    /// On a server that was started with settings of its own.
    pub fn on(server: Server, road: Road) -> Self {
        Self::with_default_branch(server, road, "main")
    }

    /// With another default branch.
    pub fn with_default_branch(server: Server, road: Road, branch: &str) -> Self {
        let alice = equipped(person(&server, "alice"), &server, road);
        let body = json!({ "name": "demo", "default_branch": branch });
        let made = http::post(server.http_addr(), "/api/v3/user/repos", Some(&alice.token), &body);
        assert_eq!(made.status, 201, "{}", made.text());
        let id = made.json()["id"].as_i64().expect("a repository has an id");
        Self { server, road, alice, id }
    }

    /// Alice's client.
    pub fn git(&self) -> &GitClient {
        &self.alice.git
    }

    /// Someone else, who can reach the server by the same road.
    pub fn person(&self, name: &'static str) -> Person {
        equipped(person(&self.server, name), &self.server, self.road)
    }

    /// Someone else, with a role in Alice's repository.
    pub fn collaborator(&self, name: &'static str, role: &str) -> Person {
        let someone = self.person(name);
        let path = format!("/api/v3/repos/alice/demo/collaborators/{name}");
        let response =
            http::put(self.server.http_addr(), &path, Some(&self.alice.token), &json!({ "permission": role }));
        assert!(matches!(response.status, 201 | 204), "{} {}", response.status, response.text());
        someone
    }

    /// The address of Alice's repository.
    pub fn url(&self) -> String {
        self.url_of("alice/demo.git")
    }

    /// The address of any path on this road.
    pub fn url_of(&self, path: &str) -> String {
        match self.road {
            Road::Http => format!("{}/{path}", self.server.url()),
            Road::Ssh => format!("ssh://git@{}/{path}", self.server.ssh_addr()),
        }
    }

    /// A fresh repository of Alice's that knows this one as `origin`.
    pub fn work_tree(&self) -> PathBuf {
        self.git().init_work_tree_of(&self.url())
    }

    /// A work tree whose first commit is pushed to `main`; also the commit.
    pub fn pushed(&self) -> (PathBuf, String) {
        let work = self.work_tree();
        let first = self.git().commit_file(&work, "README.md", "hello\n", "Say hello");
        self.git().ok(&work, &["push", "--quiet", "origin", "main"]);
        (work, first)
    }

    /// A clone of Alice's.
    #[track_caller]
    pub fn clone(&self, options: &[&str]) -> PathBuf {
        clone(self.git(), &self.url(), options)
    }

    /// Where the server keeps the repository.
    pub fn bare(&self) -> PathBuf {
        self.server.data_dir().join(format!("repos/{:02x}/{}.git", self.id & 0xff, self.id))
    }

    /// Output of git in the repository on the server's disk.
    #[track_caller]
    pub fn stored(&self, args: &[&str]) -> String {
        self.git().ok(&self.bare(), args)
    }

    /// The refs on the server's disk.
    #[track_caller]
    pub fn refs(&self) -> Refs {
        let listed = self.stored(&["for-each-ref", "--format=%(objectname)\t%(refname)"]);
        parse_refs(&listed)
    }

    /// How many objects the server's disk has for the repository, loose or packed.
    pub fn objects(&self) -> usize {
        let all = ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"];
        self.stored(&all).lines().count()
    }

    /// Waits until no upload has left anything behind.
    #[track_caller]
    pub fn assert_nothing_incoming(&self) {
        let incoming = self.server.data_dir().join("incoming");
        eventually(SOON, || fs::read_dir(&incoming).expect("the server makes this directory").next().is_none());
    }

    /// Waits until nothing is left to be tidied.
    #[track_caller]
    pub fn wait_for_jobs(&self) {
        let left = "SELECT count(*) FROM jobs WHERE kind = 'repo:maintain' AND state <> 'done'";
        eventually(SOON, || query(&self.server, left) == "0");
    }

    /// The end of every scenario that pushes: as many push events as pushes that moved something, nothing left of any
    /// upload, every object in its place, and nothing for `abide doctor` to complain about.
    #[track_caller]
    pub fn assert_settled(&self, pushes: i64) {
        assert_eq!(push_events(&self.server, self.id), pushes, "push events");
        self.assert_nothing_incoming();
        self.stored(&["fsck", "--strict", "--no-dangling", "--no-progress"]);
        assert_healthy(&self.server);
    }
}

fn equipped(person: Person, server: &Server, road: Road) -> Person {
    match road {
        Road::Http => person,
        Road::Ssh => person.with_ssh(server),
    }
}

/// Somebody's clone.
#[track_caller]
pub fn clone(git: &GitClient, url: &str, options: &[&str]) -> PathBuf {
    let dir = git.fresh_dir();
    let args = [&["clone", "--quiet"], options, &[url, "."]].concat();
    git.ok(&dir, &args);
    dir
}

/// Refs of a repository as a client gets them.
#[track_caller]
pub fn ls_remote(git: &GitClient, url: &str, options: &[&str]) -> Refs {
    let args = [options, &["ls-remote", url]].concat();
    parse_refs(&git.ok(&git.fresh_dir(), &args))
}

fn parse_refs(lines: &str) -> Refs {
    let pairs = lines.lines().map(|line| line.split_once('\t').expect("an id and a name"));
    pairs.map(|(oid, name)| (name.to_owned(), oid.to_owned())).collect()
}

/// Refs to compare with.
pub fn refs<const N: usize>(expected: [(&str, &str); N]) -> Refs {
    expected.into_iter().map(|(name, oid)| (name.to_owned(), oid.to_owned())).collect()
}

/// Runs `git ARGS`, which must succeed, and returns what it tells on the terminal.
#[track_caller]
pub fn stderr_of(git: &GitClient, dir: &Path, args: &[&str]) -> String {
    let output = git.run(dir, args);
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {} failed\n{reported}", args.join(" "));
    reported
}

/// This client with a trace of what it does (`GIT_TRACE_PACKET`, `GIT_TRACE_CURL`, …), and the file with it.
pub fn traced(git: &GitClient, variable: &str) -> (GitClient, PathBuf) {
    let file = git.fresh_dir().join("trace");
    let path = file.to_str().expect("temporary paths are UTF-8").to_owned();
    (git.clone().with_env(variable, &path), file)
}

/// Runs a shell script whenever git has heard the server's refs and is about to push: the moment in which somebody
/// else may be quicker.
pub fn before_each_push(work_tree: &Path, script: &str) {
    let hook = work_tree.join(".git/hooks/pre-push");
    fs::create_dir_all(hook.parent().expect("a hook is in a directory")).expect("a clone is ours");
    let script = format!("#!/bin/sh\nset -e\nunset $(git rev-parse --local-env-vars)\n{script}\n");
    fs::write(&hook, script).expect("a clone is ours");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a hook is ours");
}

/// Bytes that do not compress, the same for the same seed.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.push((state >> 32) as u8);
    }
    bytes
}
